//! `idemctl doctor`: each check of a server fails and passes on a real one, what is refused is unknown, and each history that
//! is shown can be replayed.

mod capacity;
mod guards;
mod observing;
mod page;
mod retry_window;

use std::fs;

use serde_json::Value;

use crate::support::{LOCK, Run, Runs as _, Server, alone, until};

const DONE: &str = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":""}"#;

/// A server with this configuration, and a lock and a result of express.
fn server(config: &[&str]) -> Server {
    let server = Server::start_with(config);
    server.set("idem:held", LOCK, 20_000);
    server.set("idem:done", DONE, 3_600_000);
    server
}

/// The statements of a run, whatever its exit code.
fn checks(run: &Run) -> Vec<Value> {
    run.json()["checks"].as_array().unwrap().clone()
}

/// The only statement of this check on a server.
#[track_caller]
fn check(server: &Server, code: &str) -> Value {
    let run = server.idemctl(&["doctor", "--only", code, "-o", "json"]);
    let checks = checks(&run);
    assert_eq!(checks.len(), 1, "{}", run.all());
    assert_eq!(checks[0]["code"], code);
    checks[0].clone()
}

/// Asserts the severity of a check.
#[track_caller]
fn gives(server: &Server, code: &str, severity: &str) {
    let check = check(server, code);
    assert_eq!(check["severity"], severity, "{check:#}");
}

fn set(server: &Server, parameter: &str, value: &str) {
    server.send::<()>(&[b"CONFIG", b"SET", parameter.as_bytes(), value.as_bytes()]);
}

#[test]
fn a_policy_that_deletes_locks_is_shown_by_a_history_that_can_be_replayed() {
    let server = server(&["maxmemory 100mb", "maxmemory-policy allkeys-lru"]);
    let run = server.idemctl(&["doctor", "--only", "eviction-policy"]).exits(1);
    run.shows("error    eviction-policy      maxmemory-policy is allkeys-lru (measured)")
        .shows("express violates one-effect in 5 steps, with 1 eviction")
        .shows("1 problem, 0 notes, 0 not checked, 0 fine");
    let check = check(&server, "eviction-policy");
    let found = &check["counterexamples"][0];
    assert_eq!((&found["schema"], &found["invariant"]), (&"express".into(), &"one-effect".into()));
    // The command is pasted into a shell, as it is.
    let line = check["replay"].as_str().unwrap();
    let replay = line.strip_prefix("idemctl ").unwrap();
    let words: Vec<String> = shlex::split(replay).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let replayed = server.unnamed(&[&words[..], &["-o", "json"]].concat()).exits(1).json();
    let history = &replayed["schemas"][0];
    assert_eq!(history["harms"][0]["invariant"], "one-effect", "{history:#}");
    let trace = history["replay"]["trace"].as_array().unwrap();
    assert!(trace.iter().any(|step| step["fault"] == "evict"), "{history:#}");
    assert_eq!(trace.len(), usize::try_from(found["steps"].as_u64().unwrap()).unwrap());
    set(&server, "maxmemory-policy", "noeviction");
    gives(&server, "eviction-policy", "ok");
    set(&server, "maxmemory-policy", "volatile-lru");
    gives(&server, "eviction-policy", "error");
    set(&server, "maxmemory", "0");
    gives(&server, "eviction-policy", "note");
}

/// Rule: a violation that happens without the fault is not shown as its consequence.
#[test]
fn every_history_contains_the_fault_of_its_check() {
    let server = server(&["maxmemory 100mb", "maxmemory-policy allkeys-lru"]);
    let all = "express,event-driven,event-consumer,go-chi,go-middleware,reference";
    let only = "eviction-policy,persistence";
    let run = server.idemctl(&["doctor", "--schema", all, "--only", only, "-o", "json"]);
    let mut shown = 0;
    for check in checks(&run) {
        let letter = match check["code"].as_str().unwrap() {
            "eviction-policy" => 'v',
            "persistence" => 'b',
            _ => continue,
        };
        for found in check["counterexamples"].as_array().unwrap() {
            let token = found["token"].as_str().unwrap();
            let acts = token.rsplit_once(':').unwrap().1;
            assert!(acts.split('.').any(|act| act.starts_with(letter)), "{check:#}");
            shown += 1;
        }
    }
    assert!(shown >= 10, "{}", run.all());
}

