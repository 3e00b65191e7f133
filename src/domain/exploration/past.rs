//! How a record can have come to what it is.

use super::act::Act;
use super::fault::Budget;
use super::gist;
use super::held::Keys;
use super::token::Token;
use super::trace::Line;
use crate::domain::schema::Schema;

/// A state of the Redis keys that was reached with a minimal set of faults.
#[derive(Debug, Clone)]
pub struct Reached {
    pub keys: Keys,
    /// The worker that took the lock that stands is at work.
    pub holder_lives: bool,
    pub faults: Budget,
    /// The point at which each worker begins.
    pub beginning: Vec<u8>,
    /// A shortest history.
    pub acts: Vec<Act>,
}

/// What led to a record.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    /// How often each fault might happen.
    pub(crate) most: Budget,
    pub(crate) workers: u8,
    /// Each with a set of faults of which none can be left out, the fewest first; none where no history leads there.
    pub(crate) ways: Vec<Way>,
}

/// One way that leads to a record.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub(crate) holder_lives: bool,
    pub(crate) faults: Budget,
    pub(crate) token: Token,
    /// The history, as workers played it.
    pub(crate) lines: Vec<Line>,
}

/// Those that come to the same as what is asked for, without what takes more faults than another.
pub(crate) fn leading_to<'a>(schema: &Schema, reached: &'a [Reached], wanted: &str) -> Vec<&'a Reached> {
    let same: Vec<_> = reached.iter().filter(|reached| gist::of_keys(schema, &reached.keys) == wanted).collect();
    let is_better = |other: &Reached, one: &Reached| {
        let fewer = other.faults.is_within(one.faults) && other.faults != one.faults;
        let shorter = other.faults == one.faults && other.acts.len() < one.acts.len();
        other.holder_lives == one.holder_lives && (fewer || shorter)
    };
    let mut minimal: Vec<&Reached> = Vec::new();
    for one in &same {
        let is_known = minimal.iter().any(|other| other.holder_lives == one.holder_lives && other.faults == one.faults);
        if !is_known && !same.iter().any(|other| is_better(other, one)) {
            minimal.push(one);
        }
    }
    minimal.sort_by_key(|reached| (reached.faults.total(), reached.acts.len()));
    minimal
}
