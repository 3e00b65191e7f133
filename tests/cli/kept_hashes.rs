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
ttl = "5m"
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
    with(&["release", "a", "--owner", "w-1"])
        .says("the worker can still store its result until another request takes the lock");
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
    with(&["complete", "b", "--owner", "w-1", "--body", "x"]).says(
        "its result will overwrite this response, and if it fails, it will remove this response",
    );
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

/// Gives a field of a lock a TTL; false if the server does not support such TTLs.
fn expire_field(server: &Server, redis_key: &str, millis: u64) -> bool {
    let mut command = redis::cmd("HPEXPIRE");
    command.arg(redis_key).arg(millis).arg("FIELDS").arg(1).arg("owner");
    command.query::<Vec<i64>>(&mut server.connect()).is_ok()
}

/// Rule: a hash whose fields have another TTL is another value, because a worker may renew its lock in this way. Revert: without
/// `has_plain_fields`, the sweep and the undo remove the renewed lock.
#[test]
fn a_lock_that_is_renewed_by_the_ttl_of_a_field_stays() {
    let server = kept();
    let lock = |key: &str| {
        let redis_key = format!("kept:{key}");
        let fields: [&[u8]; 6] = [b"HSET", redis_key.as_bytes(), b"status", b"run", b"owner", b"w"];
        server.send::<()>(&fields);
        redis_key
    };
    let swept = lock("swept");
    if !expire_field(&server, &swept, 90_000) {
        return;
    }
    let renewing = std::thread::spawn({
        let mut connection = server.connect();
        let swept = swept.clone();
        move || {
            for round in 0..40 {
                let mut command = redis::cmd("HPEXPIRE");
                command.arg(&swept).arg(90_000 + round).arg("FIELDS").arg(1).arg("owner");
                _ = command.query::<Vec<i64>>(&mut connection);
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        }
    });
    let sweep = ["sweep", "--orphaned", "--schema", "kept", "--yes", "--grace", "2s"];
    server.idemctl(&sweep).says("1 lock modified");
    renewing.join().unwrap();
    assert_eq!(server.keys().len(), 1);
    server.send::<()>(&[b"DEL", swept.as_bytes()]);

    server.idemctl(&["begin", "a", "--schema", "kept", "--yes"]).exits(0);
    expire_field(&server, "kept:a", 50_000);
    server.idemctl(&["undo", "--yes"]).exits(3).shows("changed");
    assert_eq!(server.keys(), ["kept:a"]);
}

/// Rule: the TTLs of fields are in the backup, and are restored, although the hash has no TTL.
#[test]
fn a_hash_of_which_the_fields_expire_is_restored() {
    let server = kept();
    let fields: [&[u8]; 6] = [b"HSET", b"kept:a", b"status", b"run", b"owner", b"w"];
    server.send::<()>(&fields);
    let mut command = redis::cmd("HPEXPIRE");
    command.arg("kept:a").arg(90_000).arg("FIELDS").arg(2).arg("owner").arg("status");
    if command.query::<Vec<i64>>(&mut server.connect()).is_err() {
        return;
    }
    server.idemctl(&["force-unlock", "a", "--schema", "kept", "--yes"]).exits(0);
    assert!(server.keys().is_empty());
    server.idemctl(&["undo", "--yes"]).exits(0).says("1 of 1 Redis key");
    let left: Vec<i64> = server.send(&[b"HPTTL", b"kept:a", b"FIELDS", b"1", b"owner"]);
    assert!((60_000..=90_000).contains(&left[0]), "{left:?}");
}
