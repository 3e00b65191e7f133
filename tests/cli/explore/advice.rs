//! What to change: the advice names steps that the schema has, and says the cause of several harms once.

use std::fs;

use serde_json::Value;

use super::{explore, only};
use crate::simulate::variant::{MINE, home, reference, run};

/// GET, then SET. The lock names its owner, and no step releases it.
const GET_THEN_SET: &str = r#"format = 2
name = "getset"
keys = { record = "gs:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "lock"
encoding = "json"
where = { "/s" = "P" }
required = ["/s", "/o"]
state = "in-progress"
fields = { owner = "/o" }

[[value]]
name = "done"
encoding = "json"
where = { "/s" = "D" }
required = ["/s", "/b", "/c"]
state = "completed"
fields = { status = "/c", body = "/b" }

[write]
lock_value = '{"s":"P","o":"{owner}"}'
result_value = '{"s":"D","c":{status},"b":{body_text}}'

[service]
on_failure = "keep"

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { nil = true, means = "next", when = { record = "absent" } },
  { value = "lock", means = "conflict", when = { record = "lock" } },
  { value = "done", means = "replay", when = { record = "done" } },
]

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "EX", "{lock_ttl}"]
replies = [{ word = "OK", means = "acquired", when = {} }]

[complete]
checks_owner = false

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

const ONE_SCRIPT: &str = "let begin look the record up and take the lock in one script";

fn remedies(exploration: &Value) -> Vec<&str> {
    exploration["harms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|harm| harm["remedy"].as_str().unwrap())
        .collect()
}

/// Rule: four harms that follow from one gap in begin have one advice, and the advice is about begin.
#[test]
fn what_follows_from_one_cause_is_said_once() {
    let folder = home();
    fs::create_dir(folder.path().join("getset")).unwrap();
    fs::write(folder.path().join("getset/schema.toml"), GET_THEN_SET).unwrap();
    let words = ["explore", "getset", "--schema-dir", ".", "--sandbox"];
    let shown = run(folder.path(), &words).exits(1).text();
    let (_, advice) = shown.split_once("What to change\n").unwrap();
    let broken = "one-effect, result-kept, result-not-replaced, owner-only: getset\n";
    assert_eq!(
        advice,
        format!("{broken}  → {ONE_SCRIPT}, because another request can act between two calls\n")
    );
    let json = run(folder.path(), &[&words[..], &["-o", "json"]].concat()).exits(1);
    let explored = only(&json);
    assert!(
        remedies(&explored).iter().all(|remedy| remedy.starts_with(ONE_SCRIPT)),
        "{explored:#}"
    );
}

/// The paragraphs of the advice, each as one line, without the names of the invariants.
fn advice(shown: &str) -> Vec<String> {
    let (_, advice) = shown.split_once("What to change\n").unwrap_or_default();
    let arrows = advice.lines().filter_map(|line| line.strip_prefix("  → "));
    arrows.map(str::to_owned).collect()
}

/// Rule: no advice is about a step or a token that the schema lacks, or asks for what the schema has.
#[test]
fn advice_is_about_the_steps_that_there_are() {
    for schema in
        ["go-chi", "go-middleware", "express", "event-driven", "event-consumer", "reference"]
    {
        let explored = only(&explore(&[schema, "-o", "json"]));
        let releases = ["go-chi", "express", "event-consumer"].contains(&schema);
        let begins_in_a_script = schema != "event-consumer";
        for remedy in remedies(&explored) {
            assert!(releases || !remedy.contains("release"), "{schema}: {remedy}");
            assert!(!begins_in_a_script || !remedy.contains("in one script"), "{schema}: {remedy}");
            assert!(
                schema != "event-driven" || !remedy.contains("store an owner token"),
                "{schema}: {remedy}"
            );
            // Only reference renews its locks.
            assert!(schema != "reference" || !remedy.contains("add a step"), "{schema}: {remedy}");
            assert!(
                schema != "event-driven" || !remedy.contains("only the worker whose lock"),
                "{schema}: {remedy}"
            );
        }
    }
}

/// Rule: what follows from a call that takes the lock of another has the advice for that call.
#[test]
fn the_call_that_began_it_is_what_has_to_change() {
    let shown = explore(&["express"]).exits(1).text();
    let (_, advice) = shown.split_once("What to change\n").unwrap();
    let first = "one-effect, result-kept, result-not-replaced, owner-only: express\n  → store an \
        owner token as the lock, and let complete and release compare it in a script\n";
    assert_eq!(advice, first);
    // Without an earlier call of another worker, it is the lock's TTL.
    let shown = explore(&["express", "--faults", "expiry=1,fail=0,late-fail=0"]).exits(1).text();
    let longer = "give the lock a TTL longer than the longest run, or add a step that renews it \
        during the work, and pass the key on to the system that has the effect";
    assert!(self::advice(&shown).contains(&longer.to_owned()), "{shown}");
}

/// Rule: a step that gets the owner and does not compare it is told to compare, not to get it.
#[test]
fn a_script_that_ignores_the_owner_is_named() {
    let fence = "if (holder or author) ~= owner then";
    let variant = reference().with("complete.lua", fence, "if false then");
    let dir = ["--schema-dir", variant.folder().to_str().unwrap(), "--sandbox"];
    let shown = run(variant.folder(), &[&["explore", MINE][..], &dir].concat()).text();
    assert!(
        advice(&shown).contains(
            &"let complete (complete) compare the lock's owner with the owner that it gets, before \
            every change"
                .to_owned()
        ),
        "{shown}"
    );
}

/// Rule: a fault of Redis is not advised against with scripts.
#[test]
fn the_fault_that_took_the_lock_decides() {
    for (schema, faults, starts) in [
        ("reference", "expiry=0,late-fail=0,evict=1", "set maxmemory-policy to noeviction"),
        ("reference", "expiry=0,late-fail=0,failover=1", "let begin wait for a replica (WAIT)"),
        (
            "reference",
            "expiry=1,late-fail=0",
            "give the lock a TTL longer than any pause between two renewals",
        ),
        (
            "express",
            "expiry=0,late-fail=0,resend=0,persist=1",
            "let begin give a TTL to a lock that has none",
        ),
    ] {
        let shown = explore(&[schema, "--faults", faults]).exits(1).text();
        let advice = advice(&shown);
        assert_eq!(advice.len(), 1, "{advice:#?}");
        assert!(advice[0].starts_with(starts), "{advice:#?}");
    }
    let critical = ["reference", "--assume", "critical-section"];
    let advice = advice(&explore(&critical).exits(1).text());
    assert!(advice[0].starts_with("keep results longer than clients retry"), "{advice:#?}");
}

/// Rule: a lock without a TTL is the fault of the step that left it so.
#[test]
fn the_step_that_left_a_lock_without_ttl_is_named() {
    let protocols = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/protocols");
    let words = ["explore", "lock-then-ttl", "--schema-dir", protocols, "--sandbox"];
    let shown = run(home().path(), &words).exits(1).text();
    assert!(
        advice(&shown)
            .contains(&"let begin set the lock and its TTL in one command or script".to_owned()),
        "{shown}"
    );
}
