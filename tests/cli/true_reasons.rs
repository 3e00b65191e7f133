//! What `begin` and `complete` promise of libraries that idemctl describes, and why they refuse.

use crate::support::cluster::Cluster;
use crate::support::{Run, Server};

fn step(server: &Server, words: &[&str], schema: &str) -> Run {
    server.idemctl(&[words, &["--schema", schema, "--yes"]].concat())
}

/// Rule: a lock that holds the request itself is not made up. Revert: without `lock_needs`, a replay
/// or a conflict is promised of a record that no request matches.
#[test]
fn a_lock_that_needs_the_request_is_not_created() {
    let server = Server::start();
    let schema = "express-idempotency";
    let why =
        "holds the request's URL, method, query, headers and body, which idemctl does not know";
    let response = ["--status", "200", "--body", "1", "--create"];
    for fingerprint in ["", "abc"] {
        let words = [&["complete", "k", "--fingerprint", fingerprint], &response[..]].concat();
        step(&server, &words, schema).exits(2).says(why).says("nothing was changed");
    }
    step(&server, &["begin", "k"], schema).exits(2).says(why);
    step(&server, &["begin", "k", "--fingerprint", "abc"], schema).exits(2).says(why);
    assert!(server.keys().is_empty());
    // The service's own lock is completed, and shown to a retry.
    let lock =
        r#"{"request":{"body":{"n":1},"headers":{},"method":"POST","query":{},"url":"/pay"}}"#;
    server.set("k", lock, 60_000);
    step(&server, &["begin", "k"], schema).exits(1).says("conflict; nothing was changed");
    let completed = step(&server, &["complete", "k", "--status", "200", "--body", "1"], schema);
    completed.exits(0).says("it may overwrite or remove this response");
}

const QUOTED: &str = r#"
format = 2
name = "quoted"
keys = { record = "quoted:{key}" }
ttl = { lock = "30s", result = "24h" }
protocol = "set-nx-get"

[write]
lock_value = '{"status":"running","by":"{owner}","hash":"{fingerprint}"}'
result_value = '{"status":"done","hash":{kept:/hash},"body":{body_json}}'
"#;

/// Rule: `begin` and `complete --create` write only an owner and a fingerprint that read back as they
/// were given. Revert: without `check_begun_lock` or `check_fingerprint`, the service reads another.
#[test]
fn what_does_not_read_back_as_it_was_given_is_not_written() {
    let server = Server::start();
    server.describe("quoted", &[("schema.toml", QUOTED)]);
    for given in [r#"{"n":5}"#, r#"a","x":"b"#, r"a\nb"] {
        step(&server, &["begin", "k", "--fingerprint", given], "quoted")
            .exits(2)
            .says("omit quotes and backslashes");
        step(&server, &["begin", "k", "--owner", given], "quoted")
            .exits(2)
            .says("omit quotes and backslashes");
        let words = ["complete", "k", "--body", "1", "--create", "--fingerprint", given];
        step(&server, &words, "quoted").exits(2).says("nothing was changed");
        assert!(server.keys().is_empty(), "{given}");
    }
    step(&server, &["begin", "k", "--owner", "w", "--fingerprint", "f"], "quoted").exits(0);
}

/// Rule: a fingerprint that no request has gets no replay. Revert: without its own format, the replay
/// is promised.
#[test]
fn an_empty_fingerprint_that_no_request_has_is_refused() {
    let server = Server::start();
    let create = ["complete", "POST:/pay:k", "--status", "200", "--body", "1", "--create"];
    let run = step(&server, &create, "node-idempotency").exits(2);
    run.says("needed as --fingerprint");
    assert!(!run.all().contains("an empty one"), "{}", run.all());
    let empty = [&create[..], &["--fingerprint", ""]].concat();
    step(&server, &empty, "node-idempotency")
        .exits(2)
        .says("no retry would get this response (IDEMPOTENCY_FINGERPRINT_MISSMATCH)")
        .says("stored with an empty fingerprint");
    assert!(server.keys().is_empty());
    let given = [&create[..], &["--fingerprint", "abc"]].concat();
    step(&server, &given, "node-idempotency").exits(0).says("the next request gets a replay");
}

