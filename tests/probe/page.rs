//! The page of a failure.

use crate::stage::Stage;
use crate::support::probe_service::Variant;

/// The page without what differs from run to run. Each ID becomes letters of the same number, so that
/// the columns stay, and equal IDs stay equal.
fn stable(page: &str, stage: &Stage) -> String {
    let url = stage.service.url("");
    let port = url.rsplit(':').next().unwrap();
    let page = page.replace(port, &"P".repeat(port.len()));
    let page = masked(&page, "pay_", 32);
    let page = masked(&page, "owner ", 36);
    let page = masked(&page, "sha256 ", 8);
    let mut stable = String::new();
    for line in page.lines() {
        let line = match line.split_once("expires in ") {
            Some((before, after)) => {
                let (_, after) = after.split_once(',').unwrap();
                format!("{before}expires in N,{after}")
            }
            None => line.to_owned(),
        };
        stable += line.trim_end();
        stable.push('\n');
    }
    stable
}

/// Replaces what follows each `before` by letters: `a` for the first text, `b` for the second one.
fn masked(page: &str, before: &str, length: usize) -> String {
    let mut known: Vec<String> = Vec::new();
    for (at, _) in page.match_indices(before) {
        let id = page[at + before.len()..][..length].to_owned();
        if !known.contains(&id) {
            known.push(id);
        }
    }
    let mut page = page.to_owned();
    for (id, letter) in known.iter().zip(["a", "b", "c", "d", "e"]) {
        page = page.replace(id, &letter.repeat(length));
    }
    page
}

#[test]
fn a_failure_shows_both_answers_the_record_and_how_to_repeat_it() {
    let stage = Stage::new("reference", Some(Variant::IgnoresPath));
    let words = ["--profile", "stripe", "--only", "mismatch-path"];
    let run = stage.probe_as("table", &words).exits(1);
    insta::assert_snapshot!(stable(&run.text(), &stage));
}
