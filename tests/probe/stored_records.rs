//! When a result is stored, and the owners of locks.

use std::time::Duration;

use serde_json::Value;

use crate::stage::{Stage, verdicts};
use crate::support::Run;
use crate::support::probe_service::Variant;

const STORED: [&str; 2] = ["--only", "record-stored"];

/// The head of the answer, and the bounds of the time at which the result was stored.
fn times(run: &Run) -> (u64, u64, u64) {
    let check = run.json()["checks"][0].clone();
    let stored = &check["stored"];
    let time = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{check:#}"));
    (
        time(&check["exchanges"][0]["answered_us"]),
        time(&stored["after_us"]),
        time(&stored["before_us"]),
    )
}

#[test]
fn a_result_that_is_stored_before_the_answer_passes() {
    for schema in ["express", "event-consumer", "reference"] {
        let stage = Stage::new(schema, None);
        let run = stage.probe(&STORED).exits(0);
        let check = run.json()["checks"][0].clone();
        assert_eq!(check["holds"], true, "{check:#}");
        let message = check["message"].as_str().unwrap();
        assert!(message.starts_with("the result was stored "), "{message}");
        let (answered, after, before) = times(&run);
        assert!(after < before && after < answered, "{schema}: {after} {before} {answered}");
    }
}

/// Rule: a result that is stored later is shown with the time that a crash has to lose it.
/// Revert: if idemctl reads only once after the answer, no time is known.
#[test]
fn a_result_that_is_stored_after_the_answer_shows_the_time() {
    let stage = Stage::new("event-driven", Some(Variant::StoresAfterAnswering));
    let run = stage.probe(&STORED).exits(0);
    let check = run.json()["checks"][0].clone();
    assert_eq!(check["holds"], false, "{check:#}");
    let (answered, after, before) = times(&run);
    // The service waits 300 ms. Its answer and the reads may take longer on a busy machine.
    assert!(after >= answered && before > answered + 150_000, "{answered} {after} {before}");
    let page = stage.probe_as("table", &STORED).exits(0);
    page.shows("the result was stored between").shows("after the answer arrived. If the service");
    assert_eq!(stage.server.keys(), [""; 0]);
}

#[test]
fn the_owners_of_two_locks_are_compared() {
    let owner = ["--only", "record-owner"];
    for (schema, variant, verdict, text) in [
        ("reference", None, "reported", "owners of their own"),
        ("event-driven", None, "reported", "owners of their own"),
        ("reference", Some(Variant::SameOwner), "reported", "both locks have the same owner"),
        ("express", None, "not-applicable", "the locks have no owner"),
    ] {
        let stage = Stage::with(schema, |config| {
            config.variant = variant;
            // On a busy machine, the locks are read late.
            config.delay = Duration::from_millis(1_500);
        });
        let run = stage.probe(&owner).exits(0);
        let found = &verdicts(&run)["record-owner"];
        assert_eq!(found.0, verdict, "{schema}: {}", run.all());
        assert!(found.1.contains(text), "{schema}: {}", found.1);
    }
}
