//! The TTL that a call gives to a Redis key, compared with the TTL that the schema states.

use std::time::Duration;

use super::keys_state::{KeysState, rounded_ttl_ms};
use crate::domain::record::age::millis;
use crate::domain::record::decode;
use crate::domain::schema::{Call, Meaning, Schema, State, TtlOf};

/// A time in a value may be rounded to seconds.
const SECOND_MS: u64 = 1_000;

/// A call that Redis executed, with the Redis keys before and after it.
#[derive(Clone, Copy)]
pub(crate) struct ExecutedCall<'a> {
    pub(crate) schema: &'a Schema,
    /// The calls of its step.
    pub(crate) calls: &'a [Call],
    /// The index of the call in its step.
    pub(crate) index: usize,
    /// `None` if the schema does not list the reply.
    pub(crate) meaning: Option<Meaning>,
    pub(crate) before: &'a KeysState,
    pub(crate) after: &'a KeysState,
}

impl ExecutedCall<'_> {
    /// True if the call gave a Redis key another TTL than the schema states for its value.
    pub(crate) fn sets_other_ttl(&self) -> bool {
        (0..self.schema.keys.len()).any(|key_index| self.sets_other_ttl_at(key_index))
    }

    fn sets_other_ttl_at(&self, key_index: usize) -> bool {
        let Some(format) = self.format(self.after, key_index) else { return false };
        let state = self.schema.values[format].state;
        let Some(stated) = stated_ttl(self.schema, state) else { return false };
        if !self.sets_ttl(key_index, format) && !self.renews(key_index) {
            return false;
        }
        let ttl_ms = self.after.ttl_ms(key_index);
        if ttl_ms.is_none() && self.later_call_touches(key_index) {
            return false;
        }
        // A script may set a TTL of its own, which the limit of test keys does not shorten.
        if let (Some(most), Some(ttl_ms)) = (self.schema.limited_to, ttl_ms)
            && ttl_ms > rounded_ttl_ms(millis(most))
        {
            return false;
        }
        let own_ttl_ms = self.after.own_ttl_ms(self.schema, key_index);
        !is_ttl(ttl_ms, stated)
            && own_ttl_ms.is_none_or(|own| own.abs_diff(millis(stated)) >= SECOND_MS)
    }

    /// The format of the value at this Redis key; `None` if there is no value that the schema reads.
    fn format(&self, keys: &KeysState, key_index: usize) -> Option<usize> {
        let reading = decode::decode_value(self.schema, key_index, &keys.content(key_index));
        Some(reading.decoded()?.format)
    }

    /// True if the call stored a value of this format, or changed the TTL of its Redis key.
    fn sets_ttl(&self, key_index: usize, format: usize) -> bool {
        // A value that a call replaces without changing the remaining TTL may keep it on purpose.
        self.before.stored[key_index].is_none()
            || self.format(self.before, key_index) != Some(format)
            || self.before.ttl_ms(key_index) != self.after.ttl_ms(key_index)
    }

    /// True if the reply says that the call renewed the lock at this Redis key. An earlier call of
    /// the step may have done so, and time may have passed since.
    fn renews(&self, key_index: usize) -> bool {
        self.meaning == Some(Meaning::Renewed)
            && self.index == 0
            && key_index == self.schema.lock_key_index()
    }

    fn later_call_touches(&self, key_index: usize) -> bool {
        if self.meaning != Some(Meaning::Next) {
            return false;
        }
        let later = self.calls.get(self.index + 1..).unwrap_or_default();
        later.iter().any(|call| self.schema.touches(call, key_index))
    }
}

/// The TTL that values of this state have; `None` if the schema states none.
fn stated_ttl(schema: &Schema, state: State) -> Option<Duration> {
    match state {
        State::InProgress => schema.ttl(TtlOf::Lock),
        State::Completed | State::Failed => schema.ttl(TtlOf::Result),
        // A lock that was given up may keep the TTL that it had.
        _ => None,
    }
}

/// True if a Redis key has this TTL, which commands take in milliseconds or in whole seconds.
fn is_ttl(ttl_ms: Option<u64>, stated: Duration) -> bool {
    let stated_ms = millis(stated);
    let whole_seconds_ms = stated_ms.div_ceil(SECOND_MS).saturating_mul(SECOND_MS);
    ttl_ms == Some(rounded_ttl_ms(stated_ms)) || ttl_ms == Some(rounded_ttl_ms(whole_seconds_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_sent_in_milliseconds_or_in_seconds() {
        let stated = Duration::from_millis(1_550);
        assert!(is_ttl(Some(1_600), stated) && is_ttl(Some(2_000), stated));
        for other in [None, Some(1_500), Some(100), Some(1_550_000)] {
            assert!(!is_ttl(other, stated), "{other:?}");
        }
    }
}
