//! What can happen to the built-in schemas.

use super::{EARLIER_FAULTS, explored, ways};

#[test]
fn a_result_is_deleted_by_the_failure_of_another_worker() {
    for schema in ["express", "go-chi"] {
        let expected = ways(&[
            ("one-effect", &[("expiry=1", 5)]),
            ("result-kept", &[("expiry=1 fail=1", 7)]),
            ("result-not-replaced", &[("expiry=1", 7)]),
            ("owner-only", &[("expiry=1", 5)]),
        ]);
        assert_eq!(explored(&[schema, "--faults", EARLIER_FAULTS]), expected, "{schema}");
    }
}

#[test]
fn without_time_only_a_lookup_apart_from_the_lock_makes_an_effect_twice() {
    for schema in
        ["event-driven", "express", "go-chi", "go-middleware", "go-middleware-v1", "reference"]
    {
        assert_eq!(
            explored(&[schema, "--faults", "expiry=0,late-fail=0,resend=0"]),
            ways(&[]),
            "{schema}"
        );
    }
    let expected = ways(&[("one-effect", &[("", 7)]), ("result-not-replaced", &[("", 8)])]);
    assert_eq!(explored(&["event-consumer", "--faults", "none"]), expected);
}

#[test]
fn a_failure_that_is_stored_hides_an_effect() {
    let expected =
        ways(&[("one-effect", &[("expiry=1", 5)]), ("true-replay", &[("expiry=1 fail=1", 7)])]);
    assert_eq!(explored(&["event-driven", "--faults", EARLIER_FAULTS]), expected);
}

#[test]
fn a_section_without_faults_is_enough_for_who_checks_owners() {
    let assuming = [
        "--workers",
        "4",
        "--faults",
        "expiry=3,delay=0,crash=2,lost=2,resend=0,fail=2,late-fail=2",
    ];
    let assuming =
        [&assuming[..], &["--assume", "critical-section,results-outlive-retries"]].concat();
    assert_eq!(explored(&[&["reference"], &assuming[..]].concat()), ways(&[]));
    let charges_twice = explored(&[&["express"], &assuming[..]].concat());
    assert_eq!(charges_twice["one-effect"], [("expiry=1 fail=1".to_owned(), 8)]);
}

#[test]
fn an_assumption_takes_away_only_what_it_names() {
    let outlives = ["reference", "--assume", "results-outlive-retries", "--faults", EARLIER_FAULTS];
    assert_eq!(explored(&outlives), ways(&[("one-effect", &[("expiry=1", 7)])]));
    let section = ["reference", "--assume", "critical-section"];
    assert_eq!(
        explored(&section),
        ways(&[("one-effect", &[("expiry=1", 8)])]),
        "a result's TTL may still end"
    );
}

#[test]
fn an_eviction_and_a_failover_take_every_lock() {
    let faults =
        ["--faults", "expiry=0,crash=0,lost=0,resend=0,fail=0,late-fail=0,evict=1,failover=1"];
    let lost = explored(&[&["reference"], &faults[..]].concat());
    assert_eq!(lost, ways(&[("one-effect", &[("failover=1", 7), ("evict=1", 7)])]));
}

#[test]
fn a_lock_without_ttl_ends_only_where_begin_heals_it() {
    let faults = ["--faults", "expiry=0,resend=0,late-fail=0,persist=1"];
    assert_eq!(explored(&[&["reference"], &faults[..]].concat()), ways(&[]));
    let stuck = explored(&[&["express"], &faults[..]].concat());
    assert_eq!(
        stuck["lock-ends"],
        [("lost=1 persist=1".to_owned(), 3), ("crash=1 persist=1".to_owned(), 4)]
    );
}

#[test]
fn a_rolling_deploy_fails_where_the_new_release_cannot_read_the_old_ones_results() {
    let mixed = explored(&["--mix", "go-middleware-v1,go-middleware", "--faults", "expiry=0"]);
    assert_eq!(mixed, ways(&[("replays-after-success", &[("", 4)])]));
}
