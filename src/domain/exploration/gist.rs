//! What stands at a record's Redis keys, as far as it is no matter of bytes and moments.

use super::held::Keys;
use super::trace;
use crate::domain::record::{Observation, Reading, SeenKey, decode};
use crate::domain::schema::{Schema, State};

/// Of a state of the exploration.
pub(crate) fn of_keys(schema: &Schema, keys: &Keys) -> String {
    let slot = |slot: usize| match trace::role(schema, keys, slot) {
        None => "nothing".to_owned(),
        Some(role) => format!("{} {}", role.as_str(), ends(keys.ttl_ms(slot).is_some())),
    };
    (0..schema.keys.len()).map(slot).collect::<Vec<_>>().join(" + ")
}

/// Of what was read.
pub(crate) fn of_seen(schema: &Schema, seen: &Observation) -> String {
    let slot = |(slot, seen): (usize, &SeenKey)| {
        let role = match decode::read(schema, slot, &seen.content) {
            Reading::Absent => return "nothing".to_owned(),
            Reading::Value(decoded) => match schema.values[decoded.case].state {
                State::InProgress => "lock",
                State::Completed => "result",
                _ => "record",
            },
            _ => "record",
        };
        format!("{role} {}", ends(seen.expiry.millis().is_some()))
    };
    seen.keys.iter().enumerate().map(slot).collect::<Vec<_>>().join(" + ")
}

fn ends(ends: bool) -> &'static str {
    if ends { "with a TTL" } else { "for ever" }
}
