//! The states of the exploration, 32 bytes each, and a hash table that finds the number of a state.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::lag::Lags;
use crate::domain::exploration::{ENDED, FaultBudget, MOST_WORKERS};

/// The holder if no worker holds the lock.
const NOBODY: u8 = 0x7F;

/// The bit for a worker that has stored the result of its effect.
const SUCCEEDED: u8 = 0x80;

/// The state of the Redis keys, by number, and of the workers.
///
/// An exploration keeps millions of states in memory. Therefore the state of the keys is a number,
/// and a worker's effect is a bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SearchState {
    /// The number of the state of the Redis keys.
    pub(super) keys: u32,
    /// The number of the lag: the states that a failover restores. 0 if no failover may happen any
    /// more.
    pub(super) lag: u32,
    /// The faults that happened.
    pub(super) faults: FaultBudget,
    /// The workers that had their effect, a bit each.
    pub(super) effects: u8,
    /// The holder of the lock, and [`SUCCEEDED`]. They share a byte, so that a state fills 32.
    holder: u8,
    /// The position of each worker in its program.
    pub(super) positions: [u8; MOST_WORKERS],
}

impl SearchState {
    /// The state in which no Redis key exists and each worker is at its first position.
    pub(super) fn new(starts: &[u8]) -> Self {
        let mut positions = [ENDED; MOST_WORKERS];
        positions[..starts.len()].copy_from_slice(starts);
        Self {
            keys: 0,
            lag: Lags::NONE,
            faults: FaultBudget::default(),
            effects: 0,
            holder: NOBODY,
            positions,
        }
    }

    /// The same state with other Redis keys.
    pub(super) fn with_keys(mut self, keys: u32) -> Self {
        self.keys = keys;
        self
    }

    /// The same state with a worker at another position.
    pub(super) fn with_worker_at(mut self, worker: u8, position: u8) -> Self {
        self.positions[usize::from(worker)] = position;
        self
    }

    /// The same state with these faults.
    pub(super) fn with_faults(mut self, faults: FaultBudget) -> Self {
        self.faults = faults;
        self
    }

    /// The worker that holds the lock.
    pub(super) fn holder(&self) -> Option<u8> {
        let worker = self.holder & !SUCCEEDED;
        if worker == NOBODY { None } else { Some(worker) }
    }

    /// Sets the worker that holds the lock.
    pub(super) fn set_holder(&mut self, worker: Option<u8>) {
        self.holder = self.holder & SUCCEEDED | worker.unwrap_or(NOBODY);
    }

    /// True if a worker has stored the result of its effect.
    pub(super) fn succeeded(&self) -> bool {
        self.holder & SUCCEEDED != 0
    }

    /// Notes that a worker has stored the result of its effect.
    pub(super) fn set_succeeded(&mut self) {
        self.holder |= SUCCEEDED;
    }
}

/// Finds the number of a state. The table holds only numbers, because the states are already in a
/// list. A map would store each state twice.
pub(super) struct StateIndex {
    numbers: HashTable<u32>,
    /// Always the same, so that a search takes the same time in each run. It does not resist chosen
    /// input, and need not, because users cannot choose states.
    hasher: FixedState,
}

impl StateIndex {
    /// An empty index.
    pub(super) fn new() -> Self {
        Self { numbers: HashTable::new(), hasher: FixedState::default() }
    }

    /// The number of a state, which is added if it is new; true if it was new.
    pub(super) fn number(
        &mut self,
        states: &mut Vec<SearchState>,
        state: &SearchState,
    ) -> (u32, bool) {
        let hasher = &self.hasher;
        let is_same = |number: &u32| states[*number as usize] == *state;
        let hash_of = |number: &u32| hasher.hash_one(states[*number as usize]);
        match self.numbers.entry(hasher.hash_one(state), is_same, hash_of) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(free) => {
                let number = u32::try_from(states.len()).unwrap_or(u32::MAX);
                free.insert(number);
                states.push(*state);
                (number, true)
            }
        }
    }

    /// The memory of the table in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.numbers.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_takes_32_bytes_and_keeps_its_workers() {
        assert_eq!(size_of::<SearchState>(), 32);
        let mut positions = [ENDED; MOST_WORKERS];
        positions[..2].copy_from_slice(&[3, 4]);
        assert_eq!(SearchState::new(&[3, 4]).positions, positions);
        let mut state = SearchState::new(&[3]).with_worker_at(0, 5);
        assert_eq!((state.positions[0], state.holder()), (5, None));
        state.set_holder(Some(2));
        assert_eq!((state.holder(), state.succeeded()), (Some(2), false));
        state.set_succeeded();
        assert_eq!((state.holder(), state.succeeded()), (Some(2), true));
        state.set_holder(None);
        assert_eq!((state.holder(), state.succeeded()), (None, true));
    }

    #[test]
    fn a_state_keeps_its_number_among_many() {
        let mut index = StateIndex::new();
        let mut states = Vec::new();
        for round in 0..2 {
            for keys in 0..5_000 {
                let state = SearchState { keys, ..SearchState::new(&[1, 1]) };
                assert_eq!(index.number(&mut states, &state), (keys, round == 0));
            }
        }
    }
}
