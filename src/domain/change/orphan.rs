//! Orphans: locks that no worker will release, selected by finding, and what a sweep may do with
//! each.

use std::sync::Arc;

use super::unlock;
use crate::domain::diagnosis::excess_ttl::YEAR_MS;
use crate::domain::diagnosis::{FindingCode, Thresholds};
use crate::domain::record::{Age, Candidate, Evidence, Record, TimeLeft, age, locate};
use crate::domain::schema::{Catalog, Role, Schema, State, TtlOf};
use crate::domain::select::unproven::missing_age;
use crate::domain::select::{Missing, Selected, Selection};
use crate::domain::step::fencing;

/// The finding of a lock that never expires: an orphan under any setting of the deployment. So is a
/// lock with more than a year left at a Redis key for locks alone.
pub(crate) const ORPHANED: FindingCode = FindingCode::NoExpiry;

/// Further findings that make a lock an orphan if `--include` names them.
pub(crate) const INCLUDABLE: [FindingCode; 3] =
    [FindingCode::ExcessTtl, FindingCode::LeftoverLock, FindingCode::Unreadable];

/// A lock that no worker will release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orphan {
    /// The first of the requested findings that makes the lock an orphan.
    pub(crate) code: FindingCode,
    /// The lock's Redis key, by its index in the record.
    pub(crate) key_index: usize,
}

/// The orphan that a record is by these findings, if any. A stored result is never an orphan.
/// Neither is a record whose state is undecided, nor one whose finding rests only on a schema's
/// default.
pub(crate) fn of(record: &Record, sought: &[FindingCode]) -> Selected<Orphan> {
    let has_lock = record.schema.has_locks();
    if record.is_undecided() {
        // It may be a result, so it is never swept; but it may also be a lock.
        let lock = &record.seen.keys[record.schema.lock_key_index()];
        let may_be_lock = has_lock && !lock.content.is_absent();
        let never_expires = lock.time_left == TimeLeft::NoExpiry;
        if may_be_lock && never_expires && sought.contains(&ORPHANED) {
            return Selected::Unproven(Missing::Format);
        }
        return Selected::No;
    }
    let Ok(key_index) = unlock::removable(record) else { return Selected::No };
    if !has_lock || key_index != record.schema.lock_key_index() {
        return Selected::No;
    }
    let mut estimated = None;
    for finding in &record.findings {
        let is_orphaned = sought.contains(&ORPHANED)
            && finding.code == FindingCode::ExcessTtl
            && finding.evidence == Evidence::Known
            && record.schema.keys[key_index].role == Role::Lock;
        if !is_orphaned && !sought.contains(&finding.code) {
            continue;
        }
        if finding.evidence > Evidence::Estimated {
            return Selected::Yes(Orphan { code: finding.code, key_index });
        }
        // An estimate selects nothing, but a later finding may be proven.
        if estimated.is_none() {
            estimated = Some(finding);
        }
    }
    if let Some(estimated) = estimated {
        return Selected::Unproven(Missing::Ttl(estimated.code.depends_on()));
    }
    let lock = &record.seen.keys[key_index];
    if sought.contains(&ORPHANED)
        && lock.time_left == TimeLeft::NoExpiry
        && record.may_never_end(key_index)
        && record.schema.ttl(TtlOf::Lock).is_some()
    {
        return Selected::Unproven(Missing::Expiry);
    }
    let is_ageless = sought.contains(&FindingCode::Overdue)
        && record.state == State::InProgress
        && age(record).is_none_or(is_estimated);
    if is_ageless { Selected::Unproven(missing_age(record)) } else { Selected::No }
}

/// True for an expiry with which a lock is an orphan: it has more than a year left although its TTL
/// is shorter, and its Redis key holds only locks.
fn may_expire_after_years(schema: &Schema, lock: TimeLeft) -> bool {
    let Some(ttl) = schema.ttl(TtlOf::Lock) else { return false };
    schema.keys[schema.lock_key_index()].role == Role::Lock
        && age::millis(ttl) < YEAR_MS
        && lock.millis().is_some_and(|left| left > YEAR_MS)
}

