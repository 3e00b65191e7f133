//! `idemctl apply`, and the plans that `purge`, `sweep` and `force-unlock` write for it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{FOREVER, LOCK, Run, Runs as _, Server};

const SECRET: &str = "4929-7226";
const DONE: &str =
    r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":"card 4929-7226"}"#;
const LATE: u64 = 10_000_000;

/// What each command plans, and what it removes of [`seeded`].
const PLANS: [(&[&str], &[&str], &str); 4] = [
    (&["purge", "--all"], &["idem:done", "idem:paid"], "purged"),
    (&["sweep", "--orphaned", "--grace", "0s"], &["idem:stuck"], "unlocked"),
    (&["force-unlock", "stuck", "--schema", "express"], &["idem:stuck"], "unlocked"),
    (
        &["force-unlock", "stuck", "held", "--schema", "express"],
        &["idem:held", "idem:stuck"],
        "unlocked",
    ),
];

fn seeded() -> Server {
    Server::holding(&[
        ("idem:done", DONE, LATE),
        ("idem:paid", DONE, LATE),
        ("idem:stuck", LOCK, FOREVER),
        ("idem:held", LOCK, LATE),
    ])
}

fn plan(server: &Server, words: &[&str]) -> Run {
    server.idemctl(&[words, &["--plan", "plan"]].concat())
}

fn file(server: &Server) -> PathBuf {
    server.folder().join("plan")
}

/// A server of two records, and the plan to purge them.
fn purge_planned() -> Server {
    let server = seeded();
    plan(&server, &["purge", "--all"]).exits(0);
    server
}

/// Edits each line of the plan.
fn edit(server: &Server, change: impl Fn(usize, &mut Value)) {
    let text = fs::read_to_string(file(server)).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut edited = String::new();
    for (index, line) in lines.iter_mut().enumerate() {
        change(index, line);
        edited += &format!("{line}\n");
    }
    fs::write(file(server), edited).unwrap();
}

/// Rule: a plan changes nothing and holds no value; applied, it removes what it planned, and `undo` brings that back.
#[test]
fn what_one_operator_plans_another_applies_and_undo_brings_it_back() {
    for (words, removed, what) in PLANS {
        let server = seeded();
        let before = server.keys();
        let planned = plan(&server, &[words, &["--reason", "INC-3"]].concat()).exits(0);
        planned.says(format!("Planned {} of {}", removed.len(), removed.len()));
        assert_eq!(server.keys(), before, "{words:?}");
        assert!(!server.audit().exists(), "{words:?}");
        let text = fs::read_to_string(file(&server)).unwrap();
        assert!(!text.contains(SECRET) && !text.contains("IN_PROGRESS"), "{text}");
        assert_eq!(fs::metadata(file(&server)).unwrap().permissions().mode() & 0o777, 0o600);

        let apply = |words: &[&str]| {
            let words = [&["apply", "plan"], words].concat();
            server.command().env("USER", "second").args(words).run()
        };
        apply(&["--dry-run"]).exits(0).says("dry run: nothing was changed");
        apply(&[]).exits(2).says("cannot prompt without a terminal");
        assert_eq!(server.keys(), before, "{words:?}");
        let done = format!("{0} of {0} record", removed.len());
        apply(&["--yes", "-o", "json"]).exits(0).says(done).says(what);
        assert_eq!(server.gone(&before), removed, "{words:?}");
        let entry = server.audited().remove(0);
        let noted = ["command", "who", "reason", "what"].map(|field| entry[field].clone());
        assert_eq!(noted, ["apply", "second", "INC-3", what]);
        let log = server.idemctl(&["log", "-o", "jsonl"]).json_lines().remove(0);
        assert!(log["planner"].as_str().unwrap().starts_with("tester@"), "{log}");
        server.idemctl(&["log", "show"]).exits(0).shows("Planned by  tester@");

        apply(&["--yes"]).exits(3).says("it is not as planned");
        server.idemctl(&["undo", "--yes"]).exits(0);
        assert_eq!(server.keys(), before, "{words:?}");
    }
}

