//! The states of the exploration, 24 bytes each, and a hash table that finds the number of a state.

use std::hash::{BuildHasher as _, Hash, Hasher};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::lag::Lags;
use super::names::Names;
use crate::domain::exploration::{ENDED, FaultBudget, MAX_WORKERS};

/// The holder if no worker holds the lock.
const NOBODY: u8 = 0x7F;

/// The bits of the holder in [`SearchState::past`].
const HOLDER_BITS: u64 = 0x7F;

/// The bit in [`SearchState::past`] for a worker that has stored the result of its effect.
const SUCCEEDED: u64 = 0x80;

/// The position of the workers' effects in [`SearchState::past`].
const EFFECTS_SHIFT: u32 = 8;

/// The state of the Redis keys, by number, and of the workers.
///
/// An exploration keeps millions of states in memory. Therefore the state of the keys is a number,
/// a worker's effect is a bit, and what happened in the past shares a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SearchState {
    /// The number of the state of the Redis keys.
    pub(super) keys: u32,
    /// The number of the lag: the states that a failover restores. 0 if no failover may happen any
    /// more.
    pub(super) lag: u32,
    /// From the highest bits: the faults that happened, the workers that had their effect (a bit
    /// each), [`SUCCEEDED`], and the holder of the lock.
    past: u64,
    /// The position of each worker in its program.
    pub(super) positions: [u8; MAX_WORKERS],
}

impl SearchState {
    /// The state in which no Redis key exists and each worker is at its first position.
    pub(super) fn new(starts: &[u8]) -> Self {
        let mut positions = [ENDED; MAX_WORKERS];
        positions[..starts.len()].copy_from_slice(starts);
        Self { keys: 0, lag: Lags::NONE, past: u64::from(NOBODY), positions }
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

    /// The faults that happened.
    pub(super) fn faults(&self) -> FaultBudget {
        FaultBudget::of_bits(self.past)
    }

    /// The same state with these faults.
    pub(super) fn with_faults(mut self, faults: FaultBudget) -> Self {
        self.past = self.past & !FaultBudget::BITS | faults.bits();
        self
    }

    /// The workers that had their effect, a bit each.
    pub(super) fn effects(&self) -> u8 {
        // The conversion drops the faults above these eight bits.
        (self.past >> EFFECTS_SHIFT) as u8
    }

    /// The same state after the effect of a worker.
    pub(super) fn with_effect_of(mut self, worker: u8) -> Self {
        self.past |= 1 << (EFFECTS_SHIFT + u32::from(worker));
        self
    }

    /// Takes the effect of a worker back: it has left the section that a lock protects.
    pub(super) fn end_effect_of(&mut self, worker: u8) {
        self.past &= !(1 << (EFFECTS_SHIFT + u32::from(worker)));
    }

    /// The worker that holds the lock.
    pub(super) fn holder(&self) -> Option<u8> {
        let worker = (self.past & HOLDER_BITS) as u8;
        if worker == NOBODY { None } else { Some(worker) }
    }

    /// Sets the worker that holds the lock.
    pub(super) fn set_holder(&mut self, worker: Option<u8>) {
        self.past = self.past & !HOLDER_BITS | u64::from(worker.unwrap_or(NOBODY));
    }

    /// Sorts the workers at the places `free` (a bit each), whose names make no difference. All
    /// states that differ only by these names become the same one.
    pub(super) fn sort_workers(&mut self, free: u8, names: &mut Names) {
        for place in 0..MAX_WORKERS as u8 {
            if free & 1 << place == 0 {
                continue;
            }
            let mut place = place;
            // Few places are free, and most are sorted already.
            while let Some(before) = last_below(free, place)
                && self.rank(before) > self.rank(place)
            {
                self.swap_workers(before, place, names);
                place = before;
            }
        }
    }

    /// Everything in the state that concerns the worker at a place.
    fn rank(&self, place: u8) -> (u8, bool, bool) {
        let has_effect = self.effects() & 1 << place != 0;
        (self.positions[usize::from(place)], has_effect, self.holder() == Some(place))
    }

    /// Lets the workers at two places change places.
    pub(super) fn swap_workers(&mut self, one: u8, other: u8, names: &mut Names) {
        self.positions.swap(usize::from(one), usize::from(other));
        if (self.effects() >> one ^ self.effects() >> other) & 1 == 1 {
            self.past ^= (1 << one | 1 << other) << EFFECTS_SHIFT;
        }
        match self.holder() {
            Some(holder) if holder == one => self.set_holder(Some(other)),
            Some(holder) if holder == other => self.set_holder(Some(one)),
            _ => {}
        }
        *names = names.with_swapped(one, other);
    }

    /// True if a worker has stored the result of its effect.
    pub(super) fn succeeded(&self) -> bool {
        self.past & SUCCEEDED != 0
    }

    /// Notes that a worker has stored the result of its effect.
    pub(super) fn set_succeeded(&mut self) {
        self.past |= SUCCEEDED;
    }
}

/// The last of the places `free` (a bit each) before another place.
fn last_below(free: u8, place: u8) -> Option<u8> {
    let below = free & ((1 << place) - 1);
    below.checked_ilog2().map(|last| last as u8)
}

/// Three whole words: field by field, the hash would take twice as long.
impl Hash for SearchState {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(u64::from(self.keys) << 32 | u64::from(self.lag));
        hasher.write_u64(self.past);
        hasher.write_u64(u64::from_le_bytes(self.positions));
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
    use strum::VariantArray as _;

