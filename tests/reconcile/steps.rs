//! Locks are completed and released by the service's own steps, as one operation that one undo
//! takes back.

use crate::provider::{BY_KEY, LOCK, lock, logged, program, pttl, run, state, words};
use crate::support::encoding_service::{ANEW, STORE};
use crate::support::terminal::{answered, on_terminal};
use crate::support::{DONE, FOREVER, PENDING, Server};

fn seeded() -> Server {
    Server::holding(&[
        ("idem:done-1", LOCK, FOREVER),
        ("idem:not-1", LOCK, FOREVER),
        ("idem:unclear", LOCK, FOREVER),
        (
            "idem:finished",
            r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":1}"#,
            60_000,
        ),
    ])
}

#[test]
fn what_is_done_is_stored_what_is_not_is_released_and_the_rest_stays() {
    let server = seeded();
    let ran = run(&server, &[]).exits(3);
    ran.says("Planned: complete 1, release 1, leave 1, changed meanwhile 0")
        .says("Reconciled: completed 1, released 1, left 1, changed meanwhile 0; backup: ")
        .says("express/unclear: left: unknown: the provider is silent")
        .shows("done-1")
        .shows("not-done");
    let stored = server.get("idem:done-1").unwrap();
    let stored: serde_json::Value = serde_json::from_slice(&stored).unwrap();
    assert_eq!(stored["statusCode"], 201);
    assert_eq!(stored["body"]["id"], "ch_1");
    assert_eq!(server.get("idem:not-1"), None);
    assert_eq!(server.get("idem:unclear").unwrap(), LOCK.as_bytes());
    assert_eq!(state(&server, "express", "finished"), "completed");

    let operations = server.idemctl(&["log", "-o", "json"]).json();
    let operations = operations["operations"].as_array().unwrap();
    assert_eq!(operations.len(), 1, "{operations:?}");
    assert_eq!(operations[0]["command"], "reconcile");
    assert_eq!(operations[0]["state"], "ended");

    server.idemctl(&["undo", "--yes"]).exits(0);
    for key in ["idem:done-1", "idem:not-1", "idem:unclear"] {
        assert_eq!(server.get(key).unwrap(), LOCK.as_bytes(), "{key}");
        assert_eq!(pttl(&server, key), -1, "{key}");
    }
}

/// Rule: one undo takes an operation back that extended locks before it changed them. Revert: without
/// `gather`, each extension is a change of its own that no longer fits, and the undo ends with 3.
#[test]
fn one_undo_takes_back_extended_locks_too() {
    let server = Server::holding(&[
        ("idem:done-1", LOCK, 20_000),
        ("idem:not-1", LOCK, 20_000),
        ("idem:unclear", LOCK, 20_000),
    ]);
    run(&server, &["--lock-ttl", "5m"]).exits(3);
    assert_eq!(logged(&server, "unclear"), ["extended", "put-back"]);
    assert_eq!(logged(&server, "done-1"), ["extended", "completed"]);
    server.idemctl(&["undo", "--yes"]).exits(0);
    for key in ["idem:done-1", "idem:not-1"] {
        assert_eq!(server.get(key).unwrap(), LOCK.as_bytes(), "{key}");
        let left = pttl(&server, key);
        assert!((500_000..=600_000).contains(&left), "{key} is held: {left}");
    }
    assert!(pttl(&server, "idem:unclear") <= 20_000);
}

/// Rule: an undo that named every lock is whole. The extensions in the log do not count.
#[test]
fn an_undo_that_named_every_lock_took_all_back() {
    let server = Server::holding(&[("idem:done-1", LOCK, 20_000), ("idem:not-1", LOCK, 20_000)]);
    run(&server, &["--lock-ttl", "5m"]).exits(0);
    server.idemctl(&["undo", "--only", "done-1", "--only", "not-1", "--yes"]).exits(0);
    server.idemctl(&["log"]).shows("  undone  ");
}

#[test]
fn a_dry_run_asks_and_shows_and_changes_nothing() {
    let server = seeded();
    server.set("idem:done-2", LOCK, 20_000);
    let ran = run(&server, &["--lock-ttl", "5m", "--dry-run"]).exits(3);
    ran.says("Planned: complete 2, release 1, leave 1").says("dry run: nothing was changed");
    assert!(pttl(&server, "idem:done-2") <= 20_000);
    assert_eq!(server.get("idem:done-1").unwrap(), LOCK.as_bytes());
    assert!(server.audited().is_empty());
    let backups = std::fs::read_dir(server.state("backups"));
    assert!(backups.is_err() || backups.unwrap().next().is_none());
}

