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
    explored.shows("leased: no schema bug within the bounds");
    let text = explored.text();
    let table = text.split("environment").next().unwrap();
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

/// What `explore` shows of a schema in which scripts or descriptions were replaced.
fn explored(toml: &str, claim: &str, finish: &str) -> String {
    let server = Server::start();
    let files = [
        ("schema.toml", toml),
        ("claim.lua", claim),
        ("finish.lua", finish),
        ("give_up.lua", GIVE_UP),
    ];
    server.describe("leased", &files);
    server.idemctl(&["explore", "leased"]).text()
}

/// Rule: a lease has passed for every script, whether it compares with `<` or `<=`, so that requests
/// take it over. Revert: without `LATE_MS`, `lock-ends` is violated.
#[test]
fn a_lease_ends_also_if_its_last_moment_belongs_to_it() {
    let strict = CLAIM.replace("value.expires > now", "value.expires >= now");
    assert_ne!(strict, CLAIM);
    let text = explored(SCHEMA, &strict, FINISH);
    assert!(text.contains("no schema bug within the bounds"), "{text}");
    // A worker whose lease was taken over must not complete: that is seen, too.
    let blind = FINISH.replace(" or value.token ~= ARGV[1]", "");
    let unchecked = SCHEMA.replace("[complete]\nchecks_owner = true", "[complete]");
    let text = explored(&unchecked, &strict, &blind);
    assert!(text.contains("not fenced (`checks_owner` false): owner-only\n"), "{text}");
}

/// Rule: a result whose members a script writes in another order is the same result. Revert: without
/// `is_same_json`, `result-not-replaced` is violated by a call that is sent again.
#[test]
fn a_result_in_another_order_is_the_same_one() {
    let shuffled = "
local stored = redis.call('GET', KEYS[1])
if not stored then return 0 end
local value = cjson.decode(stored)
local is_mine = value.token == ARGV[1]
if not is_mine then return 0 end
local parts = {'\"status\":\"done\"', '\"body\":' .. ARGV[2], '\"fp\":\"' .. value.fp .. '\"'}
parts[4] = '\"token\":\"' .. ARGV[1] .. '\"'
if value.status == 'done' then parts[1], parts[4] = parts[4], parts[1] end
redis.call('SET', KEYS[1], '{' .. table.concat(parts, ',') .. '}', 'EX', 86400)
return 1
";
    let keeps = SCHEMA
        .replace("required = [\"/status\", \"/body\", \"/fp\"]", "required = [\"/status\", \"/body\", \"/fp\", \"/token\"]")
        .replace("\"fp\":\"{fingerprint}\"}'\n\n[service]", "\"fp\":\"{fingerprint}\",\"token\":\"{owner}\"}'\n\n[service]")
        .replace("{ record = \"running\" }, { record = \"reclaimable\" }] },\n  { integer = 0, means = \"refused\" },\n]\n\n[release]", "{ record = \"running\" }, { record = \"reclaimable\" }, { record = \"done\" }] },\n  { integer = 0, means = \"refused\" },\n]\n\n[release]");
    let text = explored(&keeps, CLAIM, shuffled);
    assert!(text.contains("no schema bug within the bounds"), "{text}");
    // A late worker that replaces the result by another one is still seen.
    let blind = shuffled.replace("value.token == ARGV[1]", "true");
    let unchecked = keeps.replace("[complete]\nchecks_owner = true", "[complete]");
    let text = explored(&unchecked, CLAIM, &blind);
    assert!(
        text.contains("not fenced (`checks_owner` false): result-not-replaced, owner-only\n"),
        "{text}"
    );
}

/// A script that returns the fields of a response one by one, also those of a failure.
const FIELDS: &str = r#"
local stored = redis.call('GET', KEYS[1])
if not stored then
  redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
  return {'new'}
end
local value = cjson.decode(stored)
if value.st == 'running' then return {'busy'} end
return {value.st, tostring(value.code or ''), cjson.encode(value.body or ''), value.error or ''}
"#;

const FIELD_BY_FIELD: &str = r#"format = 2
name = "fields"
keys = { record = "fields:{key}" }
ttl = { lock = "1m", result = "24h" }

[[value]]
name = "running"
where = { "/st" = "running" }
required = ["/by"]
state = "in-progress"
fields = { owner = "/by" }

[[value]]
name = "done"
where = { "/st" = "done" }
required = ["/code", "/body"]
state = "completed"
fields = { status = "/code", body = "/body" }
body_encoding = "json"

[[value]]
name = "failed"
where = { "/st" = "failed" }
required = ["/error"]
state = "failed"
fields = { error = "/error" }

