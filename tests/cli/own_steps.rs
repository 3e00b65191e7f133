//! Steps by hand under a schema of one's own: plain commands, several calls a step, an owner that nobody checks.

use std::path::Path;

use crate::support::fault::Hook;
use crate::support::{Server, proxy};

/// As services did before they had scripts: result and lock one after the other, the owner kept and not compared.
const TOML: &str = r#"
format = 2
name = "payments"
summary = "Payments, two commands a step"

[keys]
lock = "pay:lock:{key}"
result = "pay:done:{key}"

[ttl]
lock = "30s"
result = "1h"

[[value]]
name = "held"
at = "lock"
opaque = true
state = "in-progress"
fields = { owner = "" }

[[value]]
name = "stored"
at = "result"
encoding = "json"
has = ["/code"]
state = "completed"
fields = { status = "/code", body = "/body", owner = "/by" }

[write]
lock_value = "{owner}"
result_value = '{"code":{status},"body":{body_text},"by":"{owner}"}'

[[begin.call]]
command = ["GET", "{result}"]
replies = [
  { nil = true, means = "next" },
  { text = true, means = "replay", when = { result = "stored" } },
  { error = "*", means = "fail", when = { result = "present" } },
]

[[begin.call]]
command = ["SET", "{lock}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { lock = "absent" } },
  { nil = true, means = "conflict", when = { lock = "present" } },
]

[complete]
checks_owner = false

