//! Whether an awaited state has been reached, or can no longer be reached.

use crate::domain::schema::State;

/// Whether an awaited state has been reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    Came,
    NotYet,
    /// A lock that was held is gone, and there is no result.
    CannotCome,
}

impl Awaited {
    /// The result for two states that are awaited together.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::CannotCome, _) | (_, Self::CannotCome) => Self::CannotCome,
            (Self::Came, Self::Came) => Self::Came,
            _ => Self::NotYet,
        }
    }
}

/// What was seen so far of a key, or of a selection of records.
#[derive(Debug, Clone, Default)]
pub(crate) struct AwaitedState {
    was_held: bool,
}

impl AwaitedState {
    /// Judges the states of the records that exist now. An empty slice means that no record exists.
    pub(crate) fn judge(&mut self, until: State, now: &[State]) -> Awaited {
        let came = match until {
            State::Absent => now.is_empty(),
            until => !now.is_empty() && now.iter().all(|state| *state == until),
        };
        let was_held = self.was_held;
        self.was_held = now.contains(&State::InProgress);
        if came {
            return Awaited::Came;
        }
        // Only a lock that was seen before can have ended. A key that no client has used yet may
        // still get a result.
        if until == State::Completed && now.is_empty() && was_held {
            Awaited::CannotCome
        } else {
            Awaited::NotYet
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(until: State, looks: &[&[State]]) -> Awaited {
        let mut waiting = AwaitedState::default();
        looks.iter().map(|now| waiting.judge(until, now)).last().unwrap()
    }

    /// Rule: a lock that ended without a result never becomes a result; a key that nobody has taken
    /// yet may.
    #[test]
    fn a_result_cannot_come_once_its_lock_has_ended() {
        let (held, done): (&[_], &[_]) = (&[State::InProgress], &[State::Completed]);
        assert_eq!(judged(State::Completed, &[&[]]), Awaited::NotYet);
        assert_eq!(judged(State::Completed, &[&[], held, done]), Awaited::Came);
        assert_eq!(judged(State::Completed, &[held, &[]]), Awaited::CannotCome);
        assert_eq!(judged(State::Absent, &[held, &[]]), Awaited::Came);
        assert_eq!(judged(State::InProgress, &[&[]]), Awaited::NotYet);
    }

    #[test]
    fn all_have_to_be_in_the_state() {
        assert_eq!(
            judged(State::Completed, &[&[State::Completed, State::InProgress]]),
            Awaited::NotYet
        );
    }
}
