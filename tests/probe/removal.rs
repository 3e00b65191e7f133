//! The records that a probe made are removed at the end, and no others.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::stage::{PAYMENT, Stage, verdicts};
use crate::support::probe_service::CONTRACTS;
use crate::support::{Running as _, Runs as _, at_once, bounded};

/// Keys of another run and of another program, which stay.
const OTHERS: [&str; 5] = [
    "idem:idemctl-probe-0123456789abcdef-00001",
    "idem:idemctl-probe",
    "idempotency:idemctl-probe-0123456789abcdef-1",
    "idempotency:idemctl-probe",
    "other:idemctl-probe-1",
];

fn stage_with_others(schema: &'static str) -> Stage {
    with_others(Stage::new(schema, None))
}

fn with_others(stage: Stage) -> Stage {
    for key in OTHERS {
        stage.server.set(key, r#"{"status":"completed","statusCode":201,"body":"x"}"#, 600_000);
    }
    stage
}

/// The keys on the server without those of the others.
#[track_caller]
fn own_keys(stage: &Stage) -> Vec<String> {
    let keys = stage.server.keys();
    for key in OTHERS {
        assert!(keys.iter().any(|known| known == key), "{key} is gone: {keys:?}");
    }
    keys.into_iter().filter(|key| !OTHERS.contains(&key.as_str())).collect()
}

#[test]
fn all_records_of_the_run_are_removed_and_no_others() {
    let wrong = at_once(&CONTRACTS, |contract| {
        let stage = stage_with_others(contract.schema);
        let run = stage.probe(&["--rounds", "1", "--faults"]);
        let left = own_keys(&stage);
        let removed = run.json()["records"]["removed"].as_u64();
        let not_found = run.json()["records"]["not_found"].as_array().map(Vec::len);
        let is_right =
            left.is_empty() && removed.is_some_and(|removed| removed > 40) && not_found == Some(0);
        (!is_right).then(|| format!("{}: {left:?}\n{}", contract.schema, run.stderr))
    });
    let wrong: Vec<_> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn removed_records_can_be_restored_from_the_backup() {
    let stage = stage_with_others("express");
    let run = stage.probe(&["--only", "replay-status"]).exits(0);
    let backup = run.json()["records"]["backup"].as_str().unwrap().to_owned();
    assert!(own_keys(&stage).is_empty());
    stage.server.idemctl(&["restore", &backup, "--yes"]).exits(0);
    assert_eq!(own_keys(&stage).len(), 5);
}

#[test]
fn records_are_kept_and_named_if_the_server_refuses() {
    let stage = stage_with_others("express");
    stage.server.add_user("probe", "on >word ~* &* +@read +@connection +info +time +hello +role");
    let words = ["--only", "replay-status", "--user", "probe"];
    let mut command = stage.command(&stage.service.url("/effects"), "json", &words);
    let run = command.env("REDISCLI_AUTH", "word").run();
    assert_eq!(verdicts(&run)["replay-status"].0, "pass");
    run.says("may still be in Redis");
    assert_eq!(own_keys(&stage).len(), 5);
    assert_eq!(run.json()["records"]["kept"].as_array().unwrap().len(), 5);
}

/// Rule: without a log or a backup nothing is removed, and the run says so.
/// Revert: without the changes that were not tried, the run says that these records were written after
/// their removal.
#[test]
fn records_stay_and_are_named_if_the_log_or_the_backup_cannot_be_written() {
    for (blocks, file) in [(0, "audit"), (1, "backups")] {
        let stage = stage_with_others("express");
        let words = ["--only", "replay-status"];
        let command = stage.command(&stage.service.url("/effects"), "json", &words);
        let run = bounded(&command, &format!("ulimit -f {blocks}"));
        assert_eq!(own_keys(&stage).len(), 5, "{}", run.all());
        let kept = run.json()["records"]["kept"].clone();
        let reasons: Vec<_> =
            kept.as_array().unwrap().iter().map(|kept| kept["why"].as_str().unwrap()).collect();
        let is_right = |why: &&str| why.contains("cannot write") && why.contains(file);
        assert_eq!(reasons.len(), 5, "{}", run.all());
        assert!(reasons.iter().all(is_right), "{reasons:#?}");
    }
}

/// Rule: records under Redis keys that idemctl does not know stay, and the run says so.
#[test]
fn records_under_other_redis_keys_stay_and_are_named() {
    let stage = stage_with_others("express");
    let schema = "format = 2\nname = \"elsewhere\"\nkeys = { record = \"elsewhere:{key}\" }\n\
                  ttl = { result = \"none\" }\n\n[[value]]\nname = \"done\"\nequals = \"done\"\n\
                  state = \"completed\"\n";
    stage.server.describe("elsewhere", &[("schema.toml", schema)]);
    let url = stage.service.url("/payments");
    let words = ["probe", &url, "-d", PAYMENT, "--schema", "elsewhere", "-o", "json"];
    let run = stage.server.idemctl(&[&words[..], &["--only", "replay-status"]].concat()).exits(0);
    run.says("0 records of this probe removed from Redis");
    assert_eq!(own_keys(&stage).len(), 5, "{}", run.all());
    let records = run.json()["records"].clone();
    assert_eq!(records["removed"], 0, "{}", run.all());
    assert_eq!(records["not_found"].as_array().map(Vec::len), Some(5), "{}", run.all());
}

/// Ctrl-C while the checks run, and SIGTERM.
#[test]
fn an_interrupted_probe_removes_its_records() {
    for signal in [Signal::INT, Signal::TERM] {
        let stage = stage_with_others("express");
        let effects = stage.service.url("/effects");
        let mut command = stage.command(&effects, "table", &["--faults"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let began = Instant::now();
        while own_keys(&stage).len() < 8 && began.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(20));
        }
        child.signal(signal);
        let run = child.ends().exits(130);
        run.says("removed from Redis").says("that the service still executes can store its record");
        assert_eq!(own_keys(&stage), [""; 0], "{}", run.all());
    }
}
