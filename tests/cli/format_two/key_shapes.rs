//! Redis keys of other shapes than a prefix and a key.

use serde_json::json;

use super::described::{are, describe, inspected, listed};
use crate::support::Server;

const VALUES: &str = r#"
[[value]]
name = "held"
where = { "/status" = "LOCKED" }
required = ["/status"]
state = "in-progress"
[[value]]
name = "done"
where = { "/status" = "DONE" }
required = ["/status"]
state = "completed"
"#;

const HELD: &str = r#"{"status":"LOCKED"}"#;
const DONE: &str = r#"{"status":"DONE"}"#;

const A: &str = "29e18cb356200b53e267423c5f99dece";
const B: &str = "6bd247a7489dbb9ccc0dc1233858c59a";

/// Rule: what is walked is what is claimed. A Redis key whose `{key}` is not of the pattern is nobody's, whichever way it is
/// named, and stays.
#[test]
fn a_pattern_tells_the_keys_of_a_cache_from_those_of_records() {
    let server = Server::start();
    let keys = "record = \"cache:{function}#{key}\"\nkey = \"[0-9a-f]{32}\"";
    describe(&server, "powertools", keys, VALUES);
    server.set(&format!("cache:pay.main#{A}"), HELD, 30_000);
    server.set(&format!("cache:pay.main#{B}"), DONE, 3_000_000);
    let others = [
        "cache:pay.main#session".to_owned(),
        format!("cache:pay.main#{A}0"),
        format!("cache:#{A}"),
    ];
    others.iter().for_each(|other| server.set(other, DONE, 3_000_000));
    let (a, b) = (format!("pay.main#{A}"), format!("pay.main#{B}"));
    assert_eq!(listed(&server, "powertools"), are(&[(&a, "in-progress"), (&b, "completed")]));
    assert_eq!(inspected(&server, "powertools", &a)["redis_keys"][0], format!("cache:{a}"));
    assert_eq!(inspected(&server, "powertools", &format!("cache:{b}"))["key"], b.as_str());
    for other in &others {
        server
            .idemctl(&["inspect", other, "--schema", "powertools"])
            .exits(1)
            .says("a string of")
            .says(other);
        server
            .idemctl(&["purge", other, "--schema", "powertools", "--state", "completed", "--yes"])
            .exits(3);
    }
    server
        .idemctl(&["inspect", "other", "--schema", "powertools"])
        .exits(1)
        .says("cache:{function}#{key}");
    server.idemctl(&["purge", "--all", "--schema", "powertools", "--yes"]).exits(0);
    server.idemctl(&["force-unlock", &a, "--schema", "powertools", "--yes"]).exits(0);
    let mut left = others.to_vec();
    left.sort();
    assert_eq!(server.keys(), left);
}

#[test]
fn of_several_prefixes_all_are_read_and_the_first_is_written() {
    let server = Server::start();
    describe(
        &server,
        "moved",
        "record = \"{prefix}{key}\"\nprefix = [\"idem2:\", \"old:\"]",
        VALUES,
    );
    server.set("idem2:a", HELD, 30_000);
    server.set("old:b", DONE, 3_000_000);
    server.set("other:c", DONE, 3_000_000);
    assert_eq!(listed(&server, "moved"), are(&[("a", "in-progress"), ("b", "completed")]));
    assert_eq!(inspected(&server, "moved", "b")["redis_keys"][0], "old:b");
    assert_eq!(inspected(&server, "moved", "old:b")["key"], "b");
    server.idemctl(&["begin", "new", "--schema", "moved", "--yes"]).exits(0);
    assert_eq!(server.keys(), ["idem2:a", "idem2:new", "old:b", "other:c"]);
    server.idemctl(&["purge", "--all", "--schema", "moved", "--yes"]).exits(0);
    assert_eq!(server.keys(), ["idem2:a", "idem2:new", "other:c"]);
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.size(), 4);
    server.idemctl(&["schema", "show", "moved"]).exits(0).shows("also under old:");
    let alone = server
        .idemctl(&["list", "--schema", "moved", "--prefix", "other:", "-o", "jsonl"])
        .exits(0)
        .json_lines();
    assert_eq!((alone.len(), &alone[0]["key"]), (1, &"c".into()));
}

#[test]
fn braces_are_literal_behind_a_backslash_and_siblings_are_ignored() {
    let server = Server::start();
    let keys = "record = 'asynq:\\{default\\}:unique:{key}'\nignore = ['asynq:\\{default\\}:unique:{key}:lock']";
    describe(&server, "asynq", keys, VALUES);
    server.set("asynq:{default}:unique:a", HELD, 30_000);
    server.set("asynq:{default}:unique:a:lock", DONE, 30_000);
    assert_eq!(listed(&server, "asynq"), are(&[("a", "in-progress")]));
    server.idemctl(&["purge", "--all", "--schema", "asynq", "--yes"]).exits(0);
    assert_eq!(server.size(), 2);
}

