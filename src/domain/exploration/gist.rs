//! What stands at a record's Redis keys, as far as it is no matter of bytes and moments.

use super::held::Keys;
use super::trace;
use crate::domain::record::{Observation, Reading, SeenKey, decode};
use crate::domain::schema::{Schema, State};

/// Of a state of the exploration.
pub(crate) fn of_keys(schema: &Schema, keys: &Keys) -> String {
    let one = |role: usize| match trace::held_at(schema, keys, role) {
        None => "nothing".to_owned(),
        Some(held) => format!("{} {}", held.as_str(), ends(keys.ttl_ms(role).is_some())),
    };
    (0..schema.keys.len()).map(one).collect::<Vec<_>>().join(" + ")
}

/// Of what was read.
pub(crate) fn of_seen(schema: &Schema, seen: &Observation) -> String {
    let one = |(role, seen): (usize, &SeenKey)| {
        let held = match decode::read(schema, role, &seen.content) {
            Reading::Absent => return "nothing".to_owned(),
            Reading::Value(decoded) => match schema.values[decoded.case].state {
                State::InProgress => "lock",
                State::Completed => "result",
                _ => "record",
            },
            _ => "record",
        };
        format!("{held} {}", ends(seen.expiry.millis().is_some()))
    };
    seen.keys.iter().enumerate().map(one).collect::<Vec<_>>().join(" + ")
}

fn ends(ends: bool) -> &'static str {
    if ends { "with a TTL" } else { "for ever" }
}
