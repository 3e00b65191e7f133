//! `idemctl begin` and `idemctl release` from the outside: the service's answer in words and in the exit code.

use crate::support::{BUILT_IN, Run, Server};

fn step(server: &Server, name: &str, schema: &str, more: &[&str]) -> Run {
    server.idemctl(&[&[name, "k", "--schema", schema, "--yes"], more].concat())
}

/// What the step's JSON says of its reply, and what the record is then.
fn told(run: &Run) -> (String, String) {
    let json = run.json();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("null").to_owned();
    (text(&json["outcome"]), text(&json["now"]["state"]))
}

#[test]
fn the_lock_is_taken_once_and_the_exit_code_says_so() {
    for schema in BUILT_IN {
        let server = Server::start();
        let taken = step(&server, "begin", schema, &["-o", "json"]).exits(0);
        assert_eq!(told(&taken), ("acquired".to_owned(), "in-progress".to_owned()), "{schema}");
        let again = step(&server, "begin", schema, &["-o", "json"]).exits(1);
        assert_eq!(told(&again), ("conflict".to_owned(), "in-progress".to_owned()), "{schema}");
        again.says("conflict; nothing was changed");
        let audit = server.idemctl(&["log", "--records", "-o", "jsonl"]).exits(0).json_lines();
        assert_eq!(
            (audit.len(), &audit[0]["what"]),
            (1, &"begun".into()),
            "{schema}: a conflict changes nothing"
        );
    }
}

#[test]
fn the_owner_is_new_and_shown_where_the_schema_has_one() {
    let server = Server::start();
    let run = step(&server, "begin", "event-driven", &["-o", "json"]).exits(0);
    let owner = run.json()["step"]["owner"].as_str().unwrap().to_owned();
    assert_eq!(server.get("idem:started:k").unwrap(), owner.as_bytes());
    assert_eq!(
        (owner.len(), owner.matches('-').count(), owner.as_bytes()[14]),
        (36, 4, b'4'),
        "a version 4 UUID"
    );
    run.says(format!("The lock belongs to {owner}."));
    let server = Server::start();
    let run = step(&server, "begin", "express", &["-o", "json"]).exits(0);
    assert!(run.json()["step"]["owner"].is_null());
    step(&server, "begin", "event-driven", &["--owner", "w-7", "--lock-ttl", "90s"]).exits(0);
    assert_eq!(server.get("idem:started:k").unwrap(), b"w-7");
    assert!(server.send::<i64>(&[b"PTTL", b"idem:started:k"]) > 80_000);
}

#[test]
fn a_stored_response_a_broken_value_and_another_payload_are_told() {
    let server = Server::start();
    server.set(
        "k",
        r#"{"status":1,"response":{"StatusCode":402,"Header":{},"Body":"bm8="}}"#,
        60_000,
    );
    step(&server, "begin", "go-chi", &[])
        .exits(1)
        .shows("Response      402")
        .says(": replay; nothing");
    server.send::<()>(&[b"HSET", b"idempotency:k", b"f", b"v"]);
    let fails = step(&server, "begin", "go-middleware", &["-o", "json"]).exits(1);
    assert_eq!(fails.json()["outcome"], "fail");
    assert!(
        fails.json()["step"]["reply"].as_str().unwrap().contains("WRONGTYPE"),
        "{}",
        fails.all()
    );
    step(&server, "begin", "reference", &["--fingerprint", "a"]).exits(0);
    let mismatch =
        step(&server, "begin", "reference", &["--fingerprint", "b", "-o", "json"]).exits(1);
    assert_eq!(mismatch.json()["outcome"], "mismatch");
    assert_eq!(mismatch.json()["step"]["foretold"], "mismatch");
    let same = step(&server, "begin", "reference", &["-o", "json"]).exits(1);
    assert_eq!(same.json()["outcome"], "conflict", "the stored fingerprint is the default");
}

