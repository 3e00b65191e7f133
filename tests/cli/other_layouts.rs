//! What idemctl says of layouts in which a step looks at more than the record: other Redis keys, the
//! fingerprint at a release, the length of a body.

use crate::support::Server;

/// The lock is a member of one set for all records, as in asgi-idempotency-header.
const SEATS: &str = r#"format = 2
name = "seats"
keys = { record = "seat:{key}" }
ttl = { lock = "none", result = "24h" }

[[value]]
name = "done"
where = { "/st" = "done" }
required = ["/body"]
state = "completed"
fields = { body = "/body" }
body_encoding = "json"

[write]
result_value = '{"st":"done","body":{body_json}}'

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "done", means = "replay", when = { record = "done" } },
  { nil = true, means = "next" },
]

[[begin.call]]
command = ["SADD", "seats-taken", "{key}"]
replies = [
  { integer = 1, means = "acquired", when = { record = "absent" } },
  { integer = 0, means = "conflict" },
]

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

/// Rule: nobody is told that nothing changed, or can be undone, if a step writes a Redis key of which
/// idemctl keeps no copy. Revert: without `keys_beside_record`, `begin` says so.
#[test]
fn a_step_that_writes_beside_the_record_says_so() {
    let server = Server::start();
    server.describe("seats", &[("schema.toml", SEATS)]);
    let checked = server.idemctl(&["schema", "check", "seats"]).exits(0);
    checked.shows("begin writes the Redis key seats-taken, which `[keys]` does not name");
    let begin = ["begin", "a", "--schema", "seats", "--yes"];
    let begun = server.idemctl(&begin).exits(1);
    begun.says("this step may also change seats-taken, of which idemctl keeps no copy");
    begun.says("; the record is unchanged");
    assert!(!begun.all().contains("nothing was changed"), "{}", begun.all());
    assert_eq!(server.send::<Vec<String>>(&[b"SMEMBERS", b"seats-taken"]), ["a"]);
    let log = server.idemctl(&["log", "--records", "-o", "jsonl"]).exits(0);
    assert_eq!(log.json_lines().len(), 1, "{}", log.all());
    // Nothing is promised about the next request, which the set rejects.
    server.set("seat:z", r#"{"st":"done","body":1}"#, 60_000);
    let purge = ["purge", "z", "--schema", "seats", "--state", "completed", "--dry-run"];
    let purged = server.idemctl(&purge).exits(0);
    assert!(!purged.all().contains("executes the operation"), "{}", purged.all());
    // A step that writes only the record says nothing of the kind.
    let complete = ["complete", "a", "--schema", "seats", "--create", "--body", "1", "--yes"];
    let completed = server.idemctl(&complete).exits(0);
    assert!(!completed.all().contains("keeps no copy"), "{}", completed.all());
}

/// Rule: a verdict on a description that other commands refuse says that they do.
#[test]
fn a_verdict_on_a_wrong_description_says_so() {
    let server = Server::start();
    let wrong = SEATS.replace("\"st\":\"done\",\"body\"", "\"st\":\"gone\",\"body\"");
    assert_ne!(wrong, SEATS);
    server.describe("seats", &[("schema.toml", &wrong)]);
    server.idemctl(&["list", "--schema", "seats"]).exits(2);
    let explored = server.idemctl(&["explore", "seats", "--workers", "2"]);
    explored.says("other commands refuse schema seats");
}

/// Rule: a race notices a result that lost the hash of the payload, which begin compares. Revert: with
/// an empty hash, the race finds nothing.
#[test]
fn a_race_notices_a_lost_fingerprint() {
    let server = Server::start();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/protocols");
    let race = ["race", "--concurrency", "5", "--schema-dir", folder, "--schema"];
    let lost = server.idemctl(&[&race[..], &["fingerprint-not-kept"]].concat());
    lost.exits(1);
    server.idemctl(&[&race[..], &["fingerprint-in-script"]].concat()).exits(0);
}

/// Rule: a record is shown under each schema that the operator names, and nobody is told that there is
/// no record if a Redis key could not be read.
#[test]
fn a_named_schema_and_an_unreadable_key_are_not_passed_over() {
    let server = Server::start();
    server.set("idempotency:k", r#"{"status":"PENDING"}"#, 60_000);
    let both = ["inspect", "go-middleware/k", "go-middleware-v1/k", "-o", "jsonl"];
    let shown = server.idemctl(&both);
    let names: Vec<_> = shown.json_lines().iter().map(|record| record["schema"].clone()).collect();
    assert_eq!(names, ["go-middleware", "go-middleware-v1"], "{}", shown.all());

    server.add_user("narrow", "~idem:* +@all");
    let narrow = ["--user", "narrow", "-a", "pw", "release", "k", "--yes"];
    let refused = server.idemctl(&narrow);
    assert!(!refused.all().contains("has no record"), "{}", refused.all());
    refused.exits(4);
}

/// A service that stores the result of a worker whose lock is gone, and refuses only other owners.
const NO_HEARTH: &str = r#"format = 2
name = "nohearth"
keys = { record = "nh:{key}" }
ttl = { lock = "1m", result = "24h" }

[[value]]
name = "held"
where = { "/st" = "held" }
required = ["/by"]
optional = ["/fp"]
state = "in-progress"
fields = { owner = "/by", fingerprint = "/fp" }

[[value]]
name = "done"
where = { "/st" = "done" }
required = ["/body"]
optional = ["/by"]
state = "completed"
fields = { body = "/body" }
body_encoding = "json"
body_is = "json"

[write]
lock_value = '{"st":"held","by":"{owner}","fp":"{fingerprint}"}'
result_value = '{"st":"done","body":{body_json},"by":"{owner}"}'

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { record = "absent" } },
  { nil = true, means = "next" },
]

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "held", means = "conflict", when = { record = "held" } },
  { value = "done", means = "replay", when = { record = "done" } },
]

