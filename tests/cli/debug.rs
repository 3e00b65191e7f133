//! `--debug`: each Redis command on stderr.

use crate::support::Server;

/// Rule: each command is told with its time and its error, and nothing that is secret.
#[test]
fn each_command_is_told_and_no_password_and_no_value() {
    let body = "c2VjcmV0IGJvZHk=".repeat(20);
    let stored = format!(r#"{{"status":"COMPLETED","code":201,"headers":{{}},"body":"{body}"}}"#);
    let server = Server::holding(&[("idempotency:k", stored, 600_000)]);
    server.send::<()>(&[
        b"ACL",
        b"SETUSER",
        b"ana",
        b"on",
        b">hunter2",
        b"~*",
        b"+@all",
        b"-client",
    ]);
    let run = server
        .idemctl(&["--debug", "--user", "ana", "-a", "hunter2", "inspect", "k", "-o", "json"])
        .exits(0);
    assert_eq!(run.json()["records"][0]["state"], "completed");
    let told: Vec<_> = run.stderr.lines().filter(|line| line.starts_with("debug: ")).collect();
    assert!(told[0].contains("  AUTH (hidden) (hidden)  -> 5 B"), "{told:?}");
    assert!(told.iter().any(|line| line.contains("CLIENT SETNAME idemctl")), "{told:?}");
    assert!(told.iter().any(|line| line.contains("idempotency:k")), "{told:?}");
    assert!(told.iter().any(|line| line.contains("-> error NOPERM")), "{told:?}");
    assert!(
        told.iter().all(|line| ["µs  ", "ms  ", "s  "].iter().any(|unit| line.contains(unit))),
        "{told:?}"
    );
    assert!(!run.stderr.contains("hunter2") && !run.stderr.contains("c2Vjcm"), "{}", run.stderr);
    let list = server.idemctl(&["list", "--debug"]).exits(0);
    list.says("SCAN ");
    assert!(!server.idemctl(&["list"]).exits(0).stderr.contains("debug: "));
}

/// Rule: short values and owner tokens are not told, whether written or compared.
#[test]
fn no_short_value_and_no_owner_is_told() {
    const OWNER: &str = "9cdf8104-2072-4119-abbc-c7ddc8386930";
    let server = Server::holding(&[("idem:started:e1", OWNER, 600_000)]);
    let given = ["--owner", OWNER, "--status", "201", "--body", "card 4111111111111111", "--yes"];
    let words = [&["--debug", "complete", "e1", "--schema", "event-driven"][..], &given].concat();
    let run = server.idemctl(&words).exits(0);
    let told: Vec<_> = run.stderr.lines().filter(|line| line.starts_with("debug: ")).collect();
    assert!(told.iter().any(|line| line.contains("<36 B sha256:")), "{told:?}");
    assert!(told.iter().any(|line| line.contains("idem:started:e1")), "{told:?}");
    assert!(!told.iter().any(|line| line.contains("4111111") || line.contains(OWNER)), "{told:?}");
}

/// Rule: a server that refuses a command repeats its words, and what is told of that repeats no value.
#[test]
fn no_value_is_told_that_an_error_of_the_server_repeats() {
    let server = Server::start_with(&["rename-command SET \"\""]);
    let words = [
        "--debug", "complete", "k", "--schema", "express", "--create", "--status", "201", "--body",
        "x", "--yes",
    ];
    let run = server.idemctl(&words).exits(6);
    let told: Vec<_> = run.stderr.lines().filter(|line| line.starts_with("debug: ")).collect();
    assert!(told.iter().any(|line| line.contains("with args beginning with (hidden)")), "{told:?}");
    assert!(!told.iter().any(|line| line.contains("IN_PROGRESS")), "{told:?}");
}

/// Rule: what a key is under every schema is read in one call, for each call sends the text of a script.
#[test]
fn all_that_a_key_may_be_is_read_in_one_call() {
    let server = Server::start();
    server.set("idempotency:k", r#"{"status":"PENDING"}"#, 60_000);
    let run = server.idemctl(&["--debug", "inspect", "k"]).exits(0);
    let is_read = |line: &&str| line.contains("  EVAL") && !line.contains("-> error");
    let reads: Vec<_> = run.stderr.lines().filter(is_read).collect();
    assert!(
        matches!(reads.as_slice(), [one] if one.contains("idempotency:k") && one.contains("idemkey:k")),
        "{reads:?}"
    );
}

/// Rule: a master says in its greeting that it is one, and a short command asks it for nothing that it has just said.
#[test]
fn a_master_is_not_asked_for_its_role_again() {
    let server = Server::holding(&[("idempotency:k", "{}", 600_000)]);
    for words in [&["inspect", "k"][..], &["list"], &["stats"]] {
        let run = server.idemctl(&[&["--debug"], words].concat());
        assert!(run.stderr.contains("HELLO") && !run.stderr.contains("ROLE"), "{}", run.all());
    }
}