/// Like [`of`], for the records that a selection accepts.
pub(crate) fn chosen(
    record: &Record,
    sought: &[FindingCode],
    selection: &Selection,
) -> Selected<Orphan> {
    let orphan = of(record, sought);
    match selection.selects(record) {
        Selected::Yes(()) => orphan,
        Selected::No => Selected::No,
        Selected::Unproven(missing) if matches!(orphan, Selected::Yes(_)) => {
            Selected::Unproven(missing)
        }
        // The missing evidence for the orphan itself is reported before that for a filter.
        Selected::Unproven(_) => orphan,
    }
}

/// True if a record whose Redis keys expire like this (`None`: absent) may be such an orphan
/// that passes the selection, so that its values have to be read.
pub(crate) fn has_to_be_read(
    catalog: &Catalog,
    selection: &Selection,
    candidate: &Candidate,
    expiries: &[Option<TimeLeft>],
    sought: &[FindingCode],
    thresholds: &Thresholds,
) -> bool {
    if selection.passes_key(&candidate.key)
        && (may_be(&candidate.schemas, expiries, sought, thresholds)
            || has_expiry_of_operator(catalog, candidate))
    {
        return true;
    }
    // What looks like the result of one schema may be the lock of another.
    for beneath in locate::candidates_of_less_specific_schemas(catalog, candidate) {
        let mut of_lock = Vec::with_capacity(beneath.redis_keys.len());
        for redis_key in &beneath.redis_keys {
            let index = candidate.redis_keys.iter().position(|known| known == redis_key);
            of_lock.push(index.and_then(|index| expiries[index]));
        }
        let may_be = may_be(&beneath.schemas, &of_lock, sought, thresholds);
        if may_be && selection.passes_key(&beneath.key) {
            return true;
        }
    }
    false
}

/// True if an operator may have given one of the Redis keys its expiry, which then does not show how
/// old the lock is.
fn has_expiry_of_operator(catalog: &Catalog, candidate: &Candidate) -> bool {
    candidate.redis_keys.iter().any(|redis_key| catalog.extended.names(redis_key))
}

/// True if a record whose Redis keys expire like this may be such an orphan under one of these
/// schemas.
fn may_be(
    schemas: &[Arc<Schema>],
    expiries: &[Option<TimeLeft>],
    sought: &[FindingCode],
    thresholds: &Thresholds,
) -> bool {
    for schema in schemas {
        if !schema.has_locks() {
            continue;
        }
        if sought.iter().any(|code| may_have(schema, expiries, *code, thresholds)) {
            return true;
        }
    }
    false
}

fn may_have(
    schema: &Schema,
    expiries: &[Option<TimeLeft>],
    code: FindingCode,
    thresholds: &Thresholds,
) -> bool {
    let Some(lock) = expiries.get(schema.lock_key_index()).copied().flatten() else {
        return false;
    };
    let lock_ttl = schema.ttl(TtlOf::Lock).map(age::millis);
    let is_stated = schema.states_ttl(TtlOf::Lock);
    match code {
        FindingCode::NoExpiry => {
            lock == TimeLeft::NoExpiry && lock_ttl.is_some() || may_expire_after_years(schema, lock)
        }
        FindingCode::ExcessTtl => match (lock, lock_ttl) {
            (TimeLeft::Millis(left), Some(ttl)) => {
                is_stated && left > ttl.saturating_add(age::TTL_TOLERANCE_MS)
            }
            _ => false,
        },
        FindingCode::Overdue => match (lock, lock_ttl, thresholds.overdue_ms) {
            // The deadline alone gives the age of a lock: the value holds no time, and the lock TTL
            // is not a mere default.
            (TimeLeft::Millis(left), Some(ttl), Some(overdue))
                if is_stated && !schema.may_contain_time() =>
            {
                left.saturating_add(overdue) < ttl
            }
            _ => true,
        },
        FindingCode::LeftoverLock => {
            schema.has_separate_result() && expiries[schema.result_key_index()].is_some()
        }
        FindingCode::Unreadable => true,
        // None of these makes a lock an orphan.
        FindingCode::ForeignSchema
        | FindingCode::WrongType
        | FindingCode::ResultNoExpiry
        | FindingCode::ShortLockTtl
        | FindingCode::ShortResultTtl
        | FindingCode::Oversized => false,
    }
}

