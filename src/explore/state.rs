//! A state of the exploration, in 24 bytes.

use std::hash::{Hash, Hasher as _};

use crate::domain::exploration::{Budget, ENDED, MOST_WORKERS};

/// Nobody holds the lock.
const NOBODY: u8 = u8::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// The number of the state of the Redis keys.
    pub(super) store: u32,
    /// The number of the state that a failover brings back; 0 where none may come.
    pub(super) behind: u32,
    /// The faults that happened.
    pub(super) used: Budget,
    /// The workers that had their effect, a bit each.
    pub(super) effects: u8,
    pub(super) holder: u8,
    /// A worker has stored the result of its effect.
    pub(super) succeeded: bool,
    /// Where each worker stands.
    pub(super) points: [u8; MOST_WORKERS],
}

impl State {
    /// The workers stand where they begin.
    pub(super) fn new(starts: &[u8]) -> Self {
        let mut points = [ENDED; MOST_WORKERS];
        points.iter_mut().zip(starts).for_each(|(point, start)| *point = *start);
        let used = Budget::default();
        Self { store: 0, behind: 0, used, effects: 0, holder: NOBODY, succeeded: false, points }
    }

    /// The same where a worker stands elsewhere, and such faults have happened.
    pub(super) fn moved(&self, worker: u8, to: u8, used: Budget) -> Self {
        let mut next = *self;
        next.points[usize::from(worker)] = to;
        next.used = used;
        next
    }

    pub(super) fn holder(&self) -> Option<u8> {
        (self.holder != NOBODY).then_some(self.holder)
    }

    pub(super) fn is_held_by(&mut self, worker: Option<u8>) {
        self.holder = worker.unwrap_or(NOBODY);
    }

    /// A number that differs for most states.
    pub(super) fn mixed(&self) -> u64 {
        let mut mixer = Mixer(0);
        self.hash(&mut mixer);
        mixer.finish()
    }
}

/// A hash that is quick for a few words, for states that nobody hostile chooses.
struct Mixer(u64);

impl std::hash::Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_takes_24_bytes() {
        assert_eq!(size_of::<State>(), 24);
    }
}
