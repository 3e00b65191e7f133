//! The steps of a service that keeps its records in hashes, made by hand.

use serde_json::{Value, json};

use crate::support::{Run, Server, proxy};

const TOML: &str = r#"format = 2
name = "orders"
keys = { record = "orders:{key}" }
ttl = { lock = "5m", result = "24h" }

[[value]]
name = "running"
type = "hash"
where = { "/state" = "run" }
state = "in-progress"
fields = { owner = "/owner", created_at = "/at", fingerprint = "/fp" }

[[value]]
name = "done"
type = "hash"
decode_at = { "/reply" = ["zlib", "json"] }
where = { "/state" = "done" }
has = ["/reply"]
state = "completed"
fields = { status = "/reply/status", body = "/reply/body", fingerprint = "/fp" }

[write]
lock_value = '{"state":"run","owner":"{owner}","at":{now},"fp":"{fingerprint}"}'
result_value = '{"state":"done","reply":{"status":{status},"body":{body_text}}}'

[[begin.call]]
script = "begin"
keys = ["{record}"]
args = ["{lock_ttl}", "{fingerprint}", "{lock_value}"]
replies = [
  { integer = 1, means = "acquired", when = { record = "absent" } },
  { integer = 0, means = "conflict", when = { record = "running" } },
  { integer = -1, means = "mismatch" },
  { text = true, means = "replay", when = { record = "done" } },
]

[complete]
checks_owner = true

[[complete.call]]
script = "complete"
keys = ["{record}"]
args = ["{owner}", "{result_ttl}", "{result_value}"]
replies = [
  { integer = 1, means = "stored", when = { record = "running" } },
  { integer = 0, means = "refused", when = [{ record = "absent" }, { record = "done" }] },
]

[release]
checks_owner = false

[[release.call]]
command = ["DEL", "{record}"]
replies = [{ integer = 1, means = "released", when = { record = "present" } }, { integer = 0, means = "refused" }]
"#;

const BEGIN: &str = r"-- begin: take the lock, unless the record is there.
--
-- KEYS[1]  record  orders:{key}
-- ARGV[1]  ttl     seconds
-- ARGV[2]  fp      the hash of the payload
-- ARGV[3]  fields  names and values by turns
--
-- Replies
--   1       taken
--   0       held
--   -1      another payload
--   <text>  the reply that is stored
--
local record = KEYS[1]
local ttl = ARGV[1]
local fp = ARGV[2]
local fields = {unpack(ARGV, 3)}
local state = redis.call('HGET', record, 'state')
if not state then
  redis.call('HSET', record, unpack(fields))
  redis.call('EXPIRE', record, ttl)
  return 1
end
if redis.call('HGET', record, 'fp') ~= fp then
  return -1
end
return state == 'run' and 0 or redis.call('HGET', record, 'reply')
";

const COMPLETE: &str = r"-- complete: store the reply, if the lock is still this worker's.
--
-- KEYS[1]  record  orders:{key}
-- ARGV[1]  owner   the worker
-- ARGV[2]  ttl     seconds
-- ARGV[3]  fields  names and values by turns
--
-- Replies
--   1  stored
--   0  refused
--
local record = KEYS[1]
local owner = ARGV[1]
local ttl = ARGV[2]
local fields = {unpack(ARGV, 3)}
if redis.call('HGET', record, 'owner') ~= owner or redis.call('HGET', record, 'state') ~= 'run' then
  return 0
end
redis.call('HSET', record, unpack(fields))
redis.call('HDEL', record, 'owner', 'at')
redis.call('EXPIRE', record, ttl)
return 1
";

struct Orders(Server);

impl Orders {
    fn start() -> Self {
        let server = Server::start();
        server.describe(
            "orders",
            &[("schema.toml", TOML), ("begin.lua", BEGIN), ("complete.lua", COMPLETE)],
        );
        Self(server)
    }

    fn run(&self, words: &[&str]) -> Run {
        self.0.idemctl(&[words, &["--schema", "orders", "--yes"]].concat())
    }

    fn complete(&self, more: &[&str]) -> Run {
        self.run(&[&["complete", "a", "--status", "201", "--body", "hi"], more].concat())
    }

    fn record(&self) -> Value {
        let words = ["inspect", "a", "--schema", "orders", "-o", "json"];
        self.0.idemctl(&words).exits(0).json()["records"][0].clone()
    }

    fn field(&self, name: &str) -> Option<Vec<u8>> {
        self.0.send(&[b"HGET", b"orders:a", name.as_bytes()])
    }
}