#[test]
fn a_failed_result_that_is_begun_anew_is_in_the_backup() {
    let server = Server::start();
    step(&server, "begin", "reference", &["--owner", "w"]).exits(0);
    let failed = ["--owner", "w", "--status", "500", "--body", "", "--error", "declined"];
    step(&server, "complete", "reference", &failed).exits(0);
    let stored = server.get("idemkey:k").unwrap();
    let run = step(&server, "begin", "reference", &["-o", "json"]).exits(0);
    let backup = run.json()["backup"].as_str().unwrap().to_owned();
    server.send::<()>(&[b"DEL", b"idemkey:k"]);
    server.idemctl(&["restore", &backup, "--yes"]).exits(0);
    assert_eq!(server.get("idemkey:k").unwrap(), stored);
}

#[test]
fn what_a_service_does_to_a_lock_it_does_not_take_is_logged() {
    let server = Server::start();
    step(&server, "begin", "reference", &[]).exits(0);
    server.send::<()>(&[b"PERSIST", b"idemkey:k"]);
    // The reference gives a lock without a TTL one.
    step(&server, "begin", "reference", &[]).exits(1).says("it still changed the record");
    let audit = server.idemctl(&["log", "--records", "-o", "jsonl"]).exits(0).json_lines();
    assert_eq!(audit.last().unwrap()["what"], "changed");
}

#[test]
fn a_lock_is_released_as_the_service_does_and_a_result_never() {
    for schema in BUILT_IN {
        let server = Server::start();
        step(&server, "release", schema, &[]).exits(
            if ["event-driven", "go-middleware", "go-middleware-v1"].contains(&schema) {
                2
            } else {
                1
            },
        );
        let owner: &[&str] = if schema == "reference" { &["--owner", "w"] } else { &[] };
        step(&server, "begin", schema, owner).exits(0);
        let run = step(&server, "release", schema, &[owner, &["-o", "json"]].concat());
        if run.code == 2 {
            run.says("force-unlock");
            continue;
        }
        let run = run.exits(0);
        assert_eq!(told(&run), ("released".to_owned(), "absent".to_owned()), "{schema}");
        assert_eq!(server.size(), 0, "{schema}");
        server.idemctl(&["restore", run.json()["backup"].as_str().unwrap(), "--yes"]).exits(0);
        assert_eq!(server.size(), 1, "{schema}");
    }
}

#[test]
fn a_stored_result_and_a_strangers_value_are_never_released() {
    let server = Server::start();
    let refused = |schema| step(&server, "release", schema, &[]).exits(2);
    server.set("k", r#"{"status":1,"response":{"StatusCode":200,"Header":{},"Body":""}}"#, 60_000);
    assert!(refused("go-chi").stderr.contains("cannot be released"));
    server.set("k", "not of this schema", 60_000);
    refused("go-chi");
    server.send::<()>(&[b"HSET", b"idem:k", b"f", b"v"]);
    refused("express");
    server.set("idem:done:k", "1", 60_000);
    refused("event-consumer");
    assert_eq!(server.size(), 3);
    server.set("idem:lock:k", "1", 60_000);
    step(&server, "release", "event-consumer", &[]).exits(0);
    assert!(server.get("idem:lock:k").is_none() && server.get("idem:done:k").is_some());
}

#[test]
fn a_fenced_lock_is_released_by_its_owner_alone() {
    let server = Server::start();
    step(&server, "begin", "reference", &["--owner", "w-7"]).exits(0);
    step(&server, "release", "reference", &[]).exits(2).says("--owner").says("w-7");
    step(&server, "release", "reference", &["--owner", "w-8"])
        .exits(1)
        .says("FENCED: refused; nothing was changed");
    assert!(server.get("idemkey:k").is_some());
    step(&server, "release", "reference", &["--owner", "w-7"]).exits(0);
    assert!(server.get("idemkey:k").is_none());
}

/// Rule: if the step refuses an argument, not only something outside the record is to blame.
#[test]
fn begin_says_that_the_step_refused_an_argument() {
    let server = Server::start();
    let sent = step(&server, "begin", "reference", &["--owner", "a b"]).exits(1);
    sent.says("error INVALID").says("or the step refused its arguments");
}
