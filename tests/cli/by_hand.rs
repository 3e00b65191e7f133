//! What begin, complete and release have in common: bad input, dry runs, contexts, owners that are asked for, output.

use std::fs;

use crate::support::terminal::{answered, ends, on_terminal, press};
use crate::support::{PENDING, Server};

/// A lock of a fenced service, and one of a service that keeps no owner.
fn seeded() -> Server {
    Server::holding(&[("idem:started:k", "worker-7", 20_000), ("idempotency:k", PENDING, 20_000)])
}

fn complete<'a>(schema: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["complete", "k", "--schema", schema, "--status", "201", "--body", "paid"], more].concat()
}

#[test]
fn bad_input_is_a_usage_error_that_says_what_is_wrong() {
    let server = seeded();
    let go = ["complete", "k", "--yes", "--schema", "go-middleware"];
    let driven = ["complete", "k", "--yes", "--schema", "event-driven", "--owner", "worker-7"];
    let response = ["--status", "201", "--body", "x"];
    for (words, told) in [
        (vec!["begin"], "KEY"),
        (vec!["begin", "", "--schema", "express", "--yes"], "the key is empty"),
        (vec!["begin", "k", "--yes"], "which schema?"),
        (vec!["begin", "k", "--yes", "--schema", "express,go-chi"], "exactly one schema"),
        (vec!["begin", "k", "--yes", "--schema", "nope"], "no schema `nope`"),
        (vec!["begin", "k", "--yes", "--schema", "express", "--owner", "w"], "stores no owner"),
        (
            vec!["begin", "k", "--yes", "--schema", "express", "--fingerprint", "f"],
            "stores no fingerprint",
        ),
        (
            vec!["begin", "k", "--yes", "--schema", "event-driven", "--owner", ""],
            "an owner is not empty",
        ),
        (
            vec!["begin", "k", "--yes", "--schema", "event-driven", "--owner", "a\nb"],
            "control characters",
        ),
        (
            vec!["begin", "k", "--yes", "--schema", "express", "--lock-ttl", "0s"],
            "longer than zero",
        ),
        ([&go[..], &["--status", "99", "--body", "x"]].concat(), "99"),
        ([&go[..], &["--status", "two", "--body", "x"]].concat(), "two"),
        ([&go[..], &["--body", "x"]].concat(), "status is missing"),
        ([&go[..], &["--status", "201"]].concat(), "body is missing"),
        (
            [&go[..], &["--status", "404", "--body", "x"]].concat(),
            "stores only the statuses 100 to 399",
        ),
        (
            [&go[..], &response, &["--header", "no colon"]].concat(),
            "Content-Type: application/json",
        ),
        ([&go[..], &response, &["--header", "a b: c"]].concat(), "is not a header name"),
        ([&go[..], &response, &["--header", "a: b\r\nc: d"]].concat(), "control characters"),
        ([&go[..], &response, &["--error", "x"]].concat(), "error would be lost"),
        ([&go[..], &response, &["--owner", "w"]].concat(), "stores no owner"),
        ([&go[..], &response, &["--fingerprint", "f"]].concat(), "stores no fingerprint"),
        ([&go[..], &["--status", "201", "--body", "@/nowhere"]].concat(), "cannot read /nowhere"),
        (
            [&driven[..], &response, &["--header", "a: b"]].concat(),
            "event-driven keeps status, body and error",
        ),
        (
            vec!["complete", "k", "--yes", "--schema", "go-middleware-v1", "--status", "200"],
            "only that the operation is done",
        ),
        (vec!["release", "k", "--yes", "--schema", "event-driven"], "no release step"),
    ] {
        let run = server.idemctl(&words).exits(2);
        assert!(
            run.stderr.contains(told) && run.stderr.contains("error: "),
            "{words:?}: {}",
            run.all()
        );
    }
    assert_eq!(server.get("idempotency:k").unwrap(), PENDING.as_bytes());
    assert_eq!(server.size(), 2);
}

#[test]
fn a_body_of_bytes_is_refused_where_only_text_is_kept() {
    let server = seeded();
    let words = [
        "complete",
        "k",
        "--yes",
        "--schema",
        "event-driven",
        "--owner",
        "worker-7",
        "--status",
        "200",
        "--body",
        "-",
    ];
    server.idemctl_fed(&words, b"\xff\xfe").exits(2).says("not UTF-8");
    server.idemctl_fed(&words, b"paid").exits(0);
}