fn is_estimated(age: Age) -> bool {
    age.evidence == Evidence::Estimated
}

/// How long the lock has been held. For a lock beside a result, this is not the age of the result.
pub(crate) fn age(record: &Record) -> Option<Age> {
    let age = age::of(&record.schema, State::InProgress, &record.readings, &record.seen)?;
    // The TTL shows no age if an operator gave the lock its expiry.
    if record.is_extended && !age.is_of_record() { None } else { Some(age) }
}

/// True if the lock expires no later than a full lock TTL from now, also by a time in its value.
/// Giving it that TTL would make it stay longer, and so would each further sweep. Also true if its
/// end is unknown.
pub(crate) fn expires_anyway(record: &Record, key_index: usize) -> bool {
    match record.end_of(key_index) {
        None => true,
        Some(TimeLeft::NoExpiry) => false,
        Some(TimeLeft::Millis(left)) => {
            record.schema.ttl(TtlOf::Lock).is_none_or(|ttl| left <= age::millis(ttl))
        }
    }
}

/// True for a lock that expires and may belong to a live worker. Its age does not make it an
/// orphan; only the death of its owner does.
///
/// Only a lock TTL that the deployment states shows that a lock stays longer than its worker
/// intended. Without one, every lock with an expiry counts as expiring in time.
///
/// Whether a lock beside a result may belong to a live worker depends on the schema:
/// [`fencing::keeps_locks_from_results`].
pub(crate) fn needs_dead_owner(record: &Record, orphan: Orphan) -> bool {
    let expires = record.end_of(orphan.key_index) != Some(TimeLeft::NoExpiry);
    let is_stated = record.schema.ttl_evidence(TtlOf::Lock) == Evidence::Stated;
    match orphan.code {
        FindingCode::Overdue if is_stated => expires_anyway(record, orphan.key_index),
        FindingCode::Overdue => expires,
        FindingCode::LeftoverLock => expires && !fencing::keeps_locks_from_results(&record.schema),
        // It never expires, stays longer than a stated TTL allows, or is not a lock that a worker
        // could hold.
        FindingCode::NoExpiry | FindingCode::ExcessTtl | FindingCode::Unreadable => false,
        // None of these makes a lock an orphan.
        FindingCode::ForeignSchema
        | FindingCode::WrongType
        | FindingCode::ResultNoExpiry
        | FindingCode::ShortLockTtl
        | FindingCode::ShortResultTtl
        | FindingCode::Oversized => expires,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::diagnosis::{self, Thresholds};
    use crate::domain::record::Content;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, record, text};
    use crate::domain::select::Missing;

    fn diagnosed(mut record: Record) -> Record {
        let thresholds = Thresholds { overdue_ms: Some(10_000), ..Thresholds::default() };
        record.findings = diagnosis::findings(&record, &thresholds, None);
        record
    }

    fn told(record: Record, sought: &[FindingCode]) -> Result<Option<FindingCode>, Missing> {
        match of(&diagnosed(record), sought) {
            Selected::Yes(orphan) => Ok(Some(orphan.code)),
            Selected::No => Ok(None),
            Selected::Unproven(missing) => Err(missing),
        }
    }

    fn stating(mut record: Record) -> Record {
        Arc::make_mut(&mut record.schema).stated = vec![TtlOf::Lock];
        Record::new(record.schema, record.key, record.seen, record.readings)
    }

    /// Rule: a schema's default TTL makes no lock an orphan; what the deployment states does.
    #[test]
    fn a_lock_is_an_orphan_by_what_is_sought_and_proven() {
        let lock = |left| chi(CHI_LOCK, left);
        let by_ttl = Err(Missing::Ttl(TtlOf::Lock));
        assert_eq!(told(lock(TimeLeft::NoExpiry), &[ORPHANED]), Ok(Some(ORPHANED)));
        assert_eq!(told(lock(TimeLeft::NoExpiry), &[FindingCode::ExcessTtl]), Ok(None));
        assert_eq!(told(lock(TimeLeft::Millis(600_000)), &[FindingCode::ExcessTtl]), by_ttl);
        assert_eq!(
            told(stating(lock(TimeLeft::Millis(600_000))), &[FindingCode::ExcessTtl]),
            Ok(Some(FindingCode::ExcessTtl))
        );
        assert_eq!(
            told(lock(TimeLeft::Millis(1_000)), &[ORPHANED, FindingCode::ExcessTtl]),
            Ok(None)
        );
        assert_eq!(told(lock(TimeLeft::Millis(1_000)), &[FindingCode::Overdue]), by_ttl);
        assert_eq!(
            told(lock(TimeLeft::Millis(59_000)), &[FindingCode::Overdue]),
            by_ttl,
            "nor is it known to be young"
        );
        assert_eq!(
            told(stating(lock(TimeLeft::Millis(1_000))), &[FindingCode::Overdue]),
            Ok(Some(FindingCode::Overdue))
        );
        assert_eq!(
            told(stating(lock(TimeLeft::Millis(59_000))), &[FindingCode::Overdue]),
            Ok(None)
        );
        assert_eq!(told(lock(TimeLeft::NoExpiry), &[FindingCode::Overdue]), Err(Missing::Age));
        assert_eq!(
            told(chi("?", TimeLeft::Millis(1_000)), &[FindingCode::Unreadable]),
            Ok(Some(FindingCode::Unreadable))
        );
    }

    /// Rule: a lock with more than a year left is an orphan only at a Redis key for locks alone. The
    /// same value at a Redis key for everything may be one that the schema takes for a lock.
    #[test]
    fn a_lock_with_more_than_a_year_left_is_an_orphan_at_a_key_of_its_own() {
        let consumer = |left| {
            let keys = [(text("1"), left), (Content::Absent, TimeLeft::Millis(0))];
            told(record("event-consumer", &keys), &[ORPHANED])
        };
        assert_eq!(consumer(TimeLeft::Millis(YEAR_MS + 1)), Ok(Some(FindingCode::ExcessTtl)));
        assert_eq!(consumer(TimeLeft::Millis(YEAR_MS)), Ok(None));
        assert_eq!(told(chi(CHI_LOCK, TimeLeft::Millis(YEAR_MS + 1)), &[ORPHANED]), Ok(None));
    }

    #[test]
    fn a_result_is_none_whatever_is_sought() {
        assert_eq!(told(chi(CHI_RESULT, TimeLeft::NoExpiry), FindingCode::ALL), Ok(None));
        let broken_result = record(
            "event-driven",
            &[(Content::Absent, TimeLeft::Millis(0)), (text("{"), TimeLeft::NoExpiry)],
        );
        assert_eq!(told(broken_result, FindingCode::ALL), Ok(None));
        let left =
            |lock| record("event-consumer", &[(text("1"), lock), (text("1"), TimeLeft::Millis(9))]);
        assert_eq!(
            told(left(TimeLeft::Millis(9)), &[ORPHANED, FindingCode::LeftoverLock]),
            Ok(Some(FindingCode::LeftoverLock))
        );
        assert_eq!(
            told(left(TimeLeft::NoExpiry), &[ORPHANED]),
            Ok(Some(ORPHANED)),
            "beside a result, too"
        );
        let age = age(&left(TimeLeft::Millis(20_000))).map(|age| age.millis);
        assert_eq!(age, Some(40_000), "the lock's age, not the result's");
    }

    /// Rule: a lock that ends by itself is no orphan on age, nor beside a result that a live worker
    /// may have overlooked.
    #[test]
    fn a_lock_that_ends_by_itself_may_be_held() {
        let beside = |schema: &str, time_left: TimeLeft| {
            record(schema, &[(text("1"), time_left), (text("1"), TimeLeft::Millis(9))])
        };
        let may = |record: &Record, code| needs_dead_owner(record, Orphan { code, key_index: 0 });
        let consumer = |time_left| beside("event-consumer", time_left);
        let (left, overdue) = (FindingCode::LeftoverLock, FindingCode::Overdue);
        for (record, code, expected, why) in [
            (consumer(TimeLeft::Millis(9)), left, true, "within the schema's lock TTL"),
            (consumer(TimeLeft::Millis(9)), overdue, true, "within the schema's lock TTL"),
            (
                consumer(TimeLeft::Millis(60_001)),
                left,
                true,
                "the deployment's lock TTL may be a longer one",
            ),
            (stating(consumer(TimeLeft::Millis(60_001))), left, true, "whatever TTL"),
            (
                consumer(TimeLeft::Millis(60_001)),
                overdue,
                true,
                "the same of a lock that has a time in it",
            ),
            (
                stating(consumer(TimeLeft::Millis(60_001))),
                overdue,
                false,
                "longer than the stated TTL",
            ),
            (
                beside("event-driven", TimeLeft::Millis(9)),
                left,
                false,
                "its scripts take no lock beside a result",
            ),
            (beside("event-driven", TimeLeft::Millis(9)), overdue, true, "whatever its scripts do"),
            (consumer(TimeLeft::NoExpiry), left, false, "it never ends"),
            (consumer(TimeLeft::NoExpiry), overdue, false, "it never ends"),
            (consumer(TimeLeft::Millis(9)), FindingCode::ExcessTtl, false, "it stays too long"),
        ] {
            assert_eq!(may(&record, code), expected, "{code:?}: {why}");
        }
    }

    /// Rule: a value is read only if no deadline tells that its record is none of what is sought.
    #[test]
    fn deadlines_tell_which_values_have_to_be_read() {
        use FindingCode::{ExcessTtl, LeftoverLock, NoExpiry, Overdue, Unreadable};
        let (plain, stated) =
            (chi(CHI_LOCK, TimeLeft::Millis(1)), stating(chi(CHI_LOCK, TimeLeft::Millis(1))));
        let two = record(
            "event-consumer",
            &[(text("1"), TimeLeft::Millis(9)), (text("1"), TimeLeft::Millis(9))],
        );
        let thresholds = Thresholds { overdue_ms: Some(10_000), ..Thresholds::default() };
        let left = |millis| Some(TimeLeft::Millis(millis));
        for (record, expiries, code, expected) in [
            (&plain, &[Some(TimeLeft::NoExpiry)][..], NoExpiry, true),
            (&plain, &[left(86_400_000)], NoExpiry, false),
            (&plain, &[None], NoExpiry, false),
            (&plain, &[left(86_400_000)], ExcessTtl, false),
            (&stated, &[left(86_400_000)], ExcessTtl, true),
            (&stated, &[left(60_500)], ExcessTtl, false),
            (&stated, &[left(49_999)], Overdue, true),
            (&stated, &[left(50_000)], Overdue, false),
            (&plain, &[left(50_000)], Overdue, true),
            (&stated, &[left(50_000)], Unreadable, true),
            (&two, &[Some(TimeLeft::NoExpiry), left(9)], NoExpiry, true),
            (&two, &[left(9), Some(TimeLeft::NoExpiry)], NoExpiry, false),
            (&two, &[left(YEAR_MS + 1), None], NoExpiry, true),
            (&two, &[left(YEAR_MS), None], NoExpiry, false),
            (&plain, &[left(YEAR_MS + 1)], NoExpiry, false),
            (&two, &[left(9), left(9)], LeftoverLock, true),
            (&two, &[left(9), None], LeftoverLock, false),
        ] {
            let schemas = [Arc::clone(&record.schema)];
            assert_eq!(
                may_be(&schemas, expiries, &[code], &thresholds),
                expected,
                "{code:?} {expiries:?}"
            );
        }
    }

    #[test]
    fn a_new_ttl_never_prolongs() {
        assert!(expires_anyway(&chi(CHI_LOCK, TimeLeft::Millis(60_000)), 0));
        assert!(!expires_anyway(&chi(CHI_LOCK, TimeLeft::Millis(60_001)), 0));
        assert!(!expires_anyway(&chi(CHI_LOCK, TimeLeft::NoExpiry), 0));
    }
}
