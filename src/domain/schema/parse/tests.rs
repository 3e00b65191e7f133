//! The errors that the parser reports for wrong schemas, and their lines.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod optional_fields;
mod prefix;

use super::*;

const SOUND: &str = r#"format = 2
name = "mine"

[keys]
lock = "lock:{key}"
result = "result:{key}"

[ttl]
lock = "30s"
result = "24h"

[[value]]
name = "held"
at = "lock"
opaque = true
state = "in-progress"
fields = { owner = "" }

[[value]]
name = "stored"
at = "result"
encoding = "json"
where = { "/done" = true }
state = "completed"
fields = { body = "/body" }

[write]
lock_value = "{owner}"
result_value = '{"done":true,"body":{body_json}}'

[[begin.call]]
command = ["EXISTS", "{result}"]
replies = [
  { integer = 1, means = "replay", when = { result = "stored" } },
  { integer = 0, means = "next" },
]

[[begin.call]]
script = "begin"
keys = ["{lock}"]
args = [
  "{owner}",
  "{lock_ttl}",
]
replies = [
  { word = "OK", means = "acquired", when = { lock = "absent" } },
  { nil = true, means = "conflict", when = [{ lock = "held" }, { lock = "present" }] },
]

[complete]
checks_owner = false

[[complete.call]]
command = ["SET", "{result}", "{result_value}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

fn read(toml: &str) -> Result<Schema, SchemaError> {
    deployed(toml, Prefixes::default())
}

fn deployed(toml: &str, prefixes: Prefixes<'_>) -> Result<Schema, SchemaError> {
    parse(source(toml, prefixes))
}

fn source<'a>(toml: &'a str, prefixes: Prefixes<'a>) -> SchemaSource<'a> {
    SchemaSource {
        file: "schema.toml",
        toml,
        compiled_in: None,
        scripts: vec![Script { name: "begin".into(), text: "return 1".into() }],
        origin: SchemaOrigin::BuiltIn,
        prefixes,
    }
}

/// The error after a change of the sound schema, as `LINE: MESSAGE`.
fn said(from: &str, to: &str) -> String {
    assert!(SOUND.contains(from), "{from}");
    let error = read(&SOUND.replacen(from, to, 1)).map(|_| ()).unwrap_err();
    assert_eq!(error.file, "schema.toml");
    format!("{}: {}", error.line, error.message)
}

/// Asserts the line, and a part of the message.
#[track_caller]
fn wrong(from: &str, to: &str, line: usize, message: &str) {
    let said = said(from, to);
    assert!(said.starts_with(&format!("{line}: ")) && said.contains(message), "{said}");
}

#[test]
fn the_sound_schema_is_sound() {
    read(SOUND).unwrap();
}

#[test]
fn unknown_and_malformed_fields_are_errors() {
    wrong("format = 2", "format = ", 1, "");
    wrong("format = 2", "format = 3", 1, "format 3 is not known; this idemctl reads format 2");
    wrong("[ttl]", "[ttl]\nboth = \"30s\"", 9, "unknown field `both`, expected `lock` or `result`");
    wrong("means = \"next\"", "menas = \"next\"", 35, "unknown field `menas`");
    wrong(
        "checks_owner = false",
        "checks_owner = \"no\"",
        51,
        "invalid type: string \"no\", expected a boolean",
    );
    wrong("at = \"lock\"", "at = 1", 14, "");
    wrong("lock = \"30s\"", "lock = 30", 9, "invalid type: integer `30`, expected a string");
    wrong(
        "encoding = \"json\"",
        "encoding = \"yaml\"",
        22,
        "unknown variant `yaml`, expected one of `text`, `json`",
    );
    wrong("encoding = \"json\"", "encoding = \"cbor\"", 22, "CBOR was removed in idemctl 0.3.0");
    for word in ["postcard", "protobuf"] {
        let why = format!("idemctl does not decode {word}, whose bytes do not name their fields");
        wrong("encoding = \"json\"", &format!("encoding = \"{word}\""), 22, &why);
    }
    wrong("encoding = \"json\"", "type = \"stream\"", 22, "a record cannot be in a stream");
    wrong("means = \"next\"", "means = \"maybe\"", 35, "unknown variant `maybe`");
    wrong(
        "when = { lock = \"absent\" }",
        "when = 1",
        46,
        "expected a table of roles, or a list of such tables",
    );
    wrong("[complete]\n", "[complete]\n[other]\n", 51, "unknown field `other`");
}

/// Rule: one error names every line to change, so that an operator changes the file only once.
#[test]
fn a_file_of_format_1_gets_one_error_with_every_line_to_change() {
    let old = SOUND
        .replace("lock:{key}", r"a\\{key}")
        .replace("opaque = true", "encoding = \"text\"")
        .replace("where = { \"/done\" = true }\n", "");
    for (toml, line) in
        [(old.replace("format = 2", "format = 1"), 1), (old.replace("format = 2\n", "\n"), 1)]
    {
        let errors = parse_all(source(&toml, Prefixes::default())).unwrap_err();
        let [error] = errors.as_slice() else { panic!("{errors:?}") };
        assert_eq!(error.line, line);
        let (heading, lines) = error.message.split_once('\n').unwrap();
        assert!(heading.contains("no longer reads format 1, of idemctl 0.2"), "{heading}");
        let lines: Vec<_> = lines.lines().collect();
        assert_eq!(
            lines,
            [
                "  line 1: write `format = 2`",
                "  line 5: double each backslash, which is an escape in format 2",
                "  line 12: matches any text; write `equals`, or `opaque = true` if that is \
                intended",
                "  line 19: matches any JSON; write `where`, `has` or `required`, or leave \
                `encoding` out and mark it `opaque`",
            ]
        );
    }
    // A file that needs no other change.
    let error = read(&SOUND.replace("format = 2", "format = 1")).unwrap_err();
    assert!(error.message.ends_with(":\n  line 1: write `format = 2`"), "{error}");
}

#[test]
fn mistakes_that_idemctl_could_read_are_errors() {
    wrong("opaque = true", "encoding = \"text\"", 12, "matches any text");
    wrong("where = { \"/done\" = true }\n", "", 19, "matches any JSON");
    wrong("\"{owner}\",", "\"{own-er}\",", 42, "`{own-er}` is not a placeholder of a call");
    wrong("nil = true", "word = \"OK\"", 47, "this reply never applies, because reply 1 of");
    wrong("\"held\"", "\"reclaimable\"", 13, "`reclaimable` is a word that `when` already uses");
}

#[test]
fn names_and_keys() {
    wrong("name = \"mine\"", "name = \"my own\"", 2, "a schema's name consists of letters");
    wrong("lock:{key}", "{id}:", 5, "`{id}:` has no {key}");
    wrong("result:{key}", "lock:{key}", 6, "`lock` and `result` must have different Redis keys");
    wrong("lock = \"30s\"", "lock = \"soon\"", 9, "`soon` is not a duration");
    wrong("result = \"24h\"", "result = \"0s\"", 10, "a TTL must be longer than zero");
}

#[test]
fn values() {
    wrong(
        "name = \"held\"",
        "name = \"absent\"",
        13,
        "`absent` is a word that `when` already uses",
    );
    wrong("at = \"result\"", "at = \"record\"", 21, "[keys] has no `record`");
    let stored = "name = \"stored\"\nat = \"result\"";
    wrong(stored, "name = \"held\"\nat = \"lock\"", 20, "`held` is defined twice at `lock`");
    wrong("opaque = true", "opaque = true\nhas = [\"/a\"]", 12, "text has no fields");
    wrong(
        "encoding = \"json\"",
        "encoding = \"json\"\nequals = \"x\"",
        23,
        "`equals` compares the whole text",
    );
    wrong(
        "encoding = \"json\"",
        "encoding = \"json\"\nhas = [\n\"/a\",\n\"b\"]",
        25,
        "`b` is not a JSON pointer",
    );
    wrong("\"/done\"", "done", 23, "`done` is not a JSON pointer, which starts with `/`");
    wrong("owner = \"\"", "owner = \"/x\"", 17, "text has no fields");
    wrong("body = \"/body\"", "body = \"body\"", 25, "`body` is not a JSON pointer");
    wrong("\"/done\" = true", "\"/done\" = 1.5", 23, "`where` needs a text, a whole number");
}

#[test]
fn templates() {
    wrong(
        "lock_value = \"{owner}\"",
        "lock_value = \"{worker}\"",
        28,
        "`{worker}` is not a placeholder here",
    );
    wrong(
        "\"EXISTS\", \"{result}\"",
        "\"EXISTS\",\n\"{it}\"",
        33,
        "`{it}` is not a placeholder here",
    );
    wrong("\"{lock}\"", "\"{it}\"", 40, "`{it}` is not a placeholder here");
    wrong("\"{lock_ttl}\"", "\"{ttl}\"", 43, "`{ttl}` is not a placeholder here");
}

#[test]
fn steps_calls_and_replies() {
    let script = "script = \"begin\"\n";
    wrong(script, "script = \"start\"\n", 39, "there is no start.lua beside schema.toml");
    for to in ["script = \"begin\"\ncommand = [\"GET\"]\n", "", "command = []\n"] {
        wrong(script, to, 38, "a call needs either `script` or `command`");
    }
    wrong(
        "word = \"OK\", means = \"acquired\"",
        "means = \"acquired\"",
        46,
        "a reply needs exactly one of word",
    );
    wrong("nil = true", "nil = true, text = true", 47, "a reply needs exactly one of word");
    wrong(
        "lock = \"absent\"",
        "lock = \"gone\"",
        46,
        "`when` names `gone`, which no [[value]] at that role is called",
    );
    let held = "[{ lock = \"held\" }, {";
    wrong(
        held,
        "[\n{ lock = \"held\" },\n{ result = \"held\", ",
        49,
        "`when` names `held`, which no",
    );
    wrong(
        "{ lock = \"present\"",
        "{ record = \"present\"",
        47,
        "`when` names `record`, which [keys] does not have",
    );
    wrong("\"conflict\"", "\"stored\"", 47, "a reply of [begin] cannot mean `stored` here");
    wrong("\"conflict\"", "\"next\"", 47, "a reply of [begin] cannot mean `next` here");
    wrong("\"stored\", when = {}", "\"refused\"", 50, "no reply of [complete] means `stored`");
    wrong("\"acquired\"", "\"fail\"", 31, "no reply of [begin] means `acquired`");
    let call = &SOUND[SOUND.find("[[complete.call]]").unwrap()..];
    wrong(call, "call = []", 50, "[complete] has no [[complete.call]]");
}

#[test]
fn templates_of_written_values() {
    let more = |line: &str| format!("[write]\n{line}");
    wrong(
        "[write]",
        &more("response = '{\"a\":{response}}'"),
        28,
        "`{response}` is not a placeholder here",
    );
    wrong("[write]", &more("response = '{owner}'"), 28, "`{owner}` is not a placeholder here");
    wrong(
        "[write]",
        &more("failed_value = '{outcome}'"),
        28,
        "`{outcome}` is not a placeholder here",
    );
    wrong(
        "[write]",
        &more("header_names = \"upper\""),
        28,
        "unknown variant `upper`, expected one of `as-given`",
    );
    wrong("\"{lock_ttl}\"", "\"{now}\"", 43, "`{now}` is not a placeholder here");
    wrong(
        "fields = { body",
        "fields = { timestamp = \"/at\", body",
        25,
        "unknown field `timestamp`",
    );
    wrong(
        "state = \"completed\"",
        "state = \"completed\"\ntimestamp = \"ns\"",
        25,
        "unknown variant `ns`",
    );
    wrong(
        "fields = { body",
        "fields = { created_at = \"at\", body",
        25,
        "`at` is not a JSON pointer",
    );
}

#[test]
fn the_listed_fields_of_a_value_format() {
    let state = "state = \"completed\"";
    for (line, at, message) in [
        ("required = [\"code\"]", 25, "`code` is not a JSON pointer"),
        ("null = [\"/code\"]", 25, "`null` needs `required` or `optional`"),
        ("strict = true", 25, "`strict` needs `required` or `optional`"),
        ("required = []\nnull = [\"/other\"]", 26, "`/other` is not a field of this value format"),
        ("opaque = true", 25, "`opaque` means any text"),
    ] {
        wrong(state, &format!("{state}\n{line}"), at, message);
    }
    wrong(
        "state = \"in-progress\"",
        "state = \"in-progress\"\noptional = [\"/a\"]",
        17,
        "text has no fields",
    );
}

#[test]
fn the_service_table() {
    let service = |line: &str| format!("[service]\n{line}\n\n[complete]\n");
    for codes in ["200", "200-", "-299", "299-200", "2xx", "200 - 299", ""] {
        let message = format!("`{codes}` is not a range of status codes, such as 200-299");
        wrong("[complete]\n", &service(&format!("stores = \"{codes}\"")), 51, &message);
    }
    wrong(
        "[complete]\n",
        &service("on_failure = \"ignore\""),
        51,
        "unknown variant `ignore`, expected one of `store`",
    );
    wrong("[complete]\n", &service("on_hang_up = \"stop\""), 51, "unknown variant `stop`");
    wrong("[complete]\n", &service("without_redis = \"wait\""), 51, "unknown variant `wait`");
    wrong("[complete]\n", &service("on_timeout = \"wait\""), 51, "unknown field `on_timeout`");
}

#[test]
fn the_renew_step() {
    let renew = |replies: &str| {
        format!(
            "[[renew.call]]\ncommand = [\"PERSIST\", \"{{lock}}\"]\nreplies = [\n{replies}\n]\n\n[complete]\n"
        )
    };
    let reply = |means: &str| renew(&format!("  {{ integer = 1, means = \"{means}\" }},"));
    wrong("[complete]\n", &reply("stored"), 53, "a reply of [renew] cannot mean `stored` here");
    wrong("[complete]\n", &reply("refused"), 50, "no reply of [renew] means `renewed`");
    wrong(
        "\"stored\", when = {}",
        "\"renewed\"",
        55,
        "a reply of [complete] cannot mean `renewed` here",
    );
    wrong("\"conflict\"", "\"renewed\"", 47, "a reply of [begin] cannot mean `renewed` here");
    wrong(
        "\"stored\", when = {}",
        "\"mismatch\"",
        55,
        "a reply of [complete] cannot mean `mismatch` here",
    );
}

#[test]
fn the_first_element_of_an_array_is_a_whole_number_or_a_word() {
    for first in ["true", "1.5", "[1]", "{ word = \"OK\" }"] {
        let message = "the first element of an array is a whole number or a word";
        wrong("nil = true", &format!("array = {first}"), 47, message);
    }
    for first in ["1", "\"HELD\""] {
        read(&SOUND.replacen("nil = true", &format!("array = {first}"), 1)).unwrap();
    }
}
