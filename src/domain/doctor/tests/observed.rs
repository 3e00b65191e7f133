//! Judgements of TTLs, and of what `--observe` saw.

use super::*;
use crate::domain::doctor::ObservedRun;
use crate::domain::doctor::lock_watch::{WatchEnd, WatchedLock};
use crate::domain::record::decode::decode_all;
use crate::domain::record::{Content, Deadline, KeyState, Observation};

const HOUR: u64 = 3_600_000;

/// A lock with this time left.
fn lock(schema_name: &str, value: &str, left: u64) -> Record {
    record(schema_name, &[(text(value), TimeLeft::Millis(left))])
}

/// The same lock with another deadline.
fn until(record: &Record, deadline_ms: u64) -> Record {
    let mut later = record.clone();
    later.seen.keys[0].deadline = Deadline::At(deadline_ms);
    later
}

/// Looks so many milliseconds after the first look, by both clocks.
fn look(watched: &mut WatchedLock, record: &Record, millis: u64) {
    let mut record = record.clone();
    let now = 1_000_000 + millis;
    record.seen.server_ms = Some(now);
    let key = &mut record.seen.keys[0];
    if let Deadline::At(_) = key.deadline {
        key.time_left = TimeLeft::until(key.deadline, now);
    }
    watched.look(Some(&record), &record.seen, millis);
}

/// Looks when the Redis key of the lock does not exist.
fn look_at_nothing(watched: &mut WatchedLock, millis: u64) {
    let key = KeyState::new(b"idem:k", Content::Absent, TimeLeft::NoExpiry, Deadline::Never);
    let seen = Observation { server_ms: Some(1_000_000 + millis), keys: vec![key], atomic: true };
    watched.look(None, &seen, millis);
}

/// A lock of express with a TTL of 10 s that was held for this time until its result.
fn ended(held: u64) -> WatchedLock {
    let lock = lock("express", LOCK, 10_000);
    let mut watched = WatchedLock::new(&lock, 0).unwrap();
    look(&mut watched, &lock, held);
    look(&mut watched, &express(RESULT, TimeLeft::Millis(HOUR)), held + 100);
    assert!(matches!(watched.end, WatchEnd::Result { .. }));
    watched
}

/// A lock of express with a TTL of 10 s that was held until its deadline.
fn expired() -> WatchedLock {
    let lock = lock("express", LOCK, 10_000);
    let mut watched = WatchedLock::new(&lock, 0).unwrap();
    look(&mut watched, &lock, 9_500);
    look_at_nothing(&mut watched, 10_500);
    assert_eq!(watched.end, WatchEnd::Expired);
    watched
}

fn observing(locks: Vec<WatchedLock>) -> DeploymentFacts {
    let mut facts = deployment(vec![with(&[])]);
    facts.schemas = vec![Arc::new(schema("express"))];
    facts.observed = Some(Ok(ObservedRun { lasted_ms: 30_000, locks }));
    facts
}

fn of_holds(locks: Vec<WatchedLock>) -> (CheckSeverity, String) {
    let found = statements(&observing(locks), "hold-times").swap_remove(0).judgement;
    (found.severity, found.fact)
}

/// Rule: how many locks expired is said first, whatever the others say.
#[test]
fn locks_that_expire_before_a_result_are_counted_first() {
    let of = |late: usize, results: usize| {
        let mut locks = vec![expired(); late];
        locks.extend((0..results).map(|_| ended(100)));
        of_holds(locks)
    };
    let (severity, fact) = of(84, 83);
    assert_eq!(severity, Warning);
    assert_eq!(fact, "84 of 167 locks of express expired before a result was stored");
    // Some workers die.
    assert_eq!((of(9, 0).0, of(10, 0).0), (Note, Warning));
    assert_eq!((of(10, 90).0, of(10, 91).0), (Warning, Note));
    assert_eq!((of(0, 19).0, of(0, 20).0), (Unknown, Fine));
    assert!(severities(&deployment(vec![with(&[])]), "hold-times").is_empty());
    let failed = Some(Err(refusal("--observe", None)));
    let facts = DeploymentFacts { observed: failed, ..observing(Vec::new()) };
    assert_eq!(severities(&facts, "hold-times"), [Unknown]);
}

#[test]
fn a_lock_that_ends_shortly_before_its_deadline_is_a_note() {
    let mut locks: Vec<_> = (0..20).map(|_| ended(100)).collect();
    assert!(of_holds(locks.clone()).1.ends_with("each had 9s left or more"));
    locks.push(ended(9_100));
    assert_eq!(of_holds(locks).0, Note);
}