/// Rule: a plan never replaces a file, and one without records is not written.
#[test]
fn a_plan_is_a_new_file_with_records() {
    let server = purge_planned();
    let text = fs::read(file(&server)).unwrap();
    for (words, ..) in PLANS {
        plan(&server, words).exits(2).says("exists already");
    }
    assert_eq!(fs::read(file(&server)).unwrap(), text);
    fs::remove_file(file(&server)).unwrap();
    for words in [
        &["purge", "--state", "failed"][..],
        &["sweep", "--orphaned", "--match", "nothing*"],
        &["force-unlock", "done", "paid"],
    ] {
        let dry = server.idemctl(&[words, &["--dry-run"]].concat());
        let planned = plan(&server, words).exits(dry.code);
        planned.says("nothing is planned; plan was not written");
        assert!(!file(&server).exists(), "{words:?}");
    }
    plan(&server, &["sweep", "--orphaned", "--action", "expire", "--lock-ttl", "express=30s"])
        .exits(2)
        .says("cannot be used with '--plan <FILE>'");
    // What a purge refuses is not planned either.
    plan(&server, &["purge", "--state", "unreadable"]).exits(2);
    plan(&server, &["purge", "--all", "--max", "1"]).exits(2);
    plan(&server, &["sweep", "--include", "unreadable"]).exits(2);
    assert!(!file(&server).exists());
}

/// Rule: a record that is no longer as planned stays, whatever changed of it.
#[test]
fn what_changed_since_the_plan_stays() {
    let long = |end: &str| {
        format!(
            r#"{{"status":"COMPLETED","statusCode":200,"headers":{{}},"body":"{}{end}"}}"#,
            "x".repeat(2 << 20)
        )
    };
    let server = seeded();
    server.set("idem:long", long("a"), LATE);
    server.set("idem:same", long("a"), LATE);
    server.set("idem:list", DONE, LATE);
    server.set("idem:soon", DONE, LATE);
    plan(&server, &["purge", "--all"]).exits(0).says("Planned 6 of 6 records");
    let at = |key: &str| server.send::<i64>(&[b"PTTL", key.as_bytes()]);
    server.set("idem:done", DONE.replace("201", "202"), u64::try_from(at("idem:done")).unwrap());
    server.send::<()>(&[b"PEXPIRE", b"idem:paid", b"20000000"]);
    let left = at("idem:long").to_string();
    server.send::<()>(&[b"SET", b"idem:long", long("b").as_bytes(), b"PX", left.as_bytes()]);
    server.send::<()>(&[b"PEXPIREAT", b"idem:soon", b"1"]);
    server.send::<()>(&[b"DEL", b"idem:list"]);
    server.send::<()>(&[b"RPUSH", b"idem:list", DONE.as_bytes()]);
    let before = server.keys();
    let dry = server.idemctl(&["apply", "plan", "--dry-run"]).exits(3);
    for name in ["done", "paid", "long", "list", "soon"] {
        dry.says(format!("unchanged: express/{name} (it is not as planned)"));
    }
    let run = server.idemctl(&["apply", "plan", "--yes", "-o", "json"]).exits(3);
    run.says("1 of 1 record purged");
    let report = run.json();
    let counts = ["outcome", "done", "keys_left_alone"].map(|field| report[field].clone());
    assert_eq!(counts, [json!("done"), json!(1), json!(5)]);
    assert_eq!(server.gone(&before), ["idem:same"]);
}

