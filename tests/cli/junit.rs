//! `--junit`: the results of explore as JUnit XML. The whole text of a document is tested beside its writer.

use std::collections::BTreeMap;
use std::fs;

use crate::simulate::variant::{home, run};

/// The outcome of each test case: `passed`, `skipped`, or `failed` and the message.
type Outcomes = BTreeMap<String, String>;

/// Runs a command with `--junit`, and returns the outcomes of its one suite, and the document.
fn cases(words: &[&str], exit: i32) -> (Outcomes, String) {
    let folder = home();
    let file = folder.path().join("report.xml");
    let written = ["--sandbox", "--junit", file.to_str().unwrap()];
    run(folder.path(), &[words, &written].concat()).exits(exit);
    let xml = fs::read_to_string(file).unwrap();
    assert_eq!(xml.matches("<testsuite ").count(), 1, "{xml}");
    let mut outcomes = Outcomes::new();
    for case in xml.split("<testcase name=\"").skip(1) {
        let name = between(case, "", "\"");
        let outcome = if case.contains("<skipped ") {
            "skipped".to_owned()
        } else if case.contains("<failure ") {
            format!("failed: {}", between(case, "<failure message=\"", "\""))
        } else {
            "passed".to_owned()
        };
        outcomes.insert(name.to_owned(), outcome);
    }
    let failed = outcomes.values().filter(|outcome| outcome.starts_with("failed")).count();
    assert!(xml.contains(&format!("tests=\"{}\" failures=\"{failed}\"", outcomes.len())), "{xml}");
    (outcomes, xml)
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap();
    rest.split_once(after).unwrap().0
}

#[test]
fn an_invariant_fails_only_if_its_violation_counts() {
    let (explored, xml) = cases(&["explore", "reference"], 0);
    assert!(explored.values().all(|outcome| outcome == "passed"), "{explored:#?}");
    assert_eq!(explored.len(), 13, "ten invariants and three goals");
    // What does not count is shown nevertheless.
    assert!(xml.contains("<system-out>  one-effect, 1 expiry (environment)\n"));
    let (strict, _) = cases(&["explore", "go-middleware", "--strict"], 1);
    let message = "failed: expected: only its owner removes a lock; broken by 1 expiry";
    assert_eq!(strict["owner-only"], message);
    let (express, _) = cases(&["explore", "express"], 1);
    assert_eq!(express["payloads-apart"], "skipped");
    assert_eq!(express["reaches-effect"], "passed");
    assert!(express["owner-only"].starts_with("failed: "), "{express:#?}");
}

/// Rule: what was not searched has not passed.
#[test]
fn an_exploration_that_ends_early_has_not_passed() {
    let (part, _) = cases(&["explore", "reference", "--max-states", "200"], 3);
    assert!(part.values().all(|outcome| outcome == "skipped"), "{part:#?}");
}

/// Rule: with --expect, the test cases fail if the command does.
#[test]
fn with_expect_only_differences_fail() {
    let folder = home();
    let path = folder.path().join("accepted.json");
    let words = ["explore", "express", "-o", "json", "--sandbox"];
    let accepted = run(folder.path(), &words).exits(1).text();
    fs::write(&path, &accepted).unwrap();
    let words = ["explore", "express", "--expect", path.to_str().unwrap()];
    let (same, _) = cases(&words, 0);
    assert!(same.values().all(|outcome| !outcome.starts_with("failed")), "{same:#?}");
    fs::write(&path, accepted.replace("\"owner-only\"", "\"true-replay\"")).unwrap();
    let (other, _) = cases(&words, 1);
    assert!(other["owner-only"].starts_with("failed: expected"), "{other:#?}");
    assert!(other["true-replay"].contains("accepted (expiry=1"), "{other:#?}");
    assert_eq!(other["one-effect"], "passed");
}

#[test]
fn a_report_that_cannot_be_written_is_an_error() {
    let words = ["explore", "reference", "--sandbox"];
    let nowhere = [&words[..], &["--junit", "/nowhere/report.xml"]].concat();
    run(home().path(), &nowhere).exits(2).says("--junit: cannot write /nowhere/report.xml");
}
