//! Records that are hashes, which a service's own scripts write.

use std::fs;

use super::{frontier, only, ways};
use crate::simulate::variant::{home, run};
use crate::support::Server;

const SCHEMA: &str = r#"
format = 2
name = "mine"

[keys]
record = "dedupe:{key}"

[ttl]
lock = "5m"
result = "7d"

[[value]]
name = "running"
type = "hash"
where = { "/st" = "running" }
required = ["/own"]
state = "in-progress"
fields = { owner = "/own" }

[[value]]
name = "done"
type = "hash"
where = { "/st" = "done" }
required = ["/body"]
optional = ["/own"]
state = "completed"
fields = { body = "/body" }

[write]
response = "{body}"

[service]
on_failure = "release"

[[begin.call]]
script = "begin"
keys = ["{record}"]
args = ["{owner}", "{lock_ttl}"]
replies = [
  { word = "ACQUIRED", means = "acquired", when = { record = "absent" } },
  { word = "BUSY", means = "conflict", when = { record = "running" }, client = "requeued" },
  { array = "DONE", means = "replay", when = { record = "done" } },
  { error = "WRONGTYPE", means = "fail", when = { record = "wrong-type" }, client = "500" },
]

[complete]
checks_owner = false

[[complete.call]]
script = "complete"
keys = ["{record}"]
args = ["{response}", "{result_ttl}"]
replies = [{ word = "OK", means = "stored" }]

[release]
checks_owner = false

[[release.call]]
command = ["DEL", "{record}"]
replies = [{ integer = 1, means = "released" }, { integer = 0, means = "refused" }]
"#;

const BEGIN: &str = "
local record, owner, ttl = KEYS[1], ARGV[1], ARGV[2]
local status = redis.call('HGET', record, 'st')
if status == 'done' then
  return {'DONE', redis.call('HGET', record, 'body')}
end
if status then
  return 'BUSY'
end
redis.call('HSET', record, 'st', 'running', 'own', owner)
redis.call('EXPIRE', record, ttl)
return 'ACQUIRED'
";

