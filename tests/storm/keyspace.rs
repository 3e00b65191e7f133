//! What a server holds, as its own command stream tells it: each Redis key's bytes, when it ends, and who wrote it when.

use std::collections::HashMap;
use std::sync::Arc;

use crate::command::{Expiry, Who};

/// How far the end of a Redis key may be from what the stream says, in milliseconds: the stream tells when a command was
/// shown, the server counts from when it began.
pub const TOLERANCE_MS: u64 = 300;

/// How far the stream's times for one moment of expiry may be apart for the moments to be one, in milliseconds.
const SAME_MOMENT_MS: u64 = 2;

/// One Redis key.
#[derive(Debug, Clone)]
pub struct Entry {
    pub value: Arc<[u8]>,
    /// Milliseconds since the epoch; `None` without expiry.
    pub ends_at: Option<u64>,
    /// When its bytes or its expiry were last written, microseconds since the epoch.
    pub written: u64,
    /// When its bytes were.
    pub set: u64,
    /// Who wrote the bytes.
    pub by: Who,
    /// A service took its expiry away that did not hold it: nobody can tell any more that its worker lives.
    pub spoilt: bool,
    /// The expiries that it had before with the same bytes: when each was written, and when it would have ended.
    pub former: Vec<(u64, Option<u64>)>,
}

impl Entry {
    /// True when at this time the same bytes stood there with the same moment of expiry. A lock of 1 s that is given 500 ms
    /// after half a second is in between another one, and then again the one that was seen.
    pub fn stood_like_this(&self, at: u64) -> bool {
        if self.written <= at {
            return true;
        }
        match self.former.iter().rev().find(|(written, _)| *written <= at) {
            None => false,
            Some((_, former)) => match (former, self.ends_at) {
                (Some(one), Some(other)) => one.abs_diff(other) <= SAME_MOMENT_MS,
                (one, other) => *one == other,
            },
        }
    }

    /// True when it has ended by this time.
    pub fn has_ended(&self, at: u64) -> bool {
        self.ends_at.is_some_and(|end| end * 1_000 <= at)
    }

    /// True when it may just have ended, or may be about to.
    pub fn is_about_to_end(&self, at: u64) -> bool {
        self.ends_at.is_some_and(|end| end.abs_diff(at / 1_000) <= TOLERANCE_MS)
    }

    /// True when both hold the same bytes and end at the same time, as far as the stream tells.
    pub fn is_like(&self, other: &Self) -> bool {
        let same_end = match (self.ends_at, other.ends_at) {
            (Some(one), Some(other)) => one.abs_diff(other) <= 5 * TOLERANCE_MS,
            (one, other) => one == other,
        };
        self.value == other.value && same_end
    }

    /// Milliseconds it has left.
    pub fn left(&self, at: u64) -> Option<u64> {
        self.ends_at.map(|end| end.saturating_sub(at / 1_000))
    }
}

/// One server's Redis keys.
#[derive(Debug, Clone, Default)]
pub struct Keyspace {
    entries: HashMap<Vec<u8>, Entry>,
    /// Redis keys that ended by themselves.
    pub expired: u64,
}

impl Keyspace {
    /// What is there at this time.
    pub fn get(&self, key: &[u8], at: u64) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| !entry.has_ended(at))
    }

    /// The same, whether it has ended or not.
    pub fn last(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Writes bytes; gives what was there before.
    pub fn set(
        &mut self,
        key: &[u8],
        value: Arc<[u8]>,
        expiry: Expiry,
        (at, by): (u64, Who),
    ) -> Option<Entry> {
        let before = self.remove(key, at);
        let kept = before.as_ref().and_then(|before| before.ends_at);
        let ends_at = end(expiry, at, kept);
        self.entries.insert(
            key.to_vec(),
            Entry { value, ends_at, written: at, set: at, by, spoilt: false, former: Vec::new() },
        );
        before
    }

    /// Puts an entry in its place; gives nothing where there is none to put.
    pub fn put(&mut self, key: &[u8], entry: Option<Entry>) {
        match entry {
            Some(entry) => drop(self.entries.insert(key.to_vec(), entry)),
            None => drop(self.entries.remove(key)),
        }
    }

    /// Removes what is there, or was a moment before; gives it.
    pub fn remove(&mut self, key: &[u8], at: u64) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        let ended = entry.has_ended(at);
        self.expired += u64::from(ended);
        (!ended || entry.is_about_to_end(at)).then_some(entry)
    }

    /// Gives what is there another expiry; gives it as it was before.
    pub fn expire(&mut self, key: &[u8], expiry: Expiry, (at, by): (u64, Who)) -> Option<Entry> {
        let entry = self.entries.get_mut(key).filter(|entry| !entry.has_ended(at))?;
        let before = entry.clone();
        entry.former.push((entry.written, entry.ends_at));
        entry.ends_at = end(expiry, at, entry.ends_at);
        entry.written = at;
        entry.spoilt |= expiry == Expiry::Never && entry.by != by;
        Some(before)
    }

    /// Forgets what ended some time ago.
    pub fn forget_ended(&mut self, at: u64) {
        let before = self.entries.len();
        self.entries.retain(|_, entry| !entry.has_ended(at));
        self.expired += (before - self.entries.len()) as u64;
    }

    /// All that is there at this time.
    pub fn all(&self, at: u64) -> impl Iterator<Item = (&Vec<u8>, &Entry)> {
        self.entries.iter().filter(move |(_, entry)| !entry.has_ended(at))
    }
}

fn end(expiry: Expiry, at: u64, kept: Option<u64>) -> Option<u64> {
    match expiry {
        Expiry::Never => None,
        Expiry::Kept => kept,
        Expiry::In(millis) => Some(at / 1_000 + millis),
        Expiry::At(millis) => Some(millis),
    }
}
