//! Records that are neither locks nor responses: stored failures and released locks.

use crate::support::{FOREVER, Run, Server};

/// A hash with a number for its state, as some libraries for .NET keep it. A request takes over a
/// released record and a failed one.
const HASH: &str = r#"format = 2
name = "inbox"
keys = { record = "inbox:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "processing"
type = "hash"
where = { "/st" = 0 }
required = ["/st", "/by"]
state = "in-progress"
fields = { owner = "/by" }

[[value]]
name = "processed"
type = "hash"
where = { "/st" = 1 }
required = ["/st", "/by", "/res"]
state = "completed"
fields = { body = "/res" }

[[value]]
name = "failed"
type = "hash"
where = { "/st" = 2 }
required = ["/st", "/by", "/err"]
state = "failed"
fields = { error = "/err" }

[[value]]
name = "released"
type = "hash"
where = { "/st" = 3 }
required = ["/st", "/by"]
state = "released"

[write]
lock_value = '{"st":"0","by":"{owner}"}'
result_value = '{"st":"1","by":"{owner}","res":{body_text}}'
failed_value = '{"st":"2","by":"{owner}","err":{error_text}}'
response = '{"res":{body_text}}'

[service]
on_failure = "store"

[[begin.call]]
script = "begin"
keys = ["{record}"]
args = ["{lock_ttl_ms}", "{lock_value}"]
replies = [
  { integer = 1, means = "acquired", when = [{ record = "absent" }, { record = "failed" }, { record = "released" }] },
  { integer = 0, means = "next" },
]

[[begin.call]]
command = ["HGETALL", "{record}"]
replies = [
  { value = "processed", means = "replay" },
  { value = "processing", means = "conflict" },
  { nil = true, means = "conflict" },
]

[complete]
checks_owner = true

[[complete.call]]
script = "complete"
keys = ["{record}"]
args = ["{owner}", "{result_ttl_ms}", "{result_value}"]
replies = [
  { integer = 1, means = "stored", when = { record = "processing" } },
  { integer = 0, means = "refused", when = {} },
]

[release]
checks_owner = true

[[release.call]]
script = "release"
keys = ["{record}"]
args = ["{owner}"]
replies = [
  { integer = 1, means = "released", when = { record = "processing" } },
  { integer = 0, means = "refused", when = {} },
]
"#;

const BEGIN: &str = r"if redis.call('TYPE', KEYS[1]).ok == 'hash' then
  local st = redis.call('HGET', KEYS[1], 'st')
  if st ~= '2' and st ~= '3' then
    return 0
  end
elseif redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
";

const COMPLETE: &str = r"if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then
  return 0
end
if redis.call('HGET', KEYS[1], 'by') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'st') ~= '0' then
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
";

const RELEASE: &str = r"if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then
  return 0
end
if redis.call('HGET', KEYS[1], 'by') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'st') ~= '0' then
  return 0
end
redis.call('HSET', KEYS[1], 'st', '3')
return 1
";

/// A server with a record of each state: `held`, `done`, `failed` and `free`.
fn server() -> Server {
    let server = Server::start();
    let files = [
        ("schema.toml", HASH),
        ("begin.lua", BEGIN),
        ("complete.lua", COMPLETE),
        ("release.lua", RELEASE),
    ];
    server.describe("inbox", &files);
    for (key, fields, ttl) in [
        ("inbox:held", &["st", "0", "by", "w-1"][..], "20"),
        ("inbox:done", &["st", "1", "by", "w-2", "res", "{}"][..], "86000"),
        ("inbox:failed", &["st", "2", "by", "w-3", "err", "card declined"][..], "200"),
        ("inbox:free", &["st", "3", "by", "w-4"][..], "25"),
    ] {
        let mut words = vec![&b"HSET"[..], key.as_bytes()];
        words.extend(fields.iter().map(|field| field.as_bytes()));
        server.send::<i64>(&words);
        server.send::<i64>(&[b"EXPIRE", key.as_bytes(), ttl.as_bytes()]);
    }
    server
}

/// The keys that a list has, with their states.
fn listed(run: &Run) -> Vec<(String, String)> {
    let mut listed = Vec::new();
    for line in run.json_lines() {
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        listed.push((text("key"), text("state")));
    }
    listed.sort();
    listed
}

/// Rule: the steps of a schema with all four states do what it says, and explore has no objection
/// that is not about time.
#[test]
fn a_schema_may_have_all_four_states() {
    let server = server();
    server.idemctl(&["schema", "check", "inbox"]).exits(0).shows("inbox: ok");
    let assume = ["--assume", "critical-section,results-outlive-retries"];
    let explore = [&["explore", "--schema", "inbox", "--workers", "2"][..], &assume[..]].concat();
    server.idemctl(&explore).exits(0).shows("no violation");
    let counted = server.idemctl(&["schema", "check", "inbox"]).exits(0);
    counted.shows("1 completed, 1 failed, 1 in progress, 1 released");
}

