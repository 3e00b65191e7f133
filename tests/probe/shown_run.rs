//! What a page says of the whole run.

use crate::outside::{FixedService, created};
use crate::stage::{PAYMENT, STRICT, Stage};
use crate::support::Home;
use crate::support::probe_service::Variant;

const ONLY: [&str; 2] = ["--only", "replay-status"];

#[test]
fn a_run_says_how_many_operations_it_executed() {
    let stage = Stage::new("express", None);
    let page = stage.probe_as("table", &ONLY).exits(0);
    let made = stage.service.effects();
    page.shows(format!("7 requests were sent, and --effects counted {made} operations."));
    assert!(!page.text().contains("removed no records"), "{}", page.all());
    let run = stage.probe(&ONLY).exits(0).json();
    assert_eq!(run["effects_made"], stage.service.effects() - made, "{run:#}");
    assert_eq!(run["effects_complete"], true, "{run:#}");
    let counted = ["--only", "replay-one-effect"];
    let of_key = stage.service.url("/effects?key={{key}}");
    let page = stage.probe_counting(&of_key, "table", &counted).exits(0);
    page.shows("--effects counted at least 1 operation");
}

#[test]
fn a_dry_run_says_how_many_requests_it_prints() {
    let words = ["probe", "http://127.0.0.1:1/", "-d", PAYMENT, "--dry-run"];
    let run = Home::with("").run(&[&words[..], &ONLY].concat()).exits(0);
    run.shows("# 7 requests. With repetitions, idemctl sends at most 5000 (--max-requests).");
}

/// Rule: records that stay can be found by the beginning of their keys.
#[test]
fn records_that_stay_can_be_found() {
    for uuids in [&[][..], &["--uuid-keys"]] {
        let stage = Stage::new("express", None);
        let url = stage.service.url("/payments");
        let words = ["probe", &url, "-d", PAYMENT, "-H", "Authorization: Bearer one"];
        let run = Home::with("").run(&[&words[..], &ONLY, uuids].concat()).exits(0);
        run.shows("How often they executed was not counted").shows("removed no records");
        let text = run.text();
        let (_, prefix) = text.split_once("Each key of this run begins with ").unwrap();
        let prefix = prefix.split(['.', ' ', '\n']).next().unwrap();
        let keys = stage.server.keys();
        assert!(
            !keys.is_empty() && keys.iter().all(|key| key.contains(prefix)),
            "{prefix} {keys:?}"
        );
    }
}

#[test]
fn failures_as_expected_are_called_so() {
    let stage = Stage::new("express", Some(Variant::IgnoresPayload));
    let only = ["--only", "mismatch-payload"];
    let file = stage.server.folder().join("accepted.json");
    std::fs::write(&file, stage.probe(&only).exits(1).text()).unwrap();
    let words = [&only[..], &["--expect", file.to_str().unwrap()]].concat();
    stage.probe_as("table", &words).exits(0).shows("The failures are those of --expect");
}

/// Rule: a reported check says whether its title holds, and shows times as people write them.
#[test]
fn a_reported_check_says_whether_its_title_holds() {
    let stage = Stage::new("express", None);
    let words = ["--only", "record-ttl"];
    let page = stage.probe_as("table", &words).exits(0);
    page.shows("the schema states 1d (holds: the stored result expires");
    assert!(!page.text().contains("passes if"), "{}", page.all());
    let short = Stage::new("go-chi", Some(Variant::ShortResult));
    let words = ["--only", "record-ttl"];
    let page = short.probe_as("table", &words).exits(0);
    page.shows("(does not hold: the stored result expires");
    short.probe_as("table", &[&words[..], &["--profile", STRICT]].concat()).exits(1);
}

#[test]
fn a_number_that_drifts_comes_with_the_remedy() {
    let stage = Stage::new("express", None);
    let drifting = FixedService::start(|number| created(&number.to_string()));
    let run = stage.probe_counting(&drifting.url, "table", &["--only", "replay-one-effect"]);
    run.exits(3).shows("write {{key}} into --effects to count one key");
}
