//! Faults of handlers, client libraries and servers: a failure after the effect, a call that is sent again, a delay, a restart.

use super::{explore, explored, frontier, only, ways};
use crate::simulate::variant::{MINE, Variant, reference, run};

/// Only these faults.
fn only_faults(faults: &str) -> String {
    format!("expiry=0,delay=0,crash=0,lost=0,resend=0,fail=0,late-fail=0,give-up=0,{faults}")
}

fn with_only(schema: &str, faults: &str) -> super::Frontier {
    explored(&[schema, "--faults", &only_faults(faults)])
}

fn of_mine(variant: &Variant, words: &[&str]) -> super::Frontier {
    let folder = variant.folder();
    let dir = ["--schema-dir", folder.to_str().unwrap(), "--sandbox", "-o", "json"];
    frontier(&only(&run(folder, &[&["explore", MINE], words, &dir].concat())))
}

const ASSUMING: [&str; 2] = ["--assume", "critical-section,results-outlive-retries"];

/// Rule: a service cannot tell a failure after the effect from one before it, so who releases or retries pays again.
#[test]
fn a_handler_that_fails_after_its_effect_makes_a_retry_execute_again() {
    for (schema, steps) in [("express", 6), ("go-chi", 6), ("reference", 8)] {
        let expected = ways(&[("one-effect", &[("late-fail=1", steps)])]);
        assert_eq!(with_only(schema, "late-fail=1"), expected, "{schema}");
    }
    // A stored failure is replayed although there was an effect.
    let expected = ways(&[("true-replay", &[("late-fail=1", 5)])]);
    assert_eq!(with_only("event-driven", "late-fail=1"), expected);
    // A lock that is kept lets nobody in.
    assert_eq!(with_only("go-middleware", "late-fail=1"), ways(&[]));
}

#[test]
fn a_failure_after_the_effect_is_in_the_critical_section() {
    let faults = only_faults("late-fail=2");
    for schema in ["express", "event-driven", "reference"] {
        let words = [&[schema, "--faults", &faults][..], &ASSUMING].concat();
        assert_eq!(explored(&words), ways(&[]), "{schema}");
    }
}

#[test]
fn a_late_failure_is_shown_with_its_own_advice() {
    let words = ["express", "--faults", &only_faults("late-fail=1")];
    explore(&words)
        .exits(1)
        .shows("✗ fails after its effect: the provider's answer is lost")
        .shows("pass the key on to the system that has the effect");
}

/// Rule: a release that checks no owner and is sent again deletes the lock of the next worker, although no TTL has ended.
#[test]
fn a_release_that_is_sent_again_takes_the_lock_of_another_worker() {
    for schema in ["express", "go-chi"] {
        let broken = with_only(schema, "resend=1,fail=1");
        assert_eq!(broken["one-effect"], [("resend=1 fail=1".to_owned(), 8)], "{schema}");
        assert_eq!(broken["result-kept"], [("resend=1 fail=1".to_owned(), 7)], "{schema}");
        assert_eq!(broken["owner-only"], [("resend=1 fail=1".to_owned(), 5)], "{schema}");
    }
    let broken = with_only("event-consumer", "resend=1");
    assert_eq!(broken["owner-only"], [("resend=1".to_owned(), 7)]);
    // Who checks the owner loses nothing by it.
    assert_eq!(with_only("reference", "resend=3,fail=1,give-up=1"), ways(&[]));
    // The cause is the release, and not a lock that was too short.
    let words = ["express", "--faults", &only_faults("resend=1,fail=1")];
    let advice =
        "owner-only: express\n  → take a lock only if none exists, store an owner token in it";
    explore(&words).exits(1).shows(advice);
}

/// Rule: the critical section ends with the stored result, so the reply to the call that stores it may be lost.
#[test]
fn a_complete_that_is_sent_again_is_outside_of_the_critical_section() {
    let faults = only_faults("resend=1");
    let words = [&["event-consumer", "--faults", &faults][..], &ASSUMING].concat();
    assert_eq!(explored(&words)["owner-only"], [("resend=1".to_owned(), 7)]);
}