[complete]
checks_owner = true

[[complete.call]]
script = "finish"
keys = ["{record}"]
args = ["{owner}", "{result_value}", "{result_ttl}"]
replies = [{ integer = 1, means = "stored", when = {} }, { integer = 0, means = "refused" }]

[release]
checks_owner = true

[[release.call]]
script = "free"
keys = ["{record}"]
args = ["{owner}", "{fingerprint}"]
replies = [
  { integer = 1, means = "released", when = { record = "held" } },
  { integer = 0, means = "refused" },
]
"#;

const FINISH: &str = "
local stored = redis.call('GET', KEYS[1])
if stored and cjson.decode(stored).by ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
";

const FREE: &str = "
local stored = redis.call('GET', KEYS[1])
local value = stored and cjson.decode(stored)
if not value or value.by ~= ARGV[1] or value.fp ~= ARGV[2] then return 0 end
return redis.call('DEL', KEYS[1])
";

fn no_hearth(toml: &str) -> Server {
    let server = Server::start();
    let files = [("schema.toml", toml), ("finish.lua", FINISH), ("free.lua", FREE)];
    server.describe("nohearth", &files);
    server
}

/// Rule: a check of the owner does not keep a late worker from storing where there is no owner.
#[test]
fn a_late_worker_may_store_where_no_lock_is_left() {
    let server = no_hearth(NO_HEARTH);
    server.set("nh:a", r#"{"st":"held","by":"w","fp":"F"}"#, 60_000);
    let unlock = ["force-unlock", "a", "--schema", "nohearth", "--dry-run"];
    let unlocked = server.idemctl(&unlock).exits(0);
    unlocked.says("The worker may still store its result");
    // A result that names no owner does not show whether the old worker is refused.
    let create = ["complete", "b", "--schema", "nohearth", "--create", "--body", "1", "--dry-run"];
    let create = [&create[..], &["--fingerprint", "F"]].concat();
    server.idemctl(&create).exits(0).says("it may overwrite or remove this response");
}

/// Rule: a release sends the hash of the payload that the lock holds.
#[test]
fn a_release_sends_the_stored_fingerprint() {
    let server = no_hearth(NO_HEARTH);
    server.set("nh:a", r#"{"st":"held","by":"w","fp":"F"}"#, 60_000);
    let release = ["release", "a", "--schema", "nohearth", "--owner", "w", "--yes"];
    server.idemctl(&release).exits(0).says("released");
    assert!(server.get("nh:a").is_none());
}

/// Rule: the reason is named if a fingerprint cannot be sent because it is not text.
#[test]
fn a_fingerprint_that_is_not_text_is_named_as_the_reason() {
    let server = Server::start();
    let toml = NO_HEARTH
        .replace("\nname = \"held\"\n", "\nname = \"held\"\ntype = \"hash\"\n")
        .replace("\nname = \"done\"\n", "\nname = \"done\"\ntype = \"hash\"\n")
        .replace("optional = [\"/by\"]", "optional = [\"/by\", \"/fp\"]")
        .replace("body_encoding = \"json\"\nbody_is = \"json\"\n", "")
        .replace("{body_json}", "{body_text}");
    let files = [("schema.toml", &toml[..]), ("finish.lua", FINISH), ("free.lua", FREE)];
    server.describe("nohearth", &files);
    let fields: [&[u8]; 6] = [b"st", b"held", b"by", b"w", b"fp", b"\xff\xfe\x01"];
    server.send::<()>(&[&[&b"HSET"[..], b"nh:a"][..], &fields[..]].concat());
    server.send::<()>(&[b"EXPIRE", b"nh:a", b"60"]);
    let complete = ["complete", "a", "--schema", "nohearth", "--owner", "w", "--body", "1"];
    let refused = server.idemctl(&[&complete[..], &["--yes"]].concat()).exits(2);
    refused.says("the fingerprint of a is not text");
}

/// Rule: a `Content-Length` is refused if the service writes the body anew, and an empty body if a
/// client parses it as JSON.
#[test]
fn a_length_or_an_absence_that_clients_would_not_get_is_refused() {
    let headers = NO_HEARTH
        .replace("required = [\"/body\"]", "required = [\"/body\", \"/headers\"]")
        .replace(
            "fields = { body = \"/body\" }",
            "fields = { body = \"/body\", headers = \"/headers\" }",
        )
        .replace("\"body\":{body_json},", "\"body\":{body_json},\"headers\":{headers},");
    let server = no_hearth(&headers);
    let create = ["complete", "a", "--schema", "nohearth", "--create", "--dry-run"];
    let create = [&create[..], &["--fingerprint", "F", "--body"]].concat();
    let length = [&create[..], &["{\"a\": 1}", "--header", "Content-Length: 8"]].concat();
    server.idemctl(&length).exits(2).says("Content-Length may not be the length of the body");
    server.idemctl(&[&create[..], &["{\"a\": 1}"]].concat()).exits(0);

    let as_text = NO_HEARTH
        .replace("body_encoding = \"json\"\n", "decode_at = { \"/body\" = [\"json\"] }\n")
        .replace("\"body\":{body_json}", "\"body\":{body_text}")
        .replace("[write]\n", "[write]\nno_body = \"null\"\n");
    let server = no_hearth(&as_text);
    server.idemctl(&[&create[..], &[""]].concat()).exits(2).says("every body of nohearth is JSON");
}