#[test]
fn a_strangers_value_is_never_overwritten() {
    let server = Server::start();
    server.send::<()>(&[b"HSET", b"k", b"f", b"v"]);
    for leave in ["--create", "--replace"] {
        server
            .idemctl(&complete("go-chi", &["--yes", leave]))
            .exits(2)
            .says("find that program first");
    }
    // What cannot be read under a template without a prefix is nobody's record, and still not nothing.
    server.set("k", "session", 20_000);
    server.idemctl(&complete("go-chi", &["--yes"])).exits(2);
    server.idemctl(&complete("go-chi", &["--yes", "--create"])).exits(2);
    assert_eq!(server.get("k").unwrap(), b"session");
    server.idemctl(&complete("go-chi", &["--yes", "--replace"])).exits(0);
}

#[test]
fn a_dry_run_changes_nothing_and_asks_nobody() {
    let server = seeded();
    for (words, predicted) in [
        (complete("go-middleware", &["--dry-run"]), "stored"),
        (complete("event-driven", &["--dry-run"]), "stored"),
        (complete("event-driven", &["--dry-run", "--owner", "worker-8"]), "refused"),
        (complete("go-chi", &["--dry-run", "--create"]), "stored"),
        (vec!["begin", "k", "--schema", "go-middleware", "--dry-run"], "conflict"),
        (vec!["begin", "new", "--schema", "reference", "--dry-run"], "acquired"),
    ] {
        let run = server.idemctl(&words).exits(0);
        assert!(
            run.stderr.contains(&format!("the expected reply is {predicted}")),
            "{words:?}: {}",
            run.all()
        );
        let run = server.idemctl(&[&words[..], &["-o", "jsonl"]].concat()).exits(0);
        let line = run.json_lines().remove(0);
        assert_eq!(
            (&line["outcome"], &line["step"]["foretold"]),
            (&"dry-run".into(), &predicted.into()),
            "{words:?}"
        );
    }
    assert_eq!(server.size(), 2);
    assert!(!server.folder().join(".local/state/idemctl").exists());
}

#[test]
fn the_only_schema_of_a_context_is_the_one() {
    let words = ["complete", "k", "--status", "201", "--body", "", "--yes"];
    seeded().in_context("pay", "schema = [\"go-middleware\"]", &words).exits(0);
}

#[test]
fn the_backup_is_made_before_or_nothing_is_done() {
    let server = seeded();
    for words in [
        complete("go-middleware", &["--yes"]),
        vec!["begin", "k", "--schema", "go-middleware", "--yes"],
    ] {
        server
            .idemctl(&[&words[..], &["--backup", "/dev/full/backup"]].concat())
            .exits(2)
            .says("nothing was changed");
    }
    assert_eq!(server.get("idempotency:k").unwrap(), PENDING.as_bytes());
    let run = server.idemctl(&complete("go-middleware", &["--yes", "--no-backup"])).exits(0);
    assert!(
        run.stderr.contains("warning: no backup") && !run.stderr.contains("backup: /"),
        "{}",
        run.all()
    );
}

#[test]
fn the_log_says_who_and_why() {
    let server = seeded();
    server.idemctl(&complete("go-middleware", &["--yes", "--reason", "INC-7"])).exits(0);
    let line = server.idemctl(&["log", "--records", "-o", "jsonl"]).exits(0).json_lines().remove(0);
    let told = ["command", "what", "schema", "key", "redis_key", "reason", "who"]
        .map(|field| line[field].as_str().unwrap());
    assert_eq!(
        told,
        ["complete", "completed", "go-middleware", "k", "idempotency:k", "INC-7", "tester"]
    );
    assert!(line["backup"].as_str().is_some_and(|file| fs::metadata(file).is_ok()));
}

#[test]
fn explains_what_is_stored_and_what_comes_of_it() {
    let server = Server::holding(&[("idem:started:pay-1", "worker-7", 7_230_000)]);
    let words =
        ["complete", "pay-1", "--schema", "event-driven", "--lock-ttl", "4h", "--status", "201"];
    let more = ["--body", "paid", "--owner", "worker-7"];
    insta::assert_snapshot!(server.idemctl(&[&words[..], &more].concat()).exits(2).stable(&server));
}

