//! Which command removes a record. Every hint asks here, so that none names a command that refuses.

use super::{purgeable, unlock};
use crate::domain::record::Record;
use crate::domain::schema::State;

/// A command that removes a record, or only its lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RemovalCommand {
    /// `force-unlock` removes the Redis key with this index.
    Unlock(usize),
    /// `purge` removes all of its Redis keys. It needs `--state` of this state, unless that is
    /// completed.
    Purge(State),
}

/// The command that removes the lock of a record, or else the whole record.
///
/// # Errors
/// Why neither `force-unlock` nor `purge` removes it.
pub(crate) fn of(record: &Record) -> Result<RemovalCommand, String> {
    let why = match unlock::removable(record) {
        Ok(key_index) => return Ok(RemovalCommand::Unlock(key_index)),
        Err(why) => why,
    };
    match record.state {
        // An expired record needs no removal, and `purge` needs more options for a value that
        // cannot be read.
        State::Absent | State::Unreadable => Err(why),
        State::InProgress => match purgeable::check(record) {
            Ok(()) => Ok(RemovalCommand::Purge(record.state)),
            Err(_) => Err(why),
        },
        State::Completed | State::Failed | State::Released => {
            purgeable::check(record).map(|()| RemovalCommand::Purge(record.state))
        }
    }
}
