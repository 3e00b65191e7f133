//! What happened in one take of a scenario. The effects are counted here, outside Redis.

use crate::domain::schema::Meaning;

/// One line of the sequence, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryEvent {
    /// Microseconds since the take began.
    pub(crate) at_us: u64,
    /// Who: a worker, a client, or the world around them.
    pub(crate) actor: String,
    pub(crate) step: String,
    pub(crate) reply: Option<String>,
    pub(crate) client: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Execution {
    pub(crate) worker: String,
    /// Of which operation: requests with the same payload are one operation.
    pub(crate) operation: &'static str,
    /// False when it had no effect: it failed, or what it asked for never came about.
    pub(crate) effect: bool,
    pub(crate) response: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) operation: &'static str,
    pub(crate) answer: ClientAnswer,
    /// How many executions there had been by then.
    pub(crate) after: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientAnswer {
    /// That it is done, with the stored response where the service keeps one.
    Done(Option<Vec<u8>>),
    Error(String),
}

/// How long a client was turned away with nobody at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// Milliseconds, in the schema's own TTLs; `None` for ever.
    pub(crate) ms: Option<u64>,
    pub(crate) by: Meaning,
    pub(crate) reply: String,
}

/// One take: the story once from beginning to end, on one key.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// What tells this take from the scenario's other takes; empty where there is only one.
    pub(crate) take: String,
    pub(crate) events: Vec<HistoryEvent>,
    pub(crate) executions: Vec<Execution>,
    pub(crate) answers: Vec<Answered>,
    /// The longest that a client was turned away with nobody at work.
    pub(crate) block: Option<Block>,
    pub(crate) notes: Vec<String>,
}

impl History {
    pub(crate) fn answer(&mut self, operation: &'static str, answer: ClientAnswer) {
        self.answers.push(Answered { operation, answer, after: self.executions.len() });
    }

    /// Notes that a client was turned away with nobody at work; the longest time counts.
    pub(crate) fn note_block(&mut self, block: Block) {
        let longest =
            |held: &Block| held.ms.is_some_and(|held| block.ms.is_none_or(|ms| ms > held));
        if self.block.as_ref().is_none_or(longest) {
            self.block = Some(block);
        }
    }

    pub(crate) fn effects_of(&self, operation: &str) -> usize {
        self.executions
            .iter()
            .filter(|execution| execution.operation == operation && execution.effect)
            .count()
    }

    /// The operations of this take, each with how often its effect came about, the most often first.
    pub(crate) fn effects(&self) -> Vec<(&'static str, usize)> {
        let mut counted: Vec<(&'static str, usize)> = Vec::new();
        for Execution { operation, .. } in &self.executions {
            if !counted.iter().any(|(known, _)| known == operation) {
                counted.push((operation, self.effects_of(operation)));
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
        for (ms, longest) in [
            (Some(2), Some(2)),
            (Some(1), Some(2)),
            (Some(3), Some(3)),
            (None, None),
            (Some(9), None),
        ] {
            history.note_block(Block { ms, by: Meaning::Conflict, reply: String::new() });
            assert_eq!(history.block.as_ref().map(|block| block.ms), Some(longest));
        }
    }
}
