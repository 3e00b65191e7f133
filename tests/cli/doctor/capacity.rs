//! `idemctl doctor --only capacity`: memory that suffices, that will not, and that nobody can judge.

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::{check, checks, set};
use crate::support::{LOCK, Running as _, Runs as _, Server};

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
        fact.contains(", stored for 23h ") && fact.contains("maxmemory is 200.0 MiB"),
        "{fact}"
    );
    let inputs = enough["inputs"].as_str().unwrap();
    assert!(inputs.starts_with("express: ") && inputs.contains("other data"), "{inputs}");
    server
        .idemctl(&["doctor", "--only", "capacity", "-v"])
        .exits(0)
        .shows("From          express: ");
    // Memory is full, so that nothing else matters.
    set(&server, "maxmemory", "2mb");
    let full = gives(&server, "error");
    assert!(full["fact"].as_str().unwrap().contains("full now"), "{full:#}");
    set(&server, "maxmemory", "0");
    let unlimited = gives(&server, "note");
    assert!(unlimited["fact"].as_str().unwrap().contains("without maxmemory"), "{unlimited:#}");
}

/// Rule: the service began two hours ago, so that it will need twelve times the memory.
#[test]
fn memory_that_is_enough_now_is_full_later() {
    let server = Server::start_with(&["maxmemory 16mb"]);
    fill(&server, 3_000, 2);
    let found = gives(&server, "warning");
    let fact = found["fact"].as_str().unwrap();
    assert!(fact.contains("writes are refused in about"), "{fact}");
    set(&server, "maxmemory-policy", "allkeys-lru");
    let found = gives(&server, "warning");
    assert!(found["fact"].as_str().unwrap().contains("evictions start in about"), "{found:#}");
    set(&server, "maxmemory", "500mb");
    gives(&server, "ok");
}

#[test]
fn few_results_a_load_and_hidden_memory_are_unknown() {
    let server = Server::start_with(&["maxmemory 200mb"]);
    fill(&server, 10, 24);
    let few = gives(&server, "unknown");
    assert!(few["fact"].as_str().unwrap().contains("only 10 results"), "{few:#}");
    fill(&server, 3_000, 0);
    let loaded = gives(&server, "unknown");
    assert!(loaded["fact"].as_str().unwrap().contains("at about the same time"), "{loaded:#}");
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

#[test]
fn other_data_may_grow() {
    let server = Server::start_with(&["maxmemory 200mb"]);
    fill(&server, 1_000, 24);
    // One large key is 1 of 1,001.
    server.put("cache", "x".repeat(50_000_000));
    let shared = gives(&server, "note");
    assert!(shared["fact"].as_str().unwrap().contains("other data"), "{shared:#}");
    let words = ["doctor", "--only", "capacity", "--observe", "1s", "-o", "json"];
    let observed = checks(&server.idemctl(&words))[0].clone();
    assert_eq!(observed["severity"], "ok", "{observed:#}");
}

/// Rule: a record of two Redis keys is one record, in arrivals and in bytes.
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
    let words =
        ["doctor", "--only", "capacity,mixed-releases", "--schema", "event-consumer", "-o", "json"];
    let run = server.idemctl(&words);
    let found = checks(&run);
    let of = |code: &str| found.iter().find(|check| check["code"] == code).unwrap();
    let inputs = of("capacity")["inputs"].as_str().unwrap();
    assert!(inputs.contains("by 240 sampled results"), "{}", run.all());
    let fact = of("mixed-releases")["fact"].as_str().unwrap();
    assert!(fact.contains("(240 "), "{fact}");
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

/// Rule: what rose in the last ten minutes fills the memory, even if the day was quiet.
#[test]
fn a_rate_that_rose_lately_is_not_in_order() {
    let server = Server::start_with(&["maxmemory 100mb"]);
    fill(&server, 500, 24);
    let mut pipeline = redis::pipe();
    let done = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":""}"#;
    for number in 0..5_000_u64 {
        let left = (24 * HOUR - number * 120).to_string();
        pipeline
            .cmd("SET")
            .arg(format!("idem:new-{number}"))
            .arg(done)
            .arg("PX")
            .arg(left)
            .ignore();
    }
    pipeline.exec(&mut server.connect()).unwrap();
    let found = gives(&server, "note");
    assert!(found["fact"].as_str().unwrap().contains("at the earliest"), "{found:#}");
}

/// Many results of express in 24 h, and what a run of 6 s says if so many keys come meanwhile.
fn observed_with_new(limit: &str, new: impl Fn(&Server)) -> Value {
    let server = Server::start_with(&[&format!("maxmemory {limit}")]);
    fill(&server, 20_000, 24);
    let words = ["doctor", "--only", "capacity", "--schema", "express", "-o", "json"];
    let run = server.command().args(words).args(["--observe", "6s"]).start();
    for _ in 0..40 {
        sleep(Duration::from_millis(100));
        new(&server);
    }
    let run = run.ends();
    checks(&run)[0].clone()
}

/// Rule: results that the run counted came, however few of them a sample of 500 shows.
#[test]
fn results_that_the_run_counted_are_the_low_end() {
    let number = std::cell::Cell::new(0);
    let found = observed_with_new("60mb", |server| {
        for _ in 0..20 {
            number.set(number.get() + 1);
            let body = "x".repeat(1_000);
            server.set(&format!("idem:new-{}", number.get()), body, 24 * HOUR);
        }
    });
    assert_eq!(found["severity"], "warning", "{found:#}");
    assert!(found["fact"].as_str().unwrap().contains("writes are refused in about"), "{found:#}");
    let inputs = found["inputs"].as_str().unwrap();
    assert!(inputs.contains("keys before, ") && inputs.contains("raised to"), "{inputs}");
}

/// Rule: keys that may be locks do not raise the low end.
#[test]
fn locks_that_the_run_counted_are_no_results() {
    let number = std::cell::Cell::new(0);
    let found = observed_with_new("60mb", |server| {
        for _ in 0..50 {
            number.set(number.get() + 1);
            server.set(&format!("idem:new-{}", number.get()), LOCK, 30_000);
        }
    });
    assert_eq!(found["severity"], "note", "{found:#}");
    let fact = found["fact"].as_str().unwrap();
    assert!(fact.contains("at the earliest, and never at the low end"), "{fact}");
}

/// Rule: locks that expire are no results that arrive.
#[test]
fn expired_locks_do_not_raise_the_rate() {
    let server = Server::start_with(&["maxmemory 100mb"]);
    let mut pipeline = redis::pipe();
    for number in 0..300_u64 {
        let left = (number + 1) * HOUR / 300;
        pipeline
            .cmd("SET")
            .arg(format!("idem:done:{number}"))
            .arg("1")
            .arg("PX")
            .arg(left)
            .ignore();
    }
    pipeline.exec(&mut server.connect()).unwrap();
    let words = ["doctor", "--only", "capacity", "--schema", "event-consumer", "-o", "json"];
    let run = server.command().args(words).args(["--observe", "2s"]).start();
    let mut pipeline = redis::pipe();
    for number in 0..1_000 {
        let lock = format!("idem:lock:{number}");
        pipeline.cmd("SET").arg(lock).arg("1").arg("PX").arg(50).ignore();
    }
    pipeline.exec(&mut server.connect()).unwrap();
    let run = run.ends();
    let found = &checks(&run)[0];
    assert_eq!(found["severity"], "ok", "{found:#}");
    // 1,000 locks in 2 s would be 500 a second.
    let fact = found["fact"].as_str().unwrap();
    assert!(fact.starts_with("0.0") || fact.contains(" new results/min, "), "{fact}");
}
