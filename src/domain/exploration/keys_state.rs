//! The state of a record's Redis keys: an exact form for restoring and comparing, and an abstract
//! form for people.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde_json::Value;
use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::duration;
use crate::domain::record::{Content, Observation, Reading, decode, is_plain_hash};
use crate::domain::schema::{KeyIs, Meaning, Role, Schema, State};

/// TTLs are rounded up to a multiple of this many milliseconds, so that the duration of a call does
/// not make a new state.
const GRAIN_MS: u64 = 100;

/// The time at which an exploration begins, in milliseconds since the epoch.
const BEGINNING_MS: u64 = 1_700_000_000_000;

/// The state of a record's Redis keys, the lock's first, and the elapsed time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeysState {
    /// By key index; `None` for a Redis key that does not exist.
    pub stored: Vec<Option<StoredKey>>,
    /// Milliseconds since the start of the exploration if scripts read the clock, else 0.
    pub clock_ms: u64,
}

/// One Redis key that exists.
#[derive(Debug, Clone)]
pub struct StoredKey {
    /// The reply to DUMP, in the format that RESTORE accepts.
    pub dump: Vec<u8>,
    /// The value.
    pub content: Content,
    /// Milliseconds until it expires; `None` if it never does.
    pub ttl_ms: Option<u64>,
}

impl PartialEq for StoredKey {
    fn eq(&self, other: &Self) -> bool {
        self.ttl_ms == other.ttl_ms && self.is_same_value(other)
    }
}

impl Eq for StoredKey {}

impl Hash for StoredKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ttl_ms.hash(state);
        self.content.hash(state);
    }
}

impl StoredKey {
    /// True if both hold the same value. DUMP returns the fields of a hash in no fixed order, so
    /// those are compared by their content, unless they have TTLs, which only DUMP contains.
    pub(crate) fn is_same_value(&self, other: &Self) -> bool {
        if is_plain_hash(&self.dump) && is_plain_hash(&other.dump) {
            return self.content == other.content;
        }
        self.dump == other.dump
    }

    /// True if both hold the same JSON, with its members in any order.
    pub(crate) fn is_same_json(&self, other: &Self) -> bool {
        let (Content::Text { head: one, .. }, Content::Text { head: other, .. }) =
            (&self.content, &other.content)
        else {
            return false;
        };
        let one: Option<Value> = serde_json::from_slice(one).ok();
        let other: Option<Value> = serde_json::from_slice(other).ok();
        one.is_some() && one == other
    }

    /// A key with the PTTL that the server returned, rounded.
    pub fn new(dump: Vec<u8>, content: Content, pttl: i64) -> Self {
        // A negative PTTL is the reply for a key without expiry.
        let Ok(ms) = u64::try_from(pttl) else { return Self { dump, content, ttl_ms: None } };
        Self { dump, content, ttl_ms: Some(rounded_ttl_ms(ms)) }
    }
}

/// A TTL in milliseconds as a state holds it.
pub(super) fn rounded_ttl_ms(ms: u64) -> u64 {
    // A PTTL of 0 is still an existing key, so it counts as one step.
    let steps = ms.div_ceil(GRAIN_MS).max(1);
    steps.saturating_mul(GRAIN_MS)
}

impl KeysState {
    /// The state in which none of this many Redis keys exists.
    pub fn absent(keys: usize) -> Self {
        Self { stored: vec![None; keys], clock_ms: 0 }
    }

    /// The content of the Redis key with this index.
    pub fn content(&self, key_index: usize) -> Content {
        match self.stored.get(key_index) {
            Some(Some(stored)) => stored.content.clone(),
            _ => Content::Absent,
        }
    }

    /// The remaining TTL of this Redis key in milliseconds; `None` if it does not exist or
    /// never expires.
    pub fn ttl_ms(&self, key_index: usize) -> Option<u64> {
        self.stored.get(key_index)?.as_ref()?.ttl_ms
    }

    /// The time of the exploration, in milliseconds since the epoch.
    pub fn now_ms(&self) -> u64 {
        BEGINNING_MS + self.clock_ms
    }

    /// The value of this Redis key. It is marked as expired if its contained expiry has passed.
    pub(crate) fn reading(&self, schema: &Schema, key_index: usize) -> Reading {
        decode::decode_at(schema, key_index, &self.content(key_index), Some(self.now_ms()))
    }

