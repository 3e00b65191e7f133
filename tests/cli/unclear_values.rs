//! What the commands that change one record do, and say, about a value that the schema does not
//! describe, or describes only in part.

use crate::support::{Run, Server};

fn step(server: &Server, words: &[&str], schema: &str) -> Run {
    server.idemctl(&[words, &["--schema", schema, "--yes"]].concat())
}

/// Rule: beside a lock, force-unlock removes the lock and leaves the value that cannot be read, and
/// says so. Revert: without `has_separate_lock`, it removes the stored value and leaves the lock.
#[test]
fn force_unlock_removes_the_lock_and_not_the_unreadable_value_beside_it() {
    let server = Server::start();
    server.set("idem:started:k", "worker-1", 60_000);
    server.set("idem:result:k", "{b", 600_000);
    let run = step(&server, &["force-unlock", "k"], "event-driven").exits(0);
    run.says("This removes the Redis key idem:started:k.").says("Read back: the lock is gone.");
    assert_eq!(server.keys(), ["idem:result:k"]);
    // Alone, it is removed.
    let run = step(&server, &["force-unlock", "k"], "event-driven").exits(0);
    run.says("This removes the Redis key idem:result:k.").says("Read back: the lock is gone.");
    assert!(server.keys().is_empty());
}

/// Rule: begin does not send a command that may overwrite a value of which nothing is predicted.
/// Revert: without `why_overwrites`, the value is replaced by a lock.
#[test]
fn begin_does_not_overwrite_a_value_of_which_nothing_is_predicted() {
    let server = Server::start();
    let key = "fn#b0c5b121e7cb24f7ce362a75c65bdbe7";
    for value in
        ["", "[1]", r#"{"status":"X","expiration":2000000000}"#, r#"{"status":"INPROGRESS"}"#]
    {
        server.set(key, value, 60_000);
        let run = step(&server, &["begin", key], "powertools-python").exits(2);
        run.says("it is unknown what powertools-python makes of the stored value");
        run.says("its begin step may overwrite it; nothing was done");
        assert_eq!(server.get(key).unwrap(), value.as_bytes());
    }
    // A lock that is past its own time is taken over, as the library does.
    let past = r#"{"status":"INPROGRESS","expiration":1000,"in_progress_expiration":1000}"#;
    server.set(key, past, 60_000);
    step(&server, &["begin", key], "powertools-python").exits(0);
}

const NAIVE: &str = r#"
format = 2
name = "naive"
keys = { record = "naive:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "held"
equals = "held"
state = "in-progress"

[write]
lock_value = "held"

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { nil = true, means = "next", when = { record = "absent" } },
  { value = "held", means = "conflict", when = { record = "held" } },
]

[[begin.call]]
command = ["SET", "{record}", "held", "EX", "{lock_ttl}"]
replies = [{ word = "OK", means = "acquired", when = { record = "absent" } }]
"#;

/// Rule: a step that ends with the value that it reads is sent. Revert: without
/// `is_any_text_and_leads_on`, every step with a plain command is refused.
#[test]
fn begin_is_sent_if_an_unclear_value_ends_the_step() {
    let server = Server::start();
    server.describe("naive", &[("schema.toml", NAIVE)]);
    server.set("naive:k", "strange", 60_000);
    let run = step(&server, &["begin", "k"], "naive").exits(1);
    run.says("not in the schema; nothing was changed");
    assert_eq!(server.get("naive:k").unwrap(), b"strange");
    step(&server, &["begin", "free"], "naive").exits(0);
}

/// Rule: what begin makes of the value that it read is what `inspect` predicts of it. Revert: without
/// `lacks_field_of` in `match_reply`, and without the check of `why_unpredicted` after the calls, the
/// reply for any text, or for any request, counts.
#[test]
fn begin_says_no_more_of_a_value_than_inspect() {
    let server = Server::start();
    let strange = r#"{"operation":"op","idempotency_key":"k","result":{"a":1},"created_at":"2026-11-27T19:00:00Z","expires_at":"soon","status":"completed","fingerprint":"f"}"#;
    server.set("idempotency:op:k", strange, 60_000);
    let run = step(&server, &["begin", "op:k", "--fingerprint", "f"], "idempotency-kit").exits(1);
    run.says("not in the schema (`/expires_at` is not a time); nothing was changed");
    let without =
        r#"{"status":"COMPLETE","response":{"statusCode":201,"body":{"x":1},"additional":{}}}"#;
    server.set("node-idempotency:POST:/pay:k", without, 60_000);
    let begin = ["begin", "POST:/pay:k"];
    let with = [&begin[..], &["--fingerprint", "f"]].concat();
    let run = step(&server, &with, "node-idempotency").exits(1);
    run.says("the stored value has no fingerprint");
    assert!(!run.all().contains("Expected reply: replay"), "{}", run.all());
    step(&server, &begin, "node-idempotency").exits(1).says("Expected reply: replay");
    // The service may compare an empty fingerprint, or take it for none.
    let empty = r#"{"state":"in-progress","owner":"w","fingerprint":"","created_at":1}"#;
    server.set("idemkey:k", empty, 60_000);
    let run = step(&server, &["begin", "k", "--fingerprint", "f"], "reference").exits(1);
    run.says("the stored fingerprint is empty");
    assert!(!run.all().contains("Expected reply"), "{}", run.all());
}

/// Rule: begin does not promise a lock that the step does not take. Revert: without `may_take_lock`,
/// requests are said to be rejected, and may have another payload than a lock that has no hash.
#[test]
fn begin_promises_a_lock_only_if_the_step_may_take_one() {
    let server = Server::start();
    let none = "it takes no lock here, so other requests with this key may execute as well";
    let run = step(&server, &["begin", "000000000000000000000000000000000077"], "gofiber").exits(1);
    run.says(none).says("acquired; nothing was changed");
    let empty = r#"{"status":"COMPLETE","fingerPrint":"ff"}"#;
    server.set("node-idempotency:POST:/pay:k", empty, 60_000);
    let begin = ["begin", "POST:/pay:k", "--fingerprint", "ff"];
    step(&server, &begin, "node-idempotency").exits(1).says(none);
    // The answer comes from the first call, and this service's locks have no hash.
    server.set("idem:done:k", "1", 60_000);
    let run = step(&server, &["begin", "k"], "event-consumer").exits(1);
    run.says("Expected reply: replay.");
    let run = step(&server, &["begin", "7:k"], "laravel-square1").exits(0);
    assert!(!run.all().contains("without --fingerprint"), "{}", run.all());
}

const JOBS: &str = r#"
format = 2
name = "jobs"
keys = { record = "job:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "held"
type = "hash"
required = ["/by"]
state = "in-progress"
fields = { owner = "/by" }

[write]
lock_value = '{"by":"{owner}"}'

[[begin.call]]
command = ["EXISTS", "{record}"]
replies = [
  { integer = 1, means = "conflict", when = { record = "present" } },
  { integer = 0, means = "next", when = { record = "absent" } },
]

[[begin.call]]
command = ["HSET", "{record}", "{lock_value}"]
replies = [{ integer = 1, means = "acquired", when = { record = "absent" } }]
"#;

/// Rule: a string at the Redis key of a hash is compared as what it is. Revert: without `is_text` in
/// `is_hash`, every step says that the record changed.
#[test]
fn a_string_under_a_schema_of_hashes_did_not_change() {
    let server = Server::start();
    server.describe("jobs", &[("schema.toml", JOBS)]);
    server.set("job:k", "x", 60_000);
    step(&server, &["begin", "k"], "jobs").exits(1).says("conflict; nothing was changed");
    step(&server, &["begin", "free"], "jobs").exits(0).says("should take the lock job:free");
}

/// Rule: a fingerprint that the operator gives is stored. Revert: without `kept_at` of the lock, a
/// value without a fingerprint stays without one, and retries with a payload are rejected.
#[test]
fn complete_stores_the_fingerprint_over_a_value_without_one() {
    let server = Server::start();
    let redis_key = "node-idempotency:POST:/pay:k";
    let unhashed =
        r#"{"status":"COMPLETE","response":{"statusCode":201,"body":{},"additional":{}}}"#;
    let empty = r#"{"status":"COMPLETE","fingerPrint":"","response":{"statusCode":201,"body":{},"additional":{}}}"#;
    for value in ["{b", "", unhashed, empty] {
        server.set(redis_key, value, 60_000);
        let words = ["complete", "POST:/pay:k", "--replace", "--fingerprint", "abc", "--status"];
        let words = [&words[..], &["201", "--body", "{}"]].concat();
        let run = step(&server, &words, "node-idempotency").exits(0);
        run.says("the next request gets a replay");
        assert!(!run.all().contains("no longer get a result"), "{}", run.all());
        let stored = String::from_utf8(server.get(redis_key).unwrap()).unwrap();
        assert!(stored.contains(r#""fingerPrint":"abc""#), "{value}: {stored}");
    }
}

const KEEPER: &str = r#"
format = 2
name = "keeper"
keys = { record = "keeper:{key}" }
ttl = { lock = "30s", result = "24h" }
protocol = "set-nx-get"

[[value]]
name = "held"
where = { "/status" = "running" }
state = "in-progress"
fields = { fingerprint = "/of" }

[[value]]
name = "done"
where = { "/status" = "done" }
state = "completed"
fields = { body = "/body", fingerprint = "/hash" }
body_encoding = "json"

[write]
lock_value = '{"status":"running","of":"{fingerprint}"}'
result_value = '{"status":"done"{kept?:/hash},"body":{body_json}}'
"#;

/// Rule: a fingerprint that the result cannot take is refused. Revert: without `drops_fingerprint`, a
/// replay is promised for a payload whose hash was dropped.
#[test]
fn complete_refuses_a_fingerprint_that_it_would_drop() {
    let server = Server::start();
    server.describe("keeper", &[("schema.toml", KEEPER)]);
    server.set("keeper:k", "{b", 60_000);
    let words = ["complete", "k", "--replace", "--fingerprint", "abc", "--body", "1"];
    let run = step(&server, &words, "keeper").exits(2);
    run.says("would have another fingerprint (none)");
    assert_eq!(server.get("keeper:k").unwrap(), b"{b");
}

const PAIR: &str = r#"
format = 2
name = "pair"
keys = { lock = "pair:lock:{key}", result = "pair:result:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "held"
at = "lock"
opaque = true
state = "in-progress"
fields = { owner = "" }

[[value]]
name = "failed"
at = "result"
equals = "failed"
state = "failed"

[[value]]
name = "done"
at = "result"
equals = "done"
state = "completed"

[write]
lock_value = "{owner}"
result_value = "done"

[[begin.call]]
command = ["SET", "{lock}", "{owner}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "next", when = { lock = "absent" } },
  { nil = true, means = "conflict", when = { lock = "present" } },
]

[[begin.call]]
command = ["GET", "{result}"]
replies = [
  { nil = true, means = "acquired", when = { lock = "absent", result = "absent" } },
  { value = "done", means = "replay", when = { lock = "absent", result = "done" } },
  { value = "failed", means = "replay", when = { lock = "absent", result = "failed" } },
]

[complete]
checks_owner = false

[[complete.call]]
command = ["SET", "{result}", "{result_value}"]
replies = [{ word = "OK", means = "stored" }]

[release]
checks_owner = false

[[release.call]]
command = ["DEL", "{lock}"]
replies = [{ integer = 1, means = "released", when = { lock = "held" } }]
"#;

/// Rule: a failure that retries get is a result, also beside a lock. Revert: without
/// `replays_failure`, the record is a lock: `complete` replaces the failure without --replace, and
/// `release` says that the next request executes.
#[test]
fn a_failure_that_is_replayed_is_a_result_beside_its_lock() {
    let server = Server::start();
    server.describe("pair", &[("schema.toml", PAIR)]);
    server.set("pair:lock:k", "w", 20_000);
    server.set("pair:result:k", "failed", 60_000);
    let run = server.idemctl(&["inspect", "k", "--schema", "pair"]).exits(0);
    run.shows("failed").shows("leftover-lock");
    server.idemctl(&["list", "--schema", "pair", "--state", "failed"]).exits(0).shows("pair");
    step(&server, &["complete", "k"], "pair").exits(2).says("--replace");
    let run = step(&server, &["release", "k"], "pair").exits(0);
    run.says("gets a replay");
    assert_eq!(server.keys(), ["pair:result:k"]);
}

/// Rule: a lock that stops no request is not extended, and a renewal is mentioned if the service
/// describes one. Revert: without the check of the answer, the lock is said to be extended.
#[test]
fn extend_says_what_the_longer_lock_does() {
    let server = Server::start();
    let key = "fn#AAAAAAAAAAAAAAAAAAAAAA==";
    server.set(key, r#"{"status":"INPROGRESS","expiration":1999999999}"#, 60_000);
    let extend = ["extend", key, "--for", "2h"];
    step(&server, &extend, "powertools-typescript").exits(2).says("it stops no request");
    step(&server, &["begin", "k", "--owner", "w"], "reference").exits(0);
    step(&server, &["extend", "k", "--for", "1h"], "reference").exits(0);
}

/// Rule: advice names no command that refuses. Revert: without the checks of `advice` in
/// `unreadable.rs` and of the lock's type in the rules about locks, `force-unlock` is named.
#[test]
fn advice_names_no_command_that_refuses() {
    let server = Server::start();
    server.send::<i64>(&[b"RPUSH", b"idem:started:k", b"x"]);
    server.set("idem:result:k", r#"{"statusCode":201,"body":"x"}"#, 60_000);
    let run = server.idemctl(&["inspect", "k", "--schema", "event-driven"]).exits(0);
    assert!(!run.all().contains("force-unlock"), "{}", run.all());
    run.shows("find that program before you remove anything");
    step(&server, &["force-unlock", "k"], "event-driven").exits(2);
    let lock = r#"{"operation":"pay","idempotency_key":"k","result":null,"created_at":"2026-11-27T16:00:00+00:00","expires_at":"2099-11-27T16:00:30+00:00","status":"pending","fingerprint":null}"#;
    server.set("idempotency:pay:k", lock, 30_000);
    let run = step(&server, &["complete", "pay:k"], "idempotency-kit").exits(2);
    run.says("--body @FILE or TEXT");
    server.describe("jobs", &[("schema.toml", JOBS)]);
    server.set("job:k", "x", 60_000);
    step(&server, &["force-unlock", "k"], "jobs").exits(2).says("does not hold a hash");
}

/// Rule: a change judges the whole value, and so does its preview. Revert: without the second
/// selection in `judge`, the preview promises a removal; in `select_again`, "modified since the
/// scan" is said of a value that nobody touched.
#[test]
fn a_result_that_is_cut_off_is_left_and_the_preview_says_so() {
    let server = Server::start();
    let cut = r#"{"status":"COMPLETED","statusCode":200,"headers":{"content-type":"application/json"},"body":{"a"#;
    server.set("idem:cut", cut, 80_000_000);
    let purge = ["purge", "--schema", "express", "--all"];
    let preview = server.idemctl(&[&purge[..], &["--dry-run"]].concat()).exits(3);
    preview.says("the whole value matches no format of the schema: 1 record");
    assert!(!preview.all().contains("executes"), "{}", preview.all());
    let run = server.idemctl(&[&purge[..], &["--yes"]].concat()).exits(3);
    run.says("1 record with a value that matches no format of the schema");
    assert_eq!(server.keys(), ["idem:cut"]);
    // Who looks for such values finds it.
    for words in [["list", "--finding", "unreadable"], ["list", "--state", "unreadable"]] {
        server.idemctl(&words).exits(0).shows("unreadable");
    }
    let stats = server.idemctl(&["stats", "--state", "unreadable", "-o", "json"]).exits(0).json();
    assert_eq!(stats["rows"][0]["state"], "unreadable", "{stats}");
}
