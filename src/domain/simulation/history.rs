//! What happened in one take of a scenario. The effects are counted here, outside Redis.

use crate::domain::schema::Meaning;

/// One line of the sequence, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Microseconds since the take began.
    pub at_us: u64,
    /// Who: a worker, a client, or the world around them.
    pub actor: String,
    /// What it did.
    pub step: String,
    /// What Redis answered, where it was asked.
    pub reply: Option<String>,
    /// What the client saw, where it saw something.
    pub client: Option<String>,
}

/// A handler that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// Whose.
    pub worker: String,
    /// Of which operation: requests with the same payload are one operation.
    pub operation: &'static str,
    /// False when it had no effect: it failed, or what it asked for never came about.
    pub effect: bool,
    /// What a replay of its response would bring.
    pub response: Vec<u8>,
}

/// What a client was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// What it asked for.
    pub operation: &'static str,
    /// What it got.
    pub told: Told,
    /// How many executions there had been by then.
    pub after: usize,
}

/// What a client was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// That it is done, with the stored response where the service keeps one.
    Done(Option<Vec<u8>>),
    /// An error, in words.
    Error(String),
}

/// How long a client was turned away with nobody at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Milliseconds, in the schema's own TTLs; `None` for ever.
    pub ms: Option<u64>,
    /// What the service made of it.
    pub by: Meaning,
    /// What Redis answered.
    pub reply: String,
}

/// One take: the story once from beginning to end, on one key.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// What sets it apart from the scenario's other takes; empty where there is one.
    pub take: String,
    /// The sequence.
    pub events: Vec<Event>,
    /// Every handler that ran, in order.
    pub executions: Vec<Execution>,
    /// What clients were told, in order.
    pub answers: Vec<Answered>,
    /// The longest that a client was turned away with nobody at work.
    pub block: Option<Block>,
    /// What else deserves to be said of what happened.
    pub notes: Vec<String>,
}

impl History {
    /// Notes what a client was told.
    pub fn answer(&mut self, operation: &'static str, told: Told) {
        self.answers.push(Answered { operation, told, after: self.executions.len() });
    }

    /// Notes that a client was turned away with nobody at work; the longest time counts.
    pub fn turned_away(&mut self, block: Block) {
        let longest = |held: &Block| held.ms.is_some_and(|held| block.ms.is_none_or(|ms| ms > held));
        if self.block.as_ref().is_none_or(longest) {
            self.block = Some(block);
        }
    }

    /// How often the effect of an operation came about.
    pub fn times(&self, operation: &str) -> usize {
        self.executions.iter().filter(|execution| execution.operation == operation && execution.effect).count()
    }

    /// The operations of this take, each with how often its effect came about, the most often first.
    pub fn effects(&self) -> Vec<(&'static str, usize)> {
        let mut counted: Vec<(&'static str, usize)> = Vec::new();
        for Execution { operation, .. } in &self.executions {
            if !counted.iter().any(|(known, _)| known == operation) {
                counted.push((operation, self.times(operation)));
            }
        }
        counted.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_turned_away_counts() {
        let mut history = History::default();
        for (ms, longest) in [(Some(2), Some(2)), (Some(1), Some(2)), (Some(3), Some(3)), (None, None), (Some(9), None)]
        {
            history.turned_away(Block { ms, by: Meaning::Conflict, reply: String::new() });
            assert_eq!(history.block.as_ref().map(|block| block.ms), Some(longest));
        }
    }
}
