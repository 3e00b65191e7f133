//! A history as it was played: what each did, what Redis answered, what its client saw, what stood in Redis then.

use super::act::Act;
use super::held::Keys;
use crate::domain::duration;
use crate::domain::record::{Content, Reading, decode};
use crate::domain::schema::{Role, Schema, State};

/// One step of a history that workers played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) act: Act,
    pub(crate) actor: String,
    pub(crate) step: String,
    pub(crate) reply: Option<String>,
    /// What the client of the worker sees.
    pub(crate) sees: Option<String>,
    /// What stands at the Redis keys afterwards.
    pub(crate) holds: String,
}

/// What stands at a record's Redis keys, in words; `holder` is who took the lock.
pub(crate) fn holds(schema: &Schema, keys: &Keys, holder: Option<&str>) -> String {
    let of_holder = holder.map(|name| format!(" of {name}")).unwrap_or_default();
    let parts: Vec<_> = (0..schema.keys.len())
        .filter_map(|role| {
            let what = match held_at(schema, keys, role)? {
                Role::Lock => format!("lock{of_holder}"),
                Role::Result => "result".to_owned(),
                Role::Record => "an unreadable value".to_owned(),
            };
            let ttl = keys.ttl_ms(role).map_or_else(|| "for ever".to_owned(), duration::short);
            Some(format!("{what}, {ttl}"))
        })
        .collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(" + ") }
}

/// What the Redis key of a role holds: a lock, a result, or a record that nobody can read; `None` where nothing is.
pub(crate) fn held_at(schema: &Schema, keys: &Keys, role: usize) -> Option<Role> {
    let content = keys.content(role);
    if content == Content::Absent {
        return None;
    }
    Some(match decode::read(schema, role, &content) {
        Reading::Value(decoded) => match schema.values[decoded.case].state {
            State::InProgress => Role::Lock,
            State::Completed => Role::Result,
            _ => Role::Record,
        },
        _ => Role::Record,
    })
}
