//! Finds a state's number: a table of numbers, the states themselves lie elsewhere.

use super::state::State;

const EMPTY: u32 = u32::MAX;

pub(super) struct Index {
    /// Numbers of states, each at the first free place behind its hash.
    places: Vec<u32>,
}

impl Index {
    pub(super) fn new() -> Self {
        Self { places: vec![EMPTY; 1 << 10] }
    }

    /// The number of a state, which is put behind the others where it is new.
    pub(super) fn number(&mut self, states: &mut Vec<State>, state: &State) -> (u32, bool) {
        if states.len() * 4 >= self.places.len() * 3 {
            self.grow(states);
        }
        let place = self.place(states, state);
        if self.places[place] != EMPTY {
            return (self.places[place], false);
        }
        let number = u32::try_from(states.len()).unwrap_or(EMPTY - 1);
        self.places[place] = number;
        states.push(*state);
        (number, true)
    }

    fn place(&self, states: &[State], state: &State) -> usize {
        let mask = self.places.len() - 1;
        #[expect(clippy::cast_possible_truncation, reason = "only the lower bits count")]
        let mut place = state.mixed() as usize & mask;
        while self.places[place] != EMPTY && states[self.places[place] as usize] != *state {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self, states: &[State]) {
        self.places = vec![EMPTY; self.places.len() * 2];
        for (number, state) in states.iter().enumerate() {
            let place = self.place(&states[..number], state);
            self.places[place] = u32::try_from(number).unwrap_or(EMPTY - 1);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_one_number_however_many_there_are() {
        let (mut index, mut states) = (Index::new(), Vec::new());
        for round in 0..2 {
            for store in 0..5_000 {
                let state = State { store, ..State::new(&[1, 1]) };
                assert_eq!(index.number(&mut states, &state), (store, round == 0));
            }
        }
    }
}