/// Rule: a template that is shown says in schema.toml what it says here. Braces that stand for themselves bear their backslashes
/// wherever a template is shown, and nowhere else.
#[test]
fn a_template_is_shown_as_schema_toml_writes_it() {
    let server = Server::start();
    let template = r"asynq:\{default\}:unique:{key}";
    describe(
        &server,
        "asynq",
        &format!("record = '{template}'\nignore = ['{template}:lock']"),
        VALUES,
    );
    server
        .fill((0..9).map(|number| (format!("asynq:{{default}}:unique:{number}"), DONE)), 3_000_000);
    server.fill(
        [("asynq:{default}:unique:Zoe-7", DONE), ("asynq:{default}:unique:a_b.c", DONE)],
        3_000_000,
    );
    let shown =
        server.unnamed(&["schema", "show", "asynq", "-o", "json"]).exits(0).json()["schemas"][0]
            .clone();
    assert_eq!(
        (&shown["keys"][0]["template"], &shown["ignored"]),
        (&json!(template), &json!([format!("{template}:lock")]))
    );
    server
        .unnamed(&["schema", "show", "asynq"])
        .exits(0)
        .shows(format!("Redis key     {template}\n"));
    server.unnamed(&["schema", "list"]).exits(0).shows(template);
    describe(&server, "backslash", r"record = 'a\\b:{key}'", VALUES);
    server.unnamed(&["schema", "show", "backslash"]).exits(0).shows("Redis key     a\\\\b:{key}\n");

    let found = server.idemctl(&["detect", "-o", "json"]).exits(0).json()["groups"][0].clone();
    assert_eq!(found["pattern"], "asynq:{default}:unique:*");
    assert!(
        found["evidence"].to_string().contains(&json!(template).to_string().replace('"', "")),
        "{found}"
    );

    let keys = ["0", "1"].map(|key| format!("asynq:{{default}}:unique:{key}"));
    server.idemctl(&["schema", "new", "drafted", "--from", &keys[0], &keys[1]]).exits(0);
    let draft = server.folder().join(".config/idemctl/schemas/drafted/schema.toml");
    let text = std::fs::read_to_string(&draft).unwrap();
    assert!(text.contains(&format!("record = '{template}' }}")));
    let decided = text.replace("state = \"DECIDE\"", "state = \"completed\"");
    std::fs::write(draft, decided.replace("DECIDE", "1h")).unwrap();
    server.idemctl(&["list", "--schema", "drafted"]).exits(0);
}

/// Rule: of a Redis key that a schema's template fits and its `key` or `ignore` leaves out, that is said, by whichever name the key
/// is asked for; of what is not there, and of schemas that are not chosen, nothing.
#[test]
fn a_key_that_a_schema_leaves_out_is_told_with_the_word_that_does() {
    let server = Server::start();
    describe(
        &server,
        "powertools",
        "record = \"cache:{function}#{key}\"\nkey = \"[0-9a-f]{32}\"",
        VALUES,
    );
    describe(
        &server,
        "jobs",
        "record = \"{prefix}{key}\"\nprefix = [\"job:\", \"old:\"]\nignore = [\"{prefix}{key}:log\"]",
        VALUES,
    );
    for redis_key in ["cache:pay.main#session", "job:a:log", "old:b:log"] {
        server.set(redis_key, DONE, 3_000_000);
    }
    let by_key = "; powertools excludes this key with its `key` pattern\n";
    let by_ignore = "; jobs excludes this key with `ignore`\n";
    for (key, redis_key, schema, told, word) in [
        ("cache:pay.main#session", "cache:pay.main#session", "powertools", by_key, "key"),
        ("pay.main#session", "cache:pay.main#session", "powertools", by_key, "key"),
        ("job:a:log", "job:a:log", "jobs", by_ignore, "ignore"),
        ("a:log", "job:a:log", "jobs", by_ignore, "ignore"),
        ("b:log", "old:b:log", "jobs", by_ignore, "ignore"),
    ] {
        for chosen in [&["--schema", schema][..], &[]] {
            let run = server.idemctl(&[&["inspect", key, "-o", "json"], chosen].concat()).exits(1);
            run.says(format!("{redis_key} exists (a string of"))
                .says(told)
                .says("[keys] in the schema.toml of");
            let there = &run.json()["unclaimed"];
            assert_eq!(there.as_array().map(Vec::len), Some(1), "{key}: {there}");
            assert_eq!(
                there[0]["left_out_by"],
                json!([{ "schema": schema, "word": word }]),
                "{key}"
            );
        }
        let other = server.idemctl(&["inspect", key, "--schema", "express"]).exits(1);
        assert!(!other.all().contains("leaves"), "{}", other.all());
    }
    for key in ["pay.main#nothing", "x:log"] {
        let run = server.idemctl(&["inspect", key]).exits(1);
        assert!(!run.all().contains("leaves"), "{}", run.all());
    }
}

