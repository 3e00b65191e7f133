//! An entry of a backup: a record, with its Redis keys as they were together.

use super::beside::Beside;
use super::saved::{About, Saved};
use crate::domain::record::Observation;
use crate::domain::schema::Role;

/// An entry as it is written.
#[derive(Debug, Clone)]
pub struct BackupEntry<'a> {
    pub(super) about: &'a About,
    /// The Redis keys that may change, with what they are for if the record has two.
    pub(super) keys: Vec<(Option<Role>, &'a Saved)>,
    /// The record's other Redis keys.
    pub(super) beside: Vec<Beside>,
}

impl<'a> BackupEntry<'a> {
    /// The entry of a record as it was seen, of which the Redis keys of these roles may change.
    pub(in crate::store) fn new(
        about: &'a About,
        seen: &Observation,
        saved: impl Iterator<Item = (usize, &'a Saved)>,
    ) -> Self {
        let mut entry = Self { about, keys: Vec::new(), beside: Vec::new() };
        let mut is_saved = vec![false; seen.keys.len()];
        for (role, saved) in saved {
            is_saved[role] = true;
            entry.keys.push((role_of(seen, role), saved));
        }
        for (role, key) in seen.keys.iter().enumerate() {
            if let Some(is) = role_of(seen, role).filter(|_| !is_saved[role]) {
                entry.beside.push(Beside::of(is, key));
            }
        }
        entry
    }
}

/// What a Redis key of a record with two is for: the lock comes first.
fn role_of(seen: &Observation, role: usize) -> Option<Role> {
    match (seen.keys.len(), role) {
        (2, 0) => Some(Role::Lock),
        (2, 1) => Some(Role::Result),
        _ => None,
    }
}
