//! The state of a record's Redis keys: exact, so that it can be restored and compared, and abstract, as people read it.

use std::fmt;

use crate::domain::duration;
use crate::domain::record::{Content, Observation, Reading, decode};
use crate::domain::schema::{Role, Schema, State};

/// TTLs count in steps of this many milliseconds, rounded up: how long a call takes on the server is not part of a state.
const GRAIN_MS: u64 = 100;

/// The state of a record's Redis keys, the lock's first, and how far time has passed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeysState {
    /// By role; `None` for a Redis key that does not exist.
    pub stored: Vec<Option<StoredKey>>,
    /// Milliseconds since the beginning of the exploration if scripts ask for the time, else 0.
    pub clock_ms: u64,
}

/// One Redis key that exists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoredKey {
    /// The reply to DUMP, which RESTORE takes.
    pub dump: Vec<u8>,
    pub content: Content,
    /// Milliseconds until it expires; `None` if it never does.
    pub ttl_ms: Option<u64>,
}

impl StoredKey {
    /// A key as it was read, its PTTL rounded.
    pub fn new(dump: Vec<u8>, content: Content, pttl: i64) -> Self {
        let ttl_ms = u64::try_from(pttl).ok().map(|ms| ms.div_ceil(GRAIN_MS).max(1) * GRAIN_MS);
        Self { dump, content, ttl_ms }
    }
}

impl KeysState {
    /// None of so many Redis keys exists.
    pub fn absent(keys: usize) -> Self {
        Self { stored: vec![None; keys], clock_ms: 0 }
    }

    pub fn content(&self, role: usize) -> Content {
        match self.stored.get(role) {
            Some(Some(stored)) => stored.content.clone(),
            _ => Content::Absent,
        }
    }

    pub fn ttl_ms(&self, role: usize) -> Option<u64> {
        self.stored.get(role)?.as_ref()?.ttl_ms
    }

    /// The state so many milliseconds later; `ticks` if scripts see the time pass.
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

    /// The same without one of the keys.
    pub fn without(&self, role: usize) -> Self {
        let mut keys = self.clone();
        keys.stored[role] = None;
        keys
    }

    /// The same with one of the keys made persistent.
    pub fn without_ttl(&self, role: usize) -> Self {
        let mut keys = self.clone();
        if let Some(stored) = &mut keys.stored[role] {
            stored.ttl_ms = None;
        }
        keys
    }
}

/// What the Redis key of a role holds: a lock, a result, or a record that nobody can read; `None` if it does not exist.
pub(crate) fn held_at(schema: &Schema, keys: &KeysState, role: usize) -> Option<Role> {
    kind_of(schema, role, &keys.content(role))
}

fn kind_of(schema: &Schema, role: usize, content: &Content) -> Option<Role> {
    match decode::read(schema, role, content) {
        Reading::Absent => None,
        Reading::Value(decoded) => match schema.values[decoded.case].state {
            State::InProgress => Some(Role::Lock),
            State::Completed => Some(Role::Result),
            _ => Some(Role::Record),
        },
        _ => Some(Role::Record),
    }
}

/// The state in words, with TTLs; `holder` is the worker that took the lock.
pub(crate) fn holds(schema: &Schema, keys: &KeysState, holder: Option<&str>) -> String {
    let mut parts = Vec::new();
    for role in 0..schema.keys.len() {
        let what = match held_at(schema, keys, role) {
            None => continue,
            Some(Role::Lock) => match holder {
                Some(name) => format!("lock of {name}"),
                None => "lock".to_owned(),
            },
            Some(Role::Result) => "result".to_owned(),
            Some(Role::Record) => "an unreadable value".to_owned(),
        };
        let ttl = keys.ttl_ms(role).map_or_else(|| "for ever".to_owned(), duration::short);
        parts.push(format!("{what}, {ttl}"));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(" + ") }
}

/// A state without bytes and points in time: for each Redis key what it holds, and whether it has a TTL.
///
/// Two servers reach the same abstract state by the same steps, whatever the owners and clocks of their workers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AbstractState(Vec<Option<AbstractKey>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AbstractKey {
    holds: Role,
    has_ttl: bool,
}

impl AbstractState {
    /// Of a state of the exploration.
    pub(crate) fn from_keys(schema: &Schema, keys: &KeysState) -> Self {
        let mut state = Vec::new();
        for role in 0..schema.keys.len() {
            let has_ttl = keys.ttl_ms(role).is_some();
            state.push(held_at(schema, keys, role).map(|holds| AbstractKey { holds, has_ttl }));
        }
        Self(state)
    }

    /// Of a record that was read.
    pub(crate) fn from_observation(schema: &Schema, seen: &Observation) -> Self {
        let mut state = Vec::new();
        for (role, key) in seen.keys.iter().enumerate() {
            let has_ttl = key.expiry.millis().is_some();
            let holds = kind_of(schema, role, &key.content);
            state.push(holds.map(|holds| AbstractKey { holds, has_ttl }));
        }
        Self(state)
    }
}

/// `lock with a TTL + nothing`
impl fmt::Display for AbstractState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, key) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(" + ")?;
            }
            match key {
                None => f.write_str("nothing")?,
                Some(AbstractKey { holds, has_ttl: true }) => {
                    write!(f, "{} with a TTL", holds.as_str())?
                }
                Some(AbstractKey { holds, has_ttl: false }) => {
                    write!(f, "{} for ever", holds.as_str())?
                }
            }
        }
        Ok(())
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
    fn time_ends_shorter_ttls_and_shortens_the_others() {
        let keys =
            KeysState { stored: vec![stored(30_000), stored(86_400_000), stored(-1)], clock_ms: 0 };
        let later = keys.after(30_000, true);
        assert_eq!(later.stored[0], None);
        assert_eq!((later.ttl_ms(1), later.ttl_ms(2)), (Some(86_370_000), None));
        assert!(later.stored[2].is_some());
        assert_eq!((later.clock_ms, keys.after(1, false).clock_ms), (30_000, 0));
    }
}