#[test]
fn json_says_what_was_there_what_was_answered_and_what_is_there_now() {
    let server = seeded();
    let run = server
        .idemctl(&complete("event-driven", &["--yes", "--owner", "worker-7", "-o", "json"]))
        .exits(0);
    let mut json = run.json();
    assert!(json["backup"].is_string());
    json["backup"] = "FILE".into();
    for record in ["/records/0", "/now"] {
        let record = json.pointer_mut(record).unwrap();
        for volatile in [
            "lock_ttl_ms",
            "result_ttl_ms",
            "age_ms",
            "created_at",
            "expires_at",
            "memory_bytes",
            "idle_seconds",
        ] {
            record[volatile] = "…".into();
        }
        record["next_request"]["until_ms"] = "…".into();
        record["identity"] = "…".into();
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap());
}

#[test]
fn the_owner_is_asked_for_on_a_terminal() {
    for (typed, code, told) in [
        ("worker-7\r", 0, "answers 1: stored"),
        ("\r", 2, "no owner was given"),
        ("\x03", 130, "nothing was changed"),
    ] {
        let server = seeded();
        let mut session = on_terminal(server.command(), &complete("event-driven", &[]));
        press(&mut session, "to continue (worker-7):", typed);
        if code < 2 {
            press(&mut session, "[y/N]", "y\r");
        }
        ends(session).exits(code).shows(told);
        assert_eq!(server.get("idem:started:k").is_some(), code != 0);
    }
    // Another owner would be refused by the service.
    let server = seeded();
    let mut session = on_terminal(server.command(), &complete("event-driven", &[]));
    press(&mut session, "to continue (worker-7):", "worker-8\r");
    press(&mut session, "which is not the lock's owner", "worker-7\r");
    press(&mut session, "[y/N]", "y\r");
    ends(session).exits(0).shows("answers 1: stored");
    let server = seeded();
    let run = server.idemctl(&complete("event-driven", &["--owner", "worker-8", "--yes"])).exits(1);
    run.says("answers 0: refused; nothing was changed");
}

#[test]
fn a_record_that_changes_while_the_operator_thinks_is_left_alone() {
    for words in [
        complete("go-middleware", &[]),
        vec!["begin", "k", "--schema", "go-middleware"],
        complete("event-driven", &["--owner", "worker-7"]),
    ] {
        let server = seeded();
        let mut session = on_terminal(server.command(), &words);
        session.exp_string("[y/N]").unwrap();
        // Another worker takes the same lock anew: the same bytes, and more time.
        server.set("idempotency:k", PENDING, 300_000);
        server.set("idem:started:k", "worker-7", 30_000);
        session.send("y\r").unwrap();
        session.flush().unwrap();
        ends(session).exits(8).shows("changed since it was shown");
        assert_eq!(server.get("idempotency:k").unwrap(), PENDING.as_bytes());
        assert_eq!(server.size(), 2);
    }
}

#[test]
fn no_is_no() {
    let server = seeded();
    for words in [complete("go-middleware", &[]), vec!["begin", "new", "--schema", "express"]] {
        answered(on_terminal(server.command(), &words), "[y/N]", "n\r").exits(2);
    }
    assert_eq!(server.size(), 2);
}