#[test]
fn memory_and_evictions_fail_and_pass() {
    let server = server(&["maxmemory-policy allkeys-lru"]);
    gives(&server, "memory-headroom", "note");
    set(&server, "maxmemory", "1gb");
    gives(&server, "memory-headroom", "ok");
    gives(&server, "evictions", "ok");
    let long = "x".repeat(100_000);
    set(&server, "maxmemory", "5mb");
    for number in 0..100 {
        server.put(&format!("other:{number}"), &long);
    }
    gives(&server, "evictions", "warning");
    assert!(
        ["warning", "error"]
            .contains(&check(&server, "memory-headroom")["severity"].as_str().unwrap())
    );
}

#[test]
fn persistence_fails_and_passes() {
    let server = server(&[]);
    let none = check(&server, "persistence");
    assert_eq!(none["severity"], "warning");
    assert_eq!(none["counterexamples"][0]["faults"], "1 restart", "{none:#}");
    set(&server, "save", "3600 1");
    let snapshots = check(&server, "persistence");
    assert_eq!(snapshots["counterexamples"][0]["faults"], "1 failover", "{snapshots:#}");
    set(&server, "appendonly", "yes");
    gives(&server, "persistence", "note");
    set(&server, "appendfsync", "no");
    gives(&server, "persistence", "warning");
    set(&server, "appendfsync", "always");
    gives(&server, "persistence", "ok");
}

#[test]
fn a_snapshot_that_failed_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(&[&format!("dir {}", folder.path().display())]);
    // The folder of the snapshot is gone.
    folder.close().unwrap();
    server.send::<()>(&[b"BGSAVE"]);
    until("the snapshot has failed", || {
        let info: String = server.send(&[b"INFO", b"persistence"]);
        info.contains("rdb_last_bgsave_status:err")
    });
    gives(&server, "persistence", "error");
}

#[test]
fn locks_without_expiry_fail_and_pass() {
    let server = server(&[]);
    gives(&server, "endless-locks", "ok");
    server.put("idem:stuck", LOCK);
    let found = check(&server, "endless-locks");
    assert_eq!(found["severity"], "error", "{found:#}");
    assert_eq!(found["fact"], "1 lock never expires (express)");
    let history = &found["counterexamples"][0];
    assert_eq!(history["invariant"], "lock-ends", "{found:#}");
    assert_eq!(history["faults"], "1 crash + 1 lost lock TTL");
}

