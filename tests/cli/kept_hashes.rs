//! Hashes as records: a late worker whose release keeps the record, fields in any order, and fields with TTLs.

use crate::support::Server;

/// A hash whose release keeps the record, with the name of its owner.
const KEPT: &str = r#"format = 2
name = "kept"
keys = { record = "kept:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "done"
type = "hash"
where = { "/status" = "done" }
required = ["/owner", "/body"]
optional = ["/n1", "/n2", "/n3", "/n4", "/n5", "/n6", "/n7", "/n8"]
state = "completed"
fields = { owner = "/owner", body = "/body" }

[[value]]
name = "failed"
type = "hash"
where = { "/status" = "failed" }
required = ["/owner"]
state = "released"
fields = { owner = "/owner" }

[[value]]
name = "running"
type = "hash"
where = { "/status" = "run" }
required = ["/owner"]
state = "in-progress"
fields = { owner = "/owner" }

[write]
lock_value = '{"status":"run","owner":"{owner}"}'
result_value = '{"status":"done","owner":"{owner}","body":{body_text}}'

[service]
on_failure = "release"

[[begin.call]]
script = "begin"
keys = ["{record}"]
args = ["{owner}", "{lock_ttl_ms}"]
replies = [
  { integer = 1, means = "acquired", when = [{ record = "absent" }, { record = "failed" }] },
  { integer = 0, means = "conflict", when = { record = "running" } },
  { array = 2, means = "replay", when = { record = "done" } },
]

[complete]
checks_owner = true

[[complete.call]]
script = "complete"
keys = ["{record}"]
args = ["{owner}", "{body}", "{result_ttl_ms}"]
replies = [
  { integer = 1, means = "stored", when = { record = "present" } },
  { integer = 0, means = "refused", when = { record = "absent" } },
]

[release]
checks_owner = true

[[release.call]]
script = "fail"
keys = ["{record}"]
args = ["{owner}"]
replies = [
  { integer = 1, means = "released", when = { record = "present" } },
  { integer = 0, means = "refused", when = { record = "absent" } },
]
"#;

const KEPT_BEGIN: &str = "
local status = redis.call('HGET', KEYS[1], 'status')
if status == 'run' then return 0 end
if status == 'done' then return {2, redis.call('HGET', KEYS[1], 'body')} end
redis.call('HSET', KEYS[1], 'status', 'run', 'owner', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
";

const KEPT_COMPLETE: &str = "
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'status', 'done', 'body', ARGV[2])
for number = 1, 8 do redis.call('HSET', KEYS[1], 'n' .. number, 'x') end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
";

const KEPT_FAIL: &str = "
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'status', 'failed')
redis.call('PEXPIRE', KEYS[1], 300000)
return 1
";

/// Rule: the effect of a late worker is predicted from the owner that the record names afterwards.
#[test]
fn a_late_worker_is_judged_by_the_owner_that_the_record_keeps() {
    let server = kept();
    let begin = |key: &str| {
        let words = ["begin", key, "--schema", "kept", "--owner", "w-1", "--yes"];
        server.idemctl(&words).exits(0);
    };
    let with = |step: &[&str]| {
        let words = [step, &["--schema", "kept", "--yes"]].concat();
        server.idemctl(&words).exits(0)
    };
    begin("a");
    with(&["release", "a", "--owner", "w-1"]).says("The worker may still store its result");
    // The service's own script agrees.
    let stored: i64 = server.send(&[
        b"EVAL",
        KEPT_COMPLETE.as_bytes(),
        b"1",
        b"kept:a",
        b"w-1",
        b"late",
        b"9000",
    ]);
    assert_eq!(stored, 1);

    begin("b");
    with(&["complete", "b", "--owner", "w-1", "--body", "x"])
        .says("it may overwrite or remove this response");
    // With a new owner, the worker of the lock that expired is another one.
    with(&["complete", "c", "--create", "--body", "x"])
        .says("If the original worker is still running, its result will be rejected.");
    let refused: i64 = server.send(&[
        b"EVAL",
        KEPT_COMPLETE.as_bytes(),
        b"1",
        b"kept:c",
        b"w-1",
        b"late",
        b"9000",
    ]);
    assert_eq!(refused, 0);

    // A released record is named with the option that selects it.
    begin("d");
    with(&["release", "d", "--owner", "w-1"]);
    let purge = ["purge", "d", "--schema", "kept", "--dry-run"];
    let purged = server.idemctl(&purge).exits(3);
    purged.says("it is released, and only --state released selects it");
}

