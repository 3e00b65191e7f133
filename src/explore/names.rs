//! The names of the workers. A state of the search has places for workers, and any worker can be at
//! any place: where names make no difference, two workers may change places.

/// The names of the workers at the places of a state, four bits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Names(u32);

/// The bits of one name.
const NAME_BITS: u32 = 4;

const NAME_MASK: u32 = (1 << NAME_BITS) - 1;

impl Names {
    /// Each worker is at the place of its number.
    pub(super) const IN_ORDER: Self = Self(0x7654_3210);

    /// The name of the worker at a place.
    pub(super) fn at(self, place: u8) -> u8 {
        // The mask leaves only the four bits of the name.
        (self.0 >> Self::shift(place) & NAME_MASK) as u8
    }

    /// The place of the worker with a name.
    pub(super) fn place_of(self, name: u8) -> u8 {
        let mut place = 0;
        while self.at(place) != name {
            place += 1;
        }
        place
    }

    /// The names after two workers have changed places.
    pub(super) fn with_swapped(self, one: u8, other: u8) -> Self {
        let differing = u32::from(self.at(one) ^ self.at(other));
        Self(self.0 ^ differing << Self::shift(one) ^ differing << Self::shift(other))
    }

    fn shift(place: u8) -> u32 {
        u32::from(place) * NAME_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_keep_their_names_when_they_change_places() {
        let names = Names::IN_ORDER.with_swapped(0, 7).with_swapped(7, 2);
        let at = |place| names.at(place);
        assert_eq!([0, 1, 2, 3, 7].map(at), [7, 1, 0, 3, 2]);
        for name in 0..8 {
            assert_eq!(names.at(names.place_of(name)), name);
        }
        assert_eq!(names.with_swapped(4, 4), names);
    }
}
