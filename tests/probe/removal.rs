//! The records that a probe made are removed at the end, and no others.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::stage::{Stage, verdicts};
use crate::support::probe_service::{CONTRACTS, Config, KeptKey};
use crate::support::{Running as _, Runs as _, at_once, bounded};
use crate::validator::faults;

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
            left.is_empty() && removed.is_some_and(|removed| removed > 50) && not_found == Some(0);
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
    for (blocks, file) in [(0, "audit.jsonl"), (1, "backups")] {
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

/// Rule: a record that this run alone can have made is removed, also if the service cuts its key. With
/// 32 characters all keys are cut, with 36 and 64 only those of 256.
/// Revert: without the cut keys, these records stay.
#[test]
fn records_under_cut_keys_are_removed() {
    for length in [32, 36, 64] {
        let keep = |config: &mut Config| config.kept_key = KeptKey::Cut(length);
        let stage = with_others(Stage::with("express", keep));
        let run = stage.probe(&["--only", "key-long"]);
        assert_eq!(own_keys(&stage), [""; 0], "{length}: {}", run.all());
        let records = &run.json()["records"];
        let expected = if length == 32 { 1 } else { 5 };
        assert_eq!(records["removed"], expected, "{length}: {}", run.all());
        assert_eq!(records["not_found"], json!([]), "{length}: {}", run.all());
    }
}

/// The key of such a record could be that of another run, so it stays, and the run says so.
#[test]
fn records_under_keys_that_another_run_could_have_stay() {
    let keep = |config: &mut Config| config.kept_key = KeptKey::Cut(20);
    let stage = with_others(Stage::with("express", keep));
    let run = stage.probe(&["--only", "replay-status"]);
    run.says("Redis has no record of this probe's keys under this schema");
    let left = own_keys(&stage);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].starts_with("idem:idemctl-probe-"), "{left:?}");
    assert_eq!(run.json()["records"]["removed"], 0);
}

/// Rule: a record that idemctl cannot find is not passed over in silence.
/// Revert: without the keys that were answered, nothing is said of the two hashes.
#[test]
fn keys_without_a_record_are_named() {
    let keep = |config: &mut Config| config.kept_key = KeptKey::LongHashed;
    let stage = with_others(Stage::with("express", keep));
    let run = stage.probe(&["--only", "key-long"]);
    assert_eq!(own_keys(&stage).len(), 2, "{}", run.all());
    let records = run.json()["records"].clone();
    assert_eq!(records["removed"], 4, "{}", run.all());
    let named = records["not_found"].as_array().unwrap();
    assert_eq!(named.len(), 2, "{}", run.all());
    assert!(named.iter().all(|key| key.as_str().unwrap().len() == 256), "{named:?}");
    run.says("2 keys that the service accepted have no record in Redis under this schema");
    let faults = faults("probe.json", &[run.json()]);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
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
