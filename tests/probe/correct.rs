//! Correct services: no check fails, however often it is made.

use crate::stage::{STRICT, Stage, with_verdict};
use crate::support::at_once;
use crate::support::probe_service::CONTRACTS;

/// How many checks may prove nothing on a busy machine, where requests do not overlap.
const MAX_INCONCLUSIVE: usize = 5;

/// A schema that executes twice without any fault, as `explore event-consumer` shows: a request that
/// saw no result takes the lock after another one has released it. Its service does so on a busy machine,
/// and a probe that says so is right.
const RACES: &str = "event-consumer";

/// Probes a correct service. Returns the checks that failed, with the whole output; `None` if none
/// did.
fn false_failures(stage: &Stage, words: &[&str]) -> Option<String> {
    let twice_before = stage.service.keys_paid_twice();
    let run = stage.probe(words);
    let has_raced = stage.schema == RACES && stage.service.keys_paid_twice() > twice_before;
    let failed = with_verdict(&run, "fail");
    let inconclusive = with_verdict(&run, "inconclusive");
    let is_code_right = match failed.is_empty() {
        true => run.code == 0 || run.code == 3 && !inconclusive.is_empty(),
        false => has_raced && run.code == 1,
    };
    let is_true = is_code_right && inconclusive.len() <= MAX_INCONCLUSIVE;
    (!is_true).then(|| format!("failed {failed:?}, proved nothing {inconclusive:?}: {}", run.all()))
}

/// Probes each of the services this many times, all services at the same time.
fn probe_all(times: usize, words: &[&str]) {
    let stages = CONTRACTS.map(|contract| Stage::new(contract.schema, None));
    let found = at_once(&stages, |stage| {
        (0..times).filter_map(|_| false_failures(stage, words)).collect::<Vec<_>>()
    });
    let found = found.concat();
    assert!(found.is_empty(), "{} probes are wrong: {}", found.len(), found.join("\n"));
}

#[test]
fn no_check_fails_in_a_correct_service() {
    probe_all(1, &[]);
}

#[test]
fn no_check_of_a_strict_profile_fails_in_a_correct_service() {
    probe_all(1, &["--profile", STRICT, "--rounds", "1"]);
}

#[test]
#[ignore = "long: minutes"]
fn no_check_fails_in_200_probes() {
    probe_all(200_usize.div_ceil(CONTRACTS.len()), &["--rounds", "2"]);
}