/// Rule: a worker that renews its lock by writing it overwrites a response before its own result does.
/// Revert: without `is_overwritten_by_renewal`, nothing warns of it.
#[test]
fn a_renewal_that_writes_the_lock_is_warned_of() {
    let server = Server::start();
    let lock = r#"{"operation":"pay","idempotency_key":"k","result":null,"created_at":"2026-11-27T16:00:00+00:00","expires_at":"2099-11-27T16:00:30+00:00","status":"pending","fingerprint":null}"#;
    server.set("idempotency:pay:k", lock, 30_000);
    step(&server, &["complete", "pay:k", "--body", "1"], "idempotency-kit")
        .exits(0)
        .says("it may overwrite or remove this response");
    step(&server, &["begin", "k", "--owner", "w"], "reference").exits(0);
    let done = ["complete", "k", "--owner", "w", "--status", "200", "--body", "1"];
    step(&server, &done, "reference").exits(0).says("its result will be rejected");
}

/// Rule: a value of Powertools whose next request the schema cannot tell is unknown, and one that is
/// past its own time is taken over. Revert: with the formats of before, `inspect` says otherwise.
#[test]
fn powertools_is_predicted_as_far_as_it_is_known() {
    let server = Server::start();
    let next = |key: &str, value: &str, schema: &str, means: &str| {
        server.put(key, value);
        server.idemctl(&["inspect", key, "--schema", schema]).exits(0).shows(means);
    };
    let unknown = "unknown, because the schema does not say";
    let executes = "executes the operation, because the stored value has passed its own expiry";
    let past = r#"{"status": "INPROGRESS", "expiration": 1700000000}"#;
    let coming = r#"{"status": "INPROGRESS", "expiration": 4000000000}"#;
    let orphan = r#"{"status": "INPROGRESS", "expiration": 4000000000, "in_progress_expiration": 1700000000000}"#;
    for (schema, id) in [
        ("powertools-python", "9f812421cb7b6c40faaa1eb8b30ac48e"),
        ("powertools-typescript", "n4EkIct7bED6qh64swrEjg=="),
    ] {
        let key = &format!("pay#{id}");
        for foreign in [r#"{"a":1}"#, "[1]", "hello"] {
            next(key, foreign, schema, unknown);
        }
        next(key, orphan, schema, executes);
    }
    let key = "pay#9f812421cb7b6c40faaa1eb8b30ac48e";
    next(key, past, "powertools-python", executes);
    next(key, coming, "powertools-python", "conflict (IdempotencyAlreadyInProgressError)");
    server.put(key, past);
    let found = server.idemctl(&["inspect", key, "--schema", "powertools-python"]).exits(0);
    assert!(!found.all().contains("every retry is rejected"), "{}", found.all());
}

/// Rule: the steps of a record of one Redis key work on a cluster, whatever other keys its library writes.
#[test]
fn powertools_is_completed_on_a_cluster() {
    let cluster = Cluster::start(3);
    for number in 0..4 {
        let key = format!("pay{number}#9f812421cb7b6c40faaa1eb8b30ac48e");
        let lock = r#"{"status": "INPROGRESS", "expiration": 4000000000, "in_progress_expiration": 4000000000000}"#;
        cluster.set(&key, lock, 3_600_000);
        let complete = ["complete", &key, "--schema", "powertools-python", "--yes", "--body", "1"];
        cluster.idemctl(&complete).exits(0).says("gets a replay");
    }
}

const TASKS: &str = r#"
format = 2
name = "tasks"
keys = { lock = "tasks:{key}" }
ttl = { lock = "24h" }

[write]
lock_value = "{owner}"

[[begin.call]]
command = ["SET", "{lock}", "{owner}", "NX", "EX", "{lock_ttl}"]
replies = [{ word = "OK", means = "acquired", when = { lock = "absent" } }, { nil = true, means = "conflict", when = { lock = "present" } }]

[[release.call]]
command = ["DEL", "{lock}"]
replies = [{ integer = 1, means = "released", when = { lock = "present" } }, { integer = 0, means = "refused" }]
"#;