/// Rule: every command tells the states apart.
#[test]
fn failed_and_released_records_are_told_apart() {
    let server = server();
    let all = server.idemctl(&["list", "--schema", "inbox", "-o", "jsonl"]).exits(0);
    let state = |key: &str, state: &str| (key.to_owned(), state.to_owned());
    let expected = [
        state("done", "completed"),
        state("failed", "failed"),
        state("free", "released"),
        state("held", "in-progress"),
    ];
    assert_eq!(listed(&all), expected);
    for (state, key) in [("failed", "failed"), ("released", "free")] {
        let list = ["list", "--schema", "inbox", "-o", "jsonl", "--state", state];
        assert_eq!(listed(&server.idemctl(&list).exits(0)), [(key.to_owned(), state.to_owned())]);
    }
    let stats = server.idemctl(&["stats", "--schema", "inbox"]).exits(0);
    stats.shows("failed").shows("released");
    let failed = server.idemctl(&["inspect", "failed", "--schema", "inbox"]).exits(0);
    failed.shows("failed").shows("card declined").shows("executes");
    let free = server.idemctl(&["inspect", "free", "--schema", "inbox"]).exits(0);
    free.shows("released").shows("executes");
    server.idemctl(&["check", "--schema", "inbox"]).exits(0);
    let waited = ["inspect", "failed", "--schema", "inbox", "--watch", "--until", "failed"];
    server.idemctl(&waited).exits(0);
}

/// Rule: a released record is no lock, and a failure is no lock. Neither is swept, unlocked, extended
/// or released, and only `--state` purges them.
#[test]
fn a_released_record_is_no_lock() {
    let server = server();
    server.send::<i64>(&[b"PERSIST", b"inbox:free"]);
    server.send::<i64>(&[b"PERSIST", b"inbox:failed"]);
    let sweep = ["sweep", "--orphaned", "--schema", "inbox", "--yes"];
    server.idemctl(&sweep).exits(0).says("no stuck locks");
    for key in ["free", "failed"] {
        server.idemctl(&["force-unlock", key, "--schema", "inbox", "--yes"]).exits(2);
        let extend = ["extend", key, "--schema", "inbox", "--ttl", "1m", "--yes"];
        assert_ne!(server.idemctl(&extend).code, 0, "{key}");
        let owner = ["--owner", "w-3", "--yes"];
        let release = [&["release", key, "--schema", "inbox"][..], &owner[..]].concat();
        assert_ne!(server.idemctl(&release).code, 0, "{key}");
        let response = ["--body", "{}", "--yes", "--schema", "inbox", "--owner", "w-3"];
        let complete = [&["complete", key][..], &response[..]].concat();
        assert_ne!(server.idemctl(&complete).code, 0, "{key}");
    }
    let purge = ["purge", "--schema", "inbox", "--yes"];
    server.idemctl(&purge).exits(0);
    let left = ["list", "--schema", "inbox", "-o", "jsonl"];
    assert_eq!(listed(&server.idemctl(&left).exits(0)).len(), 3, "only `done` is gone");
    server.idemctl(&[&purge[..], &["--state", "failed,released"]].concat()).exits(0);
    let left = listed(&server.idemctl(&left).exits(0));
    assert_eq!(left, [("held".to_owned(), "in-progress".to_owned())]);
    // They come back.
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.send::<String>(&[b"HGET", b"inbox:free", b"st"]), "3");
}

/// Rule: `complete` stores a failure as the schema's failed state, and `diff` sees the change.
#[test]
fn a_failure_is_stored_as_one() {
    let server = server();
    let list = ["list", "--schema", "inbox", "-o", "json"];
    let before = server.idemctl(&list).exits(0).stdout;
    let file = server.folder().join("before.json");
    std::fs::write(&file, before).unwrap();
    let failure = ["complete", "held", "--schema", "inbox", "--owner", "w-1", "--yes", "--error"];
    server.idemctl(&[&failure[..], &["no funds"]].concat()).exits(0);
    let held = server.idemctl(&["inspect", "held", "--schema", "inbox"]).exits(0);
    held.shows("failed").shows("no funds");
    let diff = ["diff", file.to_str().unwrap(), "--schema", "inbox"];
    server.idemctl(&diff).exits(1).shows("in-progress -> failed");
}

/// Rule: with separate Redis keys, a released lock is absent.
#[test]
fn a_separate_lock_cannot_be_released() {
    let server = Server::start();
    let toml = HASH
        .replace("{ record = \"inbox:{key}\" }", "{ lock = \"l:{key}\", result = \"r:{key}\" }")
        .replace("type = \"hash\"", "at = \"lock\"\ntype = \"hash\"");
    let files = [
        ("schema.toml", &toml[..]),
        ("begin.lua", BEGIN),
        ("complete.lua", COMPLETE),
        ("release.lua", RELEASE),
    ];
    server.describe("inbox", &files);
    let checked = server.idemctl(&["schema", "check", "inbox"]).exits(1);
    checked.shows("`released` is a state of one Redis key");
}

