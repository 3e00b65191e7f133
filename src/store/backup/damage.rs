//! The lines of a backup that cannot be used: which they are, and what that may cost.

use super::parse::Fault;

/// Lines that cannot be used: those in the middle, with whole lines behind them, and those at the end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Damage {
    pub middle: Option<Gap>,
    pub tail: Option<Gap>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The number of the first, from 1.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
    /// How many they are, for whole lines may stand between.
    pub lines: u64,
    /// What is wrong with the first of them, or with the first that may have held a Redis key.
    pub why: String,
    /// True when one of them may have held a Redis key that was changed. What a crash leaves never did: nothing is
    /// changed before its line is whole on the disk.
    pub may_have_held: bool,
}

impl Damage {
    pub fn is_none(&self) -> bool {
        self.middle.is_none() && self.tail.is_none()
    }

    pub fn lines(&self) -> u64 {
        self.gaps().map(|gap| gap.lines).sum()
    }

    /// True when what cannot be used may have held a Redis key that was changed.
    pub fn may_have_held(&self) -> bool {
        self.gaps().any(|gap| gap.may_have_held)
    }

    fn gaps(&self) -> impl Iterator<Item = &Gap> {
        self.middle.iter().chain(&self.tail)
    }

    /// Takes note of a line; `is_ended` says whether a line feed ends it.
    pub(super) fn add(&mut self, line: u64, fault: &Fault, is_ended: bool) {
        let may_have_held = match fault {
            Fault::Blank => false,
            Fault::Cut => is_ended,
            Fault::OtherVersion(_) | Fault::Foreign | Fault::Damaged(_) => true,
        };
        let new = Gap { first: line, last: line, lines: 1, why: fault.why().to_owned(), may_have_held };
        self.tail = Some(Gap::join(self.tail.take(), new));
    }

    /// Takes note of a whole line: what was the end so far is in the middle.
    pub(super) fn is_followed(&mut self) {
        if let Some(tail) = self.tail.take() {
            self.middle = Some(Gap::join(self.middle.take(), tail));
        }
    }
}

impl Gap {
    fn join(before: Option<Self>, behind: Self) -> Self {
        let Some(before) = before else { return behind };
        let why = if before.may_have_held || !behind.may_have_held { before.why } else { behind.why };
        Self {
            first: before.first,
            last: behind.last,
            lines: before.lines + behind.lines,
            why,
            may_have_held: before.may_have_held || behind.may_have_held,
        }
    }

    /// Which lines, in words.
    pub fn words(&self) -> String {
        let Self { first, last, lines, .. } = self;
        match last - first + 1 {
            1 => format!("line {first}"),
            all if all == *lines => format!("lines {first} to {last}"),
            _ => format!("{lines} lines from {first} to {last}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_followed_by_a_whole_line_is_in_the_middle() {
        let mut damage = Damage::default();
        damage.add(2, &Fault::Blank, true);
        damage.add(3, &Fault::Foreign, true);
        damage.is_followed();
        damage.add(5, &Fault::Damaged("flipped".to_owned()), true);
        damage.is_followed();
        damage.add(7, &Fault::Cut, false);
        let (middle, tail) = (damage.middle.clone().unwrap(), damage.tail.clone().unwrap());
        assert_eq!((middle.words().as_str(), middle.lines), ("3 lines from 2 to 5", 3));
        assert_eq!(middle.why, Fault::Foreign.why(), "the empty line held nothing");
        assert_eq!((tail.words().as_str(), tail.may_have_held), ("line 7", false));
        assert_eq!((damage.lines(), damage.may_have_held()), (4, true));
    }

    #[test]
    fn only_what_a_crash_leaves_held_nothing() {
        let may_have_held = |fault: &Fault, is_ended| {
            let mut damage = Damage::default();
            damage.add(1, fault, is_ended);
            damage.may_have_held()
        };
        assert!(!may_have_held(&Fault::Cut, false) && !may_have_held(&Fault::Blank, true));
        assert!(may_have_held(&Fault::Cut, true), "a line that ends was written to its end");
        assert!(may_have_held(&Fault::Damaged(String::new()), false) && may_have_held(&Fault::Foreign, false));
    }
}
