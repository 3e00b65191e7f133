//! Format 1: the fields that it requires, and that its files keep their meaning.

use super::*;
use crate::domain::samples;

/// Rule: later versions read a folder with the same meaning as earlier versions. Operators have
/// copies of these files.
#[test]
fn the_files_of_an_older_release_keep_their_meaning() {
    for toml in samples::FORMAT_1 {
        assert!(toml.contains("\nformat = 1\n"), "{toml}");
        let mut older = samples::from_toml(toml);
        assert!(older.from_format_1, "{}", older.name);
        older.from_format_1 = false;
        let now = samples::schema(&older.name);
        // The bytes of the files differ.
        older.files_hash.clone_from(&now.files_hash);
        // Format 1 has no words for these.
        older.write.numbers = now.write.numbers;
        if let (Some(older), Some(now)) = (&mut older.begin, &now.begin) {
            older.gives_ttl = now.gives_ttl;
        }
        assert_eq!(format!("{older:?}"), format!("{now:?}"));
    }
}

/// Rule: a file of format 1 has every field that format 1 requires, so that an older idemctl reads
/// it in the same way.
#[test]
fn a_field_that_format_1_requires_may_not_be_missing() {
    for (from, message) in [
        ("at = \"result\"\n", "missing field `at`"),
        ("encoding = \"json\"\n", "missing field `encoding`"),
        ("lock_value = \"{owner}\"\n", "missing field `lock_value`"),
        ("lock = \"30s\"\n", "missing field `lock`"),
        ("lock = \"lock:{key}\"\n", "either `record`, or both"),
    ] {
        let error = read(&SOUND.replacen(from, "", 1)).unwrap_err();
        assert!(error.message.contains(message), "{from}: {error}");
    }
    let complete = &SOUND[SOUND.find("[complete]").unwrap()..];
    assert!(
        read(&SOUND.replacen(complete, "", 1))
            .unwrap_err()
            .message
            .contains("missing field `complete`")
    );
}

#[test]
fn fields_and_words_of_format_2_are_rejected() {
    let result = "result = \"result:{key}\"";
    for (line, message) in [
        ("prefix = [\"a\"]", "a list of prefixes needs `format = 2`"),
        ("key = \"x\"", "`key` needs `format = 2`"),
        ("ignore = [\"a:{key}\"]", "`ignore` needs `format = 2`"),
        ("hash = \"sha256(body)\"", "`hash` needs `format = 2`"),
    ] {
        wrong(result, &format!("{result}\n{line}"), 7, message);
    }
    for newer in ["decode = [\"json\"]", "decode_at = { \"/a\" = [\"json\"] }", "type = \"hash\""] {
        wrong(
            "encoding = \"json\"",
            &format!("encoding = \"json\"\n{newer}"),
            23,
            "needs `format = 2`",
        );
    }
    wrong("encoding = \"json\"", "encoding = \"msgpack\"", 22, "`msgpack` needs `format = 2`");
    wrong("\"30s\"", "\"none\"", 9, "`none` needs `format = 2`");
    wrong("\"{owner}\"", "\"{key}\"", 28, "`{key}` needs `format = 2`");
    wrong("[write]", "[write]\nfingerprint_is = \"a\"", 28, "`fingerprint_is` needs `format = 2`");
    wrong("[write]", "[write]\nlock_needs = \"a\"", 28, "`lock_needs` needs `format = 2`");
    wrong("[write]", "[write]\nlock_holds = \"a\"", 28, "`lock_holds` needs `format = 2`");
    let effect = "[effect]\nkeyed = true\n\n[write]";
    wrong("[write]", effect, 27, "`effect` needs `format = 2`");
    wrong("\"{lock_ttl}\"", "\"{now_s}\"", 38, "`{now_s}` needs `format = 2`");
    wrong("nil = true,", "value = \"held\",", 47, "`value` needs `format = 2`");
    wrong(
        "{ lock = \"present\" }",
        "{ fingerprint = \"other\" }",
        47,
        "`fingerprint` needs `format = 2`",
    );
    wrong(
        "{ lock = \"present\" }",
        "{ lock = \"reclaimable\" }",
        47,
        "`reclaimable` needs `format = 2`",
    );
    wrong(result, r"result = 'result:\{a\}:{key}'", 6, "placeholder other than");
}

/// Rule: mistakes that only format 2 rejects remain accepted in format 1, because such folders are
/// in use.
#[test]
fn mistakes_that_only_format_2_rejects_are_accepted() {
    let in_format_2 = SOUND
        .replace("format = 1", "format = 2")
        .replace("state = \"in-", "opaque = true\nstate = \"in-");
    read(&in_format_2).unwrap();
    for (from, to, message) in [
        ("opaque = true\n", "", "matches any text"),
        ("where = { \"/done\" = true }\n", "", "matches any JSON"),
        ("\"{owner}\",\n", "\"{own-er}\",\n", "`{own-er}` is not a placeholder of a call"),
        ("nil = true", "word = \"OK\"", "this reply never applies, because reply 1 of the call"),
        ("\"held\"", "\"reclaimable\"", "`reclaimable` is a word that `when` already uses"),
    ] {
        let changed = in_format_2.replace(from, to);
        assert_ne!(changed, in_format_2);
        let error = read(&changed).unwrap_err();
        assert!(error.message.contains(message), "{error}");
        let schema = read(&changed.replace("format = 2", "format = 1")).unwrap();
        assert!(schema.from_format_1, "{message}");
    }
}

#[test]
fn a_value_may_have_the_name_of_a_later_word() {
    let schema = read(&SOUND.replace("\"held\"", "\"reclaimable\"")).unwrap();
    let conflict = &schema.begin_calls()[1].replies[1];
    assert_eq!(conflict.when[0].keys, [(0, crate::domain::schema::KeyIs::Value(0))]);
}

/// A backslash is literal in format 1.
#[test]
fn a_template_keeps_its_meaning() {
    let toml = SOUND.replace("lock = \"lock:{key}\"", r"lock = '{{lock}\{key}'");
    let error = read(&toml).unwrap_err();
    assert!(error.message.contains("`{lock}` is a placeholder other than"), "{error}");
    let schema = read(&SOUND.replace("lock = \"lock:{key}\"", r"lock = '{lock\{key}}'")).unwrap();
    assert_eq!(schema.redis_keys(b"k")[0], br"{lock\k}");
    let again =
        SOUND.replace("lock = \"lock:{key}\"", &format!("lock = '{}'", schema.templates()[0]));
    let again = read(
        &again
            .replace("format = 1", "format = 2")
            .replace("state = \"in-", "opaque = true\nstate = \"in-"),
    );
    assert_eq!(again.unwrap().redis_keys(b"k")[0], br"{lock\k}");
}