[write]
lock_value = '{"st":"running","by":"{owner}"}'
result_value = '{"st":"done","code":{status},"body":{body_json}}'
failed_value = '{"st":"failed","error":{error_text}}'
response = '{"code":"{status}","body":{body_json}}'

[service]
on_failure = "store"

[[begin.call]]
script = "claim"
keys = ["{record}"]
args = ["{lock_value}", "{lock_ttl}"]
replies = [
  { array = "new", means = "acquired", when = { record = "absent" } },
  { array = "busy", means = "conflict", when = { record = "running" } },
  { array = "done", means = "replay", when = { record = "done" } },
  { array = "failed", means = "replay", when = { record = "failed" } },
]

[complete]
checks_owner = true

[[complete.call]]
script = "finish"
keys = ["{record}"]
args = ["{owner}", "{result_value}", "{result_ttl}"]
replies = [
  { integer = 1, means = "stored", when = { record = "running" } },
  { integer = 0, means = "refused" },
]
"#;

const STORE: &str = r#"
local stored = redis.call('GET', KEYS[1])
local value = stored and cjson.decode(stored)
if not value or value.st ~= 'running' or value.by ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
"#;

/// Rule: a response that a script returns field by field is not compared with a whole one, and the
/// replay of a stored failure is none of a success. Revert: without `members`, `true-replay` is
/// violated; without `has_failure`, `no-false-done`.
#[test]
fn a_response_in_several_fields_is_not_accused() {
    let server = Server::start();
    let files = [("schema.toml", FIELD_BY_FIELD), ("claim.lua", FIELDS), ("finish.lua", STORE)];
    server.describe("fields", &files);
    let text = server.idemctl(&["explore", "fields"]).text();
    assert!(text.contains("no schema bug within the bounds"), "{text}");
    // What was not compared does not hold.
    let not_found = "not fully checked (no response in the replies): true-replay";
    assert!(text.contains(not_found), "{text}");
    assert!(!text.contains("no-false-done, true-replay"), "{text}");
    // A script that says `done` of a lock is accused.
    let hasty = FIELDS.replace("return {'busy'}", "return {'done', '201', '{}', ''}");
    let files = [("schema.toml", FIELD_BY_FIELD), ("claim.lua", &hasty[..]), ("finish.lua", STORE)];
    server.describe("fields", &files);
    let text = server.idemctl(&["explore", "fields"]).text();
    assert!(
        text.contains(
            "
  no-false-done "
        ),
        "{text}"
    );
}

/// Rule: race and simulate compare the response in a replayed record, not the record's other fields,
/// which the script writes itself. Revert: without `response_of_value`, both find wrong responses.
#[test]
fn a_record_that_a_script_writes_itself_is_compared_by_its_response() {
    let server = Server::start();
    let toml = FIELD_BY_FIELD
        .replace("response = '{\"code\":\"{status}\",\"body\":{body_json}}'\n", "")
        .replace("{ array = \"done\", means", "{ array = \"done\", value = \"done\", means")
        .replace("{ array = \"failed\", means", "{ array = \"failed\", value = \"failed\", means")
        .replace("required = [\"/code\", \"/body\"]", "required = [\"/code\", \"/body\", \"/at\"]")
        .replace("{body_json}}'", "{body_json},\"at\":0}'")
        .replace("\"{result_value}\"", "\"{status}\", \"{body_json}\"")
        .replace("on_failure = \"store\"", "on_failure = \"keep\"");
    let whole = FIELDS.replace(
        "return {value.st, tostring(value.code or ''), cjson.encode(value.body or ''), value.error or ''}",
        "return {value.st, stored}",
    );
    let dated = STORE.replace(
        "redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])",
        "local result = {st = 'done', code = tonumber(ARGV[2]), body = cjson.decode(ARGV[3])}\n\
        result.at = redis.call('TIME')[2]\n\
        redis.call('SET', KEYS[1], cjson.encode(result), 'EX', ARGV[4])",
    );
    assert_ne!(dated, STORE);
    let files = [("schema.toml", &toml[..]), ("claim.lua", &whole[..]), ("finish.lua", &dated[..])];
    server.describe("fields", &files);
    server.idemctl(&["race", "--concurrency", "8", "--schema", "fields"]).exits(0);
    let simulate = ["simulate", "first-then-retry", "--schema", "fields"];
    server.idemctl(&simulate).exits(0).shows("safe");
    // A replay of another response is found.
    let other = whole.replace(
        "{value.st, stored}",
        "{value.st, (stored:gsub('payment of 10', 'payment of 9'))}",
    );
    assert_ne!(other, whole);
    let files = [("schema.toml", &toml[..]), ("claim.lua", &other[..]), ("finish.lua", &dated[..])];
    server.describe("fields", &files);
    server.idemctl(&simulate).shows("wrong-answer");
}