/// Rule: a service without a release step gets its lock removed, as by force-unlock.
#[test]
fn a_lock_of_a_service_without_release_is_removed_and_backed_up() {
    let server = Server::holding(&[("idempotency:not-1", PENDING, FOREVER)]);
    run(&server, &["--schema", "go-middleware"]).exits(0).says("released 1");
    assert_eq!(server.get("idempotency:not-1"), None);
    assert_eq!(logged(&server, "not-1"), ["unlocked"]);
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.get("idempotency:not-1").unwrap(), PENDING.as_bytes());
}

/// Rule: what has no complete step cannot be stored, and is named and left.
#[test]
fn a_service_without_complete_keeps_its_lock() {
    let server = Server::start();
    server.describe("bare", &[("schema.toml", BARE)]);
    server.put("bare:done-1", r#"{"s":"held"}"#);
    let ran = run(&server, &["--schema", "bare"]).exits(3);
    ran.says("bare/done-1: left, although it took effect").says("it has no result to store");
    ran.says("to remove a lock");
    assert!(!ran.all().contains("with `complete`"), "{}", ran.all());
    assert_eq!(server.get("bare:done-1").unwrap(), br#"{"s":"held"}"#);
}

const BARE: &str = r#"
format = 2
name = "bare"
summary = "locks alone"

[keys]
record = "bare:{key}"

[ttl]
lock = "30s"

[[value]]
name = "held"
where = { "/s" = "held" }
required = ["/s"]
state = "in-progress"
"#;

/// Rule: a response that the service would not replay as it is, is not stored, and the others are.
/// Revert: without `check_delivery` in `check_completion`, clients get `{"items":{}}`.
#[test]
fn a_response_that_the_service_does_not_replay_is_refused() {
    let server = Server::start();
    server.describe("anew", &[("schema.toml", ANEW), ("store.lua", STORE)]);
    server.put("anew:done-1", r#"{"s":"P"}"#);
    server.put("anew:done-2", r#"{"s":"P"}"#);
    let ask = program(
        server.folder(),
        r#"case "$question" in
*'"key":"done-1'*) echo '{"outcome":"done","status":201,"body":{"items":[]}}' ;;
*) echo '{"outcome":"done","status":201,"body":{"items":[1]}}' ;;
esac"#,
    );
    let ran = server.idemctl(&words(&ask, &["--schema", "anew"])).exits(3);
    ran.says("anew/done-1: left, although it took effect: clients would get another response")
        .says("completed 1");
    assert_eq!(server.get("anew:done-1").unwrap(), br#"{"s":"P"}"#);
    assert_eq!(state(&server, "anew", "done-2"), "completed");
}

/// Rule: the trial decides, whatever the schema predicts. Revert: without the check of the trial's
/// answer in `check_completion`, the response is stored, and every retry gets a conflict.
#[test]
fn a_response_that_no_retry_would_get_is_refused() {
    let server = Server::start();
    let toml = ANEW
        .replace(
            r#"command = ["SET", "{record}", "{lock_value}", "NX", "GET", "EX", "{lock_ttl}"]"#,
            "script = \"begin\"\nkeys = [\"{record}\"]\nargs = [\"{lock_value}\", \"{lock_ttl}\"]",
        )
        .replace("{ nil = true,", "{ word = \"NEW\",")
        .replace(
            r#"{ value = "lock", means = "conflict" }"#,
            r#"{ word = "BUSY", means = "conflict", when = { record = "lock" } }"#,
        )
        .replace(
            r#"{ value = "done", means = "replay" }"#,
            r#"{ text = true, means = "replay", when = { record = "done" } }"#,
        );
    let begin = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) then return 'NEW' end\n\
        return 'BUSY'\n";
    server.describe("anew", &[("schema.toml", &toml), ("store.lua", STORE), ("begin.lua", begin)]);
    server.put("anew:done-1", r#"{"s":"P"}"#);
    let ran = run(&server, &["--schema", "anew"]).exits(3);
    ran.says("left, although it took effect");
    assert_eq!(server.get("anew:done-1").unwrap(), br#"{"s":"P"}"#, "{}", ran.all());
}

/// Rule: an answer that the service does not store is refused before anything is sent.
#[test]
fn a_status_that_the_service_never_stores_is_refused() {
    let server = Server::holding(&[("idem:done-1", LOCK, FOREVER)]);
    let ask =
        program(server.folder(), r#"echo '{"outcome":"done","status":402,"headers":{},"body":1}'"#);
    let ran = server.idemctl(&words(&ask, &[])).exits(3);
    ran.says("stores only the statuses 200 to 299");
    assert_eq!(server.get("idem:done-1").unwrap(), LOCK.as_bytes());
    assert!(server.audited().is_empty());
}

/// Rule: records in another state, and values of other programs, are never touched.
#[test]
fn only_locks_are_asked_about() {
    let server = Server::holding(&[
        ("idempotency:done-result", DONE, 60_000),
        ("idempotency:done-stranger", r#"{"status":"PENDING","owner":"somebody else"}"#, FOREVER),
        ("idempotency:done-lock", PENDING, FOREVER),
    ]);
    let asked = server.folder().join("asked");
    let ask = program(server.folder(), &format!("echo \"$question\" >> asked\n{BY_KEY}"));
    let report = server.idemctl(&words(&ask, &["--schema", "go-middleware", "-o", "json"])).json();
    assert_eq!(report["completed"], 1, "{report}");
    let asked = std::fs::read_to_string(asked).unwrap();
    assert_eq!(asked.lines().count(), 1, "{asked}");
    assert_eq!(
        server.get("idempotency:done-stranger").unwrap(),
        br#"{"status":"PENDING","owner":"somebody else"}"#
    );
}

/// Rule: the program gets one object with what is known of the lock.
#[test]
fn the_question_has_what_is_known() {
    let server = Server::start();
    server.put("idemkey:done \"1\"", crate::provider::reference(3_600_000));
    let ask = program(
        server.folder(),
        "printf '%s\\n' \"$question\" > asked\necho '{\"outcome\":\"unknown\"}'",
    );
    server.idemctl(&words(&ask, &["--schema", "reference"])).exits(3);
    let asked = std::fs::read_to_string(server.folder().join("asked")).unwrap();
    let asked: serde_json::Value = serde_json::from_str(&asked).unwrap();
    assert_eq!(asked["key"], "done \"1\"");
    assert_eq!((&asked["owner"], &asked["fingerprint"]), (&"w-1".into(), &"f".into()));
    assert_eq!((&asked["attempt"], &asked["schema"]), (&1.into(), &"reference".into()));
    assert!(asked["created_at"].as_str().unwrap().ends_with('Z'), "{asked}");
    assert_eq!(asked["record"]["state"], "in-progress");
}

/// Rule: nobody is asked without a terminal, and nothing is extended before that is known.
#[test]
fn without_a_terminal_yes_is_needed_before_anything_is_done() {
    let server = Server::holding(&[("idem:done-1", LOCK, 20_000)]);
    let ask = program(server.folder(), BY_KEY);
    let all = words(&ask, &["--lock-ttl", "5m"]);
    let without: Vec<_> = all.into_iter().filter(|word| *word != "--yes").collect();
    server.idemctl(&without).exits(2).says("cannot prompt without a terminal");
    assert!(pttl(&server, "idem:done-1") <= 20_000);
    assert!(server.audited().is_empty());
    server
        .in_context("prod", "protected = true", &words(&ask, &["--lock-ttl", "5m"]))
        .exits(2)
        .says("--confirm prod");
    assert!(pttl(&server, "idem:done-1") <= 20_000);
}

/// Rule: no is no, and the locks get their deadlines back, except those of operations that are done:
/// a retry would execute them again, and the terminal may be gone instead of a person saying no.
#[test]
fn who_says_no_gets_the_deadlines_back() {
    for (typed, code) in [("n\r", 2), ("\x03", 130)] {
        let server =
            Server::holding(&[("idem:done-1", LOCK, 60_000), ("idem:not-1", LOCK, 60_000)]);
        let ask = program(server.folder(), BY_KEY);
        let all = words(&ask, &["--lock-ttl", "10m"]);
        let without: Vec<_> = all.into_iter().filter(|word| *word != "--yes").collect();
        let ran = answered(on_terminal(server.command(), &without), "[y/N]", typed).exits(code);
        ran.shows("has an earlier deadline again");
        assert!(!ran.text().contains("nothing was changed"), "{}", ran.all());
        assert!(pttl(&server, "idem:not-1") <= 60_000);
        assert!(pttl(&server, "idem:done-1") > 500_000);
        assert_eq!(logged(&server, "not-1"), ["extended", "put-back"]);
        assert_eq!(server.get("idem:done-1").unwrap(), LOCK.as_bytes());
    }
    let server = Server::holding(&[("idem:done-1", LOCK, 60_000)]);
    let ask = program(server.folder(), BY_KEY);
    let all = words(&ask, &["--lock-ttl", "10m"]);
    let without: Vec<_> = all.into_iter().filter(|word| *word != "--yes").collect();
    answered(
        on_terminal(server.command(), &without),
        "Complete 1 lock, and release 0 locks",
        "y\r",
    )
    .exits(0);
    assert_eq!(state(&server, "express", "done-1"), "completed");
}

#[test]
fn the_report_is_one_object_with_every_lock() {
    let server = seeded();
    let report = run(&server, &["-o", "json"]).exits(3).json();
    assert_eq!(report["outcome"], "done");
    assert_eq!(lock(&report, "done-1")["outcome"], "completed");
    assert_eq!(lock(&report, "not-1")["outcome"], "released");
    assert_eq!(lock(&report, "unclear")["outcome"], "left");
    assert_eq!(lock(&report, "unclear")["answer"], "unknown");
    assert!(report["backup"].as_str().unwrap().contains("reconcile"));
}