[[complete.call]]
command = ["SET", "{result}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "next" }]

[[complete.call]]
command = ["DEL", "{lock}"]
replies = [{ integer = 1, means = "stored", when = {} }, { integer = 0, means = "stored" }]

[release]
checks_owner = false

[[release.call]]
command = ["DEL", "{lock}"]
replies = [{ integer = 1, means = "released", when = { lock = "present" } }, { integer = 0, means = "refused" }]
"#;

const COMPLETE: [&str; 9] =
    ["complete", "k", "--schema", "payments", "--yes", "--status", "201", "--body", "paid"];

fn with_schema() -> Server {
    let server = Server::start();
    let folder = server.describe("payments", &[("schema.toml", TOML)]);
    server.idemctl(&["schema", "check", folder.to_str().unwrap()]).exits(0);
    server
}

fn text(server: &Server, redis_key: &str) -> String {
    String::from_utf8(server.get(redis_key).unwrap_or_default()).unwrap()
}

#[test]
fn every_call_of_a_step_is_made() {
    let server = with_schema();
    server.idemctl(&["begin", "k", "--schema", "payments", "--yes", "--owner", "w-7"]).exits(0);
    server.idemctl(&["begin", "k", "--schema", "payments", "--yes"]).exits(1);
    let run = server.idemctl(&COMPLETE).exits(0);
    assert_eq!(
        text(&server, "pay:done:k"),
        r#"{"code":201,"body":"paid","by":"w-7"}"#,
        "the lock's owner is kept"
    );
    assert_eq!(server.get("pay:lock:k"), None);
    run.says("payments answers 1: stored");
    server.idemctl(&["begin", "k", "--schema", "payments", "--yes"]).exits(1);
}

#[test]
fn an_owner_that_nobody_checks_has_to_be_the_locks_all_the_same() {
    let server = with_schema();
    server.set("pay:lock:k", "w-7", 20_000);
    for words in [&COMPLETE[..], &["release", "k", "--schema", "payments", "--yes"]] {
        let run = server.idemctl(&[words, &["--owner", "w-8"]].concat()).exits(1);
        run.says("the lock belongs to w-7, not to w-8; nothing was done");
    }
    assert_eq!(text(&server, "pay:lock:k"), "w-7");
    server.idemctl(&[&COMPLETE[..], &["--owner", "w-7"]].concat()).exits(0);
}

#[test]
fn what_comes_between_two_calls_is_told_as_a_part() {
    let server = with_schema();
    server.set("pay:lock:k", "w-7", 20_000);
    let socket = proxy::sends_at(&server, "\nDEL\r", &["SET", "pay:lock:k", "w-8"]);
    server.through(&socket, &COMPLETE).exits(3).says("1 of the step's 2 calls were made");
    assert_eq!(text(&server, "pay:lock:k"), "w-8", "the new worker's lock stays");
    let audit = server.audited();
    assert_eq!(audit[0]["what"], "partial");
    assert!(Path::new(audit[0]["backup"].as_str().unwrap()).exists());
}

#[test]
fn a_result_that_comes_between_two_calls_that_only_read_is_a_change() {
    let server = with_schema();
    let socket = proxy::sends_at(&server, "\nNX\r", &["SET", "pay:done:k", r#"{"code":1}"#]);
    server.through(&socket, &["begin", "k", "--schema", "payments", "--yes"]).exits(8);
    assert_eq!(server.get("pay:lock:k"), None, "no lock beside the result");
}

#[test]
fn a_reply_that_the_schema_does_not_list_is_no_success() {
    let server = with_schema();
    let other =
        TOML.replace("{ integer = 1, means = \"released\"", "{ integer = 9, means = \"released\"");
    server.describe("payments", &[("schema.toml", &other)]);
    server.set("pay:lock:k", "w-7", 20_000);
    let run =
        server.idemctl(&["release", "k", "--schema", "payments", "--yes", "-o", "json"]).exits(1);
    assert_eq!(run.json()["outcome"], "unknown-reply");
    run.says("not in the schema; it still changed the record");
    assert_eq!(server.audited()[0]["what"], "changed");
}

/// The complete step looks for a lock before it stores.
fn looks_first() -> String {
    TOML.replace(
        "[[complete.call]]\ncommand = [\"SET\"",
        "[[complete.call]]\ncommand = [\"GET\", \"{lock}\"]\nreplies = [\n  { nil = true, means = \"refused\", when = { lock = \"absent\" } },\n  { text = true, means = \"next\" },\n]\n\n[[complete.call]]\ncommand = [\"SET\"",
    )
}

#[test]
fn a_lock_taken_for_a_step_of_several_calls_goes_with_its_end() {
    let server = with_schema();
    server.describe("payments", &[("schema.toml", &looks_first())]);
    server.idemctl(&COMPLETE).exits(1);
    let run = server.idemctl(&[&COMPLETE[..], &["--create", "--owner", "w-7"]].concat()).exits(0);
    assert_eq!(
        text(&server, "pay:done:k"),
        r#"{"code":201,"body":"paid","by":"w-7"}"#,
        "{}",
        run.all()
    );
    assert_eq!(server.get("pay:lock:k"), None);
    // Its last call refuses: what was there before is there again.
    let refuses = looks_first().replace(
        "{ integer = 1, means = \"stored\", when = {} }",
        "{ integer = 1, means = \"refused\" }",
    );
    let refuses = refuses.replace(
        "{ integer = 0, means = \"stored\" }",
        "{ integer = 0, means = \"stored\", when = {} }",
    );
    server.describe("payments", &[("schema.toml", &refuses)]);
    let run = server.idemctl(&[&COMPLETE[..], &["--replace", "--owner", "w-8"]].concat()).exits(1);
    assert_eq!(
        text(&server, "pay:done:k"),
        r#"{"code":201,"body":"paid","by":"w-7"}"#,
        "{}",
        run.all()
    );
    assert_eq!(server.get("pay:lock:k"), None);
}

/// Rule: a step that ends early leaves no lock of its own, and if one is left, the message says so.
#[test]
fn a_lock_taken_for_a_step_goes_also_when_a_later_call_is_not_made() {
    let create = [&COMPLETE[..], &["--create", "--owner", "w-7"]].concat();
    let server = with_schema();
    server.describe("payments", &[("schema.toml", &looks_first())]);
    let socket = proxy::hooked_socket(&server, |sent| {
        if proxy::says(sent, "\"code\":201") {
            Hook::Answer(b"-NOPERM no permissions to run the 'set' command\r\n".to_vec())
        } else {
            Hook::Pass
        }
    });
    let run = server.through(&socket, &create).exits(4);
    run.says("denied permission");
    assert_eq!((server.get("pay:lock:k"), server.get("pay:done:k")), (None, None), "{}", run.all());

    let server = with_schema();
    server.describe("payments", &[("schema.toml", &looks_first())]);
    let socket = proxy::sends_at(&server, "\"code\":201", &["SET", "pay:done:k", "{\"code\":1}"]);
    let run = server.through(&socket, &create).exits(3);
    run.says("the record changed during the step")
        .says("the lock that was taken for the step remains");
    run.says("1 of the step's 3 calls were made");
    assert!(!run.stderr.contains("nothing was done"), "{}", run.all());
    assert_eq!(text(&server, "pay:lock:k"), "w-7");
}

/// A script that gets the parts of the response, and builds the result itself.
const IN_PARTS: &str = r#"
format = 2
name = "parts"
summary = "One hash per payment, which the scripts write"

[keys]
record = "pay:idem:{key}"

[ttl]
lock = "30s"
result = "24h"

[[value]]
name = "done"
type = "hash"
where = { "/st" = "D" }
required = ["/st", "/by", "/code", "/resp"]
state = "completed"
fields = { body = "/resp", owner = "/by", status = "/code" }
body_encoding = "text"

[[value]]
name = "pending"
type = "hash"
where = { "/st" = "P" }
required = ["/st", "/by"]
state = "in-progress"
fields = { owner = "/by" }

[write]
lock_value = '{"st":"P","by":"{owner}"}'
response = "{body}"
result_value = '{"st":"D","by":"{owner}","code":"{status}","resp":{body_text}}'

[[begin.call]]
script = "begin"
keys = ["{record}"]
args = ["{owner}", "{lock_ttl}"]
replies = [
  { word = "GO", means = "acquired", when = [{ record = "absent" }, { record = "unreadable" }] },
  { word = "BUSY", means = "conflict", when = { record = "pending" } },
  { error = "WRONGTYPE", means = "fail", when = { record = "wrong-type" } },
  { text = true, means = "replay", when = { record = "done" } },
]

[complete]
checks_owner = true

[[complete.call]]
script = "complete"
keys = ["{record}"]
args = ["{owner}", "{status}", "{body}", "{result_ttl}"]
replies = [
  { integer = 1, means = "stored", when = [{ record = "pending" }, { record = "done" }] },
  { integer = 0, means = "refused", when = {} },
]
"#;

const BEGIN_IN_PARTS: &str = r"local st = redis.call('HGET', KEYS[1], 'st')
if st == 'D' then return redis.call('HGET', KEYS[1], 'resp') end
if st == 'P' then return 'BUSY' end
redis.call('HSET', KEYS[1], 'st', 'P', 'by', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 'GO'
";

const COMPLETE_IN_PARTS: &str = r"if redis.call('HGET', KEYS[1], 'by') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'st', 'D', 'code', ARGV[2], 'resp', ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1
";

#[test]
fn a_script_that_builds_the_result_itself_gets_the_parts_of_the_response() {
    let server = Server::start();
    let files = [
        ("schema.toml", IN_PARTS),
        ("begin.lua", BEGIN_IN_PARTS),
        ("complete.lua", COMPLETE_IN_PARTS),
    ];
    server.describe("parts", &files);
    server.idemctl(&["schema", "check", "parts"]).exits(0).shows("parts: ok");
    server.idemctl(&["begin", "k", "--schema", "parts", "--owner", "w", "--yes"]).exits(0);
    let complete = [
        "complete", "k", "--schema", "parts", "--owner", "w", "--status", "201", "--yes", "--body",
    ];
    let run = server.idemctl(&[&complete[..], &[r#"{"paid":10}"#]].concat()).exits(0);
    run.says("replay");
    let stored: Vec<String> = server.send(&[b"HMGET", b"pay:idem:k", b"st", b"code", b"resp"]);
    assert_eq!(stored, ["D", "201", r#"{"paid":10}"#]);
    let next = server.idemctl(&["begin", "k", "--schema", "parts", "--yes", "-o", "json"]).exits(1);
    assert_eq!(next.json()["outcome"], "replay");
}
