//! Answers without a body, long ones and binary ones, effects that appear late, and a store that is
//! gone.

use std::time::Duration;

use crate::stage::{PAYMENT, STRICT, Stage, verdicts, with_verdict};
use crate::support::probe_service::{Answers, Late, Variant};

const REPLAY: &str = "replay-at-once,replay-status,replay-body,replay-headers,replay-one-effect,\
                      concurrent-one-effect";

#[test]
fn an_unusual_body_is_replayed() {
    for schema in ["go-middleware", "reference"] {
        for answers in [Answers::Empty, Answers::Large, Answers::Binary] {
            let stage = Stage::with(schema, |config| config.answers = answers);
            let run = stage.probe(&["--only", REPLAY, "--rounds", "1"]);
            let found = verdicts(&run);
            assert_eq!(with_verdict(&run, "fail"), [""; 0], "{}", run.all());
            for id in ["replay-at-once", "replay-status", "replay-one-effect"] {
                assert_eq!(found[id].0, "pass", "{schema} {id}: {}", found[id].1);
            }
            let body = if answers == Answers::Empty { "not-applicable" } else { "pass" };
            assert_eq!(found["replay-body"].0, body, "{schema}: {found:#?}");
        }
    }
}

#[test]
fn another_long_or_binary_body_is_found() {
    for answers in [Answers::Large, Answers::Binary] {
        let stage = Stage::with("go-middleware", |config| {
            config.answers = answers;
            config.variant = Some(Variant::NoLock);
        });
        let run = stage.probe(&["--only", "concurrent-answers", "--rounds", "1"]);
        assert_eq!(with_verdict(&run, "fail"), ["concurrent-answers"], "{}", run.stderr);
    }
}

#[test]
fn another_status_is_found_in_an_answer_without_a_body() {
    let stage = Stage::with("go-middleware", |config| {
        config.answers = Answers::Empty;
        config.variant = Some(Variant::NoLock);
    });
    let run = stage.probe(&["--only", "concurrent-one-effect", "--rounds", "1"]);
    assert_eq!(with_verdict(&run, "fail"), ["concurrent-one-effect"], "{}", run.stderr);
}

#[test]
fn another_path_is_judged_only_if_the_service_accepts_it() {
    let only = ["--only", "mismatch-path"];
    let stage = Stage::new("express", None);
    // Nothing is sent to a path that was not named.
    let url = stage.service.url("/payments");
    let unnamed = ["probe", &url, "-d", PAYMENT, "-o", "json"];
    let run = crate::support::Home::with("").run(&[&unnamed[..], &only].concat());
    let found = verdicts(&run)["mismatch-path"].clone();
    assert_eq!(found, ("not-applicable".to_owned(), "it needs --other-path".to_owned()));
    assert_eq!(stage.service.effects(), 3 + 1);

    let run = stage.probe(&[&only[..], &["--profile", "stripe"]].concat()).exits(0);
    let found = verdicts(&run)["mismatch-path"].clone();
    assert_eq!(found, ("pass".to_owned(), "/refunds got 422".to_owned()), "{}", run.all());

    let named = [&unnamed[..], &only, &["--other-path", "/none"]].concat();
    let run = crate::support::Home::with("").run(&named).exits(0);
    let (verdict, message) = verdicts(&run)["mismatch-path"].clone();
    assert_eq!(verdict, "not-applicable", "{}", run.all());
    assert!(message.contains("/none with a key of its own got 404"), "{message}");
}

#[test]
fn another_path_that_gets_the_first_result_is_found() {
    let stage = Stage::new("express", Some(Variant::IgnoresPath));
    let only = ["--only", "mismatch-path,mismatch-payload"];
    // The draft leaves it open.
    let run = stage.probe(&only).exits(0);
    let found = verdicts(&run)["mismatch-path"].clone();
    assert_eq!(
        found,
        ("reported".to_owned(), "/refunds was accepted with the same key".to_owned())
    );
    let run = stage.probe(&[&only[..], &["--profile", STRICT]].concat()).exits(1);
    assert_eq!(with_verdict(&run, "fail"), ["mismatch-path"], "{}", run.all());
}

const COUNTED: &str = "replay-one-effect,concurrent-one-effect,concurrent-keys,key-missing,\
                       disconnect-retry,timeout-retry-early";

fn effects(stage: &Stage, is_by_key: bool) -> String {
    match is_by_key {
        true => stage.service.url("/effects?key={{key}}"),
        false => stage.service.url("/effects"),
    }
}

/// A correct service whose worker executes after the answer.
#[test]
fn effects_that_appear_late_fail_nothing() {
    for is_by_key in [true, false] {
        let stage = Stage::with("express", |config| {
            config.late = Late::Effect(Duration::from_millis(250));
        });
        let words = ["--only", COUNTED, "--rounds", "1"];
        let run = stage.probe_counting(&effects(&stage, is_by_key), "json", &words);
        assert_eq!(with_verdict(&run, "fail"), [""; 0], "{}", run.all());
    }
}

/// A second execution that shows only long after the check counted, and only for this key.
#[test]
fn a_late_second_effect_of_a_key_is_found() {
    let stage = Stage::with("express", |config| {
        config.late = Late::SecondEffect(Duration::from_millis(900));
    });
    let words = ["--only", "replay-one-effect"];
    let run = stage.probe_counting(&effects(&stage, true), "json", &words);
    assert_eq!(with_verdict(&run, "fail"), ["replay-one-effect"], "{}", run.all());
}

/// Rule: a service that forgets its results is found, although retries at once are replayed.
/// Revert: without the pause, no check of the profile fails.
#[test]
fn a_service_that_forgets_its_results_is_found() {
    let stage = Stage::new("express", Some(Variant::ForgetsResults));
    let only = ["--only", "replay-at-once,replay-status,replay-one-effect,replay-later"];
    let run = stage.probe(&only).exits(1);
    assert_eq!(with_verdict(&run, "fail"), ["replay-later"], "{}", run.all());
    let (_, message) = &verdicts(&run)["replay-later"];
    assert!(message.contains("3s after the answer"), "{message}");
    let soon = [&only[..], &["--later", "50ms"]].concat();
    let run = stage.probe(&soon).exits(0);
    assert_eq!(verdicts(&run)["replay-later"].0, "pass", "{}", run.all());
}

/// Rule: each member is changed in turn, because a service may compare only one of them.
/// Revert: without this check, another amount is rejected, and another order is not tried.
#[test]
fn a_service_that_compares_one_member_is_found() {
    let stage = Stage::new("express", Some(Variant::IgnoresMembers));
    let only = ["--only", "mismatch-payload,mismatch-members"];
    let run = stage.probe(&only).exits(1);
    assert_eq!(with_verdict(&run, "fail"), ["mismatch-members"], "{}", run.all());
    let (_, message) = &verdicts(&run)["mismatch-members"];
    assert_eq!(message, "another value was accepted of /order");
    let run = Stage::new("express", None).probe(&only).exits(0);
    let (_, message) = &verdicts(&run)["mismatch-members"];
    assert_eq!(message, "another value was rejected of /order, /amount");
}

/// To see it by hand: start examples/probe-service, stop its Redis, and probe.
#[test]
fn a_service_without_its_store_proves_nothing() {
    let mut stage = Stage::new("express", None);
    stage.server.kill();
    let url = stage.service.url("/payments");
    let home = crate::support::Home::with("");
    let run = home.run(&["probe", &url, "-d", PAYMENT]).exits(3);
    run.says("answered the first request with 503");
    assert_eq!(stage.service.effects(), 0);
}