/// Rule: a replay of a result without a fingerprint is promised only to requests without one, if
/// the service may compare them. Revert: with `then` in place of `then_of_result`, to every request.
#[test]
fn complete_says_for_whom_the_result_without_a_fingerprint_is() {
    let server = Server::start();
    let key = "pay.charge#b0c5b121e7cb24f7ce362a75c65bdbe7";
    let complete = ["complete", key, "--create", "--body", r#"{"a":1}"#, "--yes"];
    let condition = "this is for a request without a fingerprint, and others may be rejected";
    let run = server.idemctl(&[&complete[..], &["--schema", "powertools-python"]].concat());
    let run = run.exits(0);
    assert_eq!(run.all().matches(condition).count(), 2, "{}", run.all());
    let complete = ["complete", "k", "--create", "--status", "200", "--body", "{}", "--yes"];
    let run = server.idemctl(&[&complete[..], &["--schema", "express"]].concat()).exits(0);
    assert!(!run.all().contains(condition), "{}", run.all());
}

#[test]
fn a_refused_completion_names_the_option_to_try() {
    let server = Server::holding(&[("idem:k", "x", 60_000)]);
    let complete = |key, schema, more: &[&str]| {
        let words = ["complete", key, "--schema", schema, "--status", "201", "--body", "{}"];
        server.idemctl(&[&words[..], more].concat())
    };
    complete("n", "express", &[]).exits(1).says("if the lock has expired, try --create");
    complete("k", "express", &[]).exits(2).says("to replace it with this response, try --replace");
    complete("k", "express", &["--replace", "--yes"]).exits(0);
    let run = complete("POST:/pay:n", "node-idempotency", &["--create"]).exits(2);
    run.says("pass the fingerprint that the service computes");
    complete("POST:/pay:n", "node-idempotency", &["--create", "--fingerprint", ""]).exits(2);
}

/// A text with one field for each part of the response, stored by scripts that compare the owner.
const CLOSED: &str = r#"format = 2
name = "closed"
keys = { record = "closed:{key}" }
ttl = { lock = "30s", result = "24h" }
[[value]]
name = "done"
where = { "/v" = 1 }
required = ["/status", "/fp"]
optional = ["/body"]
state = "completed"
body_encoding = "json"
fields = { status = "/status", body = "/body", fingerprint = "/fp" }
[[value]]
name = "held"
opaque = true
state = "in-progress"
fields = { owner = "" }
[write]
lock_value = "{owner}"
result_value = '{"v":1,"status":{status},"body":{body_json},"fp":"{fingerprint}"}'
[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { record = "absent" } },
  { nil = true, means = "next" },
]
[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "done", means = "mismatch", when = { record = "done", fingerprint = "other" } },
  { value = "done", means = "replay" },
  { value = "held", means = "conflict" },
]
[complete]
checks_owner = true
[[complete.call]]
script = "complete"
keys = ["{record}"]
args = ["{owner}", "{result_value}", "{result_ttl}"]
replies = [
  { integer = 1, means = "stored", when = { record = "held" } },
  { integer = 0, means = "refused" },
]
[release]
checks_owner = true
[[release.call]]
script = "release"
keys = ["{record}"]
args = ["{owner}"]
replies = [
  { integer = 1, means = "released", when = { record = "held" } },
  { integer = 0, means = "refused" },
]
"#;

const COMPLETE_CLOSED: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
";

const RELEASE_CLOSED: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
";

fn with_closed() -> Server {
    let server = Server::start();
    let files = [
        ("schema.toml", CLOSED),
        ("complete.lua", COMPLETE_CLOSED),
        ("release.lua", RELEASE_CLOSED),
    ];
    server.describe("closed", &files);
    server
}

/// Rule: a result that would lose a field of the stored one is refused.
#[test]
fn a_replacement_that_loses_a_field_is_refused() {
    let server = with_closed();
    let replace = || {
        let words = ["complete", "k", "--schema", "closed", "--status", "201", "--body", "{}"];
        server.idemctl(&[&words[..], &["--replace", "--yes"]].concat())
    };
    let stored = r#"{"v":1,"status":200,"body":{},"fp":"F"}"#;
    server.set("closed:k", stored, 60_000);
    replace().exits(0).says("gets a replay");
    server.set("closed:k", stored.replace("\"v\":1", "\"v\":1,\"w\":2"), 60_000);
    replace().exits(2).says("the result that closed writes would lose the stored /w");
}

/// Rule: who names the schema can remove a value that cannot be replaced, and then store the response.
#[test]
fn a_value_that_cannot_be_replaced_is_removed_by_who_knows_whose_it_is() {
    let server = Server::holding(&[("POST:/pay:k", "garbage", 60_000), ("x", "", 60_000)]);
    let complete = |key, schema, more: &[&str]| {
        let words = ["complete", key, "--schema", schema, "--status", "201", "--body", "{}"];
        server.idemctl(&[&words[..], more].concat())
    };
    let replace = ["--replace", "--fingerprint", "F", "--dry-run"];
    complete("POST:/pay:k", "hono-idempotency", &replace).exits(2);
    let unlock = ["force-unlock", "POST:/pay:k", "--schema", "hono-idempotency", "--yes"];
    server.idemctl(&unlock).exits(0);
    let create = ["--create", "--fingerprint", "F", "--yes"];
    complete("POST:/pay:k", "hono-idempotency", &create).exits(0);
    complete("x", "express-idempotency", &["--replace", "--fingerprint", "F"])
        .exits(2)
        .says("cannot store this response");
}

