//! Whether a history that was played went as it was explored.

use super::worker_calls::Met;
use crate::domain::exploration::{Author, Heard, Keys, trace};
use crate::domain::record::{Observation, Reading, decode};
use crate::domain::schema::{Meaning, Schema, State};
use crate::domain::simulation::History;

/// What is different between what a call was told in the exploration and what it came to; `None` where nothing is.
pub(super) fn same_answer(heard: Heard, met: Option<&Met>, history: &History, names: &[String]) -> Option<String> {
    let means = match met {
        None => Some(Meaning::Next),
        Some(met) => met.means(),
    };
    if means != heard.means {
        let word = |means: Option<Meaning>| means.map_or("an unknown reply", |means| means.as_str()).to_owned();
        return Some(format!("played, the reply means {}; explored, {}", word(means), word(heard.means)));
    }
    let (Author::Effect(worker), Some(Met::Said(said))) = (heard.author, met) else { return None };
    let name = names.get(usize::from(worker))?;
    let own = history.executions.iter().find(|execution| execution.worker == *name && execution.effect);
    let is_own = own.is_some_and(|execution| said.carried.as_ref() == Some(&execution.response));
    // A response that came before its effect is the harm itself: nothing tells whose it is when it is played.
    (own.is_some() && !is_own).then(|| format!("played, the response is not that of {name}"))
}

/// What stands at the Redis keys, as far as it is no matter of bytes and moments.
pub(super) fn gist(schema: &Schema, keys: &Keys) -> String {
    let slot = |slot: usize| match trace::role(schema, keys, slot) {
        None => "nothing".to_owned(),
        Some(role) => format!("{} {}", role.as_str(), ends(keys.ttl_ms(slot).is_some())),
    };
    (0..schema.slots.len()).map(slot).collect::<Vec<_>>().join(" + ")
}

/// The same of what was read.
pub(super) fn readings(schema: &Schema, seen: &Observation) -> String {
    let slot = |(slot, seen): (usize, &crate::domain::record::SeenSlot)| {
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
    seen.slots.iter().enumerate().map(slot).collect::<Vec<_>>().join(" + ")
}

fn ends(ends: bool) -> &'static str {
    if ends { "with a TTL" } else { "for ever" }
}
