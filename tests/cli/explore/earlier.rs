//! The built-in schemas without the faults that were added later: what was explored before is explored as before.

use super::{explore, explored_as_text};

/// The counts of the later faults, all 0.
const WITHOUT_LATER_FAULTS: &str = ",late-fail=0,resend=0,delay=0";

fn of_all(faults: &str, words: &[&str]) -> String {
    let faults = format!("{faults}{WITHOUT_LATER_FAULTS}");
    let run = explore(&[&["all", "-o", "json", "--faults", &faults], words].concat());
    let mut lines = Vec::new();
    for exploration in run.json()["schemas"].as_array().unwrap() {
        lines.push(explored_as_text(exploration));
    }
    lines.join("\n")
}

/// Rule: a fault that may not happen changes neither a frontier nor the number of states and schedules.
#[test]
fn without_the_later_faults_everything_is_as_before() {
    insta::assert_snapshot!(of_all("expiry=2,crash=1,lost=1,fail=1,give-up=1", &[]));
}

#[test]
fn without_the_later_faults_every_fault_of_redis_is_as_before() {
    let faults = "expiry=1,crash=1,lost=1,fail=1,give-up=1,evict=1,failover=1,persist=1";
    insta::assert_snapshot!(of_all(faults, &["--workers", "2"]));
}

#[test]
fn without_the_later_faults_the_assumptions_are_as_before() {
    let assuming = ["--assume", "critical-section,results-outlive-retries"];
    insta::assert_snapshot!(of_all("expiry=2,crash=1,lost=1,fail=1,give-up=1", &assuming));
}