/// Rule: how a lock ended between two looks is not guessed.
#[test]
fn what_was_not_seen_is_unknown() {
    let plain = lock("express", LOCK, 2_000);
    let mut unclear = WatchedLock::new(&plain, 0).unwrap();
    look(&mut unclear, &plain, 1_900);
    look(&mut unclear, &express(RESULT, TimeLeft::Millis(HOUR)), 2_300);
    assert_eq!(unclear.end, WatchEnd::Unclear);
    assert_eq!(of_holds(vec![unclear; 20]).0, Unknown);
    // It was removed, and nothing shows why.
    let mut gone = WatchedLock::new(&plain, 0).unwrap();
    look_at_nothing(&mut gone, 500);
    assert_eq!(gone.end, WatchEnd::Gone);
    assert_eq!(of_holds(vec![gone; 20]).0, Unknown);
    // The user may not ask for the server's time.
    let mut without_time = WatchedLock::new(&plain, 0).unwrap();
    let mut result = express(RESULT, TimeLeft::Millis(HOUR));
    result.seen.server_ms = None;
    without_time.look(Some(&result), &result.seen, 1_000);
    assert_eq!(without_time.end, WatchEnd::Unclear);
    // A retry that took it at once moved its deadline by a little.
    let mut retaken = WatchedLock::new(&plain, 0).unwrap();
    look(&mut retaken, &until(&plain, 1_002_300), 400);
    assert_eq!(retaken.end, WatchEnd::Unclear);
}

/// The timed schema with the owner in its results, and a value of it.
fn owned(value: &str, left: u64) -> Record {
    let record = lock("timed", value, left);
    let mut schema = (*record.schema).clone();
    let owner = schema.values[0].fields.owner.clone();
    schema.values[1].fields.owner = owner;
    let readings = decode_all(&schema, &record.seen);
    Record::new(Arc::new(schema), record.key, record.seen, readings)
}

