//! `--payloads 2`: the last worker requests another operation with the same key, and takes part in every order of the steps.

use std::fs;

use super::{explore, frontier, only, ways};
use crate::simulate::variant::{home, run};

const PROTOCOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/protocols");

const ASSUMING: [&str; 2] = ["--assume", "critical-section,results-outlive-retries"];

/// Rule: who compares the payload in every call that decides executes and replays one operation only.
#[test]
fn protocols_that_compare_payloads_are_left_in_peace() {
    let names = ["fingerprint-by-client", "fingerprint-in-script", "reference"];
    let dir = ["--schema-dir", PROTOCOLS, "--payloads", "2", "--sandbox", "-o", "json"];
    let words = [&["explore"], &names[..], &dir, &ASSUMING].concat();
    let explored = run(home().path(), &words).exits(0);
    for exploration in explored.json()["schemas"].as_array().unwrap() {
        assert_eq!(exploration["payloads"], 2);
        assert_eq!(frontier(exploration), ways(&[]), "{}", exploration["schema"]);
    }
}

/// Rule: a schema that compares no payloads serves another operation like a retry.
#[test]
fn a_schema_that_compares_no_payloads_serves_another_operation() {
    for (schema, steps) in [("express", 4), ("event-consumer", 5)] {
        let words = [schema, "--payloads", "2", "--faults", "none", "-o", "json"];
        let explored = only(&explore(&words).exits(1));
        let broken = frontier(&explored);
        assert_eq!(broken["payloads-apart"], [(String::new(), steps)], "{schema}: {broken:?}");
        assert_eq!(explored["not_asked"], serde_json::json!([]), "{schema}");
    }
}

/// Rule: the token says that the last worker has another payload.
#[test]
fn a_token_plays_both_payloads_again() {
    let token = "1:express,express+:s0.e0.s0.s1";
    let replayed = explore(&["--replay", token]).exits(1);
    replayed.shows("Broken: payloads-apart");
    let alone = explore(&["--replay", &token.replace('+', "")]).exits(0);
    alone.shows("This history breaks no invariant.");
    // Each operation has its own effect, so this is no second one.
    let both = "1:express,express+:s0.e0.x0.s1.e1";
    let text = explore(&["--replay", both]).exits(1).text();
    assert!(text.contains("executes the payment of 99"), "{text}");
    assert!(text.contains("Broken: payloads-apart") && !text.contains("one-effect"), "{text}");
}

#[test]
fn an_accepted_result_with_two_payloads_is_not_compared_with_one() {
    let home = home();
    let accepted = home.path().join("accepted.json");
    let words = ["explore", "reference", "--workers", "2", "--sandbox", "-o", "json"];
    let two = run(home.path(), &[&words[..], &["--payloads", "2"]].concat()).exits(0);
    fs::write(&accepted, two.stdout).unwrap();
    let expect = ["--expect", accepted.to_str().unwrap()];
    let refused = run(home.path(), &[&words[..], &expect].concat()).exits(2);
    refused.says("was accepted with payloads=2, but this run has payloads=1");
    run(home.path(), &[&words[..], &expect, &["--payloads", "2"]].concat()).exits(0);
}

#[test]
fn two_payloads_need_two_workers() {
    explore(&["reference", "--workers", "1", "--payloads", "2"])
        .exits(2)
        .says("two --payloads need at least two workers");
}
