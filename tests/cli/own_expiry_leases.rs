//! Leases whose length only the service's script knows, and that the value holds.

use crate::support::Server;

const SCHEMA: &str = r#"format = 2
name = "leased"
keys = { record = "leased:{key}" }
ttl = { lock = "1d", result = "1d" }

[[value]]
name = "running"
where = { "/status" = "processing" }
required = ["/status", "/expires", "/token", "/fp"]
state = "in-progress"
fields = { owner = "/token", fingerprint = "/fp" }
expires_at = { field = "/expires", clock = "server", past = "reclaimable" }

[[value]]
name = "done"
where = { "/status" = "done" }
required = ["/status", "/body", "/fp"]
state = "completed"
fields = { body = "/body", fingerprint = "/fp" }
body_encoding = "json"

[[value]]
name = "given-up"
where = { "/status" = "released" }
required = ["/status"]
state = "released"

[write]
lock_value = '{"status":"processing","expires":{lock_expires_ms},"token":"{owner}","fp":"{fingerprint}"}'
result_value = '{"status":"done","body":{body_json},"fp":"{fingerprint}"}'

[service]
on_failure = "release"

[[begin.call]]
script = "claim"
keys = ["{record}"]
args = ["{owner}", "{fingerprint}", "{lock_ttl_ms}"]
replies = [
  { array = "acquired", means = "acquired", when = [{ record = "absent" }, { record = "reclaimable" }, { record = "given-up" }] },
  { array = "mismatch", means = "mismatch", when = [{ record = "running", fingerprint = "other" }, { record = "done", fingerprint = "other" }] },
  { array = "busy", means = "conflict", when = { record = "running" } },
  { array = "replay", means = "replay", when = { record = "done" } },
]

[complete]
checks_owner = true

[[complete.call]]
script = "finish"
keys = ["{record}"]
args = ["{owner}", "{body_json}"]
replies = [
  { integer = 1, means = "stored", when = [{ record = "running" }, { record = "reclaimable" }] },
  { integer = 0, means = "refused" },
]

[release]
checks_owner = true

[[release.call]]
script = "give_up"
keys = ["{record}"]
args = ["{owner}"]
replies = [
  { integer = 1, means = "released", when = [{ record = "running" }, { record = "reclaimable" }] },
  { integer = 0, means = "refused" },
]
"#;

/// Gives each lock 30 seconds, whatever TTL it is sent for the Redis key.
const CLAIM: &str = r#"
local stored = redis.call('GET', KEYS[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if stored then
  local value = cjson.decode(stored)
  if value.status == 'done' then
    if value.fp ~= ARGV[2] then return {'mismatch'} end
    return {'replay', cjson.encode(value.body)}
  end
  if value.status == 'processing' and value.expires > now then
    if value.fp ~= ARGV[2] then return {'mismatch'} end
    return {'busy'}
  end
end
local expires = string.format('%d', now + 30000)
local lock = '{"status":"processing","expires":' .. expires
lock = lock .. ',"token":"' .. ARGV[1] .. '","fp":"' .. ARGV[2] .. '"}'
redis.call('SET', KEYS[1], lock, 'PX', ARGV[3])
return {'acquired'}
"#;

const FINISH: &str = r#"
local stored = redis.call('GET', KEYS[1])
if not stored then return 0 end
local value = cjson.decode(stored)
if value.status ~= 'processing' or value.token ~= ARGV[1] then return 0 end
local result = '{"status":"done","body":' .. ARGV[2] .. ',"fp":"' .. value.fp .. '"}'
redis.call('SET', KEYS[1], result, 'EX', 86400)
return 1
"#;

const GIVE_UP: &str = r#"
local stored = redis.call('GET', KEYS[1])
if not stored then return 0 end
local value = cjson.decode(stored)
if value.status ~= 'processing' or value.token ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], '{"status":"released"}', 'EX', 86400)
return 1
"#;

fn describe(server: &Server, toml: &str) {
    let files = [
        ("schema.toml", toml),
        ("claim.lua", CLAIM),
        ("finish.lua", FINISH),
        ("give_up.lua", GIVE_UP),
    ];
    server.describe("leased", &files);
}

fn leased() -> Server {
    let server = Server::start();
    describe(&server, SCHEMA);
    server
}

/// Rule: a script that returns a part of its result is not accused of a false replay. A key that was
/// given up, or whose lock expired by its own time, is free for another payload. Revert: without
/// `is_value` in `carried_response`, `true-replay` is violated; without `is_in_use`,
/// `payloads-apart`.
#[test]
fn explore_does_not_accuse_a_sound_lease() {
    let server = leased();
    let explored = server.idemctl(&["explore", "leased"]).exits(0);
    explored.shows("leased: no violation under the assumptions");
    let text = explored.text();
    let table = text.split("not counted").next().unwrap();
    assert!(!table.contains("payloads-apart") && !table.contains("true-replay"), "{text}");
}

/// Rule: the simulation reports the time of a lease as its script sets it.
#[test]
fn simulate_reports_the_length_of_the_lease() {
    let server = leased();
    let words = ["simulate", "crash-before-complete", "first-then-retry", "--schema", "leased"];
    let json = server.idemctl(&[&words[..], &["-o", "json"]].concat()).json();
    let text = json.to_string();
    assert!(text.contains("30000") && !text.contains("86400000"), "{text}");
    assert!(!text.contains("wrong-answer"), "{text}");
}

/// Rule: a released record is not called unreadable, and has its own explanation.
#[test]
fn a_released_record_is_explained_as_one() {
    let server = leased();
    server.set("leased:a", r#"{"status":"released"}"#, 86_000_000);
    let words = ["inspect", "a", "--schema", "leased", "--explain"];
    let explained = server.idemctl(&words).exits(0);
    explained.shows("after 1 failing handler").shows("a released record, 1d");
    assert!(!explained.all().contains("unreadable"), "{}", explained.all());
    server.set("leased:b", "no JSON", 86_000_000);
    let words = ["inspect", "b", "--schema", "leased", "--explain"];
    let explained = server.idemctl(&words);
    assert!(!explained.all().contains("failing handler, in"), "{}", explained.all());
}

/// Rule: `schema check` tries locks whose own expiry has passed, and requests with another payload.
#[test]
fn schema_check_tries_expired_leases_and_other_payloads() {
    let server = leased();
    server.idemctl(&["schema", "check", "leased"]).exits(0);
    let silent = SCHEMA.replace(", { record = \"reclaimable\" }]", "]");
    describe(&server, &silent);
    let checked = server.idemctl(&["schema", "check", "leased"]).exits(0);
    checked.shows("with a lock past its own expiry there the call replies 1 (stored)");
    let taken = SCHEMA.replace(
        "{ record = \"reclaimable\" }, { record = \"given-up\" }",
        "{ record = \"given-up\" }",
    );
    assert_ne!(taken, SCHEMA);
    describe(&server, &taken);
    let checked = server.idemctl(&["schema", "check", "leased"]).exits(1);
    checked.shows("with a lock past its own expiry there the call replies {\"acquired\"}");
    let blind = SCHEMA.replace("[{ record = \"running\", fingerprint = \"other\" }, ", "[");
    assert_ne!(blind, SCHEMA);
    describe(&server, &blind);
    let checked = server.idemctl(&["schema", "check", "leased"]).exits(1);
    checked.shows("with a lock there, for another payload, the call replies {\"mismatch\"}");
}
