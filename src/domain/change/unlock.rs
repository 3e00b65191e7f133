//! Which Redis key of a record may be removed to unlock it.

use super::purgeable;
use crate::domain::record::{Author, Content, Reading, Record, decode};
use crate::domain::schema::State;
use crate::domain::step::{Answer, next_request};

/// Why a record has no lock although it is in progress.
pub(super) const LOCK_ABSENT: &str =
    "its lock does not exist; another Redis key of the record says that it is in progress";

pub(super) const NO_RECORD: &str = "the key has no record";

/// The answer that the next request gets once the Redis key with this index is removed.
pub(crate) fn answer_without(record: &Record, key_index: usize) -> Answer {
    let mut seen = record.seen.clone();
    seen.keys[key_index].content = Content::Absent;
    let readings = decode::decode_all(&record.schema, &seen);
    next_request::of(&record.schema, &readings, &seen).answer
}

/// Passes a record unless its lock deviates from the format of locks. Such a value may as well be a
/// stored result of another release of the service.
///
/// # Errors
/// How it deviates.
pub(crate) fn check_lock_format(record: &Record) -> Result<(), String> {
    match record.lock_deviation() {
        Some(why) => Err(no_lock(record, why)),
        None => Ok(()),
    }
}

/// That a value is not a lock of the schema.
pub(crate) fn no_lock(record: &Record, why: &str) -> String {
    format!("it is not a lock of {}: {why}", record.schema.name)
}

/// The index of the Redis key to remove: the lock, including one left beside a result or beside a
/// value that cannot be read, or such a value alone.
pub(crate) fn removable(record: &Record) -> Result<usize, String> {
    let lock = record.schema.lock_key_index();
    // A value of another type beside the service's lock stays, and the lock can go.
    if !record.author.is_of_lock() {
        purgeable::check_own_keys(record)?;
    }
    // Before the state, because another schema may own what this one reads as a lock.
    if let Author::ResultOf(other) | Author::LockOf(other) = &record.author {
        return Err(format!("{other} reads it as a record of its own; name it with --schema"));
    }
    if matches!(record.state, State::InProgress | State::Unreadable) {
        purgeable::check_held(record)?;
    }
    match record.state {
        State::Absent if record.seen.is_absent() => Err(NO_RECORD.to_owned()),
        State::Absent => {
            Err("it has passed its own expiry, so the next request treats it as absent".to_owned())
        }
        // A result's Redis key may say that the operation runs, after the lock expired.
        State::InProgress if record.seen.keys[lock].content.is_absent() => {
            Err(LOCK_ABSENT.to_owned())
        }
        State::InProgress => check_lock_format(record).map(|()| lock),
        State::Completed | State::Failed if record.lock().is_some() => {
            check_lock_format(record).map(|()| lock)
        }
        State::Completed | State::Failed => {
            let state = record.state.as_str();
            Err(format!(
                "it is {state}, so there is no lock; unlocking never removes a stored result"
            ))
        }
        State::Released => Err("its lock was released already".to_owned()),
        // Beside a lock, the other value may be a stored response, which unlocking never removes.
        State::Unreadable if record.has_readable_lock() => Ok(lock),
        State::Unreadable => {
            check_lock_format(record)?;
            match record.readings.iter().position(|reading| reading.mismatch().is_some()) {
                Some(unread) if !record.seen.keys[unread].content.is_absent() => Ok(unread),
                _ => Err("nothing of it can be removed".to_owned()),
            }
        }
    }
}

/// The unreadable value that remains once the Redis key with this index is removed, by the index of
/// its Redis key.
pub(crate) fn unreadable_beside(record: &Record, key_index: usize) -> Option<usize> {
    let unreadable = |reading: &Reading| {
        reading.mismatch().is_some() || matches!(reading, Reading::WrongType(_))
    };
    let other = record.readings.iter().position(unreadable)?;
    if other == key_index {
        let result = record.schema.result_key_index();
        return (result != key_index && unreadable(&record.readings[result])).then_some(result);
    }
    Some(other)
}
