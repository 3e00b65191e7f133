//! Which record is in which situation: every ailment once on as few records as possible, and from then on one in four.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::situation::{SICK, Situation};
use crate::domain::schema::Schema;

/// From the fourth record of a schema on, one record in this many is sick.
const ONE_IN: u64 = 4;

/// Only records with smaller numbers may be huge, so that a large seed stays small in memory.
const HUGE_UNTIL: u64 = 100;

pub(super) struct Distribution {
    /// By schema: what can ail its records.
    ailments: Vec<Vec<Situation>>,
    /// The situations of single records, by schema and number.
    first: HashMap<(usize, u64), Situation>,
}

impl Distribution {
    /// Gives each ailment once to the first records of the schemas. Schemas without a literal prefix get ailments besides, for a
    /// plain scan does not see their records.
    pub fn new(schemas: &[Arc<Schema>], count: u64) -> Self {
        let ailments: Vec<Vec<_>> = schemas
            .iter()
            .map(|schema| SICK.into_iter().filter(|situation| situation.fits(schema)).collect())
            .collect();
        let some_are_seen = schemas.iter().any(|schema| schema.has_prefix());
        let mut open: VecDeque<_> = SICK.into();
        let mut first = HashMap::new();
        let mut number = u64::from(count > 1);
        while number < count && !open.is_empty() {
            for (index, schema) in schemas.iter().enumerate() {
                if some_are_seen && !schema.has_prefix() {
                    if let Some(situation) = pick(&ailments[index], index) {
                        first.entry((index, number)).or_insert(situation);
                    }
                } else if let Some(place) = open.iter().position(|situation| ailments[index].contains(situation)) {
                    first.extend(open.remove(place).map(|situation| ((index, number), situation)));
                }
            }
            // An ailment that fits no schema is left out.
            open.retain(|situation| ailments.iter().any(|fitting| fitting.contains(situation)));
            // Every third record stays healthy.
            number += if number % 3 == 2 { 2 } else { 1 };
        }
        Self { ailments, first }
    }

    /// The situation of record `number` of the schema with this index.
    pub fn situation(&self, index: usize, number: u64) -> Situation {
        if let Some(dealt) = self.first.get(&(index, number)) {
            return *dealt;
        }
        let turn = usize::try_from(number / ONE_IN).unwrap_or(0) + index;
        let sick =
            (number >= ONE_IN && number % ONE_IN == ONE_IN - 1).then(|| pick(&self.ailments[index], turn)).flatten();
        match sick {
            Some(situation) if situation != Situation::Huge || number < HUGE_UNTIL => situation,
            _ if (number + index as u64).is_multiple_of(2) => Situation::Running,
            _ => Situation::Finished,
        }
    }
}

fn pick(ailments: &[Situation], turn: usize) -> Option<Situation> {
    ailments.get(turn.checked_rem(ailments.len())?).copied()
}