/// Rule: no `--owner` is asked for that idemctl refuses. Revert: without `check_owner_has_name`.
#[test]
fn a_lock_of_an_empty_owner_is_removed() {
    let server = with_closed();
    server.set("closed:k", "", 20_000);
    let empty = "lets only the lock's owner do this, and the owner in this lock is empty";
    let complete = ["complete", "k", "--schema", "closed", "--status", "200", "--body", "1"];
    for words in [&complete[..], &["release", "k", "--schema", "closed"]] {
        let run = server.idemctl(words).exits(2);
        run.says(empty).says("use `idemctl").says("force-unlock");
    }
    server.idemctl(&["force-unlock", "k", "--schema", "closed", "--yes"]).exits(0);
}

/// Rule: what lets the next request execute depends on the record. Revert: if `freeing_hint` always
/// names release.
#[test]
fn a_status_that_is_never_stored_names_the_command_for_this_record() {
    let server = Server::start();
    let complete = || {
        let words = ["complete", "POST:/pay:k", "--schema", "hono-idempotency", "--replace"];
        server.idemctl(&[&words[..], &["--status", "404", "--body", "no"]].concat()).exits(2)
    };
    let lock = r#"{"key":"k","fingerprint":"f","status":"processing","createdAt":1795823000000}"#;
    let result = r#"{"key":"k","fingerprint":"f","status":"completed","createdAt":1795823000000,
        "response":{"status":201,"headers":{},"body":"x"}}"#;
    assert!(!complete().all().contains("hint:"));
    server.set("POST:/pay:k", lock, 60_000);
    complete().says("to let the next request execute instead, run `idemctl").says("release");
    server.set("POST:/pay:k", result, 60_000);
    complete().says("to remove a result, use `idemctl").says("purge");
}

/// A hash, to which the complete script adds its fields, so that one of a newer release stays.
const ADDED: &str = r#"format = 2
name = "added"
keys = { record = "added:{key}" }
ttl = { lock = "30s", result = "24h" }
[[value]]
name = "held"
type = "hash"
where = { "/status" = "HELD" }
required = ["/token"]
state = "in-progress"
fields = { owner = "/token" }
[[value]]
name = "done"
type = "hash"
where = { "/status" = "DONE" }
required = ["/token", "/code"]
state = "completed"
fields = { owner = "/token", status = "/code" }
[write]
lock_value = '{"token":"{owner}","status":"HELD"}'
result_value = '{"token":"{owner}","status":"DONE","code":"{status}"}'
[[begin.call]]
command = ["HGETALL", "{record}"]
replies = [
  { nil = true, means = "acquired", when = { record = "absent" } },
  { value = "held", means = "conflict" },
  { value = "done", means = "replay" },
]
[complete]
checks_owner = true
[[complete.call]]
script = "complete"
keys = ["{record}"]
args = ["{owner}", "{result_ttl}", "{result_value}"]
replies = [
  { word = "ok", means = "stored", when = [{ record = "held" }, { record = "done" }] },
  { word = "stale", means = "refused" },
]
"#;

const COMPLETE_ADDED: &str =
    "if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 'stale' end
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 'ok'
";

/// Rule: the service's own scripts decide whether a replacement is stored, before it is sent.
#[test]
fn a_replacement_is_tried_with_the_scripts_of_the_service() {
    let server = Server::start();
    server.describe("added", &[("schema.toml", ADDED), ("complete.lua", COMPLETE_ADDED)]);
    let replace = || {
        let words = ["complete", "k", "--schema", "added", "--status", "201"];
        server.idemctl(&[&words[..], &["--replace", "--yes"]].concat())
    };
    let fields: [&[u8]; 6] = [b"token", b"w-1", b"status", b"DONE", b"code", b"200"];
    server.send::<i64>(&[&[b"HSET", &b"added:k"[..]], &fields[..]].concat());
    replace().exits(0);
    server.send::<i64>(&[b"HSET", b"added:k", b"ver", b"2"]);
    replace().exits(2).says("`/ver` is a field that it does not have");
}
