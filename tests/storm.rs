//! Services at work while `sweep` and `purge` run, again and again: what a service changed is never removed, and every
//! operation that a service was told is completed stays completed.
//!
//! Each record begins stale: a lock without expiry, or an old result. A worker takes it over as its service would, and
//! completes it or not. Whatever idemctl removes must be what was stale.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod support;
#[path = "support/wire.rs"]
mod wire;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use idemctl::domain::response::Response;
use idemctl::domain::schema::{Meaning, Schema};
use idemctl::domain::write::Request;
use redis::Connection;
use support::{Run, Server};

/// How long a storm lasts, and how many removals make it one; on a busy machine they take longer.
const STORM: Duration = Duration::from_secs(3);
const REMOVALS: u64 = 40;
const LONGEST: Duration = Duration::from_secs(150);

const WORKERS: usize = 3;
const SCHEMAS: [&str; 3] = ["express", "go-middleware", "event-driven"];

/// The body of a result from before the storm.
const STALE: &str = "stale";

/// An hour: less than any result has left that was stored in the storm, more than any lock.
const HOUR_MS: &str = "3600000";

/// What a service keeps of one operation.
struct Operation<'a> {
    schema: &'a Schema,
    key: String,
    owner: String,
    response: Response,
}

impl<'a> Operation<'a> {
    fn new(schema: &'a Schema, key: &str, body: &str) -> Self {
        let response = Response { status: Some(201), body: format!("\"{body}\"").into_bytes(), ..Response::default() };
        Self { schema, key: key.to_owned(), owner: format!("worker-{body}"), response }
    }

    fn request(&self) -> Request<'_> {
        let Self { schema, key, owner, response } = self;
        Request::new(schema, key.as_bytes(), owner, response)
    }

    fn redis_keys(&self) -> Vec<Vec<u8>> {
        self.schema.redis_keys(self.key.as_bytes())
    }

    /// True when the service got the lock.
    fn begin(&self, connection: &mut Connection) -> bool {
        wire::play(connection, &self.schema.begin, &self.request()).means() == Meaning::Acquired
    }

    /// True when the service was told that the result is stored.
    fn complete(&self, connection: &mut Connection) -> bool {
        wire::play(connection, &self.schema.complete, &self.request()).means() == Meaning::Stored
    }

    /// What must be there after [`Operation::complete`].
    fn result(&self) -> (Vec<u8>, Vec<u8>) {
        (self.redis_keys().pop().unwrap(), self.request().result_value())
    }

    /// A lock that nobody will release.
    fn abandon(&self, connection: &mut Connection) {
        self.begin(connection);
        wire::ask(connection, &[b"PERSIST".to_vec(), self.redis_keys().remove(0)]);
    }

    /// A result from long ago, beside a lock of this worker's where the schema keeps the two apart.
    fn grow_old(&self, connection: &mut Connection) {
        self.begin(connection);
        let stale = Operation { owner: self.owner.clone(), ..Operation::new(self.schema, &self.key, STALE) };
        assert!(stale.complete(connection));
        let keys = self.redis_keys();
        wire::ask(connection, &[b"PEXPIRE", keys.last().unwrap().as_slice(), HOUR_MS.as_bytes()]);
        if keys.len() > 1 {
            wire::ask(connection, &[b"SET", keys[0].as_slice(), self.owner.as_bytes(), b"PX", b"30000"]);
        }
    }
}

/// What a worker saw of its operations.
#[derive(Default)]
struct Story {
    /// The results the service was told are stored, by Redis key.
    stored: BTreeMap<Vec<u8>, Vec<u8>>,
    taken: usize,
    refused: usize,
}

/// Plays workers of each service while idemctl runs the command over and over; gives their stories and the backups.
fn storm(
    server: &Server,
    command: &[&str],
    play: fn(&mut Connection, &Schema, usize, &mut Story),
) -> (Story, Vec<PathBuf>) {
    let started = Instant::now();
    let over = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..WORKERS * SCHEMAS.len())
        .map(|worker| {
            let mut connection = server.connect();
            let over = Arc::clone(&over);
            thread::spawn(move || {
                let schema = wire::schema(SCHEMAS[worker % SCHEMAS.len()]);
                let mut story = Story::default();
                let mut number = worker;
                while !over.load(Ordering::Relaxed) {
                    play(&mut connection, &schema, number, &mut story);
                    number += WORKERS * SCHEMAS.len();
                }
                story
            })
        })
        .collect();
    let mut backups = Vec::new();
    let mut done = 0;
    while started.elapsed() < STORM || done < REMOVALS && started.elapsed() < LONGEST {
        let json = server.idemctl(command).exits(0).json();
        done += json["done"].as_u64().unwrap();
        backups.extend(json["backup"].as_str().map(PathBuf::from));
    }
    over.store(true, Ordering::Relaxed);
    let mut all = Story::default();
    for worker in workers {
        let story = worker.join().unwrap();
        all.stored.extend(story.stored);
        all.taken += story.taken;
        all.refused += story.refused;
    }
    assert!(done >= REMOVALS && all.stored.len() > 20, "a storm: {done} removed, {} stored", all.stored.len());
    (all, backups)
}

/// Every result that a service was told is stored is there, byte for byte.
fn nothing_stored_is_lost(server: &Server, story: &Story) {
    let mut connection = server.connect();
    for (redis_key, value) in &story.stored {
        let now: Option<Vec<u8>> = redis::cmd("GET").arg(redis_key).query(&mut connection).unwrap();
        assert_eq!(now.as_ref(), Some(value), "{}", redis_key.escape_ascii());
    }
}

