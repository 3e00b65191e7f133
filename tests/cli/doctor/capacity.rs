//! `idemctl doctor --only capacity`: memory that suffices, that will not, and that nobody can judge.

use serde_json::Value;

use super::{check, checks, set};
use crate::support::{LOCK, Runs as _, Server};

const HOUR: u64 = 3_600_000;

/// Results of express that came evenly in the last `hours` hours, and are stored for 24 h.
fn fill(server: &Server, results: u64, hours: u64) {
    let body = "x".repeat(1_000);
    let done =
        format!(r#"{{"status":"COMPLETED","statusCode":201,"headers":{{}},"body":"{body}"}}"#);
    let mut connection = server.connect();
    let mut pipeline = redis::pipe();
    for number in 0..results {
        let age = number * hours * HOUR / results;
        pipeline.cmd("SET").arg(format!("idem:{number}")).arg(&done);
        pipeline.arg("PX").arg(24 * HOUR - age).ignore();
    }
    pipeline.exec(&mut connection).unwrap();
}

#[track_caller]
fn gives(server: &Server, severity: &str) -> Value {
    let found = check(server, "capacity");
    assert_eq!(found["severity"], severity, "{found:#}");
    found
}

#[test]
fn memory_for_what_arrives_suffices_or_does_not() {
    let server = Server::start_with(&["maxmemory 200mb"]);
    fill(&server, 3_000, 24);
    let enough = gives(&server, "ok");
    assert_eq!(enough["evidence"], "estimated", "{enough:#}");
    let fact = enough["fact"].as_str().unwrap();
    // The sample is random, so that the longest TTL in it is that of one of the youngest results.
    assert!(
        fact.contains(" of express, kept for 23h ") && fact.contains("maxmemory is 200.0 MiB"),
        "{fact}"
    );
    // Without a limit, there is nothing to compare.
    set(&server, "maxmemory", "0");
    let run = server.idemctl(&["doctor", "--only", "capacity", "-o", "json"]);
    assert!(checks(&run).is_empty(), "{}", run.all());
}

/// Rule: the service began two hours ago, so that it will need twelve times the memory.
#[test]
fn memory_that_is_enough_now_is_full_later() {
    let server = Server::start_with(&["maxmemory 16mb"]);
    fill(&server, 3_000, 2);
    let found = gives(&server, "warning");
    assert!(found["consequence"].as_str().unwrap().contains("OOM"), "{found:#}");
    set(&server, "maxmemory-policy", "allkeys-lru");
    gives(&server, "warning");
    set(&server, "maxmemory", "500mb");
    gives(&server, "ok");
}

#[test]
fn few_results_a_load_and_hidden_memory_are_unknown() {
    let server = Server::start_with(&["maxmemory 200mb"]);
    fill(&server, 10, 24);
    gives(&server, "unknown");
    fill(&server, 3_000, 0);
    gives(&server, "unknown");
    fill(&server, 3_000, 24);
    gives(&server, "ok");
    // Without MEMORY USAGE, nobody knows what a record takes.
    server.add_user("part", "~idem:* +@all -memory");
    let words = ["--user", "part", "doctor", "--only", "capacity", "-o", "json"];
    let run = server.command().env("REDISCLI_AUTH", "pw").args(words).run().exits(3);
    let hidden = &checks(&run)[0];
    assert_eq!(hidden["refused"]["command"], "MEMORY USAGE", "{hidden:#}");
    // Without records, there is nothing to size.
    let empty = Server::start_with(&["maxmemory 200mb"]);
    empty.put("unrelated", "x");
    gives(&empty, "unknown");
    empty.send::<()>(&[b"FLUSHALL"]);
    let run = empty.idemctl(&["doctor", "--only", "capacity", "-o", "json"]);
    assert!(checks(&run).is_empty(), "{}", run.all());
}

/// Rule: a record of two Redis keys is one record.
#[test]
fn records_of_two_redis_keys_are_sized_once() {
    let server = Server::start_with(&["maxmemory 200mb"]);
    let mut connection = server.connect();
    let mut pipeline = redis::pipe();
    for number in 0..240_u64 {
        let left = (number + 1) * HOUR / 10;
        for (key, value) in [("done", "1"), ("lock", "1")] {
            let redis_key = format!("idem:{key}:order-{number}");
            pipeline.cmd("SET").arg(redis_key).arg(value).arg("PX").arg(left).ignore();
        }
    }
    pipeline.exec(&mut connection).unwrap();
    let words = ["doctor", "--only", "capacity", "--schema", "event-consumer", "-o", "json"];
    let run = server.idemctl(&words);
    // 240 in 24 h.
    let fact = checks(&run)[0]["fact"].as_str().unwrap().to_owned();
    assert!(fact.starts_with("10 new results/h of event-consumer"), "{}", run.all());
}

/// Rule: without --observe, at most 500 keys are sampled, whatever there is. Only locks are counted
/// among all keys.
#[test]
fn a_large_server_is_checked_with_few_reads() {
    let server = Server::start_with(&["maxmemory 500mb"]);
    fill(&server, 20_000, 24);
    server.set("idem:held", LOCK, 20_000);
    server.send::<()>(&[b"CONFIG", b"RESETSTAT"]);
    server.idemctl(&["doctor", "--skip", "endless-locks,observed-ttls"]);
    let info: String = server.send(&[b"INFO", b"commandstats"]);
    let calls = |command: &str| {
        let line = info.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
        let calls = line.and_then(|line| line.split(['=', ',']).nth(1));
        calls.map_or(0, |calls| calls.parse::<u64>().unwrap())
    };
    assert!(calls("memory|usage") + calls("memory") <= 1_000, "{info}");
    assert!(calls("getrange") <= 5_000, "{info}");
}
