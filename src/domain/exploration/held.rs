//! What stands at a record's Redis keys, in a form that can be put back and compared, and what time does to it.

use crate::domain::record::Content;

/// TTLs count in steps of this many milliseconds, rounded up: what a call takes on the server is no part of a state.
const GRAIN_MS: u64 = 100;

/// What stands at a record's Redis keys, the lock's first, and how far time has passed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Keys {
    pub held: Vec<Option<Held>>,
    /// Milliseconds since the exploration's beginning, where scripts ask for the time; else 0.
    pub clock_ms: u64,
}

/// One Redis key that is there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Held {
    /// What DUMP says, which RESTORE takes.
    pub dump: Vec<u8>,
    pub content: Content,
    /// Milliseconds until it ends; `None` for ever.
    pub ttl_ms: Option<u64>,
}

impl Held {
    /// A key as it was read, its PTTL in canonical form.
    pub fn read(dump: Vec<u8>, content: Content, pttl: i64) -> Self {
        let ttl_ms = u64::try_from(pttl).ok().map(|ms| ms.div_ceil(GRAIN_MS).max(1) * GRAIN_MS);
        Self { dump, content, ttl_ms }
    }
}

impl Keys {
    /// Nothing stands at so many Redis keys.
    pub fn absent(keys: usize) -> Self {
        Self { held: vec![None; keys], clock_ms: 0 }
    }

    pub fn content(&self, role: usize) -> Content {
        self.held.get(role).and_then(Option::as_ref).map_or(Content::Absent, |held| held.content.clone())
    }

    pub fn ttl_ms(&self, role: usize) -> Option<u64> {
        self.held.get(role)?.as_ref()?.ttl_ms
    }

    /// What is there after so many milliseconds; `ticks` where scripts see the time pass.
    pub fn after(&self, ms: u64, ticks: bool) -> Self {
        let mut keys = self.clone();
        for held in &mut keys.held {
            if held.as_ref().and_then(|held| held.ttl_ms).is_some_and(|ttl| ttl <= ms) {
                *held = None;
            }
        }
        keys.held.iter_mut().flatten().filter_map(|held| held.ttl_ms.as_mut()).for_each(|ttl| *ttl -= ms);
        if ticks {
            keys.clock_ms += ms;
        }
        keys
    }

    /// The same without one of the keys.
    pub fn without(&self, role: usize) -> Self {
        let mut keys = self.clone();
        keys.held[role] = None;
        keys
    }

    /// The same where one of the keys lives for ever.
    pub fn for_ever(&self, role: usize) -> Self {
        let mut keys = self.clone();
        if let Some(held) = &mut keys.held[role] {
            held.ttl_ms = None;
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(pttl: i64) -> Option<Held> {
        Some(Held::read(b"d".to_vec(), Content::text(b"v".to_vec()), pttl))
    }

    #[test]
    fn what_a_call_took_is_no_part_of_a_state() {
        assert_eq!(held(30_000), held(29_950));
        assert_ne!(held(30_000), held(29_900));
        assert_eq!(held(-1).unwrap().ttl_ms, None);
        assert_eq!(held(0).unwrap().ttl_ms, Some(GRAIN_MS));
    }

    #[test]
    fn time_ends_what_lives_shorter_and_shortens_the_rest() {
        let keys = Keys { held: vec![held(30_000), held(86_400_000), held(-1)], clock_ms: 0 };
        let later = keys.after(30_000, true);
        assert_eq!((later.held[0].clone(), later.ttl_ms(1), later.ttl_ms(2)), (None, Some(86_370_000), None));
        assert!(later.held[2].is_some());
        assert_eq!((later.clock_ms, keys.after(1, false).clock_ms), (30_000, 0));
    }
}
