//! A library that decides in the client: SET NX, then GET, then what the value holds, its payload's hash included.

use serde_json::Value;

use crate::support::Server;

const TOML: &str = r#"
format = 2
name = "node"
keys = { record = "node-idempotency:{key}" }
ttl = { lock = "1m", result = "24h" }

[[value]]
name = "running"
where = { "/status" = "IN_PROGRESS" }
required = ["/status", "/fingerPrint"]
state = "in-progress"
fields = { fingerprint = "/fingerPrint" }

[[value]]
name = "done"
where = { "/status" = "COMPLETE" }
required = ["/status", "/fingerPrint", "/response"]
state = "completed"
fields = { fingerprint = "/fingerPrint", status = "/response/statusCode", body = "/response/body" }
body_encoding = "json"

[write]
lock_value = '{"status":"IN_PROGRESS","fingerPrint":"{fingerprint}"}'
result_value = '{"status":"COMPLETE","fingerPrint":"{fingerprint}","response":{"statusCode":{status},"body":{body_json}}}'

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { record = "absent" } },
  { nil = true, means = "next" },
]

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "running", means = "mismatch", when = { fingerprint = "other" }, client = "400 Bad Request" },
  { value = "done", means = "mismatch", when = { fingerprint = "other" }, client = "400 Bad Request" },
  { value = "running", means = "conflict", client = "409 Conflict" },
  { value = "done", means = "replay" },
  { nil = true, means = "conflict" },
  { text = true, means = "fail", when = { record = "present" } },
  { error = "WRONGTYPE", means = "fail", when = { record = "wrong-type" } },
]

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]

[[release.call]]
command = ["DEL", "{record}"]
replies = [{ integer = 1, means = "released", when = { record = "present" } }, { integer = 0, means = "refused" }]
"#;

const RUNNING: &str = r#"{"status":"IN_PROGRESS","fingerPrint":"abc"}"#;
const DONE: &str =
    r#"{"status":"COMPLETE","fingerPrint":"abc","response":{"statusCode":201,"body":{"id":7}}}"#;

/// A server, and the schema in these words.
fn with(toml: &str) -> Server {
    let server = Server::start();
    server.describe("node", &[("schema.toml", toml)]);
    server
}

#[test]
fn the_next_request_is_foretold_by_what_the_value_holds() {
    let server = with(TOML);
    server.idemctl(&["schema", "check", ".config/idemctl/schemas/node"]).exits(0);
    server.set("node-idempotency:a", RUNNING, 50_000);
    server.set("node-idempotency:b", DONE, 80_000_000);
    server.set("node-idempotency:c", "neither", 50_000);
    let next = |key: &str| {
        let record =
            server.idemctl(&["inspect", key, "--schema", "node", "-o", "json"]).json()["records"]
                [0]
            .clone();
        record["next_request"]["answer"].clone()
    };
    assert_eq!(
        (next("a"), next("b"), next("c")),
        ("conflict".into(), "replay".into(), "fail".into())
    );
}

#[test]
fn begin_answers_what_the_library_would() {
    let server = with(TOML);
    server.set("node-idempotency:a", RUNNING, 50_000);
    server.set("node-idempotency:b", DONE, 80_000_000);
    let begin = |key: &str, fingerprint: &str, exit: i32| {
        let words =
            ["begin", key, "--schema", "node", "--fingerprint", fingerprint, "--yes", "-o", "json"];
        let run = server.idemctl(&words).exits(exit).json();
        (run["step"]["foretold"].clone(), run["outcome"].clone())
    };
    for (key, fingerprint, means) in [
        ("a", "abc", "conflict"),
        ("b", "abc", "replay"),
        ("a", "xyz", "mismatch"),
        ("b", "xyz", "mismatch"),
    ] {
        assert_eq!(begin(key, fingerprint, 1), (means.into(), means.into()), "{key} {fingerprint}");
    }
    assert_eq!(begin("new", "abc", 0), ("acquired".into(), "acquired".into()));
}

