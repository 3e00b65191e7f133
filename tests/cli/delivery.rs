//! `idemctl complete` promises what clients get: the response is compared with what the service's own steps hand out.

use crate::support::Server;
use crate::support::encoding_service::{ANEW, STORE};

/// A service whose script stores the response anew, as many do that are written with cjson.
fn describe_cjson_service(server: &Server) {
    describe_cjson_service_with(server, ", when = {}");
}

/// The same, with this condition of its reply.
fn describe_cjson_service_with(server: &Server, condition: &str) {
    let toml = &ANEW.replace(", when = {}", condition);
    server.describe("anew", &[("schema.toml", toml), ("store.lua", STORE)]);
}

/// Rule: what clients get is asked of the service's own steps, on a temporary local Redis. If it is another response, nothing
/// is stored. Revert: without `check_delivery` the first body is stored as `{"items":{}}`.
#[test]
fn a_response_that_the_services_steps_change_is_refused() {
    let server = Server::start();
    describe_cjson_service(&server);
    let lock = r#"{"s":"P"}"#;
    let words = ["complete", "k", "--schema", "anew", "--yes", "--status", "201", "--body"];
    for (body, difference) in [
        (r#"{"items":[]}"#, r#"its body would be `{\"items\":{}}`, not `{\"items\":[]}`"#),
        (r#"{"big":12345678901234567890}"#, "1.2345678901235e+19"),
        ("\"hello\"", "its body would be `hello`"),
    ] {
        server.set("anew:k", lock, 20_000);
        let run = server.idemctl(&[&words[..], &[body]].concat()).exits(2);
        run.says("clients would get another response from anew").says(difference);
        assert_eq!(server.get("anew:k").unwrap(), lock.as_bytes(), "{body}");
    }
    let twice = ["--header", "x-a: 1", "--header", "X-A: 2"];
    let run = server.idemctl(&[&words[..], &["{}"], &twice[..]].concat()).exits(2);
    run.says("stores one text for each header, and X-A is given twice");
    for body in ["{ \"b\": [1, 2.50], \"a\": \"caf\u{e9}\" }", "a text", "true"] {
        server.set("anew:k", lock, 20_000);
        let header = ["--header", "X-Request: 7"];
        server.idemctl(&[&words[..], &[body], &header[..]].concat()).exits(0);
        let shown = server.idemctl(&["inspect", "k", "--schema", "anew", "-o", "json"]).exits(0);
        assert_eq!(shown.json()["records"][0]["state"], "completed", "{body}");
    }
}

/// Rule: a reply without a condition may be the service's, so the response is tried all the same, and
/// nothing says that the service will refuse it.
#[test]
fn a_reply_without_a_condition_is_tried_on_the_temporary_redis() {
    let server = Server::start();
    describe_cjson_service_with(&server, "");
    let words = ["complete", "k", "--schema", "anew", "--yes", "--status", "201", "--body"];
    server.set("anew:k", r#"{"s":"P"}"#, 20_000);
    let run = server.idemctl(&[&words[..], &[r#"{"items":[]}"#]].concat()).exits(2);
    run.says("clients would get another response from anew");
    let run = server.idemctl(&[&words[..], &[r#"{"id":1}"#]].concat()).exits(0);
    assert!(!run.all().contains("reject"), "{}", run.all());
    server.set("anew:k2", r#"{"s":"P"}"#, 20_000);
    let unlock = server.idemctl(&["force-unlock", "k2", "--schema", "anew", "--yes"]).exits(0);
    unlock.says("The worker may still store its result");
}

/// Rule: a body that the library reads as JSON has to be JSON, and a JSON string keeps its quotes in both directions.
#[test]
fn a_text_for_a_library_that_reads_json_is_refused_and_a_json_string_comes_back_as_it_was() {
    let server = Server::start();
    for (schema, redis_key, lock) in [
        (
            "powertools-python",
            "app.pay#9f812421cb7b6c40faaa1eb8b30ac48e",
            r#"{"status": "INPROGRESS", "expiration": 4000000000, "in_progress_expiration": 4000000000000}"#,
        ),
        (
            "powertools-typescript",
            "pay#n4EkIct7bED6qh64swrEjg==",
            r#"{"status":"INPROGRESS","expiration":4000000000,"in_progress_expiration":4000000000000}"#,
        ),
    ] {
        server.set(redis_key, lock, 20_000);
        let words = ["complete", redis_key, "--schema", schema, "--yes", "--body"];
        let run = server.idemctl(&[&words[..], &["hello world"]].concat()).exits(2);
        run.says("every body of").says("is JSON").says("needs its quotes");
        assert_eq!(server.get(redis_key).unwrap(), lock.as_bytes(), "{schema}");
        server.idemctl(&[&words[..], &["\"hello world\""]].concat()).exits(0);
        let body =
            server.idemctl(&["inspect", redis_key, "--schema", schema, "--body", "-"]).exits(0);
        assert_eq!(body.text(), "\"hello world\"", "{schema}");
        server.set(redis_key, lock, 20_000);
        server.idemctl(&[&words[..], &[""]].concat()).exits(2).says("--body null");
        server.idemctl(&[&words[..], &["null"]].concat()).exits(0);
        let body = ["inspect", redis_key, "--schema", schema, "--body", "-"];
        assert_eq!(server.idemctl(&body).exits(0).text(), "null", "{schema}");
    }
}

/// A service whose stored failures have a format and a TTL of their own.
const WITH_FAILURES: &str = r#"
format = 2
name = "payidem"
summary = "successes for a day, failures for five minutes"

[keys]
record = "payidem:{key}"

[ttl]
lock = "30s"
result = "24h"

[[value]]
name = "running"
where = { "/s" = "P" }
required = ["/s", "/w"]
state = "in-progress"
fields = { owner = "/w" }

[[value]]
name = "done"
where = { "/s" = "D" }
required = ["/s", "/code", "/headers", "/body"]
null = ["/body"]
state = "completed"
fields = { status = "/code", headers = "/headers", body = "/body" }
body_encoding = "json"
body_is = "json"

[[value]]
name = "failed"
where = { "/s" = "F" }
required = ["/s", "/reason"]
state = "completed"
fields = { error = "/reason" }

[write]
lock_value = '{"s":"P","w":"{owner}"}'
result_value = '{"s":"D","code":{status},"headers":{headers},"body":{body_json}}'
failed_value = '{"s":"F","reason":{error_text}}'
headers_as = "one"

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "GET", "EX", "{lock_ttl}"]
replies = [
  { nil = true, means = "acquired", when = { record = "absent" } },
  { value = "running", means = "conflict" },
  { value = "done", means = "replay" },
  { value = "failed", means = "replay" },
]

[complete]
checks_owner = false

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

/// Rule: a failure needs only the parts that its format has.
#[test]
fn a_failure_is_stored_with_the_parts_that_it_has() {
    let server = Server::start();
    server.describe("payidem", &[("schema.toml", WITH_FAILURES)]);
    let complete = ["complete", "k", "--schema", "payidem", "--yes"];
    for (options, told) in [
        (&["--error", "card declined"][..], "the error card declined"),
        (&["--status", "201", "--body", "{}"], "status 201 and a body"),
    ] {
        server.set("payidem:k", r#"{"s":"P","w":"w-1"}"#, 20_000);
        let run = server.idemctl(&[&complete[..], options].concat()).exits(0);
        run.says(told).says("for 1d");
        let left: i64 = server.send(&[b"PTTL", b"payidem:k"]);
        assert!((86_000_000..=86_400_000).contains(&left), "{options:?}: {left}");
    }
    let lost = ["--error", "card declined", "--status", "402"];
    server
        .idemctl(&[&complete[..], &lost, &["--replace"]].concat())
        .exits(2)
        .says("status would be lost");
}

/// A service whose complete step stores a success, whatever it is told.
const SUCCESS_ONLY: &str = r#"
format = 2
name = "ever"
keys = { record = "ever:{key}" }
ttl = { lock = "30s", result = "24h" }
[[value]]
name = "running"
type = "hash"
where = { "/st" = "RUN" }
state = "in-progress"
[[value]]
name = "done"
type = "hash"
where = { "/st" = "DONE" }
state = "completed"
[[value]]
name = "failed"
type = "hash"
where = { "/st" = "FAILED" }
state = "failed"
[write]
lock_value = '{"st":"RUN"}'
result_value = '{"st":"DONE"}'
failed_value = '{"st":"FAILED"}'
[[begin.call]]
command = ["HGET", "{record}", "st"]
replies = [
  { word = "DONE", means = "replay", when = { record = "done" } },
  { word = "RUN", means = "conflict", when = { record = "running" } },
  { word = "FAILED", means = "acquired", when = { record = "failed" } },
  { nil = true, means = "acquired", when = { record = "absent" } },
]
[[complete.call]]
command = ["HSET", "{record}", "st", "DONE"]
replies = [{ integer = 0, means = "stored", when = { record = "present" } }, { integer = 1, means = "stored" }]
"#;

/// Rule: an error that the service would store as a success is refused. Revert: without `other_outcome` it is stored.
#[test]
fn an_error_that_would_be_stored_as_a_success_is_refused() {
    let server = Server::start();
    server.describe("ever", &[("schema.toml", SUCCESS_ONLY)]);
    let state = || server.send::<String>(&[b"HGET", b"ever:k", b"st"]);
    let _: i64 = server.send(&[b"HSET", b"ever:k", b"st", b"RUN"]);
    let complete = ["complete", "k", "--schema", "ever", "--yes"];
    let failing = [&complete[..], &["--error", "boom"]].concat();
    let run = server.idemctl(&failing).exits(2);
    run.says(
        "did not store the error as its schema says: it is stored as completed, not as failed",
    );
    assert_eq!(state(), "RUN");
    // Without a begin step there is no rehearsal, so only the read-back shows it.
    let (head, rest) = SUCCESS_ONLY.split_once("[[begin.call]]").unwrap();
    let (_, complete_call) = rest.split_once("[[complete.call]]").unwrap();
    let without_begin = format!("{head}[[complete.call]]{complete_call}");
    server.describe("ever", &[("schema.toml", &without_begin)]);
    server.idemctl(&failing).exits(1).says("it is stored as completed, not as failed");
    let _: i64 = server.send(&[b"HSET", b"ever:k", b"st", b"RUN"]);
    server.idemctl(&complete).exits(0);
}

/// A service whose begin step asks by TYPE whether there is a result, which may be any bytes.
const OPAQUE: &str = r#"
format = 2
name = "opq"
summary = "a result of any bytes"

[keys]
lock = "opq:lock:{key}"
result = "opq:result:{key}"

[ttl]
lock = "30s"
result = "24h"

[[value]]
name = "locked"
at = "lock"
equals = "1"
state = "in-progress"

[[value]]
name = "done"
at = "result"
encoding = "text"
opaque = true
state = "completed"
fields = { body = "" }

[write]
lock_value = "1"
result_value = "{body}"

[[begin.call]]
command = ["TYPE", "{result}"]
replies = [
  { word = "string", means = "replay", when = { result = "done" } },
  { word = "none", means = "next" },
]

[[begin.call]]
command = ["SET", "{lock}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { lock = "absent" } },
  { nil = true, means = "conflict", when = { lock = "locked" } },
]

[complete]
checks_owner = false

[[complete.call]]
command = ["SET", "{result}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

/// Rule: a word by which the begin step says that there is a result is not the response.
#[test]
fn a_word_of_the_begin_step_is_not_taken_for_the_response() {
    let server = Server::start();
    server.describe("opq", &[("schema.toml", OPAQUE)]);
    let complete = ["complete", "k", "--create", "--schema", "opq", "--body", "hello", "--yes"];
    server.idemctl(&complete).exits(0);
    assert_eq!(server.get("opq:result:k").unwrap(), b"hello");
}

/// A hash whose complete step writes some fields: the others, with the owner among them, stay.
const OWNED_HASH: &str = r#"
format = 2
name = "owned"
keys = { record = "owned:{key}" }
ttl = { lock = "30s", result = "1h" }

[[value]]
name = "taken"
type = "hash"
where = { "/st" = "P" }
required = ["/own"]
state = "in-progress"
fields = { owner = "/own" }

[[value]]
name = "done"
type = "hash"
where = { "/st" = "D" }
required = ["/own", "/code", "/resp"]
state = "completed"
fields = { owner = "/own", status = "/code", body = "/resp" }

[write]
lock_value = '{"st":"P","own":"{owner}"}'
result_value = '{"st":"D","code":{status},"resp":{body_text}}'

[[begin.call]]
script = "begin"
keys = ["{record}"]
args = ["{owner}", "{lock_ttl}"]
replies = [
  { word = "GO", means = "acquired", when = { record = "absent" } },
  { word = "WAIT", means = "conflict", when = { record = "taken" } },
  { text = true, means = "replay", when = { record = "done" } },
]

[complete]
checks_owner = true

[[complete.call]]
script = "done"
keys = ["{record}"]
args = ["{owner}", "{result_ttl}", "{result_value}"]
replies = [
  { integer = 1, means = "stored", when = { record = "taken" } },
  { integer = 0, means = "refused", when = [{ record = "absent" }, { record = "done" }] },
  { error = "*", means = "refused", when = { record = "present" } },
]
"#;

const OWNED_BEGIN: &str = "local record = KEYS[1]
local owner = ARGV[1]
local ttl = ARGV[2]
local st = redis.call('HGET', record, 'st')
if st == 'D' then
  return redis.call('HGET', record, 'resp')
end
if st then
  return 'WAIT'
end
redis.call('HSET', record, 'st', 'P', 'own', owner)
redis.call('EXPIRE', record, ttl)
return 'GO'
";

const OWNED_DONE: &str = "local record = KEYS[1]
local owner = ARGV[1]
local ttl = ARGV[2]
local found = redis.call('HMGET', record, 'own', 'st')
if found[1] ~= owner or found[2] ~= 'P' then
  return 0
end
redis.call('HSET', record, unpack(ARGV, 3))
redis.call('EXPIRE', record, ttl)
return 1
";

/// Rule: a field of the lock that the result does not name stays in a hash, so a format may require it. Revert: with the
/// result alone in `unread_result`, both are refused because `/own` is missing.
#[test]
fn a_field_of_the_lock_that_stays_in_a_hash_counts_as_part_of_the_result() {
    let server = Server::start();
    let toml = OWNED_HASH;
    let files = [("schema.toml", toml), ("begin.lua", OWNED_BEGIN), ("done.lua", OWNED_DONE)];
    server.describe("owned", &files);
    server.idemctl(&["schema", "check", "owned"]).exits(0).shows("owned: ok");
    server.send::<()>(&[&b"HSET"[..], b"owned:a", b"st", b"P", b"own", b"w-1"]);
    server.send::<()>(&[&b"EXPIRE"[..], b"owned:a", b"20"]);
    let answer = ["--status", "201", "--body", "paid", "--yes", "--schema", "owned"];
    server.idemctl(&[&["complete", "a", "--owner", "w-1"][..], &answer[..]].concat()).exits(0);
    let created = ["complete", "b", "--create", "--owner", "w-2"];
    server.idemctl(&[&created[..], &answer[..]].concat()).exits(0);
    for (key, owner) in [("a", "w-1"), ("b", "w-2")] {
        let shown = server.idemctl(&["inspect", key, "--schema", "owned", "-o", "json"]).exits(0);
        let record = &shown.json()["records"][0];
        assert_eq!(record["state"], "completed", "{record}");
        assert_eq!(record["owner"], owner, "{record}");
    }
}

/// Rule: `schema check` fails if `complete` can never work, because the operator would learn it during an incident. Revert:
/// without `try_complete` each of these schemas is ok.
#[test]
fn a_schema_with_which_complete_can_never_work_is_wrong() {
    let server = Server::start();
    let fresh =
        OWNED_DONE.replace("redis.call('HSET'", "redis.call('DEL', record)\nredis.call('HSET'");
    let other = OWNED_DONE.replace("unpack(ARGV, 3)", "'st', 'D', 'code', '201', 'resp', 'ok'");
    let failed = OWNED_DONE.replace("found[2] ~= 'P'", "found[2] ~= 'Q'");
    for (done, toml, why) in [
        (&fresh, OWNED_HASH.to_owned(), "what the step stores is not read as a result"),
        (
            &other,
            OWNED_HASH.to_owned(),
            "clients would get another response: its body would be `ok`",
        ),
        (
            &failed,
            OWNED_HASH
                .replace(
                    r#"means = "stored", when = { record = "taken" }"#,
                    r#"means = "stored", when = { record = "unreadable" }"#,
                )
                .replace(
                    r#"when = [{ record = "absent" }, { record = "done" }]"#,
                    r#"when = [{ record = "absent" }, { record = "taken" }, { record = "done" }]"#,
                ),
            "the step does not store the result of a lock's own holder",
        ),
    ] {
        let files =
            [("schema.toml", &toml[..]), ("begin.lua", OWNED_BEGIN), ("done.lua", &done[..])];
        server.describe("owned", &files);
        let run = server.idemctl(&["schema", "check", "owned"]);
        run.exits(1).shows("`complete` can never store a response: ").shows(why);
    }
}

/// A script that is sent the response, and puts it into a record that a replay brings back as a whole, as mobius does.
const PARTS: &str = r#"
format = 2
name = "parts"
keys = { record = "parts:{key}" }
ttl = { lock = "30s", result = "1h" }

[[value]]
name = "held"
where = { "/s" = "P" }
required = ["/s", "/by"]
state = "in-progress"
fields = { owner = "/by" }

[[value]]
name = "done"
where = { "/s" = "D" }
required = ["/s", "/by", "/answer"]
state = "completed"
fields = { owner = "/by", status = "/answer/code", body = "/answer/body" }
body_encoding = "json"

[write]
lock_value = '{"s":"P","by":"{owner}"}'
result_value = '{"s":"D","by":"{owner}","answer":{response}}'
response = '{"code":{status},"body":{body_json}}'

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { record = "absent" } },
  { nil = true, means = "next" },
]

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "held", means = "conflict" },
  { value = "done", means = "replay" },
  { nil = true, means = "conflict" },
]

[complete]
checks_owner = true

[[complete.call]]
script = "done"
keys = ["{record}"]
args = ["{owner}", "{response}", "{result_ttl}"]
replies = [
  { integer = 1, means = "stored", when = { record = "held" } },
  { integer = 0, means = "refused", when = [{ record = "absent" }, { record = "done" }] },
  { error = "*", means = "refused", when = { record = "present" } },
]
"#;

const PARTS_DONE: &str = r#"local record = KEYS[1]
local owner = ARGV[1]
local answer = ARGV[2]
local ttl = ARGV[3]
if redis.call('GET', record) ~= '{"s":"P","by":"' .. owner .. '"}' then
  return 0
end
redis.call('SET', record, '{"s":"D","by":"' .. owner .. '","answer":' .. answer .. '}', 'EX', ttl)
return 1
"#;

/// Rule: the response of a replay is compared with that of the handler, whether the replay brings the response alone or
/// the whole record. Revert: without `carried_response`, each replay seems to be a response that no handler gave.
#[test]
fn a_replay_that_brings_the_whole_record_has_the_response_of_its_handler() {
    let server = Server::start();
    server.describe("parts", &[("schema.toml", PARTS), ("done.lua", PARTS_DONE)]);
    server.idemctl(&["schema", "check", "parts"]).exits(0).shows("parts: ok");
    // The lock of a worker that takes longer than its TTL ends; nothing else is wrong.
    let explored = server.idemctl(&["explore", "--schema", "parts", "--strict"]).exits(0);
    explored
        .shows("no schema bug within the bounds\n  environment, as with every lock: one-effect\n");
    let rounds = ["--concurrency", "8", "--rounds", "5", "--strategy", "schema"];
    let race = [&["race", "--schema", "parts", "-o", "json"][..], &rounds[..]].concat();
    let raced = server.idemctl(&race).exits(0);
    assert_eq!(raced.json()["runs"][0]["verdict"], "atomic");
    server.idemctl(&["simulate", "--schema", "parts", "first-then-retry"]).exits(0).shows("safe");
}

/// Rule: a body that the library's language reads as another value is refused, and the lock stays. `make libraries` asks the
/// libraries for fifty bodies. Revert: without `numbers` and `empty_as_null` in the schema, they are stored.
#[test]
fn a_body_that_the_library_reads_as_another_value_is_refused() {
    let server = Server::start();
    let python = "app.pay#9f812421cb7b6c40faaa1eb8b30ac48e";
    let node = "node-idempotency:POST:/payments:k";
    let powertools = r#"{"status": "INPROGRESS", "expiration": 4000000000, "in_progress_expiration": 4000000000000}"#;
    for (schema, redis_key, lock, body, why) in [
        ("powertools-python", python, powertools, "{}", "would get null instead of this body"),
        (
            "powertools-python",
            python,
            powertools,
            "[0.1234567890123456789]",
            "would read 0.12345678901234568",
        ),
        (
            "node-idempotency",
            node,
            r#"{"status":"IN_PROGRESS"}"#,
            "[9007199254740993]",
            "would read 9007199254740992",
        ),
    ] {
        server.set(redis_key, lock, 20_000);
        let mut words = vec!["complete", redis_key, "--schema", schema, "--yes", "--body", body];
        if schema == "node-idempotency" {
            words.extend(["--status", "201"]);
        }
        server.idemctl(&words).exits(2).says(why);
        assert_eq!(server.get(redis_key).unwrap(), lock.as_bytes(), "{schema}");
    }
    // A text keeps its digits.
    let text = ["--header", "Content-Type: text/plain", "--body", "12345678901234567890"];
    let words = ["complete", node, "--schema", "node-idempotency", "--yes", "--status", "201"];
    server.idemctl(&[&words[..], &text[..]].concat()).exits(0);
    let words = [
        "complete",
        python,
        "--schema",
        "powertools-python",
        "--yes",
        "--body",
        "[12345678901234567890]",
    ];
    server.idemctl(&words).exits(0);
}

/// Rule: a replay that is the stored response, byte for byte, is right even if the schema names no field for a part of it.
#[test]
fn a_replay_of_the_response_is_right_whatever_fields_the_schema_names() {
    let server = Server::start();
    let toml = PARTS
        .replace(r#"response = '{"code":{status},"body":{body_json}}'"#, r#"response = '{"code":{status},"headers":{headers},"body":{body_json},"error":{error_text}}'"#)
        .replace("name = \"parts\"", "name = \"wider\"")
        .replace("parts:{key}", "wider:{key}");
    server.describe("wider", &[("schema.toml", &toml), ("done.lua", PARTS_DONE)]);
    let explored = server.idemctl(&["explore", "--schema", "wider", "--strict"]).exits(0);
    explored
        .shows("no schema bug within the bounds\n  environment, as with every lock: one-effect\n");
    server.idemctl(&["simulate", "--schema", "wider", "first-then-retry"]).exits(0).shows("safe");
}

/// Rule: `complete` refuses a result that the service's script makes unreadable. Revert: without the trial's value in
/// `check_delivery`, idemctl stores a record that it then takes for a record of another program.
#[test]
fn a_result_that_the_script_makes_unreadable_is_refused() {
    let server = Server::start();
    let fresh =
        OWNED_DONE.replace("redis.call('HSET'", "redis.call('DEL', record)\nredis.call('HSET'");
    let files = [("schema.toml", OWNED_HASH), ("begin.lua", OWNED_BEGIN), ("done.lua", &fresh[..])];
    server.describe("owned", &files);
    server.send::<()>(&[&b"HSET"[..], b"owned:a", b"st", b"P", b"own", b"w-1"]);
    let answer = ["--status", "201", "--body", "paid", "--yes", "--schema", "owned"];
    let run = server.idemctl(&[&["complete", "a", "--owner", "w-1"][..], &answer[..]].concat());
    run.exits(2).says("would store no result that can be read back");
    assert_eq!(server.send::<String>(&[&b"HGET"[..], b"owned:a", b"st"]), "P");
}

/// Rule: a response that makes every retry fail is refused, and so is a body that HTTP does not allow.
#[test]
fn a_response_that_no_retry_would_get_is_refused() {
    let server = Server::start();
    let lock = r#"{"key":"a","fingerprint":"f","status":"processing","createdAt":1767225600000}"#;
    server.set("POST:/pay:a", lock, 80_000_000);
    let hono = |words: &[&str]| {
        let complete = ["complete", "POST:/pay:a", "--schema", "hono-idempotency", "--yes"];
        server.idemctl(&[&complete[..], words].concat())
    };
    for status in ["204", "205"] {
        let refused = hono(&["--status", status, "--body", ""]).exits(2);
        refused.says(format!(
            "every retry would fail with this response (500 Invalid response status code {status})"
        ));
    }
    hono(&["--status", "200", "--body", "x", "--header", "x-a: 1", "--header", "X-A: 2"])
        .exits(2)
        .says("stores one text for each header");
    hono(&["--status", "204", "--body", "x"])
        .exits(2)
        .says("a response with status 204 has no body");
    hono(&["--status", "100", "--body", "x"]).exits(2);
    hono(&["--status", "200", "--body", "x", "--header", "Content-Length: 5"])
        .exits(2)
        .says("Content-Length may not be the length of the body that clients get");
    assert_eq!(server.get("POST:/pay:a").unwrap(), lock.as_bytes());
    hono(&["--status", "201", "--body", "x"]).exits(0);
}
