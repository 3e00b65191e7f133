//! `idemctl doctor --observe`: locks of services that run meanwhile.

use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::{DONE, checks};
use crate::support::{LOCK, Run, Running, Runs as _, Server, Signal, until};

/// A lock of reference that was taken so many seconds ago.
fn owned(by: &str, seconds: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let created = now.as_millis() - u128::from(seconds) * 1_000;
    format!(r#"{{"state":"in-progress","owner":"{by}","fingerprint":"f","created_at":{created}}}"#)
}

/// Starts a run, and waits until its first look is over.
fn started(server: &Server, words: &[&str]) -> Child {
    server.send::<()>(&[b"CONFIG", b"RESETSTAT"]);
    let child = server.command().args([&["doctor", "-o", "json"], words].concat()).start();
    until("the first look is over", || {
        let info: String = server.send(&[b"INFO", b"commandstats"]);
        // COMMAND INFO follows the first sample.
        info.contains("cmdstat_command")
    });
    child
}

#[track_caller]
fn only(run: &Run) -> Value {
    let checks = checks(run);
    assert_eq!(checks.len(), 1, "{}", run.all());
    checks[0].clone()
}

/// So many requests, each of which holds its lock for this time.
fn serve(server: &Server, requests: u64, held: Duration, ttl_ms: u64) {
    for number in 0..requests {
        server.set(&format!("idem:{number}"), LOCK, ttl_ms);
    }
    sleep(held);
    for number in 0..requests {
        server.set(&format!("idem:{number}"), DONE, 3_600_000);
    }
}

const HOLDS: [&str; 6] = ["--schema", "express", "--only", "hold-times", "--observe", "4s"];

#[test]
fn locks_that_end_in_a_result_are_in_order() {
    let server = Server::start();
    let observe = |requests: u64| {
        let child = started(&server, &HOLDS);
        serve(&server, requests, Duration::from_millis(1_500), 30_000);
        let found = only(&child.ends());
        server.send::<()>(&[b"FLUSHALL"]);
        found
    };
    let fine = observe(25);
    assert_eq!(fine["severity"], "ok", "{fine:#}");
    let fact = fine["fact"].as_str().unwrap();
    assert!(fact.starts_with("0 of 25 locks of express expired"), "{fine:#}");
    assert_eq!(observe(3)["severity"], "unknown", "too few");
}

#[test]
fn without_a_lock_hold_times_are_unknown() {
    let server = Server::start();
    let words = [&["doctor", "-o", "json"], &HOLDS[..5], &["300ms"]].concat();
    let found = only(&server.idemctl(&words).exits(3));
    assert_eq!(found["severity"], "unknown", "{found:#}");
    // Without --observe, nobody asked for it.
    let run =
        server.idemctl(&["doctor", "--schema", "express", "--only", "hold-times", "-o", "json"]);
    assert!(checks(&run).is_empty(), "{}", run.all());
    server.idemctl(&["doctor", "--longest-run", "1s"]).exits(2);
}

/// Rule: half of the handlers take longer than the lock TTL, and that is said first.
#[test]
fn locks_that_expire_while_their_handlers_run_are_counted() {
    let server = Server::start();
    let child = started(&server, &HOLDS);
    for number in 0..40 {
        server.set(&format!("idem:{number}"), LOCK, 1_200);
    }
    sleep(Duration::from_millis(600));
    for number in 0..20 {
        server.set(&format!("idem:{number}"), DONE, 3_600_000);
    }
    sleep(Duration::from_millis(2_000));
    for number in 20..40 {
        server.set(&format!("idem:{number}"), DONE, 3_600_000);
    }
    let found = only(&child.ends());
    assert_eq!(found["severity"], "warning", "{found:#}");
    let fact = found["fact"].as_str().unwrap();
    assert!(fact.starts_with("20 of ") && fact.contains("expired before a result"), "{found:#}");
    assert_eq!(found["counterexamples"][0]["faults"], "1 expiry", "{found:#}");
}

/// Rule: the owner in the result says whose it is. Here another worker was done before the lock
/// expired, because somebody had removed it.
#[test]
fn the_result_of_another_owner_is_not_counted() {
    let server = Server::start();
    let only_holds = ["--schema", "reference", "--only", "hold-times", "--observe", "3s"];
    let observe = |by: &str| {
        let created: Vec<String> = (0..25).map(|_| owned("worker-1", 0)).collect();
        let child = started(&server, &only_holds);
        for (number, lock) in created.iter().enumerate() {
            server.set(&format!("idemkey:{number}"), lock, 30_000);
        }
        sleep(Duration::from_millis(900));
        for (number, lock) in created.iter().enumerate() {
            let created_at = lock.rsplit(':').next().unwrap().trim_end_matches('}');
            let result = format!(
                r#"{{"state":"completed","owner":"{by}","fingerprint":"f","created_at":{created_at},"completed_at":{created_at},"response":null}}"#
            );
            server.set(&format!("idemkey:{number}"), result, 3_600_000);
        }
        let found = only(&child.ends());
        server.send::<()>(&[b"FLUSHALL"]);
        found
    };
    let own = observe("worker-1");
    assert_eq!(own["severity"], "ok", "{own:#}");
    let other = observe("worker-2");
    assert_eq!(other["severity"], "unknown", "{other:#}");
}

#[test]
fn locks_that_are_renewed_for_too_long_are_found() {
    let server = Server::start();
    let observe = |times: u64| {
        server.set("idemkey:order-1", owned("worker-1", 0), 30_000);
        let words = ["--schema", "reference", "--only", "renewed-locks"];
        let run = ["--observe", "4s", "--longest-run", "1s"];
        let child = started(&server, &[&words[..], &run].concat());
        for number in 1..=times {
            sleep(Duration::from_millis(600));
            let ttl = (30_000 + number * 2_000).to_string();
            server.send::<i64>(&[b"PEXPIRE", b"idemkey:order-1", ttl.as_bytes()]);
        }
        only(&child.ends())
    };
    let found = observe(4);
    assert_eq!(found["severity"], "warning", "{found:#}");
    assert!(!found.to_string().contains("worker-1"), "no value is printed: {found:#}");
    // A timer that renews once a minute does not do so during a short run.
    let untouched = observe(0);
    assert_eq!(untouched["severity"], "unknown", "{untouched:#}");
}

#[test]
fn an_interrupt_ends_the_run() {
    let server = Server::start();
    server.set("idem:a", LOCK, 20_000);
    let child = started(&server, &["--observe", "1m"]);
    sleep(Duration::from_millis(300));
    child.signal(Signal::INT);
    child.ends().exits(130).says("interrupted");
}

/// Rule: what was seen of a server that is gone is unknown, and the other checks stay.
#[test]
fn a_server_that_dies_during_the_run_makes_its_facts_unknown() {
    let mut server = Server::start();
    server.set("idem:a", LOCK, 20_000);
    let only = "renewed-locks,hold-times,replication";
    let child = started(&server, &["--only", only, "--observe", "3s", "--longest-run", "1s"]);
    sleep(Duration::from_millis(500));
    server.kill();
    let run = child.ends().exits(3);
    let severity = |code: &str| {
        let all = checks(&run);
        all.iter().find(|check| check["code"] == code).unwrap()["severity"].clone()
    };
    assert_eq!(severity("renewed-locks"), "unknown", "{}", run.all());
    assert_eq!(severity("hold-times"), "unknown");
    assert_eq!(severity("replication"), "note");
}
