//! What idemctl says of layouts that published libraries use, and that its own schemas do not.

use crate::support::{Run, Server};

/// A hash whose formats differ only in their required fields.
const HASHES: &str = r#"format = 2
name = "crate"
keys = { record = "pay-{key}" }
ttl = { lock = "1h", result = "1h" }
[[value]]
name = "running"
type = "hash"
required = ["/data", "/ft"]
state = "in-progress"
fields = { owner = "/ft" }
[[value]]
name = "done"
type = "hash"
required = ["/data"]
state = "completed"
[[begin.call]]
command = ["HGETALL", "{record}"]
replies = [
  { nil = true, means = "acquired", when = { record = "absent" } },
  { value = "running", means = "conflict" },
  { value = "done", means = "replay" },
]
"#;

/// Rule: nothing is predicted of a value without a required field, and no reply with it matches
/// `value`. Revert: without the check in `reply.rs`, begin answers `conflict`.
#[test]
fn a_value_without_a_required_field_is_of_no_known_meaning() {
    let server = Server::start();
    server.describe("crate", &[("schema.toml", HASHES)]);
    let checked = server.idemctl(&["schema", "check", "crate"]).exits(0);
    assert!(!checked.all().contains("predicts"), "{}", checked.all());
    let _: i64 = server.send(&[b"HSET", b"pay-odd", b"a", b"b"]);
    let shown = server.idemctl(&["inspect", "odd", "--schema", "crate"]);
    shown.shows("unknown, because the value is incomplete (`/data` is missing)");
    let begun = server.idemctl(&["begin", "odd", "--schema", "crate", "--yes"]).exits(1);
    begun.says("not in the schema (`/data` is missing)");
    let _: i64 = server.send(&[b"HSET", b"pay-ok", b"data", b"1", b"ft", b"7"]);
    server.idemctl(&["begin", "ok", "--schema", "crate", "--yes"]).says("conflict");
}

/// Rule: a refused `--owner` has its true reason.
#[test]
fn an_owner_that_no_call_sends_is_refused_for_that_reason() {
    let server = Server::start();
    server.describe("crate", &[("schema.toml", HASHES)]);
    let begun = server.idemctl(&["begin", "a", "--schema", "crate", "--owner", "5", "--yes"]);
    begun.exits(2).says("this lock of crate stores no owner");
}

/// An inbox: a lock of any text, which holds the time of its start, and a hash with the state.
const INBOX: &str = r#"format = 2
name = "inbox"
keys = { lock = "inbox:{key}:lock", result = "inbox:{key}" }
ttl = { lock = "5m", result = "none" }
[[value]]
name = "held"
at = "lock"
opaque = true
state = "in-progress"
expires_at = { field = "", unit = "ms", plus = "30s", past = "reclaimable" }
[[value]]
name = "done"
at = "result"
type = "hash"
where = { "/Status" = 2 }
required = ["/MessageId"]
state = "completed"
[[value]]
name = "processing"
at = "result"
type = "hash"
where = { "/Status" = 1 }
required = ["/MessageId", "/LockExpiresAt"]
state = "in-progress"
"#;

