//! Judgements of TTLs, and of what `--observe` saw.

use super::*;
use crate::domain::doctor::lock_watch::{LookTime, WatchEnd, WatchedLock};
use crate::domain::doctor::retry_window::{Redeliverer, RetryWindow};
use crate::domain::doctor::{ObservedRun, interrupted};
use crate::domain::record::decode::decode_all;
use crate::domain::record::{Content, Deadline, Evidence, KeyState, Observation};
use crate::domain::schema::{FormatTtl, State};

const HOUR: u64 = 3_600_000;

fn at(millis: u64) -> LookTime {
    LookTime { before_ms: millis, after_ms: millis }
}

/// A lock with this time left. The deployment states its TTL, if `stated` is not 0.
fn lock(schema_name: &str, value: &str, left: u64, stated: u64) -> Record {
    let record = record(schema_name, &[(text(value), TimeLeft::Millis(left))]);
    if stated == 0 {
        return record;
    }
    let mut schema = (*record.schema).clone();
    schema.lock_ttl = Duration::from_millis(stated);
    schema.stated = vec![TtlOf::Lock];
    let Record { seen, readings, key, .. } = record;
    Record::new(Arc::new(schema), key, seen, readings)
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
    watched.look(Some(&record), &record.seen, at(millis));
}

/// Looks when the Redis key of the lock does not exist.
fn look_at_nothing(watched: &mut WatchedLock, millis: u64) {
    let key = KeyState::new(b"idem:k", Content::Absent, TimeLeft::NoExpiry, Deadline::Never);
    let seen = Observation { server_ms: Some(1_000_000 + millis), keys: vec![key], atomic: true };
    watched.look(None, &seen, at(millis));
}

/// A lock of express that was held for this time until its result.
fn ended(left: u64, stated: u64, held: u64) -> WatchedLock {
    let lock = lock("express", LOCK, left, stated);
    let mut watched = WatchedLock::new(&lock, at(0)).unwrap();
    look(&mut watched, &lock, held);
    look(&mut watched, &express(RESULT, TimeLeft::Millis(HOUR)), held + 100);
    assert!(matches!(watched.end, WatchEnd::Result { .. }));
    watched
}

fn observing(locks: Vec<WatchedLock>) -> DeploymentFacts {
    let mut facts = deployment(vec![with(&["run_id:a"])]);
    facts.schemas = vec![Arc::new(schema("express"))];
    let info = facts.nodes[0].info.clone();
    let infos = [("a:6379/0".to_owned(), info)].into();
    let run = ObservedRun { lasted_ms: 30_000, locks, infos, ..ObservedRun::default() };
    facts.observed = Some(Ok(run));
    facts
}

/// A lock with a TTL of 10 s, and others that end after 100 ms.
fn with_others(lock: WatchedLock, count: usize) -> DeploymentFacts {
    let mut locks = vec![lock];
    locks.extend((1..count).map(|_| ended(10_000, 10_000, 100)));
    observing(locks)
}

#[test]
fn holds_are_compared_with_a_stated_ttl() {
    let of = |held: u64, count: usize| {
        let facts = with_others(ended(10_000, 10_000, held), count);
        let statement = statements(&facts, "hold-times").swap_remove(0);
        (statement.judgement.severity, statement.judgement.fault)
    };
    assert_eq!(of(7_900, 20), (Fine, None));
    assert_eq!(of(7_900, 19), (Unknown, None), "too few for OK");
    assert_eq!(of(8_000, 20), (Warning, Some(ModelledFault::Expiry)));
    assert!(severities(&deployment(vec![with(&[])]), "hold-times").is_empty());
    assert_eq!(severities(&observing(Vec::new()), "hold-times"), [Unknown], "no lock was seen");
}

/// Rule: the time left when a result was stored is a bound, even if few locks were seen, or each of
/// them once.
#[test]
fn the_time_left_at_the_end_is_told() {
    let fact = |locks| statements(&observing(locks), "hold-times").swap_remove(0).judgement.fact;
    let few = fact(vec![ended(8_000, 10_000, 1_000), ended(9_000, 10_000, 500)]);
    let holds = "the longest hold seen is 1s, of 2 locks with a result before their deadline";
    assert!(few.contains(holds), "{few}");
    assert!(few.contains("; the watched ones ended with 6s left or more"), "{few}");
    let once = fact(vec![ended(8_000, 10_000, 0)]);
    assert!(once.contains("no hold was long enough to be seen twice, of 1 lock"), "{once}");
}

