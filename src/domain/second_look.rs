//! Two looks at a record: what came in between shows that somebody is at it.

use sha2::{Digest as _, Sha256};

use crate::domain::observation::{Content, Expiry, Observation, SeenSlot};

/// What a record was like when it was first looked at: enough to tell whether it changed, whatever its size.
#[derive(Debug, Clone)]
pub struct FirstLook(Vec<Slot>);

#[derive(Debug, Clone)]
struct Slot {
    print: Print,
    expiry: Expiry,
}

/// A value as small as it can be told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Print {
    Absent,
    Text { read: usize, length: Option<u64>, digest: [u8; 32] },
    Other(String),
}

/// What the second look says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody touched it.
    Same,
    /// It is gone, or holds other bytes.
    Changed,
    /// The bytes are the same, but it has more time left: its worker renewed it, or another took it.
    Renewed,
}

impl FirstLook {
    /// Keeps what is needed of a record as it was seen.
    pub fn new(seen: &Observation) -> Self {
        let slot = |slot: &SeenSlot| Slot { print: Print::of(&slot.content, usize::MAX), expiry: slot.expiry };
        Self(seen.slots.iter().map(slot).collect())
    }

    /// Compares with the record as it is now.
    pub fn compare(&self, now: &Observation) -> Verdict {
        let pairs = || self.0.iter().zip(&now.slots);
        let same_value = pairs().all(|(first, now)| match first.print {
            Print::Text { read, length, .. } => first.print == Print::of(&now.content, read).known_by(length),
            _ => first.print == Print::of(&now.content, usize::MAX),
        });
        if !same_value {
            return Verdict::Changed;
        }
        let renewed =
            |(first, now): (&Slot, &SeenSlot)| first.print != Print::Absent && went_up(first.expiry, now.expiry);
        if pairs().any(renewed) { Verdict::Renewed } else { Verdict::Same }
    }
}

impl Print {
    /// Of at most `most` bytes from the beginning, for the first look may have read no more.
    fn of(content: &Content, most: usize) -> Self {
        match content {
            Content::Absent => Self::Absent,
            Content::Other(kind) => Self::Other(kind.clone()),
            Content::Text { head, length } => {
                let head = &head[..head.len().min(most)];
                Self::Text { read: head.len(), length: *length, digest: Sha256::digest(head).into() }
            }
        }
    }

    /// Without the length, where the first look did not ask for it.
    fn known_by(self, first: Option<u64>) -> Self {
        match self {
            Self::Text { read, digest, .. } if first.is_none() => Self::Text { read, length: None, digest },
            print => print,
        }
    }
}

/// A lock that gained an expiry was taken anew: nothing else gives it one.
fn went_up(first: Expiry, now: Expiry) -> bool {
    match (first, now) {
        (Expiry::In(first), Expiry::In(now)) => now > first,
        (first, now) => first != now,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::samples::{schema, seen, text};

    fn verdict(first: &[(Content, Expiry)], now: &[(Content, Expiry)]) -> Verdict {
        let schema = schema("event-consumer");
        FirstLook::new(&seen(&schema, first)).compare(&seen(&schema, now))
    }

    fn lock(expiry: Expiry) -> [(Content, Expiry); 2] {
        [(text("1"), expiry), (Content::Absent, Expiry::In(0))]
    }

    #[test]
    fn time_that_runs_out_is_no_change() {
        assert_eq!(verdict(&lock(Expiry::In(9)), &lock(Expiry::In(8))), Verdict::Same);
        assert_eq!(verdict(&lock(Expiry::Never), &lock(Expiry::Never)), Verdict::Same);
    }

    #[test]
    fn more_time_a_new_expiry_or_none_any_more_is_a_renewal() {
        assert_eq!(verdict(&lock(Expiry::In(8)), &lock(Expiry::In(9))), Verdict::Renewed);
        assert_eq!(verdict(&lock(Expiry::Never), &lock(Expiry::In(9))), Verdict::Renewed);
        assert_eq!(verdict(&lock(Expiry::In(9)), &lock(Expiry::Never)), Verdict::Renewed);
    }

    #[test]
    fn other_bytes_and_a_result_that_came_are_changes() {
        let done = [(text("1"), Expiry::In(9)), (text("1"), Expiry::In(9))];
        let other = [(text("2"), Expiry::In(8)), (Content::Absent, Expiry::In(0))];
        let gone = [(Content::Absent, Expiry::In(0)), (Content::Absent, Expiry::In(0))];
        let hash = [(Content::Other("hash".into()), Expiry::In(8)), (Content::Absent, Expiry::In(0))];
        for now in [&done, &other, &gone, &hash] {
            assert_eq!(verdict(&lock(Expiry::In(9)), now), Verdict::Changed);
        }
    }

    proptest! {
        #[test]
        fn a_first_look_at_the_beginning_compares_with_the_whole(
            value in prop::collection::vec(any::<u8>(), 1..40),
            read in 0..40_usize,
        ) {
            let head = value[..read.min(value.len())].to_vec();
            let first = [(Content::Text { head, length: Some(value.len() as u64) }, Expiry::In(9)), (Content::Absent, Expiry::In(0))];
            let now = |value: &[u8]| [(text(value), Expiry::In(9)), (Content::Absent, Expiry::In(0))];
            prop_assert_eq!(verdict(&first, &now(&value)), Verdict::Same);
            let longer = [&value[..], b"x"].concat();
            prop_assert_eq!(verdict(&first, &now(&longer)), Verdict::Changed);
        }
    }
}