    /// The time in milliseconds until the expiry that the value of this Redis key holds; `None` if
    /// it holds none, or if it has passed.
    pub(crate) fn own_ttl_ms(&self, schema: &Schema, key_index: usize) -> Option<u64> {
        let reading = self.reading(schema, key_index);
        let expires_ms = reading.decoded()?.expires_ms?;
        schema.values[reading.decoded()?.format].expires_at.as_ref()?;
        let left = expires_ms.saturating_sub(self.now_ms());
        if left == 0 { None } else { Some(left) }
    }

    /// True if the result's Redis key holds a stored failure.
    pub(crate) fn has_failure(&self, schema: &Schema) -> bool {
        let key_index = schema.result_key_index();
        Held::of(schema, key_index, &self.content(key_index)) == Some(Held::Failure)
    }

    /// True if a Redis key holds something of a request that still counts: neither a record that
    /// was given up, nor one whose contained expiry has passed.
    pub(crate) fn is_in_use(&self, schema: &Schema) -> bool {
        for key_index in 0..self.stored.len() {
            let is_past = self.reading(schema, key_index).past_expiry().is_some();
            match Held::of(schema, key_index, &self.content(key_index)) {
                None | Some(Held::Released) => {}
                Some(_) if is_past => {}
                Some(_) => return true,
            }
        }
        false
    }

    /// The state after `ms` milliseconds. `ticks` is true if scripts read the clock.
    pub fn after(&self, ms: u64, ticks: bool) -> Self {
        let mut keys = self.clone();
        for stored in &mut keys.stored {
            let Some(StoredKey { ttl_ms: Some(ttl), .. }) = stored else { continue };
            if *ttl <= ms {
                *stored = None;
            } else {
                *ttl -= ms;
            }
        }
        if ticks {
            keys.clock_ms += ms;
        }
        keys
    }

    /// The same state without one of the keys.
    pub fn without(&self, key_index: usize) -> Self {
        let mut keys = self.clone();
        keys.stored[key_index] = None;
        keys
    }

    /// The same state with one of the keys made persistent.
    pub fn without_ttl(&self, key_index: usize) -> Self {
        let mut keys = self.clone();
        if let Some(stored) = &mut keys.stored[key_index] {
            stored.ttl_ms = None;
        }
        keys
    }
}

/// The kind of value at this Redis key: a lock, a result, a part, or a record that the schema
/// cannot read. `None` if the key does not exist.
pub(crate) fn held_at(schema: &Schema, keys: &KeysState, key_index: usize) -> Option<Role> {
    Some(match Held::of(schema, key_index, &keys.content(key_index))? {
        Held::Lock => Role::Lock,
        Held::Result | Held::Failure => Role::Result,
        Held::Released | Held::Unreadable => Role::Record,
    })
}

/// True if the result's Redis key holds a result: a completed value that begin replays.
///
/// A lock may hide the result from the next request. The result is stored nevertheless.
pub(crate) fn has_result(schema: &Schema, keys: &KeysState) -> bool {
    let key_index = schema.result_key_index();
    match keys.reading(schema, key_index) {
        Reading::Value(decoded) => {
            schema.values[decoded.format].state.is_result()
                && decoded.past_expiry.is_none()
                && is_replayed(schema, decoded.format)
        }
        _ => false,
    }
}

/// True unless begin lists a reply for values of this completed format with which the request
/// executes or fails, such as a retry after a stored failure.
fn is_replayed(schema: &Schema, format: usize) -> bool {
    for reply in schema.begin_calls().iter().flat_map(|call| &call.replies) {
        if !matches!(reply.means, Meaning::Acquired | Meaning::Fail) {
            continue;
        }
        for condition in &reply.when {
            if condition.keys.iter().any(|(_, is)| *is == KeyIs::Value(format)) {
                return false;
            }
        }
    }
    true
}

/// What a Redis key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
enum Held {
    #[strum(serialize = "lock")]
    Lock,
    #[strum(serialize = "result")]
    Result,
    #[strum(serialize = "failure")]
    Failure,
    /// A record that its worker gave up, and that remains without a result.
    #[strum(serialize = "a released record")]
    Released,
    #[strum(serialize = "an unreadable value")]
    Unreadable,
}