/// Rule: the owner and the time say whose result it is, before and after the deadline.
#[test]
fn a_result_with_another_owner_is_another_requests() {
    let lock = owned(r#"{"done":false,"by":"a","at":999000}"#, 10_000);
    let followed_by = |value: &str, is_late: bool| {
        let mut watched = WatchedLock::new(&lock, 0).unwrap();
        if is_late {
            look(&mut watched, &lock, 9_500);
            look_at_nothing(&mut watched, 10_500);
        }
        look(&mut watched, &owned(value, HOUR), if is_late { 11_000 } else { 1_000 });
        watched.end
    };
    for own in [r#"{"done":true,"at":999000}"#, r#"{"done":true,"by":"a"}"#] {
        assert_eq!(followed_by(own, false), WatchEnd::Result { left_ms: 9_000 }, "{own}");
        assert_eq!(followed_by(own, true), WatchEnd::Outlived, "{own}");
    }
    for other in [r#"{"done":true,"by":"b","at":999000}"#, r#"{"done":true,"by":"b"}"#] {
        assert_eq!(followed_by(other, false), WatchEnd::Gone, "{other}");
        assert_eq!(followed_by(other, true), WatchEnd::Expired, "{other}");
    }
    // The next request of the same worker has another time, or this service gives the result one.
    let later = r#"{"done":true,"by":"a","at":1000200}"#;
    assert_eq!(followed_by(later, true), WatchEnd::Expired);
    // One worker that was still running is enough.
    let mut outlived = expired();
    outlived.end = WatchEnd::Outlived;
    let (severity, fact) = of_holds(vec![outlived]);
    assert_eq!(severity, Warning);
    assert!(fact.ends_with(", and 1 of their workers stored one later"), "{fact}");
}

/// A lock of the timed schema whose deadline moved so often in 20 s.
fn renewed(moves: u64) -> WatchedLock {
    let first = lock("timed", r#"{"done":false,"by":"a","at":990000}"#, 10_000);
    let mut watched = WatchedLock::new(&first, 0).unwrap();
    for number in 1..=moves {
        look(&mut watched, &until(&first, 1_010_000 + number * 10_000), number * 5_000);
    }
    look(&mut watched, &until(&first, 1_010_000 + moves * 10_000), 9_900 + moves);
    watched
}

#[test]
fn renewals_are_compared_with_the_longest_run() {
    let of = |locks: Vec<WatchedLock>, longest_run_ms: u64| {
        let longest_run_ms = Some(longest_run_ms);
        severities(&DeploymentFacts { longest_run_ms, ..observing(locks) }, "renewed-locks")
    };
    assert_eq!(renewed(2).moves, 2);
    assert_eq!(of(vec![renewed(2)], 1_000), [Warning]);
    assert_eq!(of(vec![renewed(2)], 60_000), [Fine], "it is not that old");
    assert_eq!(of(vec![renewed(1)], 1_000), [Unknown], "an operator may have extended it");
    assert_eq!(of(vec![renewed(0)], 1_000), [Unknown], "its timer may be slower");
    assert_eq!(of(Vec::new(), 1_000), [Unknown], "no lock was seen");
    assert_eq!(of(vec![ended(100)], 15_000), [Fine]);
    assert_eq!(of(vec![ended(100)], 15_001), [Unknown], "the run lasts 30 s");
    // The same worker may have taken it again.
    let by_owner = lock("timed", r#"{"done":false,"by":"pod-1"}"#, 10_000);
    let mut again = WatchedLock::new(&by_owner, 0).unwrap();
    look(&mut again, &until(&by_owner, 1_015_000), 5_000);
    assert_eq!(again.end, WatchEnd::Unclear);
    assert_eq!(of(vec![again], 1_000), [Unknown]);
    assert!(severities(&observing(vec![renewed(2)]), "renewed-locks").is_empty());
}

/// The facts of a deployment with this result TTL in hours (0 if it is not stated), and results of
/// express with these times left.
fn windowed(window: Option<Duration>, stated: u64, left: &[u64]) -> DeploymentFacts {
    let mut own = schema("express");
    if stated > 0 {
        own.result_ttl = Duration::from_millis(stated * HOUR);
        own.stated = vec![TtlOf::Result];
    }
    let results: Vec<_> =
        left.iter().map(|left| express(RESULT, TimeLeft::Millis(*left))).collect();
    let mut facts = sampled(&results);
    facts.schemas = vec![Arc::new(own)];
    if let Some(window) = window {
        facts.retry_windows = [("express".to_owned(), window)].into();
    }
    facts
}

fn hours(hours: u64) -> Option<Duration> {
    Some(Duration::from_millis(hours * HOUR))
}

#[test]
fn results_are_compared_with_the_window_that_is_stated() {
    let of = |window, stated| severities(&windowed(window, stated, &[]), "retry-window");
    assert_eq!(of(hours(72), 48), [Warning]);
    assert_eq!(of(hours(72), 72), [Fine]);
    let unstated = statements(&windowed(None, 72, &[]), "retry-window").swap_remove(0);
    assert_eq!(unstated.judgement.severity, Note);
    assert!(unstated.judgement.fact.contains("--retry-window"));
}

/// Rule: a TTL that is stated, and that no record has, is not the one that the service sets.
#[test]
fn a_stated_ttl_that_the_sample_contradicts_is_not_in_order() {
    let of = |left: &[u64]| severities(&windowed(hours(72), 168, left), "retry-window");
    assert_eq!(of(&[HOUR; 20]), [Unknown]);
    assert_eq!(of(&[HOUR; 19]), [Fine]);
    assert_eq!(of(&[&[HOUR; 499][..], &[144 * HOUR]].concat()), [Unknown], "one odd result");
    assert_eq!(of(&[&[HOUR; 80][..], &[100 * HOUR; 20]].concat()), [Fine]);
    assert_eq!(of(&[60 * HOUR; 100]), [Unknown], "it may be 60 h");
}

/// Rule: no result has all of its TTL left, so a window that is as long as the TTL is in order.
#[test]
fn a_window_that_is_as_long_as_the_ttl_can_be_in_order() {
    let even = |hours: u64| (0..320).map(|number| number * hours * HOUR / 320).collect::<Vec<_>>();
    let of = |window, left: &[u64]| severities(&windowed(window, 24, left), "retry-window");
    assert_eq!(of(hours(24), &even(24)), [Fine]);
    assert_eq!(of(hours(23), &even(22)), [Fine], "the last one is 2 h old");
    assert_eq!(of(hours(24), &even(18)), [Unknown], "the TTL may be 18 h");
    assert_eq!(of(hours(24), &even(1)), [Unknown]);
}

/// Rule: the default of a schema, here 24 h, is not the TTL of a deployment.
#[test]
fn a_default_result_ttl_is_neither_ok_nor_an_alarm() {
    let of = |window, left: &[u64]| severities(&windowed(window, 0, left), "retry-window");
    assert_eq!(of(hours(72), &[]), [Note]);
    assert_eq!(of(hours(12), &[]), [Unknown]);
    assert_eq!(of(hours(12), &[11 * HOUR; 30]), [Unknown], "the TTL may be 11 h");
    assert_eq!(of(hours(12), &[13 * HOUR; 19]), [Unknown], "too few");
    assert_eq!(of(hours(12), &[13 * HOUR; 20]), [Fine]);
    let mixed = [&[HOUR; 400][..], &[240 * HOUR]].concat();
    assert_eq!(of(hours(12), &mixed), [Unknown], "one result is no rule");
}
