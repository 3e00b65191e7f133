//! The hint of a step that cannot be executed: which command removes the record instead.

use crate::domain::change::removal::{self, RemovalCommand};
use crate::domain::change::unlock;
use crate::domain::manual_step;
use crate::domain::record::Record;
use crate::domain::schema::State;
use crate::render::escape;
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
    let key_index = match removal::of(record) {
        Ok(RemovalCommand::Unlock(key_index)) => key_index,
        Ok(RemovalCommand::Purge(State::Completed)) => {
            return format!("to remove a result, use `idemctl purge {argument}`");
        }
        Ok(RemovalCommand::Purge(state)) => {
            let what = match state {
                State::Failed => "a failure",
                _ => "all Redis keys of the record",
            };
            let state = state.as_str();
            return format!("to remove {what}, use `idemctl purge {argument} --state {state}`");
        }
        Err(why) if record.state.is_result() => {
            return format!(
                "find out which program wrote it; `purge` does not remove it, because {why}"
            );
        }
        Err(why) => return format!("`force-unlock` does not remove it either: {why}"),
    };
    if record.readings[key_index].mismatch().is_some() {
        // Any Redis key may be a record of a schema without a prefix.
        if record.author.is_foreign() || !record.schema.has_fixed_prefix() {
            return "find out which program wrote it".to_owned();
        }
        return format!("to remove an unreadable value, use `idemctl force-unlock {argument}`");
    }
    match unlock::unreadable_beside(record, key_index) {
        Some(other) => format!(
            "`idemctl force-unlock {argument}` removes only the lock; the value at {}, which \
            cannot be read, remains",
            escape::text(&record.seen.keys[other].redis_key)
        ),
        None => format!("to remove a lock, use `idemctl force-unlock {argument}`"),
    }
}
