//! `idemctl doctor --observe`: locks of services that run meanwhile.

use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::{DONE, checks, set};
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

/// Twenty requests, each of which holds its lock for this time.
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
fn holds_are_seen_and_compared_with_the_stated_ttl() {
    let server = Server::start();
    let observe = |requests: u64, held: u64, ttl: &str| {
        let words = [&HOLDS[..], &["--lock-ttl", ttl]].concat();
        let child = started(&server, &words);
        serve(&server, requests, Duration::from_millis(held), 30_000);
        let found = only(&child.ends());
        server.send::<()>(&[b"FLUSHALL"]);
        found
    };
    let fine = observe(25, 1_500, "30s");
    assert_eq!(fine["severity"], "ok", "{fine:#}");
    assert!(fine["fact"].as_str().unwrap().contains("of 25 locks with a result"), "{fine:#}");
    assert!(fine["fact"].as_str().unwrap().contains("the longest hold seen is"), "{fine:#}");
    let few = observe(3, 1_500, "30s");
    assert_eq!(few["severity"], "unknown", "{few:#}");
    let long = observe(3, 2_500, "2s");
    assert_eq!(long["severity"], "warning", "{long:#}");
    assert_eq!(long["counterexamples"][0]["faults"], "1 expiry", "{long:#}");
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

const RENEWALS: [&str; 6] =
    ["--schema", "reference", "--lock-ttl", "30s", "--only", "renewed-locks"];

/// Renews a lock so often, every 300 ms.
fn renew(server: &Server, times: u64) {
    for number in 1..=times {
        sleep(Duration::from_millis(300));
        let ttl = (30_000 + number * 2_000).to_string();
        server.send::<i64>(&[b"PEXPIRE", b"idemkey:order-1", ttl.as_bytes()]);
    }
}

#[test]
fn locks_that_are_renewed_for_too_long_are_found() {
    let server = Server::start();
    let observe = |times: u64, longest_run: &str| {
        server.set("idemkey:order-1", owned("worker-1", 0), 30_000);
        server.set("idemkey:order-2", owned("worker-2", 0), 30_000);
        let words = [&RENEWALS[..], &["--observe", "3s", "--longest-run", longest_run]].concat();
        let child = started(&server, &words);
        renew(&server, times);
        only(&child.ends())
    };
    let found = observe(6, "1s");
    assert_eq!(found["severity"], "warning", "{found:#}");
    assert!(found["fact"].as_str().unwrap().starts_with("1 lock was renewed"), "{found:#}");
    assert!(!found.to_string().contains("worker-1"), "no value is printed: {found:#}");
    let untouched = observe(0, "1s");
    assert_eq!(untouched["severity"], "ok", "{untouched:#}");
    let once = observe(1, "1s");
    assert_eq!(once["severity"], "note", "{once:#}");
}

#[test]
fn a_lock_that_an_operator_extended_is_not_renewed() {
    let server = Server::start();
    server.set("idemkey:order-1", owned("worker-1", 0), 30_000);
    let words = [&RENEWALS[..], &["--observe", "3s", "--longest-run", "1s"]].concat();
    let child = started(&server, &words);
    for ttl in ["10m", "20m", "30m"] {
        sleep(Duration::from_millis(400));
        let words = ["extend", "order-1", "--schema", "reference", "--for", ttl, "--yes"];
        server.idemctl(&words).exits(0);
    }
    let found = only(&child.ends());
    assert_eq!(found["severity"], "ok", "{found:#}");
}

/// Rule: a timer that renews once a minute does not do so during a short run.
#[test]
fn an_old_lock_is_not_in_order_because_no_renewal_was_seen() {
    let server = Server::start();
    server.set("idemkey:order-1", owned("worker-1", 7_200), 119_000);
    let observe = |more: &[&str]| {
        let words = ["doctor", "-o", "json", "--schema", "reference", "--only", "renewed-locks"];
        let run = ["--observe", "500ms", "--longest-run", "5m"];
        only(&server.idemctl(&[&words[..], &run, more].concat()))
    };
    assert_eq!(observe(&[])["severity"], "unknown");
    let outlasting = observe(&["--lock-ttl", "2m"]);
    assert_eq!(outlasting["severity"], "warning", "{outlasting:#}");
    // A lock without a time, in a run that is too short.
    server.send::<()>(&[b"DEL", b"idemkey:order-1"]);
    server.set("idem:a", LOCK, 30_000);
    let words = ["doctor", "-o", "json", "--schema", "express", "--only", "renewed-locks"];
    let run = ["--observe", "500ms", "--longest-run", "5m"];
    let short = only(&server.idemctl(&[&words[..], &run].concat()));
    assert_eq!(short["severity"], "unknown", "{short:#}");
}

#[test]
fn a_lock_that_loses_its_ttl_during_the_run_is_an_error() {
    let server = Server::start();
    server.set("idem:a", LOCK, 30_000);
    let words = ["--schema", "express", "--only", "endless-locks", "--observe", "1s"];
    let child = started(&server, &words);
    server.send::<()>(&[b"PERSIST", b"idem:a"]);
    let found = &checks(&child.ends())[0];
    assert_eq!(found["severity"], "error", "{found:#}");
    assert!(found["fact"].as_str().unwrap().contains("lost its TTL during this run"), "{found:#}");
}

/// Rule: half of the handlers take longer than the lock TTL.
#[test]
fn locks_that_expire_while_their_handlers_run_are_found() {
    let server = Server::start();
    let words = [&HOLDS[..], &["--lock-ttl", "2s"]].concat();
    let child = started(&server, &words);
    for number in 0..40 {
        server.set(&format!("idem:{number}"), LOCK, 2_000);
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
    // A busy machine looks less often, and then some of these locks were not seen near their deadlines.
    assert_ne!(found["severity"], "ok", "{found:#}");
    let fact = found["fact"].as_str().unwrap();
    if let Some((before, _)) = fact.split_once(" locks were held until the deadline") {
        let held = before.rsplit(' ').next().unwrap();
        assert!(held.parse::<u32>().is_ok_and(|held| held <= 20), "{found:#}");
    }
}

/// Rule: a worker dies, its lock expires, and a retry takes the key and is done before the next look.
#[test]
fn the_results_of_retries_are_not_counted_for_locks_that_expired() {
    let server = Server::start();
    let words = [&HOLDS[..], &["--lock-ttl", "1s"]].concat();
    let child = started(&server, &words);
    for _ in 0..2 {
        for number in 0..30 {
            server.set(&format!("idem:{number}"), LOCK, 1_000);
        }
        until("the locks expired", || server.get("idem:29").is_none());
        for number in 0..30 {
            server.set(&format!("idem:{number}"), DONE, 3_600_000);
        }
        sleep(Duration::from_millis(500));
    }
    let found = only(&child.ends());
    assert_ne!(found["severity"], "ok", "{found:#}");
    let fact = found["fact"].as_str().unwrap();
    assert!(fact.contains("no lock certainly ended in a result"), "{found:#}");
    assert!(!fact.contains("ended with at most"), "{found:#}");
}

/// Rule: the owner in the result says whose it is. Here another worker was done before the lock
/// expired, because somebody had removed it.
#[test]
fn the_result_of_another_owner_is_not_counted() {
    let server = Server::start();
    let only_holds = ["--schema", "reference", "--only", "hold-times", "--observe", "3s"];
    let observe = |by: &str| {
        let created: Vec<String> = (0..25).map(|_| owned("worker-1", 0)).collect();
        let child = started(&server, &[&only_holds[..], &["--lock-ttl", "30s"]].concat());
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
    let fact = own["fact"].as_str().unwrap();
    assert!(fact.contains("of 25 locks that ended in their own result"), "{own:#}");
    let other = observe("worker-2");
    assert_eq!(other["severity"], "unknown", "{other:#}");
}

/// Rule: a new request may have taken a lock whose value says nothing about it.
#[test]
fn renewals_of_locks_without_owner_are_unknown() {
    let server = Server::start();
    server.set("idem:a", LOCK, 20_000);
    let words = [
        "--schema",
        "express",
        "--only",
        "renewed-locks",
        "--observe",
        "2s",
        "--longest-run",
        "1s",
    ];
    let child = started(&server, &words);
    server.set("idem:a", LOCK, 30_000);
    let found = only(&child.ends());
    assert_eq!(found["severity"], "unknown", "{found:#}");
}

#[test]
fn evictions_during_the_run_are_an_error() {
    let server = Server::start_with(&["maxmemory 5mb", "maxmemory-policy allkeys-lru"]);
    let child = started(&server, &["--only", "evictions", "--observe", "2s"]);
    let long = "x".repeat(100_000);
    for number in 0..100 {
        server.put(&format!("other:{number}"), &long);
    }
    let run = child.ends().exits(1);
    let found = checks(&run);
    assert_eq!(found[0]["severity"], "error", "{}", run.all());
    assert!(found[0]["fact"].as_str().unwrap().contains("during this run"), "{}", run.all());
    set(&server, "maxmemory", "0");
    let words = ["doctor", "--only", "evictions", "--observe", "300ms", "-o", "json"];
    let quiet = checks(&server.idemctl(&words));
    assert_eq!(quiet.len(), 1, "{quiet:#?}");
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