/// Rule: a failure or a released record of another schema is no lock. Revert: if only completed values
/// are asked for, force-unlock deletes it.
#[test]
fn a_failure_of_another_schema_is_no_lock() {
    let server = Server::start();
    let opaque = "format = 2\nname = \"opaque\"\nkeys = { lock = \"sh:{key}\", result = \
        \"shr:{key}\" }\nttl = { lock = \"30s\", result = \"1h\" }\n[[value]]\nname = \"held\"\nat = \
        \"lock\"\nopaque = true\nstate = \"in-progress\"\n[[value]]\nname = \"done\"\nat = \
        \"result\"\nrequired = [\"/ok\"]\nstate = \"completed\"\n";
    server.describe("opaque", &[("schema.toml", opaque)]);
    for state in ["completed", "failed", "released"] {
        let closed = format!(
            "format = 2\nname = \"closed\"\nkeys = {{ record = \"sh:{{key}}\" }}\nttl = {{ lock = \
            \"30s\", result = \"1h\" }}\n[[value]]\nname = \"a\"\nwhere = {{ \"/st\" = \"F\" \
            }}\nrequired = [\"/st\", \"/err\"]\nstate = \"{state}\"\n[[value]]\nname = \
            \"b\"\nwhere = {{ \"/st\" = \"P\" }}\nrequired = [\"/st\"]\nstate = \"in-progress\"\n"
        );
        server.describe("closed", &[("schema.toml", &closed)]);
        server.send::<()>(&[b"SET", b"sh:k", br#"{"st":"F","err":"x"}"#]);
        let unlock = ["force-unlock", "k", "--schema", "opaque", "--yes"];
        server.idemctl(&unlock).exits(2).says("closed");
        let sweep = ["sweep", "--orphaned", "--schema", "opaque", "--yes"];
        server.idemctl(&sweep);
        assert_eq!(server.send::<i64>(&[b"EXISTS", b"sh:k"]), 1, "{state}");
    }
}

/// Rule: a lock beside a stored failure is a lock, because a retry may have taken it.
#[test]
fn a_lock_beside_a_failure_is_held() {
    let server = Server::start();
    let toml = "format = 2\nname = \"rt\"\nkeys = { lock = \"rt:lock:{key}\", result = \
        \"rt:done:{key}\" }\nttl = { lock = \"30s\", result = \"1h\" }\n[[value]]\nname = \"held\"\nat = \
        \"lock\"\nopaque = true\nstate = \"in-progress\"\nfields = { owner = \"\" }\n[[value]]\nname = \
        \"bad\"\nat = \"result\"\nrequired = [\"/err\"]\nstate = \"failed\"\nfields = { error = \
        \"/err\" }\n";
    server.describe("rt", &[("schema.toml", toml)]);
    server.set("rt:done:a", r#"{"err":"e"}"#, 3_000_000);
    let inspect = ["inspect", "a", "--schema", "rt"];
    server.idemctl(&inspect).exits(0).shows("failed");
    server.set("rt:lock:a", "live", 20_000);
    let page = server.idemctl(&inspect).exits(0);
    page.shows("in-progress").shows("live");
    assert!(!page.text().contains("leftover-lock"), "{}", page.all());
    let sweep = ["sweep", "--include", "leftover-lock", "--schema", "rt", "--yes"];
    server.idemctl(&sweep);
    assert_eq!(server.send::<i64>(&[b"EXISTS", b"rt:lock:a"]), 1);
}

/// Rule: a lock that the next request takes over blocks nobody, whether it expires or not.
#[test]
fn a_lock_that_rejects_nobody_is_not_called_stuck() {
    // Powertools for TypeScript takes over the record of a function without a Lambda context.
    let key = "orders-prod#cMzsAbCdEfGhIjKlMnOpQg==";
    let value = r#"{"status":"INPROGRESS","expiration":4000000000}"#;
    let server = Server::holding(&[(key, value, FOREVER)]);
    let schema = ["--schema", "powertools-typescript"];
    let page = server.idemctl(&[&["inspect", key], &schema[..]].concat()).exits(0);
    page.shows("executes the operation");
    assert!(!page.text().contains("no-expiry"), "{}", page.text());
    server.idemctl(&[&["check"], &schema[..]].concat()).exits(0).shows("IDEMCTL OK");
    let sweep = server.idemctl(&[&["sweep", "--orphaned", "--dry-run"], &schema[..]].concat());
    sweep.exits(0).says("no stuck locks");
}
