//! The hint of a step that cannot be executed: which command removes the record instead.

use crate::domain::change::removal::{self, RemovalCommand};
use crate::domain::manual_step;
use crate::domain::record::Record;
use crate::domain::schema::State;
use crate::render::invocation::argument_of;

/// The command that lets the next request execute: the service's own release of a lock, or the one
/// that removes the record. `None` if there is no record.
pub fn freeing_hint(record: &Record) -> Option<String> {
    if record.seen.is_absent() {
        return None;
    }
    // `--owner` names no empty owner.
    let has_empty_owner = record.owner() == Some(b"");
    if record.state == State::InProgress
        && !has_empty_owner
        && manual_step::releasable(record).is_ok()
    {
        let argument = argument_of(record);
        return Some(format!(
            "to let the next request execute instead, run `idemctl release {argument}`"
        ));
    }
    Some(removal_hint(record))
}

/// The command that removes the record, or why none does.
pub fn removal_hint(record: &Record) -> String {
    let argument = argument_of(record);
    match removal::of(record) {
        // Any Redis key may be a record of a schema without a prefix.
        Ok(RemovalCommand::Unlock(key_index))
            if record.readings[key_index].mismatch().is_some()
                && (record.author.is_foreign() || !record.schema.has_fixed_prefix()) =>
        {
            "find out which program wrote it".to_owned()
        }
        Ok(RemovalCommand::Unlock(_)) => {
            format!("to remove a lock, use `idemctl force-unlock {argument}`")
        }
        Ok(RemovalCommand::Purge(State::Completed)) => {
            format!("to remove a result, use `idemctl purge {argument}`")
        }
        Ok(RemovalCommand::Purge(state)) => {
            format!("to remove it, use `idemctl purge {argument} --state {}`", state.as_str())
        }
        Err(why) => format!("no command removes it: {why}"),
    }
}