as_str!(Held);

impl Held {
    /// `None` for a Redis key that does not exist.
    fn of(schema: &Schema, key_index: usize, content: &Content) -> Option<Self> {
        let reading = decode::decode_value(schema, key_index, content);
        if reading == Reading::Absent {
            return None;
        }
        let Some(value) = reading.decoded() else { return Some(Self::Unreadable) };
        Some(match schema.values[value.format].state {
            State::InProgress => Self::Lock,
            State::Completed => Self::Result,
            State::Failed => Self::Failure,
            State::Released => Self::Released,
            _ => Self::Unreadable,
        })
    }
}

/// The state in words, with TTLs. `holder` is the name of the worker that took the lock.
pub(crate) fn holds(schema: &Schema, keys: &KeysState, holder: Option<&str>) -> String {
    let mut parts = Vec::new();
    for key_index in 0..schema.keys.len() {
        let what = match (Held::of(schema, key_index, &keys.content(key_index)), holder) {
            (None, _) => continue,
            (Some(Held::Lock), Some(name)) => format!("lock of {name}"),
            (Some(held), _) => held.as_str().to_owned(),
        };
        let left = match (keys.ttl_ms(key_index), keys.own_ttl_ms(schema, key_index)) {
            (Some(ttl), Some(own)) => Some(ttl.min(own)),
            (ttl, own) => ttl.or(own),
        };
        let is_expired = keys.reading(schema, key_index).past_expiry().is_some();
        let ttl = match left {
            _ if is_expired => "expired by its own time".to_owned(),
            Some(ms) => duration::short(ms),
            None => "never expires".to_owned(),
        };
        parts.push(format!("{what}, {ttl}"));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(" + ") }
}

/// A state without bytes and times: for each Redis key what it holds, and whether it has a TTL.
///
/// Two servers reach the same abstract state by the same steps, whatever the owners and clocks of
/// their workers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AbstractState(Vec<Option<(Held, bool)>>);

impl AbstractState {
    /// The abstract form of a state of the exploration.
    pub(crate) fn from_keys(schema: &Schema, keys: &KeysState) -> Self {
        let mut state = Vec::new();
        for key_index in 0..schema.keys.len() {
            let held = Held::of(schema, key_index, &keys.content(key_index));
            state.push(held.map(|held| (held, keys.ttl_ms(key_index).is_some())));
        }
        Self(state)
    }

    /// The abstract form of a record that was read.
    pub(crate) fn from_observation(schema: &Schema, seen: &Observation) -> Self {
        let mut state = Vec::new();
        for (key_index, key) in seen.keys.iter().enumerate() {
            let held = Held::of(schema, key_index, &key.content);
            state.push(held.map(|held| (held, key.time_left.millis().is_some())));
        }
        Self(state)
    }
}

/// Writes `lock with a TTL + nothing`.
impl fmt::Display for AbstractState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        for key in &self.0 {
            words.push(match key {
                Some((held, true)) => format!("{} with a TTL", held.as_str()),
                Some((held, false)) => format!("{} without a TTL", held.as_str()),
                None => "nothing".to_owned(),
            });
        }
        f.write_str(&words.join(" + "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(pttl: i64) -> Option<StoredKey> {
        Some(StoredKey::new(b"d".to_vec(), Content::text(b"v".to_vec()), pttl))
    }

    #[test]
    fn how_long_a_call_took_is_not_part_of_a_state() {
        assert_eq!(stored(30_000), stored(29_950));
        assert_ne!(stored(30_000), stored(29_900));
        assert_eq!(stored(-1).unwrap().ttl_ms, None);
        assert_eq!(stored(0).unwrap().ttl_ms, Some(GRAIN_MS));
    }

    #[test]
    fn elapsed_time_ends_short_ttls_and_shortens_the_others() {
        let keys =
            KeysState { stored: vec![stored(30_000), stored(86_400_000), stored(-1)], clock_ms: 0 };
        let later = keys.after(30_000, true);
        assert_eq!(later.stored[0], None);
        assert_eq!((later.ttl_ms(1), later.ttl_ms(2)), (Some(86_370_000), None));
        assert!(later.stored[2].is_some());
        assert_eq!((later.clock_ms, keys.after(1, false).clock_ms), (30_000, 0));
    }
}