/// Rule: what nothing shows is told with the schema. A prefix in front of the keys stands in front of what is ignored, too.
#[test]
fn a_schema_shows_what_it_ignores() {
    let server = Server::start();
    describe(
        &server,
        "jobs",
        "record = \"job:{key}\"\nignore = [\"job:{key}:lock\", \"job:{key}:log\"]",
        VALUES,
    );
    server
        .unnamed(&["schema", "show", "jobs"])
        .exits(0)
        .shows("  Ignored       job:{key}:lock  job:{key}:log");
    let ignored = |words: &[&str]| {
        let words = [&["schema", "show"], words, &["-o", "json"]].concat();
        server.unnamed(&words).exits(0).json()["schemas"][0]["ignored"].clone()
    };
    assert_eq!(ignored(&["jobs"]), json!(["job:{key}:lock", "job:{key}:log"]));
    assert_eq!(ignored(&["express"]), json!([]));
    assert!(!server.unnamed(&["schema", "show", "express"]).exits(0).text().contains("Ignored"));
    server.states(&[("jobs", "prefix = \"eu:\"")]);
    assert_eq!(ignored(&["jobs"]), json!(["eu:job:{key}:lock", "eu:job:{key}:log"]));
}

#[test]
fn a_schema_shows_the_pattern_of_its_keys() {
    let server = Server::start();
    describe(&server, "jobs", "record = \"job:{key}\"\nkey = \"[0-9a-f]{32}\"", VALUES);
    server
        .unnamed(&["schema", "show", "jobs"])
        .exits(0)
        .shows("  Key           matches [0-9a-f]{32}");
    let pattern = |name: &str| {
        server.unnamed(&["schema", "show", name, "-o", "json"]).exits(0).json()["schemas"][0]["key_pattern"].clone()
    };
    assert_eq!((pattern("jobs"), pattern("express")), (json!("[0-9a-f]{32}"), json!(null)));
}

#[test]
fn one_lock_for_all_is_a_record_of_its_own() {
    let server = Server::start();
    describe(&server, "billing", "record = \"billing:lock\"", VALUES);
    server.put("billing:lock", HELD);
    server.put("billing:lock2", HELD);
    assert_eq!(listed(&server, "billing"), are(&[("billing:lock", "in-progress")]));
    assert_eq!(inspected(&server, "billing", "billing:lock")["state"], "in-progress");
    server
        .idemctl(&["sweep", "--orphaned", "--schema", "billing", "--yes", "--grace", "0"])
        .exits(0);
    assert_eq!(server.keys(), ["billing:lock2"]);
}

/// A lock behind the key, which a result's template fits as well.
const TWO: &str = r#"
[[value]]
name = "held"
at = "lock"
encoding = "text"
equals = "1"
state = "in-progress"
[[value]]
name = "done"
at = "result"
encoding = "json"
where = { "/status" = "DONE" }
required = ["/status"]
state = "completed"
"#;

/// Rule: of templates that fit a Redis key the longest wins, so that a full key names one record.
#[test]
fn a_full_key_names_one_record() {
    for prefix in ["job:", ""] {
        names_one_record(prefix);
    }
}

fn names_one_record(prefix: &str) {
    let server = Server::start();
    let written = format!("lock = \"{prefix}{{key}}:lock\"\nresult = \"{prefix}{{key}}\"");
    describe(&server, "jobs", &written, TWO);
    let file = server.folder().join(".config/idemctl/schemas/jobs/schema.toml");
    let toml = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, toml.replace("'{\"status\":\"LOCKED\"}'", "'1'")).unwrap();
    let lock = format!("{prefix}a:lock");
    server.put(&lock, "1");
    for key in ["a", &lock, &format!("{prefix}a")] {
        let run = server.idemctl(&["inspect", key, "--schema", "jobs", "-o", "json"]).exits(0);
        let records = run.json()["records"].clone();
        assert_eq!(
            (records.as_array().unwrap().len(), &records[0]["key"]),
            (1, &"a".into()),
            "{key}: {records}"
        );
    }
    server.idemctl(&["force-unlock", &lock, "--schema", "jobs", "--yes"]).exits(0);
    assert_eq!(server.size(), 0);
}

#[test]
fn what_the_keys_cannot_be_is_told_with_its_line() {
    let server = Server::start();
    for (keys, line, why) in [
        ("record = \"a:{key}\"\nkey = \"(\"", 5, "the pattern of `key` is not a valid regex"),
        ("record = \"a:{tenant}{key}\"", 4, "needs text between it and"),
        ("lock = \"l:{tenant}:{key}\"\nresult = \"r:{key}\"", 5, "must have the same text"),
        ("lock = \"global\"\nresult = \"r:{key}\"", 4, "as its own schema"),
        ("record = \"a:{key}\"\nignore = [\"b:{Key}\"]", 5, "is not a name of a group"),
        ("record = \"a:{key}\"\nprefix = [\"a:\", \"b:\"]", 5, "no template contains `{prefix}`"),
    ] {
        let values = if keys.starts_with("lock") { TWO } else { VALUES };
        describe(&server, "wrong", keys, values);
        let run = server.idemctl(&["schema", "check", ".config/idemctl/schemas/wrong"]).exits(1);
        assert!(
            run.all().contains(why) && run.all().contains(&format!("schema.toml:{line}:")),
            "{keys}: {}",
            run.all()
        );
    }
}