/// Each removed value with what it had left, as the backups hold them.
fn removed(server: &Server, backups: &[PathBuf]) -> Vec<(String, Vec<u8>, Option<u64>)> {
    let decode =
        |text: &serde_json::Value| base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap()).unwrap();
    let mut connection = server.connect();
    let mut removed = Vec::new();
    for backup in backups {
        let mut held = BTreeMap::new();
        for line in fs::read_to_string(backup).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            match line["void"].as_array() {
                Some(void) => void.iter().for_each(|key| assert!(held.remove(&decode(key)).is_some())),
                None => drop(held.insert(decode(&line["redis_key_base64"]), line.clone())),
            }
        }
        for (redis_key, line) in held {
            let _: () = redis::cmd("RESTORE")
                .arg("copy")
                .arg(0)
                .arg(decode(&line["dump_base64"]))
                .arg("REPLACE")
                .query(&mut connection)
                .unwrap();
            let value: Vec<u8> = redis::cmd("GET").arg("copy").query(&mut connection).unwrap();
            removed.push((redis_key.escape_ascii().to_string(), value, line["ttl_ms"].as_u64()));
        }
    }
    removed
}

/// Takes over an abandoned lock: as its slow worker, who completes after all, or by a release and a new request, whose
/// lock has the same bytes where the schema keeps no owner.
fn take_over(connection: &mut Connection, schema: &Schema, number: usize, story: &mut Story) {
    let operation = Operation::new(schema, &format!("{number}"), &format!("b{number}"));
    operation.abandon(connection);
    thread::sleep(Duration::from_millis(fastrand::u64(0..80)));
    if number.is_multiple_of(2) {
        if operation.complete(connection) {
            story.stored.extend([operation.result()]);
        } else {
            story.refused += 1;
        }
        return;
    }
    wire::ask(connection, &[b"DEL".to_vec(), operation.redis_keys().remove(0)]);
    assert!(operation.begin(connection), "nobody else works on {number}");
    story.taken += 1;
    thread::sleep(Duration::from_millis(fastrand::u64(0..30)));
    assert!(operation.complete(connection), "a live lock was removed: {}", operation.key);
    story.stored.extend([operation.result()]);
}

#[test]
fn a_sweep_removes_no_live_lock_and_no_result() {
    let server = Server::start();
    let command = ["sweep", "--orphaned", "--yes", "--grace", "20ms", "-o", "json"];
    let (story, backups) = storm(&server, &command, take_over);
    assert!(story.taken > 20 && story.refused > 0, "{} {}", story.taken, story.refused);
    nothing_stored_is_lost(&server, &story);
    for (redis_key, value, left) in removed(&server, &backups) {
        assert_eq!(left, None, "{redis_key} was taken anew: {}", value.escape_ascii());
    }
}

/// Stores a result over an old one, as a late worker does, or a fresh one.
fn store_over(connection: &mut Connection, schema: &Schema, number: usize, story: &mut Story) {
    let operation = Operation::new(schema, &format!("{number}"), &format!("b{number}"));
    operation.grow_old(connection);
    thread::sleep(Duration::from_millis(fastrand::u64(0..80)));
    if number % 2 == 1 {
        for redis_key in operation.redis_keys() {
            wire::ask(connection, &[b"DEL".to_vec(), redis_key]);
        }
        assert!(operation.begin(connection), "nobody else works on {number}");
        story.taken += 1;
    }
    if operation.complete(connection) {
        story.stored.extend([operation.result()]);
    } else {
        assert!(number.is_multiple_of(2), "a live lock was removed: {}", operation.key);
        story.refused += 1;
    }
}

#[test]
fn a_purge_of_old_results_removes_no_new_one_and_no_lock() {
    let server = Server::start();
    let command = ["purge", "--older-than", "20h", "--yes", "-o", "json"];
    let (story, backups) = storm(&server, &command, store_over);
    nothing_stored_is_lost(&server, &story);
    for (redis_key, value, left) in removed(&server, &backups) {
        let is_lock = redis_key.starts_with("idem:started:");
        let value = value.escape_ascii().to_string();
        // The body in base64 where the schema keeps it so.
        assert!(is_lock || value.contains(STALE) || value.contains("InN0YWxlIg=="), "{redis_key} is new: {value}");
        assert!(left.is_some_and(|left| left <= 3_600_000), "{redis_key} is new: {left:?}");
    }
}

/// Takes a lock, and completes it unless it was purged.
fn run_through(connection: &mut Connection, schema: &Schema, number: usize, story: &mut Story) {
    let operation = Operation::new(schema, &format!("{number}"), &format!("b{number}"));
    assert!(operation.begin(connection));
    thread::sleep(Duration::from_millis(fastrand::u64(0..60)));
    if operation.complete(connection) {
        story.stored.extend([operation.result()]);
    } else {
        story.refused += 1;
    }
}

#[test]
fn a_purge_of_locks_removes_no_result() {
    let server = Server::start();
    let command = ["purge", "--state", "in-progress", "--yes", "-o", "json"];
    let (story, backups) = storm(&server, &command, run_through);
    assert!(story.refused > 0, "{}", story.refused);
    nothing_stored_is_lost(&server, &story);
    let kept: usize = Run::json(&server.idemctl(&["list", "-o", "json", "--state", "completed"]).exits(0))["records"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(kept, story.stored.len());
    for (redis_key, value, left) in removed(&server, &backups) {
        assert!(left.is_some_and(|left| left <= 300_000), "{redis_key} is a result: {}", value.escape_ascii());
    }
}