/// Rule: an owner is asked for only where it is checked. Revert: without the question for
/// `checks_owner`, `begin` tells to pass it.
#[test]
fn begin_asks_for_an_owner_only_where_it_is_checked() {
    let server = Server::start();
    server.describe("tasks", &[("schema.toml", TASKS)]);
    let run = step(&server, &["begin", "k", "--owner", "t-1"], "tasks").exits(0);
    run.says("rejected until it ends.").says("The lock belongs to t-1.");
    assert!(!run.all().contains("--owner t-1"), "{}", run.all());
    step(&server, &["release", "k"], "tasks").exits(0);
}

/// Rule: a TTL that the step sets is not taken for that of the lock, which is nearly as long. Revert:
/// with the distance of both as the measure, it says "for 23h 59m".
#[test]
fn a_result_has_the_ttl_that_the_step_sets() {
    let server = Server::start();
    server.describe("quoted", &[("schema.toml", QUOTED)]);
    let lock = r#"{"status":"running","by":"w","hash":"f"}"#;
    for left in [86_398_000, 20_000, 3_600_000] {
        server.set("quoted:k", lock, left);
        let words = ["complete", "k", "--body", "1", "--dry-run"];
        server.idemctl(&words).exits(0).says("at quoted:k for 1d, as quoted does");
    }
    let short = QUOTED.replace("24h", "60s");
    server.describe("quoted", &[("schema.toml", &short)]);
    server.set("quoted:k", lock, 20_000);
    server.idemctl(&["complete", "k", "--body", "1", "--dry-run"]).exits(0).says("for 1m, as");
}

/// Rule: a body that would break the result is refused for that. Revert: without the question whether
/// the result can be read, its fingerprint is said to be lost.
#[test]
fn a_result_that_cannot_be_read_is_not_said_to_lose_a_field() {
    let server = Server::start();
    let lock = r#"{"status":"IN_PROGRESS","fingerPrint":"f"}"#;
    server.set("node-idempotency:POST:/pay:k", lock, 60_000);
    for body in [r#""\ud800""#, r#"{"a":"\ud800"}"#] {
        let words = ["complete", "POST:/pay:k", "--status", "200", "--body", body];
        let run = step(&server, &words, "node-idempotency").exits(2);
        run.says("an escape sequence in it stands for no character");
        assert!(!run.all().contains("would lose"), "{}", run.all());
    }
}

const REFUSING: &str = r#"
format = 2
name = "refusing"
keys = { record = "refusing:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "done"
written = "result_value"
body_is = "json"

[write]
lock_value = '{"state":"RUNNING"}'
result_value = '{"state":"DONE","response":{response}}'
response = '{"body":{body_json}}'

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "in-progress", means = "conflict" },
  { value = "done", means = "replay" },
  { text = true, means = "fail", client = "503", when = { record = "unreadable" } },
  { nil = true, means = "next" },
]

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [{ word = "OK", means = "acquired", when = { record = "absent" } }]

[[complete.call]]
script = "save"
keys = ["{record}"]
args = ["{response}", "{result_ttl}"]
replies = [{ integer = 1, means = "stored", when = { record = "present" } }, { error = "*", means = "refused" }]
"#;

const SAVE: &str = "local response = cjson.decode(ARGV[1])\nredis.call('SET', KEYS[1], cjson.encode({state = 'DONE', response = response}), 'EX', ARGV[2])\nreturn 1\n";