    use super::*;
    use crate::domain::exploration::Fault;

    #[test]
    fn a_state_takes_24_bytes_and_keeps_its_workers() {
        assert_eq!(size_of::<SearchState>(), 24);
        let mut positions = [ENDED; MAX_WORKERS];
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
    fn what_happened_in_the_past_is_kept_apart() {
        let last = u8::try_from(MAX_WORKERS - 1).unwrap();
        let mut all = FaultBudget::default();
        for fault in Fault::VARIANTS {
            all = all.with(*fault, FaultBudget::ANY).unwrap();
        }
        let mut state = SearchState::new(&[1]).with_effect_of(0).with_faults(all);
        state.set_holder(Some(last));
        state = state.with_effect_of(last);
        state.set_succeeded();
        assert_eq!((state.faults(), state.effects()), (all, 0b1000_0001));
        assert_eq!((state.holder(), state.succeeded()), (Some(last), true));
        let without = state.with_faults(FaultBudget::default());
        assert_eq!((without.faults(), without.effects()), (FaultBudget::default(), 0b1000_0001));
        assert_eq!((without.holder(), without.succeeded()), (Some(last), true));
    }

    #[test]
    fn only_free_workers_change_places_with_all_that_is_theirs() {
        let mut state = SearchState::new(&[5, 4, 9, 3]).with_effect_of(0).with_effect_of(2);
        state.set_holder(Some(3));
        let mut names = Names::IN_ORDER;
        let mut sorted = state;
        sorted.sort_workers(0b1011, &mut names);
        assert_eq!(sorted.positions[..4], [3, 4, 9, 5]);
        assert_eq!((sorted.effects(), sorted.holder()), (0b1100, Some(0)));
        assert_eq!([0, 1, 2, 3].map(|place| names.at(place)), [3, 1, 2, 0]);
        let mut alike = SearchState::new(&[4, 3, 9, 5]).with_effect_of(2).with_effect_of(3);
        alike.set_holder(Some(1));
        alike.sort_workers(0b1011, &mut names);
        assert_eq!(alike, sorted);
        let mut kept = state;
        kept.sort_workers(0b0010, &mut names);
        assert_eq!(kept, state);
    }

    #[test]
    fn workers_at_one_position_are_sorted_by_their_past() {
        let alike = |effect, holder| {
            let mut state = SearchState::new(&[4, 4, 4]).with_effect_of(effect);
            state.set_holder(Some(holder));
            state.sort_workers(0b111, &mut Names::IN_ORDER.clone());
            state
        };
        assert_eq!(alike(0, 0), alike(2, 2));
        assert_eq!(alike(0, 1), alike(2, 0));
        assert_ne!(alike(0, 0), alike(0, 1));
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
