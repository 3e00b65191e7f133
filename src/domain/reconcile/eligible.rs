//! Which locks are reconciled. An estimated age never makes a lock old, and a lock that was renewed
//! has a live worker.

use crate::domain::change::unlock;
use crate::domain::duration;
use crate::domain::record::age::{self, TTL_TOLERANCE_MS};
use crate::domain::record::{Author, Evidence, Record, TimeLeft};
use crate::domain::schema::{State, TtlOf};

/// Whether a lock is reconciled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Eligibility {
    /// It is, for this reason.
    Taken(String),
    /// It is known to be younger.
    Young,
    /// Its deadline makes it younger, unless somebody extended it.
    YoungByDeadline,
    /// It ends later than its TTL allows.
    Renewed(String),
    /// Nobody knows, for this reason.
    Left(String),
}

/// The index of the lock of a record that can be reconciled, whatever its age.
///
/// # Errors
/// Why the record has no such lock.
pub(crate) fn reconcilable(record: &Record) -> Result<usize, String> {
    if let Some(why) = record.author.unrecognised_because() {
        return Err(unlock::no_lock(record, &why));
    }
    if record.author == Author::Provisional || record.is_undecided() {
        return Err("its value is too long to tell whose it is".to_owned());
    }
    match record.state {
        State::InProgress => {}
        State::Completed | State::Failed | State::Released => {
            return Err(format!("it is {} already", record.state.as_str()));
        }
        State::Absent | State::Unreadable => {}
    }
    let key_index = unlock::removable(record)?;
    if record.state != State::InProgress || key_index != record.schema.lock_key_index() {
        return Err(format!("it is {} and no lock", record.state.as_str()));
    }
    if record.contained_expiry().is_some_and(|(value, _)| value.past_expiry.is_some()) {
        return Err("it has passed its own expiry, so its service treats it as ended".to_owned());
    }
    if let Some(why) = record.schema.read_only_because() {
        return Err(why);
    }
    Ok(key_index)
}

/// Whether the lock at this index of the record is reconciled. `former_ms` is the deadline that the
/// lock had before an operator extended it to its current one, in milliseconds since the epoch.
pub(crate) fn eligibility(
    record: &Record,
    key_index: usize,
    older_than_ms: u64,
    former_ms: Option<u64>,
) -> Eligibility {
    let known_age = match record.age {
        Some(age) if age.evidence == Evidence::Known => Some(age.millis),
        _ => None,
    };
    let ttl = record.schema.ttl(TtlOf::Lock).map(age::millis);
    let TimeLeft::Millis(left_ms) = record.seen.keys[key_index].time_left else {
        return match (record.key_contains_expiry(key_index), known_age) {
            (false, _) => without_expiry(known_age, ttl, older_than_ms),
            // It ends by itself, so only its age makes it old.
            (true, Some(age_ms)) => by_age(age_ms, older_than_ms, "created"),
            (true, None) => Eligibility::Left("its age is unknown".to_owned()),
        };
    };
    let left_ms = match (former_ms, record.seen.server_ms) {
        (Some(former), Some(now)) => signed(former) - signed(now),
        _ => signed(left_ms),
    };
    let is_stated = record.schema.ttl_evidence(TtlOf::Lock) > Evidence::Estimated;
    // Only the TTL shows whether a worker renewed the lock, also if the value holds its age.
    let Some(ttl) = ttl.filter(|_| is_stated) else {
        return Eligibility::Left(
            "the lock TTL of this deployment is not stated (--lock-ttl), so it is unknown whether \
            a worker renewed it"
                .to_owned(),
        );
    };
    if let Some(age_ms) = known_age {
        if signed(age_ms) + left_ms > signed(ttl.saturating_add(TTL_TOLERANCE_MS)) {
            return renewed(ttl);
        }
        return by_age(age_ms, older_than_ms, "created");
    }
    if left_ms > signed(ttl.saturating_add(TTL_TOLERANCE_MS)) {
        return renewed(ttl);
    }
    if record.is_extended && former_ms.is_none() {
        return Eligibility::Left("its age is unknown, as an operator extended it".to_owned());
    }
    let age_ms = u64::try_from(signed(ttl) - left_ms).unwrap_or(0);
    if age_ms < older_than_ms {
        return Eligibility::YoungByDeadline;
    }
    // An extension that is not in the log makes a lock look younger.
    let verb = if former_ms.is_some() { "acquired" } else { "acquired at least" };
    by_age(age_ms, older_than_ms, verb)
}

/// A lock that never expires is an orphan, unless its service gives its locks no TTL, or its value
/// says that it is young: its worker may be about to set the expiry.
fn without_expiry(known_age: Option<u64>, ttl: Option<u64>, older_than_ms: u64) -> Eligibility {
    match (known_age, ttl) {
        (Some(age_ms), _) if age_ms < older_than_ms => Eligibility::Young,
        (_, Some(_)) => Eligibility::Taken("orphaned".to_owned()),
        (Some(age_ms), None) => by_age(age_ms, older_than_ms, "created"),
        (None, None) => Eligibility::Left("its age is unknown".to_owned()),
    }
}

fn by_age(age_ms: u64, older_than_ms: u64, verb: &str) -> Eligibility {
    if age_ms < older_than_ms {
        return Eligibility::Young;
    }
    Eligibility::Taken(format!("{verb} {} ago", duration::short(age_ms)))
}

fn renewed(ttl_ms: u64) -> Eligibility {
    let ttl = duration::short(ttl_ms);
    Eligibility::Renewed(format!(
        "it ends later than a lock TTL of {ttl} allows, so it was renewed or extended, and its \
        worker may be alive"
    ))
}

fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}