/// Rule: `detect` says that all locks have an expiry only if it saw one of each.
/// The column STUCK: how many locks never expire, or `unknown`.
fn stuck(detected: &Run) -> Vec<String> {
    let text = detected.text();
    let rows = text.lines().filter(|line| line.ends_with("8 in-progress"));
    rows.map(|row| row.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn detect_counts_records_in_progress_without_expiry() {
    let server = Server::start();
    server.describe("inbox", &[("schema.toml", INBOX)]);
    for number in 0..8 {
        let key = format!("inbox:{number}");
        let words = ["HSET", &key, "MessageId", "1", "Status", "1", "LockExpiresAt", "9"];
        let _: i64 = server.send(&words.map(str::as_bytes));
        server.set(&format!("inbox:{number}:lock"), "1", 60_000);
    }
    let detected = server.idemctl(&["detect"]).exits(0);
    assert_eq!(stuck(&detected), ["0", "unknown"], "{}", detected.all());
    server.put("inbox:1:lock", "garbage");
    let detected = server.idemctl(&["detect"]).exits(0);
    assert_eq!(stuck(&detected), ["unknown", "unknown"], "{}", detected.all());
    let json = server.idemctl(&["detect", "-o", "json"]).exits(0).json();
    for group in json["groups"].as_array().unwrap() {
        assert!(group["stuck"].is_null(), "{json}");
    }
}

/// Rule: a hash is called a hash, and only the lock's Redis key is called the lock.
#[test]
fn a_released_hash_beside_a_lock_has_its_name() {
    let server = Server::start();
    server.describe("inbox", &[("schema.toml", INBOX)]);
    let _: i64 = server.send(&[b"HSET", b"inbox:7", b"MessageId", b"1", b"Status", b"0"]);
    let shown = server.idemctl(&["inspect", "7", "--schema", "inbox"]);
    shown.shows("a hash of other fields");
    let unlocked = server.idemctl(&["force-unlock", "7", "--schema", "inbox", "--yes"]);
    unlocked.says("This removes the Redis key inbox:7.");
}

/// A lock of any text behind a prefix.
const PREFIXED: &str = r#"format = 2
name = "mid"
protocol = "set-nx-get"
keys = { record = "mid:{key}" }
ttl = { lock = "30s", result = "24h" }
[[value]]
name = "held"
written = "lock_value"
decode = ["prefix=lock:"]
[write]
lock_value = "{owner}"
result_value = '{"status":{status},"body":{body_text}}'
"#;

/// Rule: `unreadable` holds beside an opaque format that a codec closes. Revert: with
/// `value.opaque` alone, the reply is missing.
#[test]
fn a_text_without_the_prefix_of_the_lock_is_unreadable() {
    let server = Server::start();
    server.set("mid:bad", "garbage", 60_000);
    server.describe("mid", &[("schema.toml", PREFIXED)]);
    server.idemctl(&["schema", "check", "mid"]).exits(0);
    server.idemctl(&["inspect", "bad", "--schema", "mid"]).shows("Next request  fails");
    let expanded = server.idemctl(&["schema", "show", "mid", "--expanded"]).exits(0);
    expanded.shows("when = { record = \"unreadable\" }");
    let any = PREFIXED.replace("decode = [\"prefix=lock:\"]", "opaque = true");
    server.describe("mid", &[("schema.toml", &any)]);
    let expanded = server.idemctl(&["schema", "show", "mid", "--expanded"]).exits(0);
    assert!(!expanded.text().contains("unreadable"), "{}", expanded.text());
}

/// Rule: a step is refused for its true reason.
#[test]
fn a_step_that_is_not_described_is_refused_for_that_reason() {
    let server = Server::start();
    let toml = r#"format = 2
name = "queue"
ttl = { lock = "30s" }
keys = { record = "queue:{key}" }
[write]
lock_value = "held"
[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { record = "absent" } },
  { nil = true, means = "conflict", when = { record = "present" } },
]
"#;
    server.describe("queue", &[("schema.toml", toml)]);
    server.idemctl(&["schema", "check", "queue"]).exits(0);
    server.idemctl(&["begin", "a", "--schema", "queue", "--yes"]).exits(0).says("acquired");
    let run = server.idemctl(&["complete", "a", "--schema", "queue", "--yes"]).exits(2);
    run.says("queue: it has no result to store");
}

/// Rule: a printed command names the schema of a library, because other runs read it only then.
/// Revert: without `set_named_schemas`, the command finds no record.
#[test]
fn a_command_about_a_record_of_a_library_names_its_schema() {
    let server = Server::start();
    server.send::<()>(&[b"SET", b"idempo:lock:k", b"own"]);
    let named = ["--schema", "idempo"];
    let shown = server.idemctl(&[&["inspect", "k"], &named[..]].concat());
    shown.shows("force-unlock --schema idempo idempo/k`");
    let extended = server.idemctl(&[&["extend", "k", "--for", "1h"], &named[..]].concat());
    extended.says("force-unlock --schema idempo KEY`");
    // The context names it for every run.
    server.idemctl(&["context", "set", "here", "--schema", "idempo"]).exits(0);
    let shown = server.idemctl(&[&["inspect", "k", "--context", "here"], &named[..]].concat());
    assert!(!shown.all().contains("force-unlock --schema"), "{}", shown.all());
}

/// Rule: `undo` knows the schemas of libraries. Revert: with the schemas of a run without
/// `--schema`, it warns that the schema is not known.
#[test]
fn undo_knows_the_schema_of_a_library() {
    let server = Server::start();
    server.set("idempo:lock:k", "own", 100_000);
    let complete = ["complete", "k", "--owner", "own", "--status", "201", "--body", "x"];
    server.idemctl(&[&complete[..], &["--schema", "idempo", "--yes"]].concat()).exits(0);
    let undone = server.idemctl(&["undo", "--yes"]).exits(0);
    assert!(!undone.all().contains("not known here"), "{}", undone.all());
}

/// Rule: the TTL of an option is not called that of the schema, nor promised for a lock to which the
/// service gives none.
#[test]
fn the_lock_ttl_of_an_option_is_called_so() {
    let server = Server::start();
    server.put("idem:k", r#"{"status":"IN_PROGRESS"}"#);
    let inspect = ["inspect", "k", "--schema", "express", "--lock-ttl", "90s"];
    server.idemctl(&inspect).shows("never expires, configured 1m 30s");
    let begin = ["begin", "o:l:k", "--schema", "laravel-square1", "--lock-ttl", "30s", "--dry-run"];
    server.idemctl(&begin).exits(0).says("rejected until it ends.");
}

/// Rule: a lock whose Redis key holds more is not removed alone, and `purge` says what is lost.
/// Revert: without `lock_holds`, `force-unlock` removes the job with its data.
#[test]
fn a_lock_that_is_also_the_job_is_not_unlocked() {
    let server = Server::start();
    let job: [&[u8]; 12] = [
        b"HSET",
        b"bull:pay:j",
        b"name",
        b"c",
        b"data",
        b"{}",
        b"opts",
        b"{}",
        b"timestamp",
        b"1764000000000",
        b"delay",
        b"0",
    ];
    let _: i64 = server.send(&job);
    let named = ["--schema", "bullmq-job", "--yes"];
    let refused = server.idemctl(&[&["force-unlock", "pay:j"], &named[..]].concat());
    refused.says("its Redis key also holds the job with its data");
    let begun = server.idemctl(&[&["begin", "pay:j"], &named[..]].concat()).exits(2);
    begun.says("no command removes it: its Redis key also holds the job");
    assert_eq!(server.keys().len(), 1);
    let purge = ["purge", "--schema", "bullmq-job", "--state", "in-progress", "--dry-run"];
    server.idemctl(&purge).says("a lock of bullmq-job also holds the job with its data");
}

/// Rule: a hint names a command that works, and what it leaves. Revert: without `removal_hint`,
/// `release` says that `force-unlock` removes the unreadable value beside the lock.
#[test]
fn a_hint_of_release_says_what_force_unlock_removes() {
    let server = Server::start();
    server.set("idempo:lock:k", "own", 100_000);
    server.set("idempo:response:k", "", 100_000);
    let release = ["release", "k", "--owner", "own", "--schema", "idempo", "--dry-run"];
    let refused = server.idemctl(&release).exits(2);
    refused.says("to remove a lock, use `idemctl");
    server.set("POST:/pay:k", "garbage", 100_000);
    let named = ["POST:/pay:k", "--schema", "hono-idempotency", "--dry-run"];
    let unlocked = server.idemctl(&[&["force-unlock"], &named[..]].concat());
    unlocked.says("This removes the Redis key POST:/pay:k.");
}
