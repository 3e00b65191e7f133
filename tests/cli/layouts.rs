//! What idemctl says of layouts that real libraries have, and that no shipped schema has.

use crate::support::Server;

/// A counting semaphore, as redis-semaphore of Ruby keeps it.
const SEMAPHORE: &str = r#"format = 2
name = "semaphore"
ttl = { lock = "none" }

[keys]
lock = "sem:{key}:grabbed"

[[value]]
name = "grabbed"
at = "lock"
type = "hash"
required = ["/0"]
state = "in-progress"
"#;

/// A hash whose begin script assigns the owner, as the library of aklanti does.
const FENCED: &str = r#"format = 2
name = "fenced"
keys = { record = "shop:{key}" }
ttl = { lock = "1m", result = "24h" }

[[value]]
name = "running"
type = "hash"
where = { "/status" = "run" }
required = ["/token", "/hash"]
state = "in-progress"
fields = { owner = "/token", fingerprint = "/hash" }

[[value]]
name = "done"
type = "hash"
where = { "/status" = "done" }
required = ["/token", "/hash"]
state = "completed"
fields = { owner = "/token", fingerprint = "/hash" }

[[begin.call]]
script = "claim"
keys = ["{record}"]
args = ["{lock_ttl_ms}", "{fingerprint}"]
replies = [
  { array = "created", means = "acquired", when = { record = "absent" } },
  { array = "run", means = "conflict" },
  { array = "done", means = "replay", when = { record = "done" } },
]

[release]
checks_owner = true

[[release.call]]
script = "remove"
keys = ["{record}"]
args = ["{owner}"]
replies = [{ integer = 1, means = "released", when = { record = "running" } }, { integer = 0, means = "refused" }]
"#;