/// Rule: an absent Redis key of a record is part of its plan, and exists once the lock's worker completed.
#[test]
fn a_lock_that_was_completed_since_the_plan_stays() {
    let server = Server::holding(&[("idem:lock:m", "1", FOREVER)]);
    for words in [
        &["sweep", "--orphaned", "--grace", "0s", "--schema", "event-consumer"][..],
        &["force-unlock", "m", "--schema", "event-consumer"],
        &["purge", "--state", "in-progress", "--schema", "event-consumer"],
    ] {
        let _ = fs::remove_file(file(&server));
        server.send::<()>(&[b"DEL", b"idem:done:m"]);
        plan(&server, words).exits(0);
        let text = fs::read_to_string(file(&server)).unwrap();
        assert!(text.contains(r#""idem:done:m":{"type":"none"}"#));
        server.put("idem:done:m", "1");
        let run = server.idemctl(&["apply", "plan", "--yes"]).exits(3);
        run.says("unchanged: event-consumer/m (it is not as planned)");
        assert_eq!(server.size(), 2, "{words:?}");
    }
}

/// Rule: a plan is applied only whole, in time, on its own server, and with the schemas that it was made with.
#[test]
fn a_plan_that_may_mean_something_else_is_refused() {
    let server = purge_planned();
    let text = fs::read_to_string(file(&server)).unwrap();
    let before = server.keys();
    let refused = |why: &str| {
        for words in [&["--yes"][..], &["--dry-run"]] {
            let run = server.idemctl(&[&["apply", "plan"], words].concat()).exits(2);
            run.says(why);
        }
        assert_eq!(server.keys(), before, "{why}");
        fs::write(file(&server), &text).unwrap();
    };
    let header = |field: &'static str, value: Value| {
        edit(&server, |index, line| {
            if index == 0 {
                line[field] = value.clone();
            }
        });
    };
    header("expires_at", json!("2026-01-01T00:00:00Z"));
    refused("the plan has expired");
    header("format", json!(2));
    refused("this version of idemctl does not know its format");
    header("command", Value::Null);
    refused("the plan cannot be used");
    header("schemas", json!({ "express/\"\"": "0".repeat(64) }));
    refused("the schema of express/\"\" is not the one of the plan");
    let cut: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
    fs::write(file(&server), cut).unwrap();
    refused("records are missing");
    fs::write(file(&server), &text[..text.len() - 9]).unwrap();
    refused("EOF");
    fs::write(file(&server), "").unwrap();
    refused("does not know its format");

    let other = seeded();
    fs::copy(file(&server), file(&other)).unwrap();
    let run = other.idemctl(&["apply", "plan", "--yes"]).exits(2);
    run.says("the plan is from").says("connect to the server of the plan");
    assert_eq!(other.keys(), before);
    server.idemctl(&["-n", "1", "apply", "plan", "--yes"]).exits(2).says("the plan is from");
    server.idemctl(&["apply", "plan", "--yes"]).exits(0);
}

/// Rule: a plan that was edited removes no record that it does not describe exactly.
#[test]
fn an_edited_plan_removes_nothing_that_it_does_not_describe() {
    let server = purge_planned();
    let text = fs::read_to_string(file(&server)).unwrap();
    let before = server.keys();
    let edits: [fn(&mut Value); 7] = [
        |keys| first(keys)["sha256"] = json!("0".repeat(64)),
        |keys| first(keys)["bytes"] = json!(1),
        // The identity of a value of which nothing was read.
        |keys| {
            *first(keys) =
                json!({ "type": "string", "expires_at_ms": first(keys)["expires_at_ms"] })
        },
        |keys| first(keys)["expires_at_ms"] = Value::Null,
        |keys| first(keys)["type"] = json!("hash"),
        |keys| first(keys)["type"] = json!("none"),
        |keys| *keys = json!({ "idem:stuck": first(keys) }),
    ];
    for (number, change) in edits.iter().enumerate() {
        edit(&server, |index, line| {
            if index > 0 {
                change(&mut line["keys"]);
            }
        });
        server.idemctl(&["apply", "plan", "--yes"]).exits(3);
        assert_eq!(server.keys(), before, "edit {number}");
        fs::write(file(&server), &text).unwrap();
    }
    for (field, value) in [("keys", json!({})), ("name", json!("nothing/x")), ("name", json!("x"))]
    {
        edit(&server, |index, line| {
            if index > 0 {
                line[field] = value.clone();
            }
        });
        server.idemctl(&["apply", "plan", "--yes"]).exits(3);
        assert_eq!(server.keys(), before, "{field}: {value}");
        fs::write(file(&server), &text).unwrap();
    }
}

fn first(keys: &mut Value) -> &mut Value {
    keys.as_object_mut().unwrap().values_mut().next().unwrap()
}

/// Rule: a plan holds for the files of its schema, the operator's own included.
#[test]
fn a_schema_that_was_edited_since_the_plan_is_refused() {
    let schema = "format = 2\nname = \"owned\"\nkeys = { record = \"own:{key}\" }\n\
        ttl = { lock = \"30s\", result = \"24h\" }\n[[value]]\nname = \"held\"\n\
        required = [\"/by\"]\nstate = \"in-progress\"\nfields = { owner = \"/by\" }\n";
    let server = Server::holding(&[("own:a", r#"{"by":"w"}"#, LATE)]);
    server.describe("owned", &[("schema.toml", schema)]);
    plan(&server, &["force-unlock", "a", "--schema", "owned"]).exits(0);
    server.describe("owned", &[("schema.toml", &schema.replace("30s", "40s"))]);
    let run = server.idemctl(&["apply", "plan", "--yes"]).exits(2);
    run.says("the schema of owned/\"\" is not the one of the plan");
    server.describe("owned", &[("schema.toml", schema)]);
    server.idemctl(&["apply", "plan", "--yes"]).exits(0);
    assert_eq!(server.size(), 0);
}

/// Rule: a plan that relies on --owner-alive needs it again, because an owner may live by then.
#[test]
fn owners_are_asked_again() {
    let server =
        Server::holding(&[("idem:started:a", "w1", FOREVER), ("idem:started:b", "w2", FOREVER)]);
    let sweep = ["sweep", "--orphaned", "--grace", "0s", "--schema", "event-driven"];
    plan(&server, &[&sweep[..], &["--owner-alive", "exit 1"]].concat()).exits(0);
    let apply = ["apply", "plan", "--yes"];
    server.idemctl(&apply).exits(2).says("the plan was made with --owner-alive");
    let run = server.idemctl(&[&apply[..], &["--owner-alive", "test $1 = w1"]].concat()).exits(3);
    run.says("1 of 2 records unlocked").says("1 record whose owner is alive");
    assert_eq!(server.keys(), ["idem:started:a"]);
}

/// Rule: records under a prefix, and hashes, are found again by their plan.
#[test]
fn a_plan_names_prefixes_and_keys_that_are_not_text() {
    let server = Server::start();
    server.send::<()>(&[b"SET", b"shop:idem:\xff\n", DONE.as_bytes()]);
    plan(&server, &["purge", "--all", "--schema", "express", "--prefix", "shop:"]).exits(0);
    server.idemctl(&["apply", "plan", "--yes"]).exits(0).says("1 of 1 record purged");
    assert_eq!(server.size(), 0);
}

/// Rule: more records than a run keeps are planned and applied, too, each once.
#[test]
fn a_plan_may_have_more_records_than_a_run_keeps() {
    let server = Server::start();
    server.fill((0..10_500).map(|number| (format!("idem:k{number}"), DONE)), LATE);
    plan(&server, &["purge", "--all"]).exits(0).says("Planned 10500 of 10500 records");
    server.put("idem:k7", DONE);
    let run = server.idemctl(&["apply", "plan", "--yes"]).exits(3);
    run.says("10499 of 10499 records purged").says("unchanged: express/k7");
    assert_eq!(server.keys(), ["idem:k7"]);
}

/// Rule: who may only read can plan.
#[test]
fn a_plan_needs_no_right_to_change() {
    let server = seeded();
    let words = ["purge", "--all", "--plan", "plan"];
    server.in_context("audit", "read_only = true", &words).exits(0);
    server.idemctl(&["apply", "plan", "--yes"]).exits(0);
}