/// Rule: the hold before the first look is not seen, but the time left at the end is.
#[test]
fn a_lock_that_ends_shortly_before_its_deadline_is_held_too_long() {
    let facts = with_others(ended(2_500, 10_000, 1_000), 20);
    let found = statements(&facts, "hold-times").swap_remove(0).judgement;
    assert_eq!(found.severity, Warning);
    assert!(found.fact.contains("longest hold seen is 1s") && found.fact.contains("1s left"));
    // The service sets 5 s, whatever is stated: 3 s left are much.
    let stated = || ended(5_000, 30_000, 2_000);
    assert_eq!(severities(&observing((0..20).map(|_| stated()).collect()), "hold-times"), [Fine]);
    let late = || ended(5_000, 30_000, 4_600);
    assert_eq!(severities(&observing((0..20).map(|_| late()).collect()), "hold-times"), [Warning]);
}

/// Rule: a lock that expires while its handler runs does not end in a result at once.
#[test]
fn locks_that_expire_are_never_in_order() {
    let plain = lock("express", LOCK, 10_000, 10_000);
    let mut expired = WatchedLock::new(&plain, at(0)).unwrap();
    look(&mut expired, &plain, 9_500);
    look_at_nothing(&mut expired, 10_500);
    assert_eq!(expired.end, WatchEnd::Expired);
    assert_eq!(severities(&with_others(expired.clone(), 30), "hold-times"), [Note]);
    // So many workers do not die.
    let many = |count: usize| severities(&observing(vec![expired.clone(); count]), "hold-times");
    assert_eq!((many(9), many(10)), (vec![Note], vec![Warning]));
    // If other locks end in a result, 20 of them and 20 % are many.
    let among = |count: usize, others: usize| {
        let mut locks = vec![expired.clone(); count];
        locks.extend((0..others).map(|_| ended(10_000, 10_000, 100)));
        severities(&observing(locks), "hold-times")
    };
    assert_eq!((among(19, 76), among(20, 80)), (vec![Note], vec![Warning]));
    assert_eq!(among(20, 81), [Note]);
    // It was seen last long before its deadline.
    let mut unseen = WatchedLock::new(&plain, at(0)).unwrap();
    look(&mut unseen, &plain, 5_000);
    look_at_nothing(&mut unseen, 10_500);
    assert_eq!(severities(&with_others(unseen, 30), "hold-times"), [Unknown]);
    look(&mut expired, &express(RESULT, TimeLeft::Millis(HOUR)), 12_000);
    assert_eq!(expired.end, WatchEnd::ResultAfterExpiry { is_same: false });
    assert_eq!(severities(&with_others(expired, 30), "hold-times"), [Note]);
    // The result has the time of the lock.
    let owned = lock("timed", r#"{"done":false,"by":"a","at":999000}"#, 10_000, 10_000);
    let mut outlived = WatchedLock::new(&owned, at(0)).unwrap();
    look_at_nothing(&mut outlived, 10_500);
    let done = record("timed", &[(text(r#"{"done":true,"at":999000}"#), TimeLeft::Millis(HOUR))]);
    look(&mut outlived, &done, 12_000);
    assert_eq!(outlived.end, WatchEnd::ResultAfterExpiry { is_same: true });
    assert_eq!(severities(&observing(vec![outlived]), "hold-times"), [Warning]);
    // A result that came between two looks, before or after the deadline.
    let mut unclear = WatchedLock::new(&plain, at(0)).unwrap();
    look(&mut unclear, &plain, 5_000);
    look(&mut unclear, &express(RESULT, TimeLeft::Millis(HOUR)), 10_500);
    assert_eq!(severities(&with_others(unclear, 30), "hold-times"), [Unknown]);
    // A lock that was released.
    let mut released = WatchedLock::new(&plain, at(0)).unwrap();
    look_at_nothing(&mut released, 500);
    assert_eq!(released.end, WatchEnd::Gone);
    assert_eq!(severities(&with_others(released, 30), "hold-times"), [Fine]);
}

/// Looks at these results after the lock, and returns how the lock ended and what is said of 20
/// such locks.
fn followed_by(
    lock: &Record,
    last_seen: u64,
    result: &Record,
    at_ms: u64,
) -> (WatchEnd, Statement) {
    let mut watched = WatchedLock::new(lock, at(0)).unwrap();
    look(&mut watched, lock, last_seen);
    look(&mut watched, result, at_ms);
    let end = watched.end;
    (end, statements(&observing(vec![watched; 20]), "hold-times").swap_remove(0))
}

/// Rule: a lock that expired is often followed by the result of a retry, within one look.
#[test]
fn the_result_of_a_retry_is_not_the_end_of_an_expired_lock() {
    let plain = lock("express", LOCK, 2_000, 2_000);
    let done = express(RESULT, TimeLeft::Millis(HOUR));
    // It was seen for the last time shortly before its deadline, or long before.
    for last_seen in [1_900, 500] {
        let (end, found) = followed_by(&plain, last_seen, &done, 2_300);
        assert!(matches!(end, WatchEnd::Result { is_own: false, may_be_late: true, .. }));
        assert_eq!(found.judgement.severity, Unknown, "{}", found.judgement.fact);
        let fact = &found.judgement.fact;
        assert!(fact.contains("no lock certainly ended in a result"), "{fact}");
        assert!(fact.contains("20 locks ended between two looks"), "{fact}");
        assert!(!fact.contains("ended with at most"), "{fact}");
    }
    let (_, before) = followed_by(&plain, 500, &done, 1_000);
    assert_eq!(before.judgement.severity, Fine);
    assert!(before.judgement.fact.contains("of 20 locks with a result before their deadline"));
}

/// The timed schema with the owner in its results, and a value of it.
fn owned(value: &str, left: u64) -> Record {
    let record = lock("timed", value, left, 10_000);
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
    let of = |value: &str, last_seen: u64, at_ms: u64| {
        let (end, found) = followed_by(&lock, last_seen, &owned(value, HOUR), at_ms);
        (end, found.judgement.severity, found.judgement.fact)
    };
    for own in [r#"{"done":true,"at":999000}"#, r#"{"done":true,"by":"a"}"#] {
        let (end, severity, fact) = of(own, 500, 1_000);
        assert!(matches!(end, WatchEnd::Result { is_own: true, may_be_late: false, .. }), "{own}");
        assert_eq!(severity, Fine, "{fact}");
        assert!(fact.contains("of 20 locks that ended in their own result"), "{fact}");
        // Read after the deadline, it is the lock's own all the same.
        let (end, severity, fact) = of(own, 9_500, 10_500);
        assert!(matches!(end, WatchEnd::Result { is_own: true, may_be_late: true, .. }), "{own}");
        assert_eq!(severity, Warning, "{fact}");
        assert_eq!(of(own, 5_000, 10_500).1, Unknown, "{own}");
    }
    for other in [r#"{"done":true,"by":"b","at":999000}"#, r#"{"done":true,"by":"b"}"#] {
        let (end, severity, fact) = of(other, 500, 1_000);
        assert_eq!((end, severity), (WatchEnd::Gone, Unknown), "{other}: {fact}");
        assert!(fact.starts_with("no lock in the samples certainly ended"), "{other}: {fact}");
        let (end, severity, fact) = of(other, 9_500, 10_500);
        assert_eq!(end, WatchEnd::ResultAfterExpiry { is_same: false }, "{other}");
        assert_eq!(severity, Warning, "all of them expired: {other}: {fact}");
    }
    // The next request of the same worker has another time, or this service gives the result one.
    let later = r#"{"done":true,"by":"a","at":1000200}"#;
    let (end, ..) = of(later, 500, 1_000);
    assert!(matches!(end, WatchEnd::Result { is_own: false, may_be_late: false, .. }), "{end:?}");
    let mut watched = WatchedLock::new(&lock, at(0)).unwrap();
    look_at_nothing(&mut watched, 10_500);
    look(&mut watched, &owned(later, HOUR), 12_000);
    assert_eq!(watched.end, WatchEnd::ResultAfterExpiry { is_same: false });
}

/// Rule: if the Redis user may not ask for the server's time, the clock of the run shows what is
/// certainly before the deadline.
#[test]
fn without_the_servers_time_a_result_is_before_the_deadline_only_if_that_is_certain() {
    let plain = lock("express", LOCK, 2_000, 2_000);
    let of = |at_ms: u64| {
        let mut watched = WatchedLock::new(&plain, at(0)).unwrap();
        let mut result = express(RESULT, TimeLeft::Millis(HOUR));
        result.seen.server_ms = None;
        watched.look(Some(&result), &result.seen, at(at_ms));
        watched.end
    };
    assert!(matches!(of(1_999), WatchEnd::Result { may_be_late: false, .. }));
    assert!(matches!(of(2_000), WatchEnd::Result { may_be_late: true, .. }));
    // Nothing shows whether a lock without an owner is still the same one.
    let mut unknown = plain.clone();
    unknown.seen.keys[0].deadline = Deadline::Unknown;
    let mut watched = WatchedLock::new(&plain, at(0)).unwrap();
    look(&mut watched, &unknown, 500);
    assert_eq!(watched.end, WatchEnd::Ambiguous);
    // A retry that took it at once moved its deadline by a little.
    let mut retaken = WatchedLock::new(&plain, at(0)).unwrap();
    look(&mut retaken, &until(&plain, 1_002_300), 400);
    assert_eq!(retaken.end, WatchEnd::Ambiguous);
}

/// Rule: a service that renews its locks may hold them for long, and the time from creation to
/// deadline then says nothing of its TTL.
#[test]
fn locks_of_a_service_that_renews_are_judged_by_what_they_had_left() {
    let renewing = |mut lock: WatchedLock| {
        let mut own = Schema::clone(&lock.schema);
        own.renew = schema("reference").renew.clone();
        lock.schema = Arc::new(own);
        lock
    };
    let long = renewing(ended(20_000, 10_000, 8_000));
    assert_eq!(severities(&observing(vec![long]), "hold-times"), [Note]);
    // It was renewed before the run, so its lifetime is not its TTL.
    let mut old = ended(9_000, 10_000, 7_100);
    old.lifetime_ms = Some(60_000);
    let locks = (0..20).map(|_| renewing(old.clone())).collect();
    assert_eq!(severities(&observing(locks), "hold-times"), [Fine]);
}

/// Rule: the default of a schema is not the TTL of a deployment.
#[test]
fn a_default_ttl_proves_nothing_about_holds() {
    // The default is 30 s.
    let of = |left: u64, held: u64| {
        let facts = observing((0..20).map(|_| ended(left, 0, held)).collect());
        severities(&facts, "hold-times")
    };
    assert_eq!(of(60_000, 25_000), [Note]);
    assert_eq!(of(20_000, 2_000), [Unknown], "another lock may have less");
    assert_eq!(of(2_200, 2_000), [Warning], "these locks had 200 ms left");
}

#[test]
fn times_in_values_are_holds() {
    let held = r#"{"done":true,"at":900000,"until":915000}"#;
    let of = |stated: u64| {
        let mut facts = sampled(&[lock("timed", held, HOUR, stated)]);
        facts.schemas = vec![Arc::clone(&facts.sample.as_ref().unwrap().schemas[0].schema)];
        severities(&facts, "hold-times")
    };
    assert_eq!(of(16_000), [Warning]);
    assert!(of(60_000).is_empty(), "one hold is no distribution");
}

#[test]
fn a_renewed_lock_is_not_held_too_long_for_its_ttl() {
    let owned = |by: &str| format!(r#"{{"done":false,"by":"{by}","at":990000}}"#);
    let first = lock("timed", &owned("a"), 10_000, 10_000);
    let mut watched = WatchedLock::new(&first, at(0)).unwrap();
    look(&mut watched, &until(&first, 1_020_000), 9_000);
    look(&mut watched, &until(&first, 1_030_000), 19_000);
    let done = record("timed", &[(text(r#"{"done":true,"at":990000}"#), TimeLeft::Millis(HOUR))]);
    look(&mut watched, &done, 20_000);
    assert_eq!(watched.moves, 2);
    assert_eq!(severities(&observing(vec![watched]), "hold-times"), [Unknown]);
}

/// Rule: only a deadline that moved by more than the tolerance, and of the same lock, is a renewal.
#[test]
fn a_lock_that_nobody_touched_was_not_renewed() {
    let owned = r#"{"done":false,"by":"a","at":990000}"#;
    let first = lock("timed", owned, 10_000, 0);
    let moves = |deadlines: &[u64]| {
        let mut watched = WatchedLock::new(&first, at(0)).unwrap();
        for (index, deadline) in deadlines.iter().enumerate() {
            look(&mut watched, &until(&first, *deadline), 100 * (index as u64 + 1));
        }
        watched.moves
    };
    assert_eq!(moves(&[1_010_000, 1_010_002, 1_009_000, 1_011_000]), 0);
    assert_eq!(moves(&[1_011_001]), 1);
    assert_eq!(moves(&[1_010_400, 1_010_800, 1_011_200, 1_011_600]), 1, "small moves add up");
    // An operator extended it.
    let mut extended = WatchedLock::new(&first, at(0)).unwrap();
    let later = until(&first, 1_600_000);
    look(&mut extended, &later, 100);
    extended.settle(&|_| true);
    assert_eq!((extended.moves, extended.is_open()), (0, true));
    // Another request took the lock.
    let other = lock("timed", r#"{"done":false,"by":"b","at":995000}"#, 20_000, 0);
    let mut taken = WatchedLock::new(&first, at(0)).unwrap();
    look(&mut taken, &other, 100);
    assert_eq!((taken.moves, taken.end), (0, WatchEnd::Gone));
    // Values without an owner and a time are all the same.
    let plain = lock("express", LOCK, 10_000, 0);
    let mut unclear = WatchedLock::new(&plain, at(0)).unwrap();
    look(&mut unclear, &until(&plain, 1_030_000), 100);
    assert_eq!(unclear.end, WatchEnd::Ambiguous);
    let mut gone = WatchedLock::new(&plain, at(0)).unwrap();
    look_at_nothing(&mut gone, 100);
    assert_eq!(gone.end, WatchEnd::Gone);
}

/// A lock whose deadline moved so often within 20 s.
fn renewed(moves: u64) -> WatchedLock {
    let first = lock("timed", r#"{"done":false,"by":"a","at":1000000}"#, 10_000, 0);
    let mut watched = WatchedLock::new(&first, at(0)).unwrap();
    for number in 0..=moves {
        look(
            &mut watched,
            &until(&first, 1_010_000 + number * 5_000),
            20_000 * number / moves.max(1),
        );
    }
    look(&mut watched, &until(&first, 1_010_000 + moves * 5_000), 20_000);
    assert_eq!((watched.moves as u64, watched.held_ms()), (moves, 20_000));
    watched
}

#[test]
fn locks_renewed_for_longer_than_a_run_are_found() {
    let of = |locks: Vec<WatchedLock>, longest_run: Option<u64>| {
        let facts = DeploymentFacts { longest_run_ms: longest_run, ..observing(locks) };
        severities(&facts, "renewed-locks")
    };
    assert_eq!(of(vec![renewed(2)], Some(19_999)), [Warning]);
    assert_eq!(of(vec![renewed(2)], Some(20_000)), [Fine], "it is not that old");
    assert_eq!(of(vec![renewed(1)], Some(1_000)), [Note], "an operator may have extended it");
    assert_eq!(of(vec![renewed(0)], Some(1_000)), [Unknown], "its timer may be slower");
    assert_eq!(of(vec![renewed(0)], Some(20_000)), [Fine], "it is not that old");
    let mut by_owner = lock("timed", r#"{"done":false,"by":"pod-1"}"#, 10_000, 0);
    let mut again = WatchedLock::new(&by_owner, at(0)).unwrap();
    for seconds in [5, 10, 15] {
        by_owner = until(&by_owner, 1_010_000 + seconds * 1_000);
        look(&mut again, &by_owner, seconds * 1_000);
    }
    assert_eq!(of(vec![again], Some(1_000)), [Note], "the worker may have taken it again");
    assert_eq!(of(Vec::new(), Some(1_000)), [Unknown], "no lock was seen");
    assert_eq!(of(vec![renewed(2)], None), [Note]);
    assert!(of(vec![renewed(0)], None).is_empty());
    assert!(severities(&deployment(vec![with(&[])]), "renewed-locks").is_empty());
}

/// Rule: why it is unknown whether locks are renewed is told.
#[test]
fn what_a_run_does_not_show_of_renewals_is_told() {
    let of = |locks: Vec<WatchedLock>| {
        let facts = DeploymentFacts { longest_run_ms: Some(1_000), ..observing(locks) };
        let found = statements(&facts, "renewed-locks").swap_remove(0).judgement;
        assert_eq!(found.severity, Unknown, "{}", found.fact);
        found.fact
    };
    assert_eq!(of(Vec::new()), "no lock was seen");
    let plain = lock("express", LOCK, 10_000, 0);
    let mut unclear = WatchedLock::new(&plain, at(0)).unwrap();
    look(&mut unclear, &until(&plain, 1_030_000), 100);
    let fact = of(vec![ended(10_000, 0, 100), unclear]);
    assert!(fact.starts_with("1 of 2 locks may have been taken"), "{fact}");
    let late = WatchedLock::new(&plain, at(29_500)).unwrap();
    assert_eq!(of(vec![late]), "all locks were first seen shortly before the end of the run");
    let mut single = WatchedLock::new(&plain, at(0)).unwrap();
    look_at_nothing(&mut single, 100);
    let mut endless = plain.clone();
    endless.seen.keys[0].deadline = Deadline::Never;
    endless.seen.keys[0].time_left = TimeLeft::NoExpiry;
    let mut lost = WatchedLock::new(&plain, at(0)).unwrap();
    look(&mut lost, &endless, 500);
    let fact = of(vec![ended(10_000, 0, 100), lost]);
    assert!(fact.starts_with("1 of 2 locks lost their TTL"), "{fact}");
    // The run lasts 30 s. In a longer one, a lock that is held for so long is seen twice.
    for (longest_run, severity) in [(15_001, Unknown), (15_000, Fine)] {
        let locks = vec![single.clone()];
        let facts = DeploymentFacts { longest_run_ms: Some(longest_run), ..observing(locks) };
        let found = statements(&facts, "renewed-locks").swap_remove(0).judgement;
        assert_eq!(found.severity, severity, "{}", found.fact);
    }
}

/// Rule: under traffic, a run always ends with locks that it has just seen.
#[test]
fn locks_first_seen_at_the_end_do_not_count() {
    let plain = lock("express", LOCK, 30_000, 0);
    let late = || WatchedLock::new(&plain, at(29_500)).unwrap();
    let of = |locks: Vec<WatchedLock>, longest_run: u64| {
        let facts = DeploymentFacts { longest_run_ms: Some(longest_run), ..observing(locks) };
        statements(&facts, "renewed-locks").swap_remove(0).judgement
    };
    let usual = of(vec![ended(10_000, 0, 100), late()], 10_000);
    assert_eq!(usual.severity, Fine, "{}", usual.fact);
    assert!(usual.fact.contains("not counted are 1 first seen shortly"), "{}", usual.fact);
    assert_eq!(of(vec![late(), late()], 10_000).severity, Unknown, "nothing is left");
    let short = of(vec![ended(10_000, 0, 100), late()], 15_001);
    assert_eq!(short.severity, Unknown, "one may have been there all the time");
    // It was there early, and nobody looked at it again.
    let early = WatchedLock::new(&plain, at(500)).unwrap();
    let unseen = of(vec![ended(10_000, 0, 100), early], 10_000);
    assert_eq!(unseen.severity, Unknown);
    assert!(unseen.fact.contains("1 of 2 locks still held at the end"), "{}", unseen.fact);
    // It was renewed, and nothing shows for how long before.
    let owned = lock("timed", r#"{"done":false,"by":"a"}"#, 10_000, 0);
    let mut renewed = WatchedLock::new(&owned, at(25_000)).unwrap();
    look(&mut renewed, &until(&owned, 1_040_000), 29_000);
    assert_eq!(renewed.moves, 1);
    assert_eq!(of(vec![ended(10_000, 0, 100), renewed], 10_000).severity, Unknown);
}

/// Rule: a timer that renews once a minute does not do so during a short run.
#[test]
fn old_locks_are_not_in_order_because_no_renewal_was_seen() {
    let of = |created: u64, left: u64, stated: u64, longest_run: u64| {
        let value = format!(r#"{{"done":false,"by":"a","at":{created}}}"#);
        let first = lock("timed", &value, left, stated);
        let mut watched = WatchedLock::new(&first, at(0)).unwrap();
        look(&mut watched, &first, 8_000);
        let facts =
            DeploymentFacts { longest_run_ms: Some(longest_run), ..observing(vec![watched]) };
        severities(&facts, "renewed-locks")
    };
    // It was created 900 s ago, and has 119 s left.
    assert_eq!(of(100_000, 119_000, 0, 300_000), [Unknown], "its TTL may be long");
    assert_eq!(of(100_000, 119_000, 120_000, 300_000), [Warning], "it has outlasted its TTL");
    assert_eq!(of(100_000, 119_000, 1_019_000, 300_000), [Fine], "it has the TTL of its creation");
    assert_eq!(of(990_000, 50_000, 60_000, 300_000), [Fine], "it is 18 s old");
}

#[test]
fn a_lock_that_loses_its_ttl_during_the_run_is_an_error() {
    let first = lock("timed", r#"{"done":false,"by":"a"}"#, 30_000, 0);
    let mut watched = WatchedLock::new(&first, at(0)).unwrap();
    let mut endless = first.clone();
    endless.seen.keys[0].deadline = Deadline::Never;
    endless.seen.keys[0].time_left = TimeLeft::NoExpiry;
    look(&mut watched, &endless, 8_000);
    let mut facts = DeploymentFacts { longest_run_ms: Some(5_000), ..observing(vec![watched]) };
    assert_eq!(severities(&facts, "renewed-locks"), [Unknown]);
    assert_eq!(severities(&facts, "endless-locks"), [Error, Unknown]);
    facts.locks = sampled(&[express(LOCK, TimeLeft::Millis(5_000))]).locks;
    assert_eq!(severities(&facts, "endless-locks"), [Error]);
}

/// Rule: after a failover or a restart, what was seen is of two servers.
#[test]
fn servers_that_change_during_the_run_make_its_facts_unknown() {
    let mut facts = observing(vec![renewed(2)]);
    facts.longest_run_ms = Some(1_000);
    let codes = ["hold-times", "renewed-locks", "evictions"];
    let all = |facts: &DeploymentFacts, severity: CheckSeverity| {
        for code in codes {
            assert_eq!(severities(facts, code)[0], severity, "{code}");
        }
    };
    for changed in ["run_id:b", "role:slave"] {
        let run = facts.observed.as_mut().unwrap().as_mut().unwrap();
        run.infos.insert("a:6379/0".to_owned(), with(&["run_id:a", changed]).info);
        all(&facts, Unknown);
    }
    facts.observed.as_mut().unwrap().as_mut().unwrap().infos.clear();
    all(&facts, Unknown);
    facts.observed = Some(Err(interrupted("the server closed the connection".to_owned())));
    all(&facts, Unknown);
}

#[test]
fn evictions_during_the_run_are_an_error() {
    let of = |before: &str, after: &str| {
        let mut facts = observing(Vec::new());
        facts.nodes = vec![with(&["run_id:a", before])];
        let run = facts.observed.as_mut().unwrap().as_mut().unwrap();
        run.infos.insert("a:6379/0".to_owned(), with(&["run_id:a", after]).info);
        severities(&facts, "evictions")
    };
    assert_eq!(of("evicted_keys:5", "evicted_keys:6"), [Error, Warning]);
    assert_eq!(of("evicted_keys:0", "evicted_keys:6"), [Error, Warning], "no contradiction");
    assert_eq!(of("evicted_keys:5", "evicted_keys:5"), [Warning]);
    assert_eq!(of("evicted_keys:0", "evicted_keys:0"), [Fine]);
}

/// The facts of a deployment with this result TTL in hours (0 if it is not stated), and results of
/// express with these times left.
fn windowed(window: Option<RetryWindow>, stated: u64, left: &[u64]) -> DeploymentFacts {
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

fn hours(hours: u64) -> Option<RetryWindow> {
    Some(RetryWindow::Stated(Duration::from_millis(hours * HOUR)))
}

fn redelivered(by: &str) -> Option<RetryWindow> {
    Some(RetryWindow::Of(Redeliverer::named(by).unwrap()))
}

#[test]
fn results_are_compared_with_the_window_that_is_stated() {
    let of = |window, stated| severities(&windowed(window, stated, &[]), "retry-window");
    assert_eq!(of(hours(72), 48), [Warning]);
    assert_eq!(of(hours(72), 72), [Fine]);
    assert_eq!(of(redelivered("sqs"), 72), [Warning]);
    assert_eq!(of(redelivered("sqs"), 120), [Note], "up to 14 days can be configured");
    assert_eq!(of(redelivered("sqs"), 14 * 24), [Fine]);
    assert_eq!(of(redelivered("kafka"), 400), [Note], "any time can be configured");
    assert_eq!(of(redelivered("stripe"), 72), [Note], "events can be sent again by hand");
    assert_eq!(of(redelivered("eventbridge"), 24), [Fine]);
    let unstated = statements(&windowed(None, 72, &[]), "retry-window").swap_remove(0);
    assert_eq!(unstated.judgement.severity, Note);
    assert!(unstated.remedy().unwrap().contains("--retry-window"));
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
    assert_eq!(of(redelivered("eventbridge"), &even(24)), [Fine]);
    assert_eq!(of(hours(23), &even(22)), [Fine], "the last one is 2 h old");
    assert_eq!(of(hours(24), &even(18)), [Unknown], "the TTL may be 18 h");
    assert_eq!(of(hours(24), &even(1)), [Unknown]);
}

/// Rule: the system that has the effect rejects a second one, as long as it keeps the key.
/// Rule: a format with a shorter TTL of its own ends sooner than the results in general.
#[test]
fn a_format_that_expires_sooner_is_told() {
    let mut facts = windowed(hours(24), 48, &[]);
    let mut own = Schema::clone(&facts.schemas[0]);
    let completed = own.values.iter_mut().find(|format| format.state == State::Completed).unwrap();
    let ttl = Some(Duration::from_millis(HOUR));
    completed.ttl = Some(FormatTtl { ttl, evidence: Evidence::Estimated });
    facts.schemas = vec![Arc::new(own)];
    let found = statements(&facts, "retry-window").swap_remove(0).judgement;
    assert_eq!(found.severity, Note, "{}", found.fact);
    assert!(found.fact.contains("expire sooner by the schema's default"), "{}", found.fact);
}

#[test]
fn a_key_that_is_passed_on_turns_the_warning_into_a_note() {
    let mut facts = windowed(hours(72), 48, &[]);
    Arc::make_mut(&mut facts.schemas[0]).effect.keyed = true;
    let statement = statements(&facts, "retry-window").swap_remove(0);
    assert_eq!(statement.judgement.severity, Note);
    assert!(statement.consequence().unwrap().contains("as long as it keeps the key"));
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
    // A result that came during the run shows its TTL.
    let mut facts = windowed(hours(12), 24, &[]);
    facts.observed = observing(vec![ended(10_000, 10_000, 100)]).observed;
    facts.nodes = observing(Vec::new()).nodes;
    assert_eq!(severities(&facts, "retry-window"), [Warning], "it was stored for 1 h");
    facts.retry_windows = [("express".to_owned(), hours(1).unwrap())].into();
    assert_eq!(severities(&facts, "retry-window"), [Fine]);
}
