//! The commands that `doctor` does not send, and the facts that it does not know.

use serde_json::Value;

use super::{checks, has_dryrun, server};
use crate::support::{LOCK, Runs as _, Server};

/// How often the server was sent SCAN since the last call.
fn scans(server: &Server) -> usize {
    let stats: String = server.send(&[b"INFO", b"commandstats"]);
    server.send::<()>(&[b"CONFIG", b"RESETSTAT"]);
    stats.lines().filter(|line| line.starts_with("cmdstat_scan:")).count()
}

#[test]
fn keys_are_read_only_for_checks_that_need_them() {
    let server = server(&[]);
    let scans_of = |words: &[&str]| {
        scans(&server);
        server.idemctl(&[&["doctor", "--only"], words].concat());
        scans(&server)
    };
    assert_eq!(scans_of(&["evictions,memory-headroom,replication"]), 0);
    assert_eq!(scans_of(&["persistence,commands", "--schema", "express"]), 0);
    // The keys show which schemas are in use, or whether locks expire.
    assert_eq!(scans_of(&["persistence"]), 1);
    assert_eq!(scans_of(&["endless-locks", "--schema", "express"]), 1);
}

/// The only statement of this check for a user with the password of the tests.
#[track_caller]
fn check_as(server: &Server, user: &str, words: &[&str]) -> Value {
    let mut command = server.command();
    let run = command.env("REDISCLI_AUTH", "pw").args(["--user", user, "doctor", "-o", "json"]);
    let run = run.args(words).run();
    let checks = checks(&run);
    assert_eq!(checks.len(), 1, "{}", run.all());
    checks[0].clone()
}

#[test]
fn without_a_schema_rights_are_said_to_be_unknown() {
    let server = Server::start();
    server.add_user("app", "~idem:* +@all");
    server.add_user("few", "~idem:* +@all -scan");
    if !has_dryrun(&server) {
        return;
    }
    let own = check_as(&server, "app", &["--only", "user-rights"]);
    assert_eq!(own["severity"], "unknown", "{own:#}");
    assert!(!own.to_string().contains("idemctl-doctor"), "no such key is in use: {own:#}");
    assert!(own["remedy"].as_str().unwrap().contains("--schema"), "{own:#}");
    let named = check_as(&server, "app", &["--only", "user-rights", "--schema", "express"]);
    assert_eq!(named["severity"], "ok", "{named:#}");
    let few = check_as(&server, "few", &["--only", "user-rights"]);
    assert_eq!(few["severity"], "note", "{few:#}");
    let fact = few["fact"].as_str().unwrap();
    assert!(fact.contains("SCAN") && !fact.contains("GET"), "{few:#}");
    let words = ["doctor", "--only", "service-rights", "--service-user", "app", "-o", "json"];
    let run = server.idemctl(&words).exits(3);
    assert_eq!(checks(&run)[0]["severity"], "unknown", "{}", run.all());
}

#[test]
fn a_service_needs_eval_and_evalsha_and_an_unknown_user_is_named() {
    let server = Server::start();
    server.add_user("whole", "~idem:* +@all");
    server.add_user("eval", "~idem:* +@all -evalsha");
    server.add_user("evalsha", "~idem:* +@all -eval");
    server.add_user("neither", "~idem:* +@all -eval -evalsha");
    if !has_dryrun(&server) {
        return;
    }
    let of = |user: &str| {
        let only = ["--only", "service-rights", "--schema", "express", "-o", "json"];
        let words = [&["doctor", "--service-user", user], &only[..]].concat();
        checks(&server.idemctl(&words))[0].clone()
    };
    for (user, severity) in
        [("whole", "ok"), ("eval", "note"), ("evalsha", "note"), ("neither", "error")]
    {
        let found = of(user);
        assert_eq!(found["severity"], severity, "{user}: {found:#}");
    }
    let nobody = of("nobody");
    assert_eq!(nobody["severity"], "unknown", "{nobody:#}");
    assert!(nobody["fact"].as_str().unwrap().contains("nobody"), "{nobody:#}");
}

/// Rule: the records that the user may not read can be wrong.
#[test]
fn a_sample_with_unreadable_records_is_not_in_order() {
    let server = Server::start();
    server.set("idem:a", LOCK, 20_000);
    server.set("idem:b", LOCK, 20_000);
    server.add_user("half", "~idem:a* +@all");
    server.add_user("whole", "~idem:* +@all");
    for code in ["endless-locks", "observed-ttls"] {
        let half = check_as(&server, "half", &["--only", code]);
        assert_eq!(half["severity"], "unknown", "{half:#}");
        let whole = check_as(&server, "whole", &["--only", code]);
        assert_eq!(whole["severity"], "ok", "{whole:#}");
    }
}
