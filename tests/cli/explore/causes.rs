//! The cause of each violation: only what other scripts could prevent counts.

use serde_json::Value;

use super::{USUAL, explore, frontier, only, ways};
use crate::simulate::variant::{MINE, reference, run};

/// Invariant, faults, cause and whether it counts, one line per violation.
fn causes(exploration: &Value) -> Vec<String> {
    let mut causes = Vec::new();
    for harm in exploration["harms"].as_array().unwrap() {
        let mut faults = Vec::new();
        for (fault, count) in harm["minimal_faults"].as_object().unwrap() {
            faults.push(format!("{fault}={count}"));
        }
        let counts = if harm["counts"] == true { "counts" } else { "does not count" };
        causes.push(format!(
            "{} by {}: {}, {counts}",
            harm["invariant"].as_str().unwrap(),
            faults.join(" "),
            harm["cause"].as_str().unwrap_or("no cause"),
        ));
    }
    causes
}

/// Rule: what no script can prevent never counts, and has one line.
#[test]
fn what_no_script_can_prevent_does_not_count() {
    let shown = explore(&["reference"]).exits(0);
    let text = shown.text();
    let line = "environment, as with every lock: one-effect\n";
    let first = format!("reference: no schema bug within the bounds\n  {line}");
    assert!(text.starts_with(&first), "{text}");
    assert!(!text.contains("BROKEN") && !text.contains("Expected: "), "{text}");
    let explored = only(&explore(&["reference", "-o", "json"]).exits(0));
    assert_eq!(
        causes(&explored),
        [
            "one-effect by expiry=1: environment, does not count",
            "one-effect by late-fail=1: environment, does not count",
        ]
    );
}

/// Rule: a step that does not claim to check the owner is not accused, unless `--strict` asks for it.
#[test]
fn what_the_file_admits_counts_only_with_strict() {
    let text = explore(&["go-middleware"]).exits(0).text();
    assert!(text.starts_with("go-middleware: no schema bug within the bounds\n"), "{text}");
    assert!(text.contains("\n  not fenced (`checks_owner` false): owner-only\n"), "{text}");
    let text = explore(&["go-middleware", "--strict"]).exits(1).text();
    assert!(text.starts_with("go-middleware: not fenced: 1 broken invariant\n"), "{text}");
    explore(&["reference", "--strict"]).exits(0);
}

/// Rule: a step that claims to check the owner, and removes or replaces what another worker owns, is
/// a bug of the schema, even if it takes a worker that is late. Revert: without `is_fenced`, the
/// cause is the environment.
#[test]
fn a_false_claim_is_a_bug_of_the_schema() {
    let blind =
        reference().with("complete.lua", "if (holder or author) ~= owner then", "if false then");
    let dir = blind.folder().to_str().unwrap();
    let words = ["explore", MINE, "--schema-dir", dir, "--sandbox"];
    let text = run(blind.folder(), &words).exits(1).text();
    assert!(text.starts_with("mine: schema bug: "), "{text}");
    let found = causes(&only(&run(blind.folder(), &[&words[..], &["-o", "json"]].concat())));
    assert!(found.contains(&"owner-only by expiry=1: schema, counts".to_owned()), "{found:#?}");
    assert!(found.contains(&"one-effect by expiry=1: environment, does not count".to_owned()));
}

/// Rule: who names the faults or the assumptions gets one frontier, and all of it counts.
#[test]
fn with_faults_or_assumptions_everything_counts() {
    for words in [&["--faults", USUAL][..], &["--assume", "results-outlive-retries"]] {
        let words = [&["reference", "-o", "json"], words].concat();
        let explored = only(&explore(&words).exits(1));
        assert_eq!(
            causes(&explored),
            [
                "one-effect by expiry=1: no cause, counts",
                "one-effect by late-fail=1: no cause, counts"
            ]
        );
        assert_eq!(explored["assumed"], Value::Null);
    }
}

/// Rule: each frontier of the one run is what the same bounds give alone.
#[test]
fn both_frontiers_are_those_of_two_runs() {
    let both = only(&explore(&["express", "-o", "json"]).exits(1));
    assert_eq!(
        causes(&both),
        [
            "one-effect by resend=1 fail=1: schema, counts",
            "one-effect by expiry=1 fail=1: schema, counts",
            "one-effect by expiry=1: environment, does not count",
            "one-effect by late-fail=1: environment, does not count",
            "result-kept by resend=1 fail=1: schema, counts",
            "result-kept by expiry=1 fail=1: schema, counts",
            "result-kept by resend=1 late-fail=1: not-fenced, does not count",
            "result-kept by expiry=1 late-fail=1: not-fenced, does not count",
            "result-not-replaced by resend=1 fail=1: schema, counts",
            "result-not-replaced by expiry=1 fail=1: schema, counts",
            "result-not-replaced by expiry=1: not-fenced, does not count",
            "result-not-replaced by resend=1 late-fail=1: not-fenced, does not count",
            "owner-only by resend=1 fail=1: schema, counts",
            "owner-only by expiry=1 fail=1: schema, counts",
            "owner-only by expiry=1: not-fenced, does not count",
            "owner-only by resend=1 late-fail=1: not-fenced, does not count",
        ]
    );
    let assume = ["--assume", "critical-section,results-outlive-retries"];
    let assumed = only(&explore(&[&["express", "-o", "json"], &assume[..]].concat()).exits(1));
    let mut of_schema = both.clone();
    of_schema["harms"].as_array_mut().unwrap().retain(|harm| harm["cause"] == "schema");
    assert_eq!(frontier(&of_schema), frontier(&assumed));
    for field in ["assume", "complete", "states", "transitions", "schedules", "depth"] {
        assert_eq!(both["assumed"][field], assumed[field], "{field}");
    }
    // What needs an assumption to fail is what the frontier without assumptions adds.
    let free = frontier(&only(&explore(&["express", "--faults", USUAL, "-o", "json"]).exits(1)));
    let mut of_environment = both.clone();
    of_environment["harms"].as_array_mut().unwrap().retain(|harm| harm["cause"] != "schema");
    let mut added = free.clone();
    for (invariant, harms) in &mut added {
        let of_schema = &frontier(&assumed)[invariant];
        harms.retain(|(faults, _)| of_schema.iter().all(|(other, _)| other != faults));
    }
    assert_eq!(frontier(&of_environment), added);
    let expected = [
        ("resend=1 fail=1", 7),
        ("expiry=1 fail=1", 7),
        ("resend=1 late-fail=1", 8),
        ("expiry=1 late-fail=1", 8),
    ];
    assert_eq!(free["result-kept"], ways(&[("result-kept", &expected)])["result-kept"]);
}

/// Rule: a mixture fails for what the releases cause, without any assumption failing.
#[test]
fn two_releases_have_causes_as_well() {
    let mixed = ["--mix", "go-middleware-v1,go-middleware", "-o", "json"];
    let explored = only(&explore(&mixed).exits(1));
    let causes = causes(&explored);
    assert!(
        causes.contains(&"replays-after-success by : schema, counts".to_owned()),
        "{causes:#?}"
    );
}
