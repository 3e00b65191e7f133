//! Orphans: locks that nobody will release, by finding, and what a sweep may do with each.

use crate::domain::age::{self, Age};
use crate::domain::observation::Expiry;
use crate::domain::record::Record;
use crate::domain::schema::{Action, Call, Condition, Meaning, Schema, SlotIs, State, Step};
use crate::domain::unlock;

/// Findings that make a lock an orphan by themselves.
pub const ORPHANED: [&str; 3] = ["no-expiry", "excess-ttl", LEFTOVER];

/// The finding of a lock beside a result.
pub const LEFTOVER: &str = "leftover-lock";

/// The finding of a lock that is held longer than the operator thinks an operation can take.
pub const OVERDUE: &str = "overdue";

/// The finding of a value that does not decode.
pub const UNREADABLE: &str = "unreadable";

/// A lock that is an orphan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Orphan {
    /// The finding that makes it one, the first of those sought.
    pub code: &'static str,
    /// The slot of the lock.
    pub slot: usize,
}

/// The orphan that a record is by these findings, if any. A stored result never is one, nor what may turn out to be.
pub fn of(record: &Record, sought: &[&'static str]) -> Option<Orphan> {
    if record.is_undecided() {
        return None;
    }
    let code = record.findings.iter().map(|finding| finding.code).find(|code| sought.contains(code))?;
    let slot = unlock::removable(record).ok().filter(|slot| *slot == record.schema.lock_slot())?;
    Some(Orphan { code, slot })
}

/// How long the lock is held, also one beside a result, whose own age is another.
pub fn age(record: &Record) -> Option<Age> {
    age::of(&record.schema, State::InProgress, &record.readings, &record.seen)
}

/// True when the lock goes by itself no later than with a lock TTL of its own: giving it one would make it stay
/// longer, and again with each sweep.
pub fn expires_anyway(record: &Record, slot: usize) -> bool {
    match record.seen.slots[slot].expiry {
        Expiry::Never => false,
        Expiry::In(left) => left <= age::millis(record.schema.lock_ttl),
    }
}

/// True for a lock that ends by itself, and behind which a live worker may stand: no age makes it an orphan.
///
/// A lock beside a result has no live worker where the service neither takes a lock while there is a result, nor stores a
/// result without unlocking its own lock in the same moment. Elsewhere a worker that was told that there is no result may
/// take the lock after the result came.
pub fn may_be_held(record: &Record, orphan: Orphan) -> bool {
    let is_held = match orphan.code {
        OVERDUE => true,
        LEFTOVER => !keeps_locks_from_results(&record.schema),
        _ => false,
    };
    is_held && expires_anyway(record, orphan.slot)
}

fn keeps_locks_from_results(schema: &Schema) -> bool {
    let is_one_script = |step: &Step| matches!(step.calls[..], [Call { action: Action::Script { .. }, .. }]);
    let result = schema.result_slot();
    let needs_no_result = |condition: &Condition| condition.0.contains(&(result, SlotIs::Absent));
    let acquired = schema.begin.calls.iter().flat_map(|call| &call.replies);
    let mut acquired = acquired.filter(|reply| reply.means == Meaning::Acquired).peekable();
    let takes_none = acquired.peek().is_some()
        && acquired.all(|reply| !reply.when.is_empty() && reply.when.iter().all(needs_no_result));
    is_one_script(&schema.begin) && takes_none && is_one_script(&schema.complete) && schema.complete.checks_owner
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::diagnosis::{self, CODES, Thresholds};
    use crate::domain::observation::Content;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, record, text};

    fn diagnosed(mut record: Record) -> Record {
        let thresholds = Thresholds { overdue_ms: Some(10_000), ..Thresholds::default() };
        record.findings = diagnosis::findings(&record, &thresholds, None);
        record
    }

    fn code(record: Record, sought: &[&'static str]) -> Option<&'static str> {
        of(&diagnosed(record), sought).map(|orphan| orphan.code)
    }

    #[test]
    fn the_codes_are_codes_of_findings() {
        assert!(ORPHANED.iter().chain([&OVERDUE, &UNREADABLE]).all(|code| CODES.contains(code)));
    }

    #[test]
    fn a_lock_is_an_orphan_by_what_is_sought() {
        assert_eq!(code(chi(CHI_LOCK, Expiry::Never), &ORPHANED), Some("no-expiry"));
        assert_eq!(code(chi(CHI_LOCK, Expiry::Never), &["excess-ttl"]), None);
        assert_eq!(code(chi(CHI_LOCK, Expiry::In(1_000)), &ORPHANED), None);
        assert_eq!(code(chi(CHI_LOCK, Expiry::In(1_000)), &[OVERDUE]), Some(OVERDUE));
        assert_eq!(code(chi("?", Expiry::In(1_000)), &[UNREADABLE]), Some(UNREADABLE));
    }

    #[test]
    fn a_result_is_none_whatever_is_sought() {
        assert_eq!(code(chi(CHI_RESULT, Expiry::Never), &CODES), None);
        let broken_result = record("event-driven", &[(Content::Absent, Expiry::In(0)), (text("{"), Expiry::Never)]);
        assert_eq!(code(broken_result, &CODES), None);
        let left = record("event-consumer", &[(text("1"), Expiry::In(9)), (text("1"), Expiry::In(9))]);
        let orphan = of(&diagnosed(left), &ORPHANED).expect("a leftover lock");
        assert_eq!((orphan.code, orphan.slot), ("leftover-lock", 0));
        let left = record("event-consumer", &[(text("1"), Expiry::In(20_000)), (text("1"), Expiry::In(9))]);
        assert_eq!(age(&left).map(|age| age.millis), Some(40_000), "the lock's age, not the result's");
    }

    /// Rule: a lock that ends by itself is no orphan on age, nor beside a result that a live worker may have overlooked.
    #[test]
    fn a_lock_that_ends_by_itself_may_be_held() {
        let may = |schema: &str, code: &'static str, expiry: Expiry| {
            let record = record(schema, &[(text("1"), expiry), (text("1"), Expiry::In(9))]);
            may_be_held(&record, Orphan { code, slot: 0 })
        };
        assert!(may("event-consumer", LEFTOVER, Expiry::In(9)) && may("event-consumer", OVERDUE, Expiry::In(9)));
        assert!(!may("event-driven", LEFTOVER, Expiry::In(9)), "its scripts take no lock beside a result");
        assert!(may("event-driven", OVERDUE, Expiry::In(9)));
        assert!(!may("event-consumer", LEFTOVER, Expiry::Never) && !may("event-consumer", OVERDUE, Expiry::In(60_001)));
        assert!(!may("event-consumer", "excess-ttl", Expiry::In(9)));
    }

    #[test]
    fn a_new_ttl_never_prolongs() {
        assert!(expires_anyway(&chi(CHI_LOCK, Expiry::In(60_000)), 0));
        assert!(!expires_anyway(&chi(CHI_LOCK, Expiry::In(60_001)), 0));
        assert!(!expires_anyway(&chi(CHI_LOCK, Expiry::Never), 0));
    }
}
