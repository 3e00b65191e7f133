//! Schemas that tell how records look and not what their service does: fourteen lines, locks alone, results alone, locks
//! without TTL.

use std::fs;

use crate::support::{FOREVER, Run, Server};

/// As small as a schema gets: the first example of docs/schemas.md.
const PAYMENTS: &str = r#"format = 2
name = "payments"
keys = { record = "pay:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "running"
where = { "/status" = "INPROGRESS" }
state = "in-progress"

[[value]]
name = "done"
where = { "/status" = "COMPLETED" }
state = "completed"
"#;

const LOCKS: &str = r#"format = 2
name = "locks"
keys = { lock = "qo_{key}" }
ttl = { lock = "none" }

[[value]]
name = "held"
opaque = true
state = "in-progress"
fields = { owner = "" }
"#;

const RESPONSES: &str = r#"format = 2
name = "responses"
keys = { result = "resp:{key}" }
ttl = { result = "24h" }

[[value]]
name = "response"
has = ["/request", "/response"]
state = "completed"
fields = { status = "/response/statusCode", body = "/response/body" }
"#;

fn with_schemas() -> Server {
    let server = Server::start();
    for (name, toml) in [("payments", PAYMENTS), ("locks", LOCKS), ("responses", RESPONSES)] {
        server.describe(name, &[("schema.toml", toml)]);
    }
    server
}

fn findings(run: &Run) -> Vec<serde_json::Value> {
    let record = run.json()["records"][0].clone();
    record["findings"].as_array().unwrap().iter().map(|finding| finding["code"].clone()).collect()
}

#[test]
fn fourteen_lines_are_a_sound_schema() {
    assert_eq!(PAYMENTS.lines().count(), 14);
    let document =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/schemas.md")).unwrap();
    assert!(document.contains(PAYMENTS), "docs/schemas.md shows another first example");
    let server = with_schemas();
    server.idemctl(&["schema", "check", ".config/idemctl/schemas"]).exits(0).shows("payments: ok");
}

#[test]
fn records_are_listed_counted_and_checked() {
    let server = with_schemas();
    server.set("pay:a", r#"{"status":"INPROGRESS","more":1}"#, 20_000);
    server.set("pay:b", r#"{"status":"COMPLETED"}"#, 80_000_000);
    server.set("resp:c", r#"{"request":{},"response":{"statusCode":201,"body":"hi"}}"#, 80_000_000);
    let list = server.idemctl(&["list", "-o", "json"]).exits(0).json();
    let states: Vec<_> =
        list["records"].as_array().unwrap().iter().map(|record| &record["state"]).collect();
    assert_eq!(states.len(), 3);
    assert_eq!(states.iter().filter(|state| **state == "completed").count(), 2);
    let stats = server.idemctl(&["stats", "-o", "json"]).exits(0);
    assert!(
        stats.text().contains("payments") && stats.text().contains("responses"),
        "{}",
        stats.all()
    );
    server.idemctl(&["check"]).exits(0).shows("OK");
    let record =
        server.idemctl(&["inspect", "c", "-o", "json"]).exits(0).json()["records"][0].clone();
    assert_eq!(
        (&record["response"]["status"], &record["next_request"]["answer"]),
        (&201.into(), &"unknown".into())
    );
    server
        .idemctl(&["inspect", "a"])
        .exits(0)
        .shows("unknown, because the schema does not describe the begin step");
}

#[test]
fn a_stuck_lock_is_found_unlocked_and_swept() {
    let server = with_schemas();
    server.fill(["pay:stuck", "pay:too"].map(|key| (key, r#"{"status":"INPROGRESS"}"#)), FOREVER);
    server.idemctl(&["check"]).exits(2).shows("2 stuck locks");
    server
        .idemctl(&["force-unlock", "stuck", "--yes"])
        .exits(0)
        .says("It is unknown whether the worker can still store its result");
    assert_eq!(server.get("pay:stuck"), None);
    server.idemctl(&["sweep", "--orphaned", "--yes", "--schema", "payments"]).exits(0);
    assert_eq!(server.get("pay:too"), None);
}

#[test]
fn a_result_is_purged() {
    let server = with_schemas();
    server.set("resp:c", r#"{"request":{},"response":{}}"#, 80_000_000);
    server.set("pay:a", r#"{"status":"INPROGRESS"}"#, 20_000);
    server
        .idemctl(&["purge", "--schema", "responses", "--state", "completed", "--yes", "--all"])
        .exits(0);
    assert_eq!((server.get("resp:c"), server.get("pay:a").is_some()), (None, true));
}

/// Rule: a lock without TTL is no orphan where the service gives no lock a TTL.
#[test]
fn a_lock_without_ttl_by_design_is_no_orphan() {
    let server = with_schemas();
    server.send::<()>(&[b"SET", b"qo_job", b"worker-7"]);
    let inspected = server.idemctl(&["inspect", "job", "-o", "json"]).exits(0);
    assert_eq!(findings(&inspected), Vec::<serde_json::Value>::new());
    assert_eq!(inspected.json()["records"][0]["owner"], "worker-7");
    server.idemctl(&["check"]).exits(0);
    server.idemctl(&["sweep", "--orphaned", "--yes", "--schema", "locks"]).exits(0);
    assert!(server.get("qo_job").is_some());
    server.idemctl(&["force-unlock", "job", "--yes"]).exits(0);
    assert_eq!(server.get("qo_job"), None);
}

/// Rule: a schema of results has no lock: what cannot be read there is none that a sweep takes for an orphan.
#[test]
fn a_result_that_cannot_be_read_is_no_orphaned_lock() {
    let server = with_schemas();
    server.set("resp:torn", r#"{"request":{},"resp"#, 80_000_000);
    let inspected = server.idemctl(&["inspect", "torn", "-o", "json"]).exits(0);
    assert_eq!(findings(&inspected), ["unreadable"]);
    assert_eq!(inspected.json()["records"][0]["lock_ttl_ms"], serde_json::Value::Null);
    assert!(inspected.json()["records"][0]["result_ttl_ms"].as_u64().is_some());
    server
        .idemctl(&[
            "sweep",
            "--include",
            "unreadable",
            "--yes",
            "--schema",
            "responses",
            "--match",
            "to*",
        ])
        .exits(0);
    assert!(server.get("resp:torn").is_some());
}

#[test]
fn what_is_not_described_is_not_done_and_says_what_to_do() {
    let server = with_schemas();
    server.set("pay:a", r#"{"status":"INPROGRESS"}"#, 20_000);
    for step in ["begin", "complete", "release"] {
        let run = server.idemctl(&[step, "a", "--schema", "payments", "--yes"]).exits(2);
        run.says(format!(
            "payments: the schema does not describe the {step} step; nothing was changed"
        ));
        run.says(format!("or describe the step as [{step}] in schema.toml"));
    }
    assert_eq!(server.get("pay:a").unwrap(), br#"{"status":"INPROGRESS"}"#);
    for words in
        [&["race", "--schema", "payments"][..], &["simulate", "--all", "--schema", "payments"]]
    {
        server
            .idemctl(words)
            .exits(2)
            .says("payments is not supported here: its schema.toml has no [begin]");
    }
    server.idemctl(&["explore", "payments"]).exits(2).says("payments is not supported here");
}