/// Rule: the fields of a long hash have no order, so that a change can be undone whatever order the
/// server returns them in.
#[test]
fn a_long_hash_is_recognised_in_any_order() {
    let server = kept();
    let run = |words: &[&str]| server.idemctl(&[words, &["--schema", "kept", "--yes"]].concat());
    run(&["begin", "a", "--owner", "w-1"]).exits(0);
    // A field of more than 64 bytes makes it a hash table.
    let body = "x".repeat(100);
    run(&["complete", "a", "--owner", "w-1", "--body", &body]).exits(0);
    let before: Vec<u8> = server.send(&[b"DUMP", b"kept:a"]);
    // The same fields in another order, as after a restart.
    let fields: Vec<Vec<u8>> = server.send(&[b"HGETALL", b"kept:a"]);
    let fillers: Vec<String> = (0..40).map(|number| format!("filler-{number}")).collect();
    let mut after = before.clone();
    for round in 0..50 {
        // Fields that come and go change the table that the others are in.
        let fillers = &fillers[..round % fillers.len()];
        for filler in fillers {
            server.send::<()>(&[b"HSET", b"kept:a", filler.as_bytes(), &[b'y'; 70]]);
        }
        for field in fields.chunks(2).rev() {
            server.send::<()>(&[b"HDEL", b"kept:a", &field[0]]);
            server.send::<()>(&[b"HSET", b"kept:a", &field[0], &field[1]]);
        }
        for filler in fillers {
            server.send::<()>(&[b"HDEL", b"kept:a", filler.as_bytes()]);
        }
        after = server.send(&[b"DUMP", b"kept:a"]);
        if after != before {
            break;
        }
    }
    assert_ne!(after, before, "the order is another one");
    // The second undo restores the long hash, and the third one recognises it.
    for restored in ["run", "done", "run"] {
        server.idemctl(&["undo", "--yes"]).exits(0).says("Reverted 1 of 1 Redis key");
        let status: String = server.send(&[b"HGET", b"kept:a", b"status"]);
        assert_eq!(status, restored);
    }
}

fn kept() -> Server {
    let server = Server::start();
    let files = [
        ("schema.toml", KEPT),
        ("begin.lua", KEPT_BEGIN),
        ("complete.lua", KEPT_COMPLETE),
        ("fail.lua", KEPT_FAIL),
    ];
    server.describe("kept", &files);
    server
}

/// Stores a hash of which these fields expire; false if the server does not support that.
fn store(server: &Server, redis_key: &str, status: &str, expiring: &[&str]) -> bool {
    let mut fields = vec!["status", status, "owner", "w"];
    if status == "done" {
        fields.extend(["body", "{}"]);
    }
    let mut connection = server.connect();
    redis::cmd("HSET").arg(redis_key).arg(fields).exec(&mut connection).unwrap();
    let mut expire = redis::cmd("HPEXPIRE");
    expire.arg(redis_key).arg(90_000).arg("FIELDS").arg(expiring.len()).arg(expiring);
    expire.query::<Vec<i64>>(&mut connection).is_ok()
}

/// Rule: a hash whose fields expire is shown and never changed, because the expiry of its Redis key is not that of the record.
/// Revert: with a checksum of such a hash in `read_records.lua`, `extend` calls 20 s "at least as much" as an hour, and the sweep
/// removes the lock.
#[test]
fn a_hash_of_which_fields_expire_is_shown_and_never_changed() {
    let server = kept();
    if !store(&server, "kept:lock", "run", &["status", "owner"]) {
        return;
    }
    store(&server, "kept:stuck", "run", &["owner"]);
    store(&server, "kept:done", "done", &["owner"]);
    let run = |words: &[&str]| server.idemctl(&[words, &["--schema", "kept"]].concat());
    assert_eq!(run(&["list", "-o", "jsonl"]).exits(0).json_lines().len(), 3);
    run(&["inspect", "lock"]).exits(0).shows("in-progress");

    let dumps = || {
        let mut dumps: Vec<(String, Vec<u8>)> = Vec::new();
        for key in server.keys() {
            let dump = server.send(&[b"DUMP", key.as_bytes()]);
            dumps.push((key, dump));
        }
        dumps
    };
    let before = dumps();
    for words in [
        &["extend", "lock", "--for", "1h"][..],
        &["force-unlock", "lock"],
        &["complete", "lock", "--owner", "w", "--body", "{}"],
        &["release", "lock", "--owner", "w"],
        &["sweep", "--orphaned", "--grace", "0s"],
        &["purge", "done"],
        &["purge", "--all"],
    ] {
        run(&[words, &["--yes"]].concat()).exits(3).says("its fields have their own expiry");
        assert_eq!(dumps(), before, "{words:?}");
    }
}
