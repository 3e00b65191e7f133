//! `--effects` with a command: one that counts, and those that give no number.

use std::process::Command;

use crate::stage::{Stage, verdicts, with_verdict};
use crate::support::probe_service::Variant;
use crate::support::{Run, until};

const ONCE: &str = "executed once; the retries got 201 and 201";

const COUNTED: [&str; 2] = ["--only", "replay-one-effect"];

/// A command of the shell that prints the number of executions.
fn counting(stage: &Stage, query: &str) -> String {
    format!("curl -s '{}{query}'", stage.service.url("/effects"))
}

/// Nothing is sent, and the message says why.
#[track_caller]
fn assert_nothing_sent(stage: &Stage, run: Run, why: &str) {
    let run = run.exits(2);
    run.says(why).says("nothing was sent");
    assert!(!run.all().contains("sesame"), "{}", run.all());
    assert_eq!(stage.service.effects(), 0, "{}", run.all());
}

/// The probe proves nothing, and says this.
#[track_caller]
fn assert_inconclusive(run: &Run, why: &str) {
    assert_eq!(run.code, 3, "{}", run.all());
    let (verdict, message) = &verdicts(run)["replay-one-effect"];
    assert_eq!(verdict, "inconclusive", "{}", run.all());
    assert!(message.contains(why), "{message}");
    assert!(!run.all().contains("sesame"), "{}", run.all());
}

#[test]
fn a_command_counts() {
    let stage = Stage::new("express", None);
    for query in ["", "?key={{key}}"] {
        let run = stage.probe_counting(&counting(&stage, query), "json", &COUNTED).exits(0);
        assert_eq!(verdicts(&run)["replay-one-effect"].1, ONCE, "{query}");
    }
    let object = format!("echo \"{{\\\"a\\\":1,\\\"n\\\":$({})}}\"", counting(&stage, ""));
    let words = [&COUNTED[..], &["--effects-at", "/n"]].concat();
    let run = stage.probe_counting(&object, "json", &words).exits(0);
    assert_eq!(verdicts(&run)["replay-one-effect"].1, ONCE);
}

#[test]
fn a_command_shows_a_second_execution() {
    let stage = Stage::new("express", Some(Variant::NoLock));
    let words = ["--only", "concurrent-one-effect", "--rounds", "1"];
    let run = stage.probe_counting(&counting(&stage, ""), "json", &words).exits(1);
    let (_, message) = &verdicts(&run)["concurrent-one-effect"];
    assert!(message.starts_with("executed ") && message.contains(" times"), "{message}");
}

#[test]
fn a_command_without_a_number_ends_the_run_before_its_first_request() {
    let stage = Stage::new("express", None);
    for (command, why) in [
        ("echo sesame >&2; exit 3", "--effects: exit status 3"),
        ("echo sesame", "--effects returned 7 bytes, but no number"),
        ("true", "--effects returned 0 bytes, but no number"),
        ("kill -KILL $$", "--effects: killed by signal 9"),
        ("/none/sesame", "--effects: exit status 127"),
    ] {
        assert_nothing_sent(&stage, stage.probe_counting(command, "json", &COUNTED), why);
    }
}

/// Rule: the time limit ends the command and all that it started.
#[test]
fn a_command_that_takes_too_long_is_killed() {
    let stage = Stage::new("express", None);
    let words = [&COUNTED[..], &["--request-timeout", "1s"]].concat();
    let command = "sleep 600 & echo $! > pid; wait";
    let run = stage.probe_counting(command, "json", &words);
    assert_nothing_sent(&stage, run, "--effects: no answer within 1s");
    let pid = std::fs::read_to_string(stage.server.folder().join("pid")).unwrap();
    // It sleeps for ten minutes, and its number is free only after someone has waited for it.
    until("the process is gone", || {
        let is_there = Command::new("kill").args(["-0", pid.trim()]).output().unwrap();
        !is_there.status.success()
    });
}

/// A command that works at first fails no check.
#[test]
fn a_command_that_fails_later_proves_nothing() {
    let stage = Stage::new("express", Some(Variant::NoLock));
    // The first four counts are those before the checks.
    let command = format!("echo >> runs; [ $(wc -l < runs) -le 4 ] && {}", counting(&stage, ""));
    let run = stage.probe_counting(&command, "json", &COUNTED);
    assert_eq!(with_verdict(&run, "fail"), [""; 0], "{}", run.all());
    assert_inconclusive(&run, "--effects: exit status 1");
}