#[test]
fn complete_and_release_are_the_librarys_own() {
    let server = with(TOML);
    server.fill(["node-idempotency:a", "node-idempotency:b"].map(|key| (key, RUNNING)), 50_000);
    let words =
        ["complete", "a", "--schema", "node", "--status", "201", "--body", r#"{"id":7}"#, "--yes"];
    server.idemctl(&words).exits(0);
    assert_eq!(String::from_utf8(server.get("node-idempotency:a").unwrap()).unwrap(), DONE);
    server.idemctl(&["release", "b", "--schema", "node", "--yes"]).exits(0);
    assert_eq!(server.get("node-idempotency:b"), None);
}

/// What `race` says of the schema when its file is changed like this.
fn verdict(from: &str, to: &str) -> Value {
    assert!(TOML.contains(from), "{from}");
    let server = with(&TOML.replacen(from, to, 1));
    let words = [
        "race",
        "--schema",
        "node",
        "--strategy",
        "schema",
        "--rounds",
        "12",
        "--concurrency",
        "8",
    ];
    let more = ["--overlap", "--fail-every", "3", "-o", "json"];
    server.idemctl(&[&words[..], &more].concat()).json()["runs"][0]["verdict"].clone()
}

#[test]
fn a_race_tells_the_library_from_one_that_looks_first() {
    assert_eq!(verdict("", ""), "atomic");
    let begin =
        &TOML[TOML.find("[[begin.call]]").unwrap()..TOML.find("[[complete.call]]").unwrap()];
    let looks_first = r#"[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "done", means = "replay" },
  { value = "running", means = "conflict" },
  { nil = true, means = "next" },
]

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "EX", "{lock_ttl}"]
replies = [{ word = "OK", means = "acquired", when = { record = "absent" } }]

"#;
    assert_eq!(verdict(begin, looks_first), "not-atomic");
}

#[test]
fn a_simulation_tells_payloads_apart_where_the_client_compares_them() {
    let simulated = |toml: &str| {
        let names = ["first-then-retry", "handler-fails", "payload-mismatch"];
        let run = with(toml)
            .idemctl(&[&["simulate"][..], &names, &["--schema", "node", "-o", "json"]].concat())
            .json();
        run["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| cell["verdict"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(simulated(TOML), ["safe", "safe", "safe"]);
    let blind: String = TOML
        .lines()
        .filter(|line| !line.contains("mismatch"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(simulated(&blind), ["safe", "safe", "wrong-answer"]);
}

#[test]
fn an_exploration_finds_what_the_librarys_steps_let_happen() {
    let server = with(TOML);
    let run = server
        .idemctl(&["explore", "node", "--sandbox", "--workers", "2", "-o", "json"])
        .exits(1)
        .json();
    let harms = run["schemas"][0]["harms"].as_array().unwrap();
    let broken: Vec<_> = harms.iter().map(|harm| harm["invariant"].as_str().unwrap()).collect();
    assert!(broken.contains(&"one-effect") && broken.contains(&"owner-only"), "{broken:?}");
    assert!(!broken.contains(&"true-replay") && !broken.contains(&"payloads-apart"), "{broken:?}");
}

#[test]
fn replies_are_shown_by_the_forms_they_have() {
    let server = with(TOML);
    let page = server.idemctl(&["schema", "show", "node"]).exits(0).text();
    assert!(
        page.contains("<done>") && page.contains("record done, for a different payload"),
        "{page}"
    );
    let json = server.idemctl(&["schema", "show", "node", "-o", "json"]).exits(0).json();
    let first = &json["schemas"][0]["begin"]["calls"][1]["replies"][0];
    assert_eq!(
        (&first["value"], &first["when"][0]["fingerprint"]),
        (&"running".into(), &"other".into())
    );
}
