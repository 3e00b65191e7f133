//! Locks without expiry: what can be behind one, by the steps of a schema, and what `sweep --orphaned` takes.

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::{explored, frontier, only, ways};
use crate::simulate::variant::{MINE, Variant, run};
use crate::support::{FOREVER, Running, Runs, Server, until};

/// A worker that takes the lock by one command and gives it its TTL by the next one.
fn two_commands() -> Variant {
    let apart = r#"command = ["SETNX", "{lock}", "{lock_value}"]
replies = [
  { integer = 1, means = "next", when = { lock = "absent" } },
  { integer = 0, means = "conflict", when = { lock = "present" }, client = "negative acknowledgement, redelivered" },
]

[[begin.call]]
command = ["EXPIRE", "{lock}", "{lock_ttl}"]
replies = [{ integer = 1, means = "acquired", when = {} }]

"#;
    Variant::of("event-consumer")
        .with_block("schema.toml", (r#"command = ["SET", "{lock}""#, "[complete]"), apart)
        .checked()
}

/// Whether a worker is at work behind the record, and the faults, for each way in which it can have come to what it is.
fn ways_to(server: &Server, words: &[&str]) -> Vec<(bool, Value)> {
    let run = server
        .idemctl(&[&["inspect", "order-1", "--explain", "-o", "json"], words].concat())
        .exits(0);
    let explained = run.json()["explained"][0]["ways"].as_array().unwrap().clone();
    explained
        .iter()
        .map(|way| (way["holder_at_work"] == true, way["minimal_faults"].clone()))
        .collect()
}

#[test]
fn between_two_commands_a_live_worker_is_behind_a_lock_without_expiry() {
    let mine = two_commands();
    let dir = ["--schema-dir", mine.folder().to_str().unwrap()];
    let words =
        [&["explore", MINE, "--faults", "expiry=0,resend=0", "--sandbox", "-o", "json"], &dir[..]]
            .concat();
    let broken = frontier(&only(&run(mine.folder(), &words)));
    assert_eq!(broken["lock-ends"], [("lost=1".to_owned(), 3), ("crash=1".to_owned(), 4)]);
    let one_command = explored(&["event-consumer", "--faults", "expiry=0"]);
    assert_eq!(one_command.get("lock-ends"), ways(&[]).get("lock-ends"));

    let server = Server::holding(&[("idem:lock:order-1", "1", FOREVER)]);
    let lives = ways_to(&server, &[&["--schema", MINE], &dir[..]].concat());
    assert!(lives.contains(&(true, serde_json::json!({}))), "{lives:?}");
    // Where one command does both, somebody else has to take the TTL away.
    let lives = ways_to(&server, &["--schema", "event-consumer"]);
    assert!(lives.iter().all(|(_, faults)| faults["persist"] == 1), "{lives:?}");
    assert!(lives.iter().any(|(lives, _)| *lives), "{lives:?}");
}

/// Rule: a lock that has got its TTL since the first look is left alone, for its worker stood between two commands.
#[test]
fn the_second_look_of_a_sweep_spares_a_worker_between_two_commands() {
    let mine = two_commands();
    let server =
        Server::holding(&[("idem:lock:dead", "1", FOREVER), ("idem:lock:alive", "1", FOREVER)]);
    let words = ["sweep", "--orphaned", "--yes", "--grace", "2s", "--schema", MINE, "--schema-dir"];
    let sweep = server.command().args(words).arg(mine.folder()).start();
    until("the sweep has looked", || server.calls("scan") > 0);
    sleep(Duration::from_millis(300));
    server.send::<()>(&[b"EXPIRE", b"idem:lock:alive", b"60"]);
    let run = sweep.ends();
    assert!(server.get("idem:lock:alive").is_some(), "{}", run.all());
    assert!(server.get("idem:lock:dead").is_none(), "{}", run.all());
}
