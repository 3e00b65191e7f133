//! What the oracle found: counts, and the first of each kind of wrong.

use std::collections::BTreeMap;

use crate::judge::Wrong;

/// Of each kind so many are told in full.
const TOLD: usize = 3;

/// What became of a storm.
#[derive(Debug, Default)]
pub struct Verdict {
    /// How many, and the first of them, by what is wrong and whose doing it is.
    pub wrong: BTreeMap<(Wrong, &'static str), (u64, Vec<String>)>,
    /// Counts by their words, in groups.
    pub counts: BTreeMap<(&'static str, String), u64>,
}

impl Verdict {
    /// Takes note of something wrong.
    pub fn wrong(&mut self, wrong: Wrong, by: &'static str, said: impl Into<String>) {
        let (count, told) = self.wrong.entry((wrong, by)).or_default();
        *count += 1;
        if told.len() < TOLD {
            told.push(said.into());
        }
    }

    /// How many of a kind there were.
    pub fn count_of(&self, wrong: Wrong) -> u64 {
        self.wrong.iter().filter(|((of, _), _)| *of == wrong).map(|(_, (count, _))| count).sum()
    }

    /// Counts something.
    pub fn count(&mut self, group: &'static str, what: impl Into<String>, count: u64) {
        *self.counts.entry((group, what.into())).or_default() += count;
    }

    /// A count.
    pub fn counted(&self, group: &'static str, what: &str) -> u64 {
        self.counts.get(&(group, what.to_owned())).copied().unwrap_or(0)
    }

    /// All of a group.
    pub fn total(&self, group: &str) -> u64 {
        self.counts.iter().filter(|((of, _), _)| *of == group).map(|(_, count)| count).sum()
    }
}
