//! Which locks may be extended.

use super::unlock::{LOCK_ABSENT, NO_RECORD, no_lock};
use crate::domain::record::Record;
use crate::domain::schema::State;

/// The index of the lock that may be extended.
///
/// # Errors
/// Why the record has no lock to extend. It has none, or another program wrote the value.
pub(crate) fn extendable(record: &Record) -> Result<usize, String> {
    if let Some(why) = record.author.unrecognised_because() {
        return Err(no_lock(record, &why));
    }
    match record.state {
        State::InProgress if record.lock_contains_expiry() => {
            Err("its value contains its own expiry, which decides when the lock ends, and idemctl \
                extends only the TTL of the Redis key"
                .to_owned())
        }
        State::InProgress if record.lock().is_none() => Err(LOCK_ABSENT.to_owned()),
        State::InProgress => Ok(record.schema.lock_key_index()),
        State::Completed | State::Failed | State::Released => {
            Err(format!("it is {}, so no lock need live longer", record.state.as_str()))
        }
        State::Absent => Err(NO_RECORD.to_owned()),
        State::Unreadable => Err("its value cannot be read, so it may not be a lock".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi};

    /// Rule: an extension never takes time from a lock.
    #[test]
    fn only_a_lock_that_is_held_is_extended() {
        assert_eq!(extendable(&chi(CHI_LOCK, TimeLeft::Millis(9))), Ok(0));
        assert!(
            extendable(&chi(CHI_RESULT, TimeLeft::Millis(9))).unwrap_err().contains("completed")
        );
        assert!(extendable(&chi("garbage", TimeLeft::Millis(9))).is_err());
    }
}
