//! `inspect --explain`: how a record can have come to what it is.

use std::time::SystemTime;

use serde_json::json;

use crate::simulate::variant::path;
use crate::support::{FOREVER, LOCK, Run, Runs, Server};

const IN_PROGRESS: &str = LOCK;

/// The binary where it finds the server program for its throw-away server.
fn explains(server: &Server, words: &[&str]) -> Run {
    let mut command = server.command();
    command.env("PATH", path()).args([&["inspect", "order-1", "--explain"], words].concat()).run()
}

/// What is said behind the record's page.
fn told(run: &Run) -> String {
    run.text().split_once("Possible causes").unwrap().1.to_owned()
}

#[test]
fn a_lock_beside_a_result_may_be_a_live_workers() {
    let server = Server::holding(&[
        ("idem:lock:order-1", "1", 60_000),
        ("idem:done:order-1", "1", 80_000_000),
    ]);
    let before = server.keys();
    insta::assert_snapshot!(told(&explains(&server, &["--schema", "event-consumer"]).exits(0)));
    assert_eq!(server.keys(), before, "nothing is explored on the server that is inspected");
}

#[test]
fn what_no_schedule_leads_to_is_an_older_releases_or_a_hands() {
    let server = Server::holding(&[("idem:started:order-1", "some-worker", 30_000)]);
    server.set("idem:result:order-1", r#"{"statusCode":200,"body":"x"}"#, 900_000);
    insta::assert_snapshot!(told(&explains(&server, &["--schema", "event-driven"]).exits(0)));
}

#[test]
fn a_lock_without_ttl_takes_a_hand_or_a_schema_that_forgets_it() {
    let server = Server::holding(&[("idem:order-1", IN_PROGRESS, FOREVER)]);
    let explained = explains(&server, &["--schema", "express", "-o", "json"]).exits(0).json();
    let ways = explained["explained"][0]["ways"].as_array().unwrap();
    assert!(ways.iter().all(|way| way["minimal_faults"]["persist"] == 1), "{explained:#}");
    assert_eq!(ways[0]["holder_at_work"], true);
    assert_eq!(explained["explained"][0]["reachable"], true);
}

#[test]
fn a_result_has_no_holder() {
    let server = Server::start();
    server.set(
        "idem:order-1",
        r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":{}}"#,
        80_000_000,
    );
    let explained = explains(&server, &["--schema", "express", "-o", "json"]).exits(0).json();
    let ways = explained["explained"][0]["ways"].as_array().unwrap();
    assert_eq!(ways.len(), 1, "{explained:#}");
    assert_eq!(
        (&ways[0]["minimal_faults"], &ways[0]["holder_at_work"]),
        (&json!({}), &json!(null))
    );
}

#[test]
fn without_a_server_program_nothing_is_explained() {
    let server = Server::holding(&[("idem:order-1", IN_PROGRESS, 20_000)]);
    let mut command = server.command();
    let words = ["inspect", "order-1", "--schema", "express", "--explain"];
    command
        .env("PATH", server.folder())
        .args(words)
        .run()
        .exits(5)
        .says("--explain: express: cannot start");
    server.idemctl(&["inspect", "order-1", "--explain", "--watch"]).exits(2);
}

/// Rule: a lock whose own expiry has passed comes from a history in which that time passed.
#[test]
fn an_expiry_in_the_value_is_part_of_the_history() {
    let server = Server::start();
    let now_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let schemas = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/explore/schemas");
    let words = ["--schema", "expires-at", "--schema-dir", schemas, "-o", "json"];
    for (expires_ms, is_passed) in [(now_ms - 5_000, true), (now_ms + 25_000, false)] {
        let lock = format!(r#"{{"status":"BUSY","owner":"w-1","expires":{expires_ms}}}"#);
        server.put("expires-at:order-1", lock);
        let explained = explains(&server, &words).exits(0).json();
        let ways = explained["explained"][0]["ways"].as_array().unwrap();
        assert!(!ways.is_empty());
        for way in ways {
            assert_eq!(way["minimal_faults"]["expiry"] == 1, is_passed, "{explained:#}");
        }
    }
}
