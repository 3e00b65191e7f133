//! `idemctl doctor --only retry-window`: results that expire while a request can come again.

use serde_json::Value;

use super::checks;
use crate::support::{Run, Server};

fn run(server: &Server, says: &str) -> Run {
    let words = ["doctor", "--schema", "express", "--only", "retry-window", "-o", "json"];
    server.in_context("here", says, &words)
}

#[track_caller]
fn gives(server: &Server, says: &str, severity: &str) -> Value {
    let run = run(server, says);
    let found = checks(&run);
    assert_eq!(found.len(), 1, "{}", run.all());
    assert_eq!(found[0]["severity"], severity, "{says}: {:#}", found[0]);
    found[0].clone()
}

fn with_ttl(says: &str) -> String {
    format!("{says}\n[contexts.here.deployment.express]\nresult_ttl = \"48h\"")
}

#[test]
fn stated_ttls_are_compared_with_stated_windows() {
    let server = Server::start();
    let unstated = gives(&server, &with_ttl(""), "note");
    assert!(unstated["fact"].as_str().unwrap().contains("--retry-window"), "{unstated:#}");
    let short = gives(&server, &with_ttl("retry_window = \"3d\""), "warning");
    assert_eq!(short["evidence"], "configured", "{short:#}");
    gives(&server, &with_ttl("retry_window = \"2d\""), "ok");
    // The schema's window counts before the context's.
    let own = with_ttl("retry_window = \"1d\"") + "\nretry_window = \"7d\"";
    gives(&server, &own, "warning");
    run(&server, "retry_window = \"0s\"").exits(2);
}

#[test]
fn results_of_a_sample_prove_how_long_some_are_stored() {
    let server = Server::start();
    let done = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":""}"#;
    let fill = |count: u64, hours: u64| {
        for number in 0..count {
            server.set(&format!("idem:{number}"), done, hours * 3_600_000);
        }
    };
    fill(19, 20);
    // The schema's default is 24 h.
    gives(&server, "retry_window = \"3d\"", "note");
    gives(&server, "retry_window = \"12h\"", "unknown");
    fill(20, 20);
    gives(&server, "retry_window = \"12h\"", "ok");
    fill(20, 10);
    gives(&server, "retry_window = \"12h\"", "unknown");
    // A result never has all of its TTL left.
    fill(20, 47);
    gives(&server, &with_ttl("retry_window = \"48h\""), "ok");
    fill(20, 10);
    // What is stated is not what the records show.
    gives(&server, &with_ttl("retry_window = \"12h\""), "unknown");
}

#[test]
fn a_context_gets_a_window_and_shows_it() {
    let server = Server::start();
    let url = server.url();
    server.unnamed(&["context", "set", "prod", "-u", &url, "--retry-window", "3d"]).exits(0);
    let shown = server.unnamed(&["--context", "prod", "config", "show"]).exits(0);
    shown.shows("retry_window").shows("3d");
}