const CLAIM: &str = "
local seen = redis.call('HMGET', KEYS[1], 'status', 'token')
if seen[1] then return seen end
redis.call('HSET', KEYS[1], 'status', 'run', 'token', 't-41', 'hash', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {'created', 't-41'}
";

const REMOVE: &str = "
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
";

fn fenced() -> Server {
    let server = Server::start();
    let files = [("schema.toml", FENCED), ("claim.lua", CLAIM), ("remove.lua", REMOVE)];
    server.describe("fenced", &files);
    server
}

/// Rule: `begin` names the owner that the lock has, not one that the service was never sent.
#[test]
fn an_owner_that_the_script_assigns_is_the_one_that_is_named() {
    let server = fenced();
    let begin = ["begin", "a", "--schema", "fenced", "--fingerprint", "f", "--yes"];
    let begun = server.idemctl(&begin).exits(0);
    begun.says("The lock belongs to t-41.");
    assert!(!begun.all().contains("for worker"), "{}", begun.all());
    let named = server.idemctl(&[&begin[..], &["--owner", "w-1"]].concat()).exits(2);
    named.says("--owner: the begin step of fenced sends no owner");
    let release = ["release", "a", "--schema", "fenced", "--owner", "t-41", "--yes"];
    server.idemctl(&release).exits(0).says("released");
}

/// Rule: no answer is promised if the schema does not say when begin gives it.
#[test]
fn a_state_without_a_condition_is_answered_in_an_unknown_way() {
    let server = fenced();
    server.send::<()>(&[b"HSET", b"shop:a", b"status", b"run", b"token", b"t-1", b"hash", b"f"]);
    server.send::<()>(&[b"PEXPIRE", b"shop:a", b"60000"]);
    let inspect = ["inspect", "a", "--schema", "fenced"];
    server.idemctl(&inspect).exits(0).shows(
        "unknown, because the schema does not say what the begin step replies in this state",
    );
    let json = server.idemctl(&[&inspect[..], &["-o", "json"]].concat()).exits(0).json();
    assert_eq!(json["records"][0]["next_request"]["answer"], "unknown");
    let begin = ["begin", "a", "--schema", "fenced", "--dry-run"];
    let begun = server.idemctl(&begin).exits(0);
    begun.says("The schema does not say what the service replies");
    assert!(!begun.all().contains("take the lock"), "{}", begun.all());
}

/// A lease. The value has its start, and only the script has its length.
const LEASE: &str = r#"format = 2
name = "lease"
keys = { record = "lease:{key}" }
ttl = { lock = "1m", result = "24h" }

[[value]]
name = "running"
required = ["/started"]
state = "in-progress"
fields = { created_at = "/started" }
expires_at = { field = "/started", plus = "30s", clock = "server", past = "reclaimable" }

[[begin.call]]
command = ["SET", "{record}", "{now_ms}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = [{ record = "absent" }, { record = "reclaimable" }] },
  { nil = true, means = "conflict", when = { record = "running" } },
]
"#;

/// Rule: a lease ends a constant time after the beginning that the value holds.
#[test]
fn a_lease_ends_a_constant_time_after_its_start() {
    let server = Server::start();
    server.describe("lease", &[("schema.toml", LEASE)]);
    let now_ms = crate::support::backup::now_ms(&server);
    for (key, ago_ms) in [("new", 10_000), ("old", 40_000)] {
        let value = format!(r#"{{"started":{}}}"#, now_ms - ago_ms);
        server.set(&format!("lease:{key}"), &value, 60_000);
    }
    let answer = |key: &str| {
        let inspect = ["inspect", key, "--schema", "lease", "-o", "json"];
        let json = server.idemctl(&inspect).exits(0).json();
        json["records"][0]["next_request"].clone()
    };
    let held = answer("new");
    assert_eq!(held["answer"], "conflict");
    assert!(held["until_ms"].as_u64().unwrap() <= 20_000, "{held}");
    assert_eq!(answer("old")["answer"], "execute");
    let page = server.idemctl(&["inspect", "old", "--schema", "lease"]).exits(0);
    page.shows("the next request may take the key over (/started plus 30s; by the server's clock)");
    let show = ["schema", "show", "lease", "-o", "json"];
    let shown = server.idemctl(&show).exits(0).json();
    assert_eq!(shown["schemas"][0]["values"][0]["expires_at"]["plus_ms"], 30_000);
    let begin = ["begin", "free", "--schema", "lease", "--dry-run"];
    server.idemctl(&begin).exits(0).says("rejected until it ends.");
    let wrong = LEASE.replace("\"30s\"", "\"soon\"");
    server.describe("lease", &[("schema.toml", &wrong)]);
    server.idemctl(&["schema", "check", "lease"]).exits(1).shows("`soon` is not a duration");
}

/// A library whose record stays in progress after the lock beside it has expired.
const INBOX: &str = r#"format = 2
name = "inbox"
keys = { lock = "inbox:{key}:lock", result = "inbox:{key}" }
ttl = { lock = "5m", result = "none" }

[[value]]
name = "held"
at = "lock"
opaque = true
state = "in-progress"

[[value]]
name = "processed"
at = "result"
where = { "/s" = 2 }
required = ["/s"]
state = "completed"

[[value]]
name = "processing"
at = "result"
where = { "/s" = 1 }
required = ["/s"]
state = "in-progress"
"#;

/// Rule: a lock that does not exist has no age, and cannot be removed.
#[test]
fn a_lock_that_is_gone_is_not_removed_again() {
    let server = Server::start();
    server.describe("inbox", &[("schema.toml", INBOX)]);
    server.put("inbox:a", r#"{"s":1}"#);
    let inspect = ["inspect", "a", "--schema", "inbox"];
    server.idemctl(&inspect).exits(0).shows("Age           unknown");
    let unlock = ["force-unlock", "a", "--schema", "inbox", "--yes"];
    server.idemctl(&unlock).exits(2).says("its lock does not exist");
    let extend = ["extend", "a", "--schema", "inbox", "--for", "1m", "--yes"];
    let refused = server.idemctl(&extend);
    refused.says("its lock does not exist");
    assert!(!refused.all().contains("are rejected"), "{}", refused.all());
    assert!(server.get("inbox:a").is_some());
    let purge = ["purge", "a", "--schema", "inbox", "--state", "in-progress", "--yes"];
    server.idemctl(&purge).exits(0);
    assert!(server.get("inbox:a").is_none());
}

/// Rule: the hash of the payload does not change unnoticed with a result.
#[test]
fn another_fingerprint_is_refused_or_warned_of() {
    let server = Server::start();
    let create = ["complete", "a", "--schema", "reference", "--create", "--fingerprint", "F"];
    let create = [&create[..], &["--status", "200", "--body", "{}", "--yes"]].concat();
    server.idemctl(&create).exits(0);
    let replace = ["complete", "a", "--schema", "reference", "--replace", "--body", "{}"];
    let replace = [&replace[..], &["--status", "201", "--dry-run", "--fingerprint"]].concat();
    let warned = server.idemctl(&[&replace[..], &["G"]].concat()).exits(0);
    warned.says("this replaces the fingerprint F by G");
    let same = server.idemctl(&[&replace[..], &["F"]].concat()).exits(0);
    assert!(!same.all().contains("fingerprint F by"), "{}", same.all());

    // This library reads the hash of the lock, and keeps it in the result.
    let keeps = KEEPS_HASH;
    server.describe("keeps", &[("schema.toml", keeps)]);
    server.set("keeps:a", r#"{"st":"D","fp":"F","data":1}"#, 600_000);
    let replace = ["complete", "a", "--schema", "keeps", "--replace", "--body", "2", "--yes"];
    let refused = server.idemctl(&[&replace[..], &["--fingerprint", "G"]].concat()).exits(2);
    refused.says("the result of keeps would have another fingerprint (F)");
    server.idemctl(&replace).exits(0);
}

/// A result that keeps the hash of its lock.
const KEEPS_HASH: &str = r#"format = 2
name = "keeps"
protocol = "set-nx-get"
keys = { record = "keeps:{key}" }
ttl = { lock = "1m", result = "24h" }

[[value]]
name = "done"
where = { "/st" = "D" }
required = ["/st", "/fp", "/data"]
state = "completed"
fields = { body = "/data", fingerprint = "/fp" }
body_encoding = "json"

[[value]]
name = "running"
where = { "/st" = "P" }
required = ["/st", "/fp"]
state = "in-progress"
fields = { fingerprint = "/fp" }

[write]
lock_value = '{"st":"P","fp":"{fingerprint}"}'
result_value = '{"st":"D","fp":{kept:/fp},"data":{body_json}}'
"#;

/// A service that stores failures.
const PAYMENTS: &str = r#"format = 2
name = "payments"
protocol = "fenced-script"
keys = { record = "pay:{key}" }
ttl = { lock = "15m", result = "24h" }

[[value]]
name = "failed"
where = { "/state" = "FAILED" }
required = ["/error"]
state = "failed"
fields = { error = "/error" }

[[value]]
name = "done"
where = { "/state" = "DONE" }
required = ["/body"]
state = "completed"
fields = { body = "/body" }
body_encoding = "json"

[[value]]
name = "running"
where = { "/state" = "RUNNING" }
required = ["/by"]
state = "in-progress"
fields = { owner = "/by" }

[write]
lock_value = '{"state":"RUNNING","by":"{owner}"}'
result_value = '{"state":"DONE","body":{body_json}}'
failed_value = '{"state":"FAILED","error":{error_text}}'

[service]
on_failure = "store"
"#;

/// Rule: a stored failure is explained by a handler that failed.
#[test]
fn a_stored_failure_is_explained_as_one() {
    let server = Server::start();
    server.describe("payments", &[("schema.toml", PAYMENTS)]);
    server.set("pay:a", r#"{"state":"FAILED","error":"declined"}"#, 290_000);
    let words = ["inspect", "a", "--schema", "payments", "--explain"];
    let explained = server.idemctl(&words).exits(0);
    explained.shows("after 1 failing handler, in 3 steps").shows("failure, ");
    let text = explained.text();
    let causes = text.split("Possible causes").nth(1).unwrap();
    assert!(!causes.contains("executes the payment"), "{causes}");
}

/// Rule: a Redis key that a schema ignores is known, so `detect` does not list it.
#[test]
fn an_ignored_key_is_not_listed_as_unknown() {
    let server = Server::start();
    let ignoring = FENCED.replace(
        "keys = { record = \"shop:{key}\" }",
        "keys = { record = \"shop:{key}\", ignore = [\"shop::lock_counter\"] }",
    );
    let files = [("schema.toml", &ignoring[..]), ("claim.lua", CLAIM), ("remove.lua", REMOVE)];
    server.describe("fenced", &files);
    for key in ["a", "b", "c"] {
        let redis_key = format!("shop:{key}");
        let fields: [&[u8]; 6] = [b"status", b"run", b"token", b"t-1", b"hash", b"f"];
        server.send::<()>(&[&[b"HSET", redis_key.as_bytes()][..], &fields[..]].concat());
    }
    server.put("shop::lock_counter", "7");
    let detected = server.idemctl(&["detect"]).exits(0);
    detected.shows("  shop:*   fenced  3 in-progress").says("Left out 1 Redis key");
    assert!(!detected.text().contains("lock_counter"), "{}", detected.all());
    // Without that line, the counter is listed.
    let files = [("schema.toml", FENCED), ("claim.lua", CLAIM), ("remove.lua", REMOVE)];
    server.describe("fenced", &files);
    server.idemctl(&["detect"]).exits(0).shows("lock_counter");
}

/// Rule: a lock that its service gives no TTL is not called a fault by `extend`.
#[test]
fn a_lock_without_ttl_by_design_is_no_finding_for_extend() {
    let server = Server::start();
    server.describe("semaphore", &[("schema.toml", SEMAPHORE)]);
    server.send::<()>(&[b"HSET", b"sem:a:grabbed", b"0", b"1767225600"]);
    let words = ["extend", "a", "--schema", "semaphore", "--for", "1m", "--yes"];
    let refused = server.idemctl(&words);
    refused.says("it never expires");
    assert!(!refused.all().contains("sweep"), "{}", refused.all());
}

/// A lock beside a result that never expires.
const HELD: &str = r#"format = 2
name = "held"
ttl = { lock = "5m", result = "none" }

[keys]
lock = "held:{key}:lock"
result = "held:{key}"

[[value]]
name = "lock"
at = "lock"
required = ["/by"]
optional = ["/until"]
state = "in-progress"
fields = { owner = "/by" }
expires_at = { field = "/until", clock = "server" }

[[value]]
name = "done"
at = "result"
equals = "done"
state = "completed"

[[begin.call]]
command = ["SET", "{lock}", "{owner}", "NX", "EX", "{lock_ttl}"]
replies = [
  { nil = true, means = "conflict", when = { lock = "present" } },
  { word = "OK", means = "acquired", when = { lock = "absent" } },
]
"#;

/// Rule: the end of an answer names the value that ends it, with its own TTL and its own expiry.
#[test]
fn the_end_of_an_answer_is_that_of_the_value_that_gives_it() {
    let server = Server::start();
    server.describe("held", &[("schema.toml", HELD)]);
    let now_ms = crate::support::backup::now_ms(&server);
    let inspect = |key: &str| server.idemctl(&["inspect", key, "--schema", "held"]).exits(0);
    // The service gives its locks a TTL, although it gives its results none.
    server.put("held:a:lock", r#"{"by":"w"}"#);
    server.put("held:a", "done");
    inspect("a").shows("conflict indefinitely, because the lock never expires");
    // The value expires before its Redis key.
    let lock = format!(r#"{{"by":"w","until":{}}}"#, now_ms + 20_000);
    server.set("held:b:lock", &lock, 300_000);
    let page = inspect("b");
    page.shows("until the lock expires, then it executes");
    let json = ["inspect", "b", "--schema", "held", "-o", "json"];
    let json = server.idemctl(&json).exits(0).json();
    let until_ms = json["records"][0]["next_request"]["until_ms"].as_u64().unwrap();
    assert!(until_ms <= 20_000, "{until_ms}");
}

/// Rule: `begin` succeeds only if it took a lock, whatever its script replies.
#[test]
fn a_begin_that_takes_no_lock_is_no_success() {
    let server = Server::start();
    let claims_nothing = "return {'created', 't-41'}";
    let files = [("schema.toml", FENCED), ("claim.lua", claims_nothing), ("remove.lua", REMOVE)];
    server.describe("fenced", &files);
    let begun = server.idemctl(&["begin", "a", "--schema", "fenced", "--yes"]).exits(1);
    begun.says("acquired; nothing was changed");
    assert!(!begun.all().contains("The lock belongs to"), "{}", begun.all());
    assert!(server.keys().is_empty());
    let log = server.idemctl(&["log", "--records", "-o", "jsonl"]).exits(0);
    assert!(log.json_lines().is_empty(), "{}", log.all());
}

/// A JSON document whose body is JSON in a text.
const NESTED: &str = r#"format = 2
name = "nested"
protocol = "set-nx-get"
keys = { record = "nested:{key}" }
ttl = { lock = "1m", result = "24h" }

[[value]]
name = "done"
where = { "/st" = "D" }
required = ["/st", "/data"]
decode_at = { "/data" = ["json"] }
state = "completed"
fields = { body = "/data" }
body_encoding = "json"
body_is = "json"

[[value]]
name = "running"
where = { "/st" = "P" }
required = ["/st"]
state = "in-progress"

[write]
lock_value = '{"st":"P"}'
result_value = '{"st":"D","data":{body_json}}'
"#;

/// Rule: a JSON string is JSON in a field that holds JSON, so a client can parse it.
#[test]
fn a_json_string_keeps_its_quotes_in_a_packed_field() {
    let server = Server::start();
    server.describe("nested", &[("schema.toml", NESTED)]);
    for (key, body) in [("a", r#""s""#), ("b", r#""{""#), ("c", r#""""#), ("d", r#"{"id":1}"#)] {
        let words = ["complete", key, "--schema", "nested", "--create", "--yes", "--body", body];
        server.idemctl(&words).exits(0);
        let stored = server.get(&format!("nested:{key}")).unwrap();
        let stored: serde_json::Value = serde_json::from_slice(&stored).unwrap();
        let data = stored["data"].as_str().unwrap();
        assert_eq!(data, body, "what the client parses");
    }
}

/// Rule: a response that the service cannot decode is unreadable, and nothing is replayed.
#[test]
fn a_field_that_cannot_be_decoded_makes_the_result_unreadable() {
    let server = Server::start();
    server.describe("nested", &[("schema.toml", NESTED)]);
    server.set("nested:a", r#"{"st":"D","data":"{\"id\""}"#, 600_000);
    server.set("nested:b", r#"{"st":"D","data":""}"#, 600_000);
    let shown = server.idemctl(&["inspect", "a", "--schema", "nested"]);
    shown.shows("unreadable").shows("`/data` cannot be read: not JSON");
    assert!(!shown.all().contains("replay"), "{}", shown.all());
    let listed = server.idemctl(&["list", "--schema", "nested", "-o", "jsonl"]).exits(0);
    let mut states = Vec::new();
    for record in listed.json_lines() {
        let key = record["key"].as_str().unwrap().to_owned();
        states.push((key, record["state"].as_str().unwrap().to_owned()));
    }
    states.sort();
    let expected = [("a", "unreadable"), ("b", "completed")];
    assert_eq!(states, expected.map(|(key, state)| (key.to_owned(), state.to_owned())));
    let purge = ["purge", "--schema", "nested", "--state", "completed", "--yes"];
    server.idemctl(&purge).exits(0);
    assert_eq!(server.keys(), ["nested:a"]);
}

/// Rule: a Redis key that one schema ignores may be a record of another schema. Revert: without the second condition of `retain`, that record is left out.
#[test]
fn detect_lists_the_records_of_one_schema_that_another_ignores() {
    let server = Server::start();
    let ignoring = FENCED.replace(
        "keys = { record = \"shop:{key}\" }",
        "keys = { record = \"shop:{key}\", ignore = [\"idem:{key}\"] }",
    );
    let files = [("schema.toml", &ignoring[..]), ("claim.lua", CLAIM), ("remove.lua", REMOVE)];
    server.describe("fenced", &files);
    for number in 0..5 {
        server.set(&format!("idem:order-{number}"), crate::support::LOCK, 60_000);
    }
    let detected = server.idemctl(&["detect"]).exits(0);
    detected.shows("    5  idem:order-{n}  express  5 in-progress\n");
}

/// Rule: nothing says that retries get a result whose service looks at the lock first.
#[test]
fn a_lock_that_hides_its_result_is_told_as_one() {
    let server = Server::start();
    server.describe("held", &[("schema.toml", HELD)]);
    server.set("held:a:lock", r#"{"by":"w"}"#, 60_000);
    server.put("held:a", "done");
    let shown = server.idemctl(&["inspect", "a", "--schema", "held"]);
    shown.shows("conflict for another").shows("a lock exists beside the result");
    let extend = ["extend", "a", "--schema", "held", "--for", "10m", "--yes"];
    server.idemctl(&extend).says("so no lock need live longer");
}