#[test]
fn a_call_that_is_sent_again_meets_the_reply_for_that() {
    let never = |faults: &str| {
        let run = explore(&["reference", "--workers", "1", "--faults", &only_faults(faults)]);
        run.exits(0).text().contains("complete ALREADY")
    };
    assert!(never("resend=0"));
    assert!(!never("resend=1"));
    let token = "1:reference:s0.s0.e0.r0.s0";
    let again = explore(&["--replay", token]).exits(0);
    again.shows("✗ completes (complete); its reply is lost, and it is sent again: stored");
}

/// Rule: the worker waits for the second reply, so its handler cannot fail between the two calls.
#[test]
fn a_handler_does_not_fail_while_its_call_is_sent_again() {
    explore(&["--replay", "1:reference:s0.r0.f0"]).exits(2).says("step 3 (f0) cannot happen there");
    // Before and after it can.
    explore(&["--replay", "1:reference:s0.r0.s0.f0"]).exits(0);
    explore(&["--replay", "1:reference:r0.r0.s0"]).exits(0);
}

/// Rule: a restart takes lock and result at once, which two evictions do not.
#[test]
fn a_restart_takes_all_keys_at_once() {
    let two_keys = with_only("event-driven", "restart=1");
    assert_eq!(two_keys["one-effect"], [("restart=1".to_owned(), 5)]);
    let token = "1:event-consumer,event-consumer:s0.s0.e0.s1.s0.s1.b0";
    let text = explore(&["--replay", token]).exits(0).text();
    let restart =
        text.lines().find(|line| line.contains("✗ it restarts without its data")).unwrap();
    assert!(restart.ends_with(" nothing"), "{text}");
    // Without a key there is nothing to lose.
    explore(&["--replay", "1:express:b0"]).exits(2).says("step 1 (b0) cannot happen there");
    let server = crate::support::Server::start();
    server.idemctl(&["explore", "express", "--faults", "restart=1"]).exits(2).says("--sandbox");
}

/// A begin that takes over a lock whose `created_at` is more than 10 seconds ago.
fn takes_over_by_age() -> Variant {
    reference().with(
        "begin.lua",
        "  if locked_for then\n",
        "  local created = tonumber(string.match(stored, '\"created_at\":(%d+)'))\n  \
         if locked_for and redis.call('TIME')[1] * 1000 - created > 10000 then\n    \
         locked_for, outcome = nil, 'failed'\n  end\n  if locked_for then\n",
    )
}

/// Rule: time passes in parts of a TTL, so a lock that lives has an age.
#[test]
fn a_lock_that_is_taken_over_by_its_age_lets_two_workers_in() {
    let faults = only_faults("expiry=1,delay=1");
    let rash = takes_over_by_age();
    let broken = of_mine(&rash, &[&["--faults", &faults][..], &ASSUMING].concat());
    assert_eq!(broken["one-effect"], [("delay=1".to_owned(), 7)], "{broken:?}");
    assert_eq!(explored(&[&["reference", "--faults", &faults][..], &ASSUMING].concat()), ways(&[]));
}

/// Rule: a delay costs an expiry, so that time never passes more often than `expiry` allows.
#[test]
fn delays_and_expiries_share_a_limit() {
    let states = |faults: &str| {
        let words = ["express", "--faults", &only_faults(faults), "-o", "json"];
        only(&explore(&words))["states"].as_u64().unwrap()
    };
    assert_eq!(states("expiry=0,delay=1"), states("expiry=0,delay=0"));
    assert!(states("expiry=1,delay=1") > states("expiry=1,delay=0"));
    assert_eq!(states("expiry=1,delay=2"), states("expiry=1,delay=1"));
}

#[test]
fn a_delay_is_half_of_the_time_until_the_next_deadline() {
    let text = explore(&["--replay", "1:express:s0.d0.d0.x0"]).exits(0).text();
    for (step, holds) in
        [("✗ 15s pass ", "lock of worker 1, 15s"), ("✗ 7s pass ", "lock of worker 1, 8s")]
    {
        assert!(text.lines().any(|line| line.contains(step) && line.ends_with(holds)), "{text}");
    }
}