/// Rule: all keys are counted, and not a sample of them. Revert: judged by the sample, most runs say
/// that no lock is without expiry.
#[test]
fn locks_are_counted_among_all_keys() {
    let server = server(&[]);
    server.fill((0..3_000).map(|number| (format!("idem:done-{number}"), DONE)), 3_600_000);
    server.put("idem:stuck", LOCK);
    server.put("idempotency:stuck", r#"{"status":"PENDING"}"#);
    server.set("idem:long", LOCK, 80_000_000);
    let words = ["doctor", "--only", "endless-locks,observed-ttls"];
    let run = server.idemctl(&words).exits(1);
    run.shows("2 locks never expire (express, go-middleware)")
        .shows("locks of express with more time left than the default TTL (30s): 1, up to 22h 13m")
        .shows("sweep --orphaned` shows");
}

/// Rule: without a key, nothing is in order. Revert: without `LockCount::gap`, it is "ok".
#[test]
fn an_empty_database_is_unknown() {
    let server = Server::start();
    let of = |only: &str| {
        let run = server.idemctl(&["doctor", "--only", only, "-o", "json"]).exits(3);
        for check in checks(&run) {
            assert_eq!(check["severity"], "unknown", "{check:#}");
        }
    };
    for only in ["endless-locks", "observed-ttls", "schema-violations"] {
        of(only);
    }
    let run = server.idemctl(&["doctor", "--only", "endless-locks"]).exits(3);
    run.shows("there is no key of a known schema").shows(" check`.");
    assert!(!run.text().contains("\nok "), "{}", run.all());
}

/// Rule: whether writes are accepted now is the first check, and a server that refuses them is no
/// sound one.
#[test]
fn refused_writes_are_found() {
    let server = server(&[]);
    gives(&server, "writes", "ok");
    set(&server, "min-replicas-to-write", "2");
    let run = server.idemctl(&["doctor", "--only", "writes,evictions"]).exits(1);
    run.shows("error    writes               it refuses writes: NOREPLICAS (0 of 2 replicas)");
    set(&server, "min-replicas-to-write", "0");
    set(&server, "maxmemory", "1");
    let full = check(&server, "writes");
    assert!(full["fact"].as_str().unwrap().contains("OOM"), "{full:#}");
}

/// Rule: explore finds no harm in this schema, whose begin takes such a lock over, and the finding stays.
#[test]
fn a_lock_without_expiry_is_a_finding_even_if_no_history_shows_harm() {
    let server = Server::start();
    let words = ["begin", "order-1", "--schema", "reference", "--owner", "worker-1", "--yes"];
    server.idemctl(&words).exits(0);
    let keys: Vec<String> = server.send(&[b"KEYS", b"*"]);
    server.send::<()>(&[b"PERSIST", keys[0].as_bytes()]);
    let run = server.idemctl(&[
        "doctor",
        "--schema",
        "reference",
        "--only",
        "endless-locks",
        "-o",
        "json",
    ]);
    let found = &checks(&run.exits(1))[0];
    assert_eq!(
        (&found["severity"], &found["replay"]),
        (&"error".into(), &Value::Null),
        "{found:#}"
    );
    assert_eq!(found["unharmed"], serde_json::json!(["reference"]));
}

#[test]
fn stated_ttls_are_compared_with_the_records() {
    let server = server(&[]);
    let of = |more: &[&str]| {
        let words = ["doctor", "--schema", "express", "--only", "observed-ttls", "-o", "json"];
        let run = server.idemctl(&[&words[..], more].concat());
        checks(&run).iter().map(|check| check["severity"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), ["ok"]);
    assert_eq!(of(&["--lock-ttl", "5s"]), ["warning"]);
    assert_eq!(of(&["--result-ttl", "1m"]), ["warning"]);
    server.set("idem:long", LOCK, 600_000);
    assert_eq!(of(&[]), ["note"]);
    assert_eq!(of(&["--lock-ttl", "10m"]), ["ok"]);
}

/// Rule: a key or a part of one is never printed.
#[test]
fn weak_and_quoted_keys_are_counted_and_not_printed() {
    let server = Server::start();
    let of = |only: &str| {
        let found = check(&server, only);
        let shown = found.to_string();
        assert!(!shown.contains("order-10") && !shown.contains("1700"), "{found:#}");
        (found["severity"].as_str().unwrap().to_owned(), found["fact"].as_str().unwrap().to_owned())
    };
    server.set("idem:order-10008", DONE, 3_600_000);
    assert_eq!(of("guessable-keys").0, "ok");
    assert_eq!(of("quoted-keys").0, "ok");
    server.set("idem:1700000000000", DONE, 3_600_000);
    assert_eq!(of("guessable-keys").0, "note");
    server.set("idem:undefined", DONE, 3_600_000);
    let (severity, fact) = of("guessable-keys");
    assert_eq!(severity, "warning", "{fact}");
    server.set("idem:\"order-10009\"", DONE, 3_600_000);
    let (severity, fact) = of("quoted-keys");
    assert_eq!(severity, "note", "{fact}");
    server.set("idem:\"order-10008\"", DONE, 3_600_000);
    let (severity, fact) = of("quoted-keys");
    assert_eq!(severity, "warning", "{fact}");
    assert_eq!(
        fact,
        "sampled keys of express with quotation marks: 2 of 5, and without them as well: 1"
    );
}

#[test]
fn a_renamed_command_is_found() {
    let whole = server(&[]);
    gives(&whole, "commands", "ok");
    let renamed = Server::start_with(&["rename-command SET hidden-set"]);
    let found = {
        let run =
            renamed.idemctl(&["doctor", "--only", "commands", "--schema", "express", "-o", "json"]);
        checks(&run)[0].clone()
    };
    assert_eq!(found["severity"], "error", "{found:#}");
    assert_eq!(found["schemas"][0], "express");
    assert!(found["fact"].as_str().unwrap().contains("SET"), "{found:#}");
}

/// True if the server has ACL DRYRUN.
fn has_dryrun(server: &Server) -> bool {
    let reply: redis::RedisResult<String> =
        redis::cmd("ACL").arg("DRYRUN").arg("default").arg("PING").query(&mut server.connect());
    reply.is_ok()
}

#[test]
fn rights_of_the_services_user_fail_and_pass() {
    let server = server(&[]);
    server.add_user("app", "~idem:* +@all");
    server.add_user("poor", "~idem:* +eval +get +set");
    server.add_user("elsewhere", "~other:* +@all");
    server.add_user("some", "~idem:[a-m]* +@all");
    server.add_user("gone", "off ~* +@all");
    let of = |user: &str| {
        let words = ["doctor", "--only", "service-rights", "--service-user", user, "-o", "json"];
        checks(&server.idemctl(&words))[0].clone()
    };
    if !has_dryrun(&server) {
        let unknown = of("app");
        assert_eq!(unknown["severity"], "unknown", "{unknown:#}");
        assert_eq!(unknown["refused"]["command"], "ACL DRYRUN");
        return;
    }
    assert_eq!(of("app")["severity"], "ok");
    // The test key is allowed, and others are not.
    assert_eq!(of("some")["severity"], "unknown");
    let gone = of("gone");
    assert_eq!(gone["severity"], "error", "{gone:#}");
    assert!(gone["fact"].as_str().unwrap().contains("is off"), "{gone:#}");
    let poor = of("poor");
    assert_eq!(poor["severity"], "error", "{poor:#}");
    assert_eq!(poor["schemas"][0], "express");
    let elsewhere = of("elsewhere");
    assert_eq!(elsewhere["severity"], "error", "{elsewhere:#}");
    assert_eq!(of("nobody")["severity"], "unknown");
    gives(&server, "user-rights", "ok");
}

/// Rule: a user who may do almost nothing learns that, and which rule helps; exit 3, and no alarm.
#[test]
fn what_is_refused_is_unknown_with_the_rule_that_allows_it() {
    let server = server(&[]);
    server.add_user("blind", "+hello +ping");
    let run = server
        .command()
        .env("REDISCLI_AUTH", "pw")
        .args(["--user", "blind", "doctor", "-o", "json"])
        .run();
    let run = run.exits(3);
    let checks = checks(&run);
    assert!(checks.len() > 8, "{}", run.all());
    for check in &checks {
        assert_eq!(check["severity"], "unknown", "{check:#}");
        assert_eq!(check["evidence"], "unknown");
        assert!(check["refused"]["command"].is_string());
        let rule = check["refused"]["rule"].as_str().unwrap_or_default();
        assert!(rule.starts_with('+'), "{check:#}");
        assert!(check["remedy"].as_str().unwrap().contains(rule));
    }
    // The rules of the page, and nothing else, allow the checks.
    let document =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/doctor.md")).unwrap();
    let rules = document.lines().find(|line| line.starts_with("~idem* ")).unwrap();
    // Redis 6.2 does not have all of these subcommands, and takes them as first arguments.
    let rules =
        if has_dryrun(&server) { rules.to_owned() } else { rules.replace("+acl|dryrun ", "") };
    server.add_user("sighted", &rules);
    let run = server
        .command()
        .env("REDISCLI_AUTH", "pw")
        .args(["--user", "sighted", "doctor", "--skip", "user-rights", "-o", "json"])
        .run();
    for check in self::checks(&run) {
        assert_ne!(check["severity"], "unknown", "{check:#}");
    }
}

#[test]
fn an_acceptance_silences_a_finding_until_it_expires() {
    let server = server(&[]);
    let accept = |expires: &str| {
        let file = server.folder().join("accepted.toml");
        let text = format!(
            "[[accept]]\ncode = \"persistence\"\nreason = \"a cache\"\nexpires = {expires}\n"
        );
        fs::write(&file, text).unwrap();
        let file = file.display().to_string();
        server.idemctl(&["doctor", "--only", "persistence", "--accept", &file])
    };
    let silent = accept("9999-01-01").exits(0);
    silent.shows("(accepted until 9999-01-01: a cache)");
    accept("2026-01-02").exits(1).shows("(accepted until 2026-01-02: a cache)");
    let missing = server.folder().join("nothing").display().to_string();
    server.idemctl(&["doctor", "--accept", &missing]).exits(2).says("--accept");
    accept("\"tomorrow\"").exits(2).says("--accept");
}

#[test]
fn checks_are_listed_chosen_and_left_out() {
    let list = alone(&["doctor", "--list"]).exits(0);
    list.shows("eviction-policy").shows("sentinel-down-after");
    let server = server(&[]);
    let codes = |words: &[&str]| {
        let run = server.idemctl(&[&["doctor", "-o", "jsonl"], words].concat());
        run.json_lines()
            .iter()
            .map(|line| line["code"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(codes(&["--only", "evictions,clock-local"]), ["evictions", "clock-local"]);
    let rest = codes(&["--skip", "evictions"]);
    assert!(rest.len() > 8 && !rest.contains(&"evictions".to_owned()));
    server.idemctl(&["doctor", "--only", "nothing"]).exits(2);
    server.idemctl(&["doctor", "--only", "evictions"]).exits(0);
}

#[test]
fn nothing_is_written_on_the_server_and_a_finding_needs_no_history() {
    let server = server(&["maxmemory 100mb", "maxmemory-policy allkeys-lru"]);
    let writes = || {
        let info: String = server.send(&[b"INFO", b"persistence"]);
        info.lines().find(|line| line.starts_with("rdb_changes")).unwrap().to_owned()
    };
    let before = writes();
    server.idemctl(&["doctor"]).exits(1);
    assert_eq!(writes(), before, "no check writes");
    // Without a server program in PATH, nothing can be explored.
    let words = ["doctor", "--only", "eviction-policy", "-o", "json"];
    let run = server.command().env("PATH", "/nowhere").args(words).run().exits(1);
    let policy = &checks(&run)[0];
    assert_eq!(policy["severity"], "error", "{policy:#}");
    assert_eq!(policy["unexplored"][0]["schema"], "express", "{policy:#}");
    assert!(policy["replay"].is_null());
}

#[test]
fn without_known_records_the_findings_have_no_history() {
    let server = Server::start_with(&["maxmemory 100mb", "maxmemory-policy allkeys-lru"]);
    server.put("unrelated", "x");
    let run = server.idemctl(&["doctor", "--only", "eviction-policy", "-o", "json"]).exits(1);
    run.says("no schema is known to be in use").says("--schema");
    assert!(checks(&run)[0]["replay"].is_null());
    let named = server.idemctl(&[
        "doctor",
        "--only",
        "eviction-policy",
        "--schema",
        "go-chi",
        "-o",
        "json",
    ]);
    assert_eq!(checks(&named.exits(1))[0]["counterexamples"][0]["schema"], "go-chi");
}

#[test]
fn a_server_that_does_not_answer_is_no_deployment() {
    alone(&["-p", "1", "doctor"]).exits(5).says("cannot reach Redis");
}

#[test]
fn the_sandbox_is_checked_too() {
    let run = alone(&["--sandbox", "doctor", "--only", "clock-local,persistence"]).exits(1);
    run.shows("ok       clock-local").shows("warning  persistence");
}