#[test]
fn what_an_operator_begins_the_service_holds_and_releases() {
    let orders = Orders::start();
    let folder = orders.0.folder().join(".config/idemctl/schemas/orders");
    orders.0.idemctl(&["schema", "check", folder.to_str().unwrap()]).exits(0).shows("orders: ok");
    let begin = ["begin", "a", "--owner", "w-1", "--fingerprint", "f"];
    orders.run(&begin).exits(0).says("orders answers 1: acquired");
    assert_eq!(orders.field("owner").unwrap(), b"w-1");
    orders.run(&begin).exits(1).says("orders answers 0: conflict");
    let record = orders.record();
    assert_eq!((&record["state"], &record["owner"]), (&json!("in-progress"), &json!("w-1")));
    orders.run(&["release", "a"]).exits(0);
    assert_eq!(orders.0.size(), 0);
}

/// Rule: a hash is changed by the service's own step alone, and what that step leaves there stays: fields that nobody names, and the
/// payload's hash.
#[test]
fn what_an_operator_completes_the_service_replays_and_undo_takes_back() {
    let orders = Orders::start();
    orders.run(&["begin", "a", "--owner", "w-1", "--fingerprint", "f"]).exits(0);
    orders.0.send::<()>(&[b"HSET", b"orders:a", b"trace", b"t-7"]);
    orders.complete(&["--owner", "w-2"]).exits(1).says("orders answers 0: refused");
    assert_eq!(orders.record()["state"], "in-progress");
    orders
        .complete(&["--owner", "w-1"])
        .exits(0)
        .says("Tested with the service's scripts on a temporary local Redis.");
    let record = orders.record();
    assert_eq!(
        (&record["state"], &record["response"]["body"]),
        (&json!("completed"), &json!("hi"))
    );
    assert_eq!(
        (orders.field("trace").unwrap(), orders.field("fp").unwrap()),
        (b"t-7".to_vec(), b"f".to_vec())
    );
    assert!(orders.field("reply").unwrap().starts_with(b"\x78\x9c"), "zlib");
    assert_eq!(orders.field("owner"), None);
    orders.0.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(
        (&orders.record()["state"], orders.field("owner")),
        (&json!("in-progress"), Some(b"w-1".to_vec()))
    );
}

/// Rule: a lock that is taken for the step is a hash, too, and goes with the step that does not store.
#[test]
fn where_nothing_is_there_the_lock_is_taken_for_the_step() {
    let orders = Orders::start();
    orders.complete(&[]).exits(1).says("the key has no record");
    orders.complete(&["--create", "--fingerprint", "f"]).exits(0).says("orders answers 1: stored");
    let record = orders.record();
    assert_eq!((&record["state"], &record["fingerprint"]), (&json!("completed"), &json!("f")));
    let left: i64 = orders.0.send(&[b"TTL", b"orders:a"]);
    assert!((86_000..=86_400).contains(&left), "{left}");
    orders.complete(&["--replace"]).exits(0);
}

const COMPLETE_A: [&str; 11] = [
    "complete", "a", "--schema", "orders", "--status", "201", "--body", "hi", "--owner", "w-1",
    "--yes",
];

/// Rule: a record that changes between the look and the step, by a field or by its expiry alone, stays as somebody left it.
#[test]
fn a_hash_that_changes_meanwhile_is_left_alone() {
    let changes = [
        &["HSET", "orders:a", "owner", "w-2"][..],
        &["PERSIST", "orders:a"],
        &["DEL", "orders:a"],
        &["HSET", "orders:a", "n", "1"],
    ];
    for change in changes {
        for moment in ["WATCH", "EXEC"] {
            let orders = Orders::start();
            orders.run(&["begin", "a", "--owner", "w-1"]).exits(0);
            let socket = proxy::sends_at(&orders.0, moment, change);
            orders.0.through(&socket, &COMPLETE_A).exits(8).says("nothing was done");
            assert_eq!(orders.field("reply"), None, "{moment} {change:?}");
        }
    }
}

#[test]
fn a_lost_reply_is_cleared_up_by_reading_the_hash_back() {
    let orders = Orders::start();
    orders.run(&["begin", "a", "--owner", "w-1"]).exits(0);
    let socket = proxy::breaks_at(&orders.0, "EXEC", true);
    orders
        .0
        .through(&socket, &COMPLETE_A)
        .exits(0)
        .says("reading back shows that the step was executed: stored");
    let orders = Orders::start();
    orders.run(&["begin", "a", "--owner", "w-1"]).exits(0);
    let socket = proxy::breaks_at(&orders.0, "EXEC", false);
    orders.0.through(&socket, &COMPLETE_A).exits(7).says("outcome unknown");
    assert_eq!(orders.record()["state"], "in-progress");
}

/// Rule: nobody makes up hashes, or races them.
#[test]
fn what_plays_services_says_that_it_plays_no_hashes() {
    let orders = Orders::start();
    for words in [&["race"][..], &["simulate", "first-then-retry"]] {
        let run = orders.0.idemctl(&[words, &["--schema", "orders"]].concat());
        run.exits(2).says("it stores hashes, which only `explore`");
    }
}
