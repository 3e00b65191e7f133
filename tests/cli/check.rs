//! `idemctl check` from the outside: the monitoring plugin.

use crate::support::cluster::Cluster;
use crate::support::{self, FOREVER, LOCK, PENDING, Run, Server, alone};

fn check(server: &Server, words: &[&str]) -> Run {
    server.idemctl(&[&["check"], words].concat())
}

fn stuck(server: &Server, count: usize) {
    server.fill((0..count).map(|index| (format!("idem:k{index}"), LOCK)), FOREVER);
}

/// One line of a status, with the exit code of plugins.
#[track_caller]
fn says(run: Run, code: i32, status: &str) -> String {
    let run = run.exits(code);
    let line = run.text();
    assert!(line.starts_with(&format!("IDEMCTL {status} - ")) && line.lines().count() == 1, "{}", run.all());
    line
}

#[test]
fn one_orphaned_lock_is_critical_and_limits_say_from_how_many_on() {
    let server = Server::holding(&[("idem:held", LOCK, 29_000)]);
    let line = says(check(&server, &[]), 0, "OK");
    assert_eq!(
        line,
        "IDEMCTL OK - no orphaned locks among 1 records in 1 keys | orphaned=0;;0 records=1 foreign=0 keys=1\n"
    );
    stuck(&server, 3);
    let line = says(check(&server, &[]), 2, "CRITICAL");
    assert!(
        line.contains("3 orphaned locks (express 3), e.g. k") && line.contains("orphaned=3;;0 records=4"),
        "{line}"
    );
    let line = says(check(&server, &["--warning", "2", "--critical", "9"]), 1, "WARNING");
    assert!(line.contains("orphaned=3;1;8"), "{line}");
    says(check(&server, &["--warning", "4", "--critical", "9"]), 0, "OK");
    assert_eq!(server.size(), 4, "a check changes nothing");
}

/// Rule: what was not looked at is never OK: there is a line with UNKNOWN in every case.
#[test]
fn nobody_knows_without_a_server_a_right_or_a_command_line() {
    let closed = support::free_port().to_string();
    says(alone(&["-p", &closed, "check"]), 3, "UNKNOWN");
    says(alone(&["-p", &closed, "check", "--no-such-option"]), 3, "UNKNOWN");
    says(alone(&["-p", &closed, "check", "--critical", "0"]), 3, "UNKNOWN");
    says(alone(&["--context", "nosuch", "check"]), 3, "UNKNOWN");
    says(alone(&["-p", &closed, "check", "--schema", "nosuch"]), 3, "UNKNOWN");
    alone(&["check", "--help"]).exits(0);
    alone(&["schema", "check", "--no-such-option"]).exits(2);
    let server = Server::start();
    server.send::<()>(&[b"CONFIG", b"SET", b"requirepass", b"secret"]);
    says(server.idemctl(&["-a", "wrong", "check"]), 3, "UNKNOWN");
}

/// Rule: a database with keys, none of which is looked at, is not OK.
#[test]
fn nothing_covered_is_unknown_and_named_schemas_without_records_are_ok() {
    let server = Server::start();
    says(check(&server, &[]), 0, "OK");
    server.fill((0..40).map(|index| (format!("bare-{index}"), r#"{"status":0}"#)), 20_000);
    let line = says(check(&server, &[]), 3, "UNKNOWN");
    assert!(line.contains("none of the 40 Redis keys"), "{line}");
    let line = says(check(&server, &["--schema", "express"]), 0, "OK");
    assert!(line.contains("records=0"), "{line}");
    let line = says(check(&server, &["--schema", "go-chi"]), 0, "OK");
    assert!(line.contains("records=40"), "{line}");
}

/// Rule: more foreign records than a schema's own under its prefix are not OK.
#[test]
fn more_foreign_than_claimed_records_are_a_warning() {
    let server = Server::holding(&[("idem:ours", LOCK, 20_000)]);
    let foreign = r#"{"status":"IN_PROGRESS","fingerPrint":"fd56"}"#;
    server.set("idem:theirs-1", foreign, 20_000);
    says(check(&server, &[]), 0, "OK");
    server.set("idem:theirs-2", foreign, 20_000);
    let line = says(check(&server, &[]), 1, "WARNING");
    assert!(line.contains("2 records under express's prefix have other forms, 1 are express's"), "{line}");
    assert!(line.contains("foreign=2"), "{line}");
}

/// Rule: records that the user may not read are a gap.
#[test]
fn what_may_not_be_read_is_a_gap_that_hides_nothing_critical() {
    let server = Server::holding(&[("idem:held", LOCK, 29_000)]);
    server.set("idempotency:hidden", PENDING, 20_000);
    server.add_user("narrow", "~idem:* +@read +@connection +@scripting +time");
    let narrow = ["--user", "narrow", "-a", "pw", "check"];
    let line = says(server.idemctl(&narrow), 3, "UNKNOWN");
    assert!(line.contains("1 record was left out") && line.contains("records=1"), "{line}");
    stuck(&server, 1);
    says(server.idemctl(&narrow), 2, "CRITICAL");
}

#[test]
fn a_master_that_is_down_is_a_gap() {
    let mut cluster = Cluster::start(3);
    cluster.fill((0..30).map(|index| (format!("idem:k{index}"), LOCK)), 60_000);
    says(cluster.idemctl(&["check"]), 0, "OK");
    cluster.kill(1);
    let line = says(cluster.idemctl(&["check"]), 3, "UNKNOWN");
    assert!(line.contains("1 of 3 masters"), "{line}");
}