const COMPLETE: &str = "
redis.call('HSET', KEYS[1], 'st', 'done', 'body', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 'OK'
";

/// A folder with the schema, whose complete is this script.
fn described(complete: &str) -> tempfile::TempDir {
    with_files([("schema.toml", SCHEMA), ("begin.lua", BEGIN), ("complete.lua", complete)])
}

fn with_files(files: [(&str, &str); 3]) -> tempfile::TempDir {
    let folder = home();
    let mine = folder.path().join("mine");
    fs::create_dir(&mine).unwrap();
    for (name, text) in files {
        fs::write(mine.join(name), text.trim_start()).unwrap();
    }
    folder
}

fn explored(complete: &str, faults: &str) -> super::Frontier {
    let folder = described(complete);
    let words =
        ["explore", "mine", "--schema-dir", ".", "--faults", faults, "--sandbox", "-o", "json"];
    frontier(&only(&run(folder.path(), &words)))
}

#[test]
fn the_steps_of_a_hash_are_explored_and_played_as_they_are() {
    let expected = ways(&[
        ("one-effect", &[("expiry=1", 5)]),
        ("result-kept", &[("expiry=1 fail=1", 7)]),
        ("result-not-replaced", &[("expiry=1", 7)]),
        ("owner-only", &[("expiry=1", 5)]),
    ]);
    assert_eq!(explored(COMPLETE, "expiry=2,late-fail=0,resend=0"), expected);
    assert_eq!(explored(COMPLETE, "expiry=0,late-fail=0,resend=0"), ways(&[]));
    // A result that keeps no TTL of its own ends with the lock's.
    let hasty = COMPLETE.replace("redis.call('EXPIRE', KEYS[1], ARGV[2])\n", "");
    let broken = explored(&hasty, "expiry=1,fail=0");
    assert_eq!(broken["one-effect"][0].0, "expiry=1");
    assert_eq!(broken["ttl-as-stated"], [(String::new(), 3)]);
}

/// Rule: a hash that stands in `[write]` is explored as the one that the script itself writes.
#[test]
fn a_hash_of_a_template_is_explored_as_well() {
    let folder = described(COMPLETE);
    let words = ["explore", "mine", "--schema-dir", ".", "--sandbox", "-o", "json"];
    let by_script = run(folder.path(), &words);
    let template = SCHEMA
        .replace("[\"{response}\", \"{result_ttl}\"]", "[\"{result_ttl}\", \"{result_value}\"]")
        .replace("[write]\n", "[write]\nresult_value = '{\"st\":\"done\",\"body\":{body_text}}'\n");
    fs::write(folder.path().join("mine/schema.toml"), template.trim_start()).unwrap();
    let complete = COMPLETE
        .replace("'st', 'done', 'body', ARGV[1]", "unpack(ARGV, 2)")
        .replace("ARGV[2])", "ARGV[1])");
    fs::write(folder.path().join("mine/complete.lua"), complete.trim_start()).unwrap();
    let by_template = run(folder.path(), &words);
    assert_eq!(frontier(&only(&by_template)), frontier(&only(&by_script)));
}

/// Rule: a replay is another response only if idemctl knows where in the reply the response is.
#[test]
fn a_response_that_is_not_found_is_no_untrue_one() {
    let faults = ["--faults", "expiry=0,late-fail=0,resend=0"];
    let words = ["explore", "mine", "--schema-dir", ".", "--sandbox", "-o", "json"];
    let explored = |schema: &str, begin: &str| {
        let files = [("schema.toml", schema), ("begin.lua", begin), ("complete.lua", COMPLETE)];
        let folder = with_files(files);
        frontier(&only(&run(folder.path(), &[&words[..], &faults].concat())))
    };
    // The status comes before the response.
    let read = "redis.call('HGET', record, 'body')}";
    let with_status = BEGIN.replace(read, &format!("'201', {read}"));
    assert_eq!(explored(SCHEMA, &with_status), ways(&[]));
    // No text is a response.
    let without = BEGIN.replace(read, "'201'}");
    assert_eq!(explored(SCHEMA, &without), ways(&[("true-replay", &[("", 4)])]));
    // A document of the script, of which the schema describes no response.
    let own_format = "[[value]]\nname = \"answer\"\nhas = [\"/found\"]\n\
        state = \"in-progress\"\n\n[write]";
    let schema = SCHEMA
        .replace("[write]", own_format)
        .replace("{ array = \"DONE\",", "{ value = \"answer\",");
    let encoded = BEGIN.replace(
        &format!("return {{'DONE', {read}"),
        "return cjson.encode({found = redis.call('HGET', record, 'body')})",
    );
    assert_eq!(explored(&schema, &encoded), ways(&[]));
}

#[test]
fn what_lacks_a_response_is_refused() {
    let folder = described(COMPLETE);
    let schema = folder.path().join("mine/schema.toml");
    let words = ["explore", "mine", "--schema-dir", ".", "--sandbox"];
    fs::write(
        &schema,
        SCHEMA.replace("\"{response}\"", "\"1\"").replace("response = \"{body}\"", "").trim_start(),
    )
    .unwrap();
    run(folder.path(), &words).exits(2).says("has no `response` (the reply of a replay)");
}

#[test]
fn a_hash_is_explained() {
    let folder = described(COMPLETE);
    let server = Server::start();
    server.send::<()>(&[b"HSET", b"dedupe:order-1", b"st", b"running", b"own", b"w-1"]);
    let dir = folder.path().display().to_string();
    let run = server
        .idemctl(&["inspect", "order-1", "--schema", "mine", "--schema-dir", &dir, "--explain"])
        .exits(0);
    run.shows("after 1 lost lock TTL, in 2 steps; the worker that took the lock is still running");
    run.shows("✗ the TTL of the lock is removed  lock of worker 1, never expires");
}