/// Rule: if the service's own script stores nothing, that is the reason. Revert: without `refusal`,
/// every retry is said to fail.
#[test]
fn a_script_that_stores_nothing_is_the_reason() {
    let server = Server::start();
    server.describe("refusing", &[("schema.toml", REFUSING), ("save.lua", SAVE)]);
    server.set("refusing:k", r#"{"state":"RUNNING"}"#, 60_000);
    let words = ["complete", "k", "--body", r#"{"s":"\ud800"}"#];
    let run = step(&server, &words, "refusing").exits(2);
    run.says("refusing would not store this response").says("its complete step replied error");
    assert!(!run.all().contains("every retry"), "{}", run.all());
}

/// Rule: a body in hex is written as text that idemctl encodes, and the message says so.
#[test]
fn a_body_in_hex_is_written_as_its_text() {
    let server = Server::start();
    let toml = |body: &str| {
        format!(
            "format = 2\nname = \"hexed\"\nprotocol = \"set-nx-get\"\nkeys = {{ record = \"hexed:{{key}}\" }}\nttl = {{ lock = \"30s\", result = \"1h\" }}\n[[value]]\nname = \"done\"\nwritten = \"result_value\"\ndecode_at = {{ \"/b\" = [\"hex\"] }}\n[write]\nlock_value = '{{\"s\":\"P\"}}'\nresult_value = '{{\"s\":\"C\",\"b\":{body}}}'\n"
        )
    };
    server.describe("hexed", &[("schema.toml", &toml("\"{body_hex}\""))]);
    server
        .idemctl(&["schema", "check", "hexed"])
        .exits(1)
        .shows("{body_text} in the template, which idemctl then encodes");
    server.describe("hexed", &[("schema.toml", &toml("{body_text}"))]);
    server.idemctl(&["schema", "check", "hexed"]).exits(0);
    server.set("hexed:k", r#"{"s":"P"}"#, 30_000);
    step(&server, &["complete", "k", "--body", "ab"], "hexed").exits(0);
    assert_eq!(server.get("hexed:k").unwrap(), br#"{"s":"C","b":"6162"}"#);
}

const HASHED: &str = r#"
format = 2
name = "hashed"
keys = { record = "hashed:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "running"
type = "hash"
where = { "/st" = "P" }
required = ["/st"]
state = "in-progress"

[[value]]
name = "done"
type = "hash"
where = { "/st" = "D" }
required = ["/st", "/code"]
state = "completed"
fields = { status = "/code" }

[write]
lock_value = '{"st":"P"}'
result_value = '{"st":"D","code":"{status}"}'

[[complete.call]]
script = "save"
keys = ["{record}"]
args = ["{result_ttl}", "{result_value}", "{result_ttl}"]
replies = [{ integer = 1, means = "stored", when = {} }]
"#;

/// Rule: a hash stands for several words, so positions after it are not counted. Revert: without
/// `is_words_of_hash`, `schema check` says that the call sends 3.
#[test]
fn a_hash_in_argv_is_as_many_words_as_it_has() {
    let server = Server::start();
    let save = "redis.call('HSET', KEYS[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])\nredis.call('EXPIRE', KEYS[1], ARGV[6])\nreturn ARGV[1] and 1\n";
    server.describe("hashed", &[("schema.toml", HASHED), ("save.lua", save)]);
    let run = server.idemctl(&["schema", "check", "hashed"]).exits(0);
    assert!(!run.all().contains("ARGV"), "{}", run.all());
}

const LOCK_OUTSIDE: &str = r#"
format = 2
name = "outside"
keys = { record = "outside:{key}" }
ttl = { lock = "none", result = "24h" }

[[value]]
name = "done"
opaque = true
state = "completed"

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { nil = true, means = "next" },
  { text = true, means = "replay", when = { record = "done" } },
]

[[begin.call]]
command = ["SADD", "running", "{key}"]
replies = [
  { integer = 1, means = "acquired", when = { record = "absent" } },
  { integer = 0, means = "conflict" },
]
"#;

/// Rule: a begin whose reply contradicts the schema's prediction, or that takes a lock outside the
/// record, says that the next answer is unknown. Revert: without `why_disproved`, the next request is
/// said to execute right after it got a conflict.
#[test]
fn a_reply_that_contradicts_the_prediction_makes_the_next_answer_unknown() {
    let server = Server::start();
    server.describe("outside", &[("schema.toml", LOCK_OUTSIDE)]);
    let why = "the next request gets a reply that is unknown, because the begin step has just \
               replied otherwise than the schema predicts for this record";
    let begun = step(&server, &["begin", "k"], "outside");
    begun
        .says("acquired")
        .says("this step may also change running")
        .says("may have taken it in a Redis key outside the record");
    assert!(!begun.all().contains(why), "{}", begun.all());
    let refused = step(&server, &["begin", "k"], "outside").exits(1);
    refused.says("conflict; the record is unchanged").says(why);
    let json = step(&server, &["begin", "k", "-o", "json"], "outside").json();
    assert_eq!(json["now"]["next_request"]["answer"], "unknown", "{json}");
    // A result in the record decides before that lock.
    server.set("outside:k", "x", 60_000);
    step(&server, &["begin", "k"], "outside")
        .exits(1)
        .says("Read back: the next request gets a replay");
}

const TWO_READS: &str = r#"
format = 2
name = "reads"
keys = { lock = "lock:{key}", result = "reads:{key}" }
ttl = { lock = "5m", result = "24h" }

[[value]]
name = "held"
at = "lock"
opaque = true
state = "in-progress"

[[value]]
name = "done"
at = "result"
where = { "/state" = "done" }
state = "completed"
fields = { body = "/body" }

[[value]]
name = "failed"
at = "result"
where = { "/state" = "failed" }
state = "failed"

[[begin.call]]
command = ["GET", "{result}"]
replies = [
  { nil = true, means = "next" },
  { value = "done", means = "replay" },
]

[[begin.call]]
command = ["SET", "{lock}", "1", "NX", "PX", "300000"]
replies = [
  { word = "OK", means = "acquired", when = { lock = "absent" } },
  { nil = true, means = "conflict", when = { lock = "present" } },
]
"#;

/// Rule: if begin reads a value for which the schema lists no reply, nothing is predicted: neither by
/// the next call, to which the service may not come, nor a failure. Revert: without `may_lead_on`, the
/// second call predicts that the request executes, and the hash a failure for ever.
#[test]
fn a_value_that_no_listed_reply_is_for_predicts_nothing() {
    let server = Server::start();
    server.describe("reads", &[("schema.toml", TWO_READS)]);
    let unknown = "because the schema does not say what the begin step replies in this state";
    for text in [r#"{"a":1}"#, "zzz", r#"{"state":"failed"}"#] {
        server.set("reads:k", text, 60_000);
        server.idemctl(&["inspect", "k", "--schema", "reads"]).shows(unknown);
        let begun = step(&server, &["begin", "k"], "reads").exits(1);
        begun.says("not in the schema").says(unknown);
    }
    server.set("reads:k", r#"{"state":"done","body":1}"#, 60_000);
    server.idemctl(&["inspect", "k", "--schema", "reads"]).shows("replay");
    let _: i64 = server.send(&[b"DEL", b"reads:k"]);
    let _: i64 = server.send(&[b"HSET", b"reads:k", b"a", b"1"]);
    // Redis itself refuses to read another type.
    server.idemctl(&["inspect", "k", "--schema", "reads"]).shows("fails indefinitely");
}

/// A service that remembers its keys in a set, which nothing ever cleans.
const REMEMBERED: &str = r#"format = 2
name = "remembered"
keys = { result = "rem:{key}", ignore = ["rem-keys"] }
ttl = { result = "24h" }

[[value]]
name = "done"
encoding = "json"
at = "result"
where = { "/state" = "DONE" }
state = "completed"

[[begin.call]]
command = ["GET", "{result}"]
replies = [
  { nil = true, means = "next", when = { result = "absent" } },
  { value = "done", means = "replay" },
]

[[begin.call]]
command = ["SADD", "rem-keys", "{key}"]
replies = [
  { integer = 1, means = "acquired", when = { result = "absent" } },
  { integer = 0, means = "conflict", client = "409" },
]
"#;

/// Rule: no execution is promised for later if a Redis key outside the record may prevent it.
/// Revert: without `executes_later`.
#[test]
fn a_later_execution_may_depend_on_keys_outside_the_record() {
    let server = Server::holding(&[("rem:k", r#"{"state":"DONE"}"#, 80_000)]);
    server.describe("remembered", &[("schema.toml", REMEMBERED)]);
    let inspect = server.idemctl(&["inspect", "k", "--schema", "remembered"]);
    inspect.shows("until the result expires, then it may execute");
}
