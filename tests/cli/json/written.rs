//! Every command that writes JSON, in the states that matter: each output is as its schema says.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::outputs::OUTPUTS;
use super::stage::{Form, Stage};
use super::validator::faults;
use crate::support::probe_service::{Config, ProbeService, Variant};
use crate::support::{BUILT_IN, wire};

/// A machine that stalls lets no lock end between two commands.
const LONG: [&str; 2] = ["--lock-ttl", "10m"];

/// A schema of a second release of the language, whose values end by themselves, and which describes no step.
const OBSERVED: &str = r#"format = 2
name = "observed"
keys = { record = "observed:{key}" }
ttl = { lock = "1m", result = "1h" }

[[value]]
name = "running"
where = { "/status" = "INPROGRESS" }
required = ["/status"]
optional = ["/until"]
state = "in-progress"
expires_at = { field = "/until", unit = "ms", past = "reclaimable" }

[[value]]
name = "done"
where = { "/status" = "COMPLETED" }
required = ["/status", "/data"]
state = "completed"
fields = { body = "/data" }
"#;

/// Values that no service writes whole: bytes that are not UTF-8, other types, forms of nobody.
fn damage(stage: &Stage) {
    let odd = r#"{"status":"COMPLETED","code":200,"headers":{"A":["x","y"]},"body":"/w=="}"#;
    for words in [
        [&b"SET"[..], b"idem:started:\xff\xfe", b"worker\xff"],
        [b"SET", b"idempotency:odd", b"{garbage"],
        [b"SET", b"idempotency:odd-body", odd.as_bytes()],
        [b"SET", b"loose", b"text"],
        [b"SADD", b"idempotency:set", b"member"],
        [b"SADD", b"idemkey:\xff", b"member"],
        [b"SET", b"observed:lapsed", br#"{"status":"INPROGRESS","until":1700000000000}"#],
        [b"SET", b"observed:far", br#"{"status":"INPROGRESS","until":99999999999999999}"#],
    ] {
        stage.send(&words);
    }
}

fn looks(stage: &mut Stage) {
    let prefixed = "event-consumer,event-driven,express,go-middleware,go-middleware-v1,reference";
    let records = stage.lines("list", "list.json", &["--schema", prefixed]);
    let states: BTreeSet<_> =
        records.iter().map(|record| (&record["schema"], &record["state"])).map(text).collect();
    for schema in prefixed.split(',') {
        for state in ["in-progress", "completed"] {
            assert!(
                states.contains(&format!("{schema} {state}")),
                "no {state} of {schema}: {states:?}"
            );
        }
    }
    let (dir, before) = (stage.home().join("own").display().to_string(), lines(&records));
    stage.file("own/observed/schema.toml", OBSERVED);
    let before = stage.file("before.jsonl", before);
    damage(stage);
    let own = ["--schema-dir", &dir, "--schema", "observed"];
    for words in
        [&[][..], &["--all-dbs"], &["--schema", "go-chi"], &["--sort", "age", "--limit", "5"], &own]
    {
        stage.writes("list", "list.json", words);
    }
    let keys: Vec<_> = records.iter().map(|record| record["key"].as_str().unwrap()).collect();
    stage.writes("inspect", "inspect.json", &keys);
    let odd = ["odd", "odd-body", "set", "loose", "nobody", "--full", "--reveal"];
    let odd = stage.writes("inspect", "inspect.json", &odd);
    let unclaimed = odd["unclaimed"].as_array().unwrap();
    assert!(unclaimed.iter().any(|there| there["redis_key"] == "loose"), "{odd}");
    stage.writes("inspect", "inspect.json", &[&["lapsed", "far"], &own[..]].concat());
    stage.writes("inspect", "inspect.json", &["--find", "order"]);
    stage.lines("inspect", "inspect.json", &["nobody", "--until", "absent"]);
    stage.send(&[b"ACL", b"SETUSER", b"part", b"on", b">pw", b"+@all", b"~idempotency:*"]);
    let part =
        stage.document("inspect", "inspect.json", &["odd", "--user", "part", "--pass", "pw"]);
    assert_eq!(part["complete"], false);
    for by in ["state", "owner", "prefix", "status", "finding"] {
        stage.writes("stats", "stats.json", &["--by", by]);
    }
    stage.writes("stats", "stats.json", &["--schema", "go-middleware", "--older-than", "1m"]);
    stage.writes("detect", "detect.json", &[]);
    stage.writes("diff", "diff.json", &[&before]);
    duplicates(stage);
    stage.writes("doctor", "doctor.json", &[]);
    let accepted =
        "[[accept]]\ncode = \"persistence\"\nreason = \"a test\"\nexpires = 9999-01-01\n";
    let accepted = stage.file("accepted.toml", accepted);
    let blind = ["--user", "part", "--pass", "pw", "--accept", &accepted];
    stage.send(&[b"ACL", b"SETUSER", b"part", b"-info", b"-command", b"-acl"]);
    stage.writes("doctor", "doctor.json", &blind);
}

/// Groups, and the pointers if nothing is compared.
fn duplicates(stage: &mut Stage) {
    for (key, order) in [("ord-1-1", "o-1"), ("ord-1-2", "o-1"), ("ord-2", "o-2")] {
        let value = crate::duplicates::reference(key, "f", 1_700_000_000_000, order);
        stage.send(&[b"SET", format!("idemkey:{key}").as_bytes(), value.as_bytes()]);
    }
    let words = ["--schema", "reference", "--same", "/order/id"];
    let found = stage.writes("duplicates", "duplicates.json", &words);
    assert_eq!(found["groups"][0]["keys"], 2);
    let none = stage.document("duplicates", "duplicates.json", &["--schema", "event-driven"]);
    assert!(!none["candidates"].as_array().unwrap().is_empty(), "{none}");
}

fn text((schema, state): (&Value, &Value)) -> String {
    format!("{} {}", schema.as_str().unwrap(), state.as_str().unwrap())
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// The service's own steps: foretold, done, done twice, and turned away.
fn steps(stage: &mut Stage) {
    for schema in BUILT_IN {
        let key = format!("step-{schema}");
        let of = |more: &[&'static str]| {
            [&[key.as_str(), "--schema", schema, LONG[0], LONG[1], "--yes"], more].concat()
        };
        let owned = ["event-driven", "reference"].contains(&schema);
        let owner: &[_] = if owned { &["--owner", "worker-1"] } else { &[] };
        stage.writes("begin", "step.json", &of(&["--dry-run"]));
        stage.writes("begin", "step.json", &of(owner));
        if ["express", "go-chi", "event-consumer", "reference"].contains(&schema) {
            stage.document("release", "step.json", &of(owner));
            stage.document("begin", "step.json", &of(owner));
            stage.lines("release", "step.json", &of(owner));
            stage.document("begin", "step.json", &of(owner));
        }
        let response: &[_] = match schema {
            "event-consumer" => &["--body", "paid"],
            "go-middleware-v1" => &[],
            _ => &["--status", "201", "--body", "paid"],
        };
        stage.writes("complete", "step.json", &of(&[response, owner, &["--dry-run"]].concat()));
        stage.document("complete", "step.json", &of(&[response, owner].concat()));
        stage.lines("complete", "step.json", &of(&[response, owner, &["--replace"]].concat()));
        stage.document("begin", "step.json", &of(owner));
    }
}

/// Locks that are named, one and several.
fn named(stage: &mut Stage) {
    for key in ["a", "b", "c", "d", "e"] {
        stage.run(&[&["begin", key, "--schema", "express", "--yes"], &LONG[..]].concat()).exits(0);
    }
    let several = ["a", "b", "nobody", "odd", "--schema", "express,go-middleware"];
    stage.writes("extend", "extend.json", &[&several[..], &["--for", "1h", "--dry-run"]].concat());
    stage.writes("extend", "extend.json", &[&several[..], &["--for", "1h", "--yes"]].concat());
    stage.writes("force-unlock", "force-unlock.json", &[&several[..], &["--dry-run"]].concat());
    stage.writes("force-unlock", "force-unlock.json", &["c", "--dry-run"]);
    stage.document("force-unlock", "force-unlock.json", &["c", "--yes", "--reason", "INC-1"]);
    stage.lines("force-unlock", "force-unlock.json", &["d", "--yes", "--no-backup"]);
    stage.document("force-unlock", "force-unlock.json", &["a", "nobody", "--yes"]);
    stage.lines("force-unlock", "force-unlock.json", &["b", "e", "--yes"]);
}

/// Changes of many records.
fn many(stage: &mut Stage) {
    stage.writes("sweep", "sweep.json", &["--orphaned", "--dry-run"]);
    let question = stage.home().join("question.json");
    let answer = r#"{"outcome":"unknown"}"#;
    let unknown = format!("cat >{}; echo '{answer}'", question.display());
    let asked = ["--older-than", "1s", "--ask", &unknown, "--schema", "express,go-middleware"];
    stage.writes("reconcile", "reconcile.json", &[&asked[..], &["--dry-run"]].concat());
    stage.writes("reconcile", "reconcile.json", &[&asked[..], &["--yes"]].concat());
    let question = serde_json::from_slice(&std::fs::read(question).unwrap()).unwrap();
    let found = faults("ask.json#/$defs/question", &[question]);
    assert!(found.is_empty(), "{}", found.join("\n"));
    let answer = serde_json::from_str(answer).unwrap();
    assert!(faults("ask.json#/$defs/answer", &[answer]).is_empty());
    stage.writes("check", "check.json", &[]);
    let stated = ["--schema", "go-middleware", "--lock-ttl", "1s", "--overdue", "1s"];
    stage.writes(
        "check",
        "check.json",
        &[&stated[..], &["--include", "leftover-lock=WARNING,unreadable=CRITICAL"]].concat(),
    );
    stage.writes("check", "check.json", &["-n", "15", "--schema", "nosuch"]);
    let stated = ["--schema", "go-middleware", "--lock-ttl", "1s", "--older-than", "1s"];
    let codes = "excess-ttl,leftover-lock,unreadable";
    let sought = ["--orphaned", "--include", codes, "--match", "*a*", "--dry-run"];
    stage.writes("sweep", "sweep.json", &[&sought[..], &stated].concat());
    stage.writes("sweep", "sweep.json", &["--orphaned", "--grace", "0s", "--yes"]);
    stage.writes(
        "purge",
        "purge.json",
        &["--schema", "express", "--state", "completed", "--dry-run"],
    );
    stage.run(&["purge", "--schema", "express", "--all", "--plan", "plan"]).exits(0);
    stage.writes("apply", "purge.json", &["plan", "--dry-run"]);
    stage.writes("apply", "purge.json", &["plan", "--yes"]);
    stage.writes("purge", "purge.json", &["--schema", "reference", "--all", "--yes"]);
    let keys = stage.file("keys", "odd-body\nnobody\n");
    stage.writes("purge", "purge.json", &["--key-file", &keys, "--yes"]);
}

/// What was done, and the way back.
fn accounts(stage: &mut Stage) {
    let operations = stage.lines("log", "log.json", &[]);
    stage.document("log", "log.json", &["--limit", "3"]);
    stage.writes("log", "changes.json", &["--records"]);
    stage.writes("log prune", "log.json", &["--older-than", "1ms", "--dry-run"]);
    stage.writes("backup list", "backups.json", &[]);
    stage.writes("backup prune", "backups.json", &["--older-than", "1ms", "--dry-run"]);
    for backup in stage.backups() {
        stage.writes("restore", "restore.json", &[&backup.display().to_string(), "--dry-run"]);
    }
    let last = stage.backups().pop().unwrap().display().to_string();
    stage.writes("restore", "restore.json", &[&last, "--yes"]);
    for operation in &operations {
        let op = operation["op"].as_str().unwrap();
        stage.writes("log show", "log-show.json", &[op]);
        stage.writes("undo", "undo.json", &[op, "--dry-run"]);
    }
    stage.writes("undo", "undo.json", &["--yes"]);
    let before = stage.home().join("before.jsonl").display().to_string();
    stage.writes("diff", "diff.json", &[&before]);
}

/// Races, stories, explorations: each finds something.
fn games(stage: &mut Stage) {
    stage.writes(
        "race",
        "race.json",
        &["--concurrency", "8", "--rounds", "3", "--schema", "express,reference"],
    );
    let loses = ["--strategy", "check-then-act", "--think-time", "5ms", "--schema", "express"];
    stage.writes(
        "race",
        "race.json",
        &[&["--concurrency", "8", "--rounds", "5"], &loses[..]].concat(),
    );
    stage.writes("simulate", "scenarios.json", &["list"]);
    let played = ["zombie-releases", "cluster-slots", "--schema", "express,event-consumer"];
    let mut accepted = stage.writes("simulate", "simulate.json", &played);
    accepted["cells"].as_array_mut().unwrap().pop();
    accepted["cells"][0]["verdict"] = "safe".into();
    let accepted = stage.file("matrix.json", accepted.to_string());
    stage.document("simulate", "simulate.json", &[&played[..], &["--expect", &accepted]].concat());
    let two = ["express", "--workers", "2"];
    let mut explored = stage.writes("explore", "explore.json", &two);
    let harms = explored["schemas"][0]["harms"].as_array_mut().unwrap();
    let token = harms.pop().unwrap()["token"].as_str().unwrap().to_owned();
    let accepted = stage.file("frontier.json", explored.to_string());
    stage.document("explore", "explore.json", &[&two[..], &["--expect", &accepted]].concat());
    stage.document("explore", "explore.json", &[&two[..], &["--max-states", "10"]].concat());
    stage.document(
        "explore",
        "explore.json",
        &[&two[..], &["--assume", "critical-section"]].concat(),
    );
    stage.document("explore", "explore.json", &["--replay", &token]);
    let mixed = ["--mix", "go-middleware-v1,go-middleware", "--workers", "2", "--faults", "none"];
    stage.document("explore", "explore.json", &mixed);
    stage
        .run(&[&["begin", "explained", "--schema", "express", "--yes"], &LONG[..]].concat())
        .exits(0);
    let explain = [&["explained", "--explain", "--schema", "express"], &LONG[..]].concat();
    let explained = stage.document("inspect", "inspect.json", &explain);
    assert_eq!(explained["explained"][0]["reachable"], true);
}

/// A service that keeps no lock, so that a check fails.
fn services(stage: &mut Stage) {
    let redis = stage.url().to_owned();
    let correct = Config::correct(wire::schema("express"), redis, Duration::from_millis(20));
    let service =
        ProbeService::start(Config { variant: Some(Variant::NoLock), ..correct }).unwrap();
    let (url, effects) = (service.url("/payments"), service.url("/effects"));
    let payment = r#"{"order":"order-1","amount":500}"#;
    let type_of = "Content-Type: application/json";
    let request = [&url, "-d", payment, "-H", type_of, "--effects", &effects];
    let bounds = ["--rounds", "1", "--concurrency", "4"];
    let probed = stage.writes("probe", "probe.json", &[&request[..], &bounds].concat());
    let accepted = stage.file("probed.json", probed.to_string());
    let expect = ["--expect", &accepted];
    stage.document("probe", "probe.json", &[&request[..], &bounds, &expect].concat());
}

/// What needs no server.
fn settings(stage: &mut Stage) {
    stage.writes("schema list", "schemas.json", &[]);
    stage.writes("schema list", "schemas.json", &["--libraries"]);
    let dir = stage.home().join("own").display().to_string();
    stage.writes("schema show", "schemas.json", &["observed", "--schema-dir", &dir]);
    let full = "[contexts.full]\nurl = \"redis://ana@h:1/0\"\nprotected = true\ncolor = \"red\"\nschema = [\"express\"]\n";
    stage.file(".config/idemctl/config.toml", format!("{full}[contexts.bare]\nread_only = true\n"));
    stage.writes("config show", "settings.json", &[]);
    stage.writes("context list", "contexts.json", &[]);
    stage.writes("context show", "contexts.json", &["full"]);
    stage.writes("context test", "context-test.json", &["bare"]);
    stage.writes("context test", "context-test.json", &[]);
}

#[test]
fn every_command_writes_what_its_schema_says() {
    let mut stage = Stage::start();
    for part in [looks, steps, named, many, accounts, games, services, settings] {
        part(&mut stage);
    }
    let form = |command: &str, schema: &str, form| -> Form {
        (command.to_owned(), schema.to_owned(), form)
    };
    let of = |(command, schemas): &(&'static str, &'static [&'static str])| {
        let forms = schemas
            .iter()
            .flat_map(|schema| ["json", "jsonl"].map(|kind| form(command, schema, kind)));
        forms.collect::<Vec<_>>()
    };
    assert_eq!(
        *stage.seen(),
        OUTPUTS.iter().flat_map(of).collect(),
        "each form of each command was written"
    );
}
