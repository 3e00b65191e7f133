//! Services with one mistake each: the checks that fail there, and only these.

use crate::stage::{STRICT, Stage, with_verdict};
use crate::support::at_once;
use crate::support::probe_service::{VARIANTS, Variant};

/// A mistake, a schema whose service makes it, the checks that fail, and the checks that fail as
/// well unless the machine is too busy for two requests to overlap.
pub const MISTAKES: [(Variant, &str, &[&str], &[&str]); 19] = [
    (
        Variant::NoLock,
        "express",
        &["concurrent-answers", "concurrent-one-effect", "concurrent-payloads"],
        &["disconnect-retry", "timeout-retry-early"],
    ),
    (
        Variant::CheckThenLock,
        "go-middleware-v1",
        &["concurrent-answers", "concurrent-one-effect", "concurrent-payloads"],
        &[],
    ),
    (Variant::StoresAfterAnswering, "event-driven", &["record-stored", "replay-at-once"], &[]),
    (Variant::ReplaysWithoutHeaders, "go-middleware", &["replay-headers"], &[]),
    // The service itself executes twice if a worker looks for a result, is delayed, and takes the
    // lock after another has stored one: rare, and true.
    (Variant::ReplaysAnotherStatus, "event-consumer", &["replay-status"], &["disconnect-retry"]),
    (Variant::AnyCaller, "go-chi", &["mismatch-caller"], &[]),
    (
        Variant::IgnoresPayload,
        "express",
        &["mismatch-members", "mismatch-path", "mismatch-payload"],
        &[],
    ),
    (Variant::IgnoresPath, "express", &["mismatch-path"], &[]),
    (Variant::IgnoresMembers, "express", &["mismatch-members"], &[]),
    (
        Variant::ReleasesOthersLock,
        "event-consumer",
        &["concurrent-answers", "concurrent-one-effect", "concurrent-payloads"],
        &["disconnect-retry", "timeout-retry-early"],
    ),
    (Variant::ReleasesOnHangUp, "express", &["disconnect-retry"], &[]),
    (
        Variant::ShortLock,
        "go-middleware",
        &["disconnect-retry", "replay-one-effect"],
        &[
            "concurrent-payloads",
            "mismatch-members",
            "mismatch-path",
            "mismatch-payload",
            "replay-body",
            "replay-headers",
            "replay-later",
            "timeout-retry-early",
            "timeout-retry-late",
        ],
    ),
    (Variant::ShortResult, "go-chi", &["record-ttl"], &[]),
    (
        Variant::ForgetsResults,
        "express",
        &["record-ttl", "replay-later"],
        // On a busy machine, more than that TTL passes before any retry.
        &[
            "disconnect-retry",
            "mismatch-members",
            "mismatch-path",
            "mismatch-payload",
            "replay-at-once",
            "replay-body",
            "replay-headers",
            "replay-one-effect",
            "replay-status",
            "timeout-retry-early",
            "timeout-retry-late",
        ],
    ),
    (Variant::KeepsFailures, "go-middleware", &["error-then-retry"], &[]),
    (Variant::ReplaysAnotherError, "go-middleware", &["error-then-retry"], &[]),
    (Variant::ReleasesAfterFailure, "event-driven", &["error-then-retry"], &[]),
    (Variant::AcceptsMissingKey, "event-driven", &["key-missing"], &[]),
    (Variant::SameOwner, "reference", &["record-owner"], &[]),
];

/// How often a mistake is looked for at most: two requests do not race in each probe.
const MAX_PROBES: usize = 20;

/// What is wrong with the findings of a probe; `None` if they are those of the mistake.
fn wrong(failed: &[String], must: &[&str], may: &[&str]) -> Option<String> {
    let is_failed = |id: &&&str| failed.iter().any(|failed| failed == **id);
    let missing: Vec<_> = must.iter().filter(|id| !is_failed(id)).collect();
    let is_known = |id: &&String| must.contains(&id.as_str()) || may.contains(&id.as_str());
    let false_ones: Vec<_> = failed.iter().filter(|id| !is_known(id)).collect();
    if missing.is_empty() && false_ones.is_empty() {
        return None;
    }
    Some(format!("not found {missing:?}, too much {false_ones:?}"))
}

#[test]
fn each_mistake_is_found() {
    let found = at_once(MISTAKES, |(variant, schema, must, may)| {
        let stage = Stage::new(schema, Some(variant));
        let mut failed = Vec::new();
        let mut said = String::new();
        let words = ["--profile", STRICT, "--rounds", "1", "--concurrency", "10"];
        let mut words = [&words[..], &["--later", "2500ms"]].concat();
        for _ in 0..MAX_PROBES {
            let run = stage.probe(&words);
            failed.extend(with_verdict(&run, "fail"));
            said.push_str(&run.stderr);
            let is_missing = |id: &&&str| !failed.iter().any(|failed| failed == **id);
            let missing: Vec<_> = must.iter().filter(is_missing).collect();
            if missing.is_empty() {
                break;
            }
            // What all of them found is not asked again.
            words.truncate(8);
            for id in missing {
                words.extend(["--only", id]);
            }
        }
        let wrong = wrong(&failed, must, may)?;
        Some(format!("{variant:?} in {schema}: {wrong}\n{said}"))
    });
    let wrong: Vec<_> = found.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_variant_of_the_service_is_probed() {
    let probed: Vec<_> = MISTAKES.iter().map(|(variant, ..)| *variant).collect();
    let known: Vec<_> = VARIANTS.iter().map(|(variant, ..)| *variant).collect();
    assert_eq!(probed, known);
}

/// The table of the mistakes in docs/probe.md.
fn table() -> String {
    let mut table = "| mistake | the service | checks that fail |\n|---|---|---|\n".to_owned();
    for ((_, name, mistake), (_, _, must, may)) in VARIANTS.iter().zip(MISTAKES) {
        let ids: Vec<_> = must.iter().chain(may).map(|id| format!("`{id}`")).collect();
        table += &format!("| `{name}` | {mistake} | {} |\n", ids.join(", "));
    }
    table
}

#[test]
fn the_document_lists_what_is_found() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/probe.md");
    let document = std::fs::read_to_string(file).unwrap();
    assert!(document.contains(&table()), "docs/probe.md has another table than:\n{}", table());
}
