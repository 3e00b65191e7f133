//! The events in one take of a scenario. Effects are counted here, and not derived from what Redis
//! stores.

use crate::domain::schema::Meaning;
use crate::domain::simulation::verdict::Excuse;

/// One line of the sequence, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryEvent {
    /// Microseconds since the take began.
    pub(crate) at_us: u64,
    /// Who acts: a worker, a client, or the environment.
    pub(crate) actor: String,
    pub(crate) step: String,
    pub(crate) reply: Option<String>,
    pub(crate) client: Option<String>,
}

/// One execution of the service's handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Execution {
    pub(crate) worker: String,
    /// The operation. Requests with the same payload ask for the same operation.
    pub(crate) operation: &'static str,
    /// False if the operation had no effect, because the handler failed or the provider did not do
    /// it.
    pub(crate) effect: bool,
    pub(crate) response: Vec<u8>,
}

/// One answer to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) operation: &'static str,
    pub(crate) answer: ClientAnswer,
    /// How many executions preceded the answer.
    pub(crate) after: usize,
}

/// The content of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientAnswer {
    /// The operation is done; with the stored response if the service stores one.
    Done(Option<Vec<u8>>),
    Error(String),
}

/// A client was rejected although no worker was running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// How long in milliseconds, converted to the schema's own TTLs; `None` if it never ends.
    pub(crate) ms: Option<u64>,
    pub(crate) by: Meaning,
    pub(crate) reply: String,
}

/// One take: the story from beginning to end, on one key.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// The title that distinguishes this take from the scenario's other takes; empty for the only
    /// take.
    pub(crate) take: String,
    pub(crate) events: Vec<HistoryEvent>,
    pub(crate) executions: Vec<Execution>,
    pub(crate) answers: Vec<Answered>,
    /// The longest block of a client.
    pub(crate) block: Option<Block>,
    /// The first lock or result of another worker that a worker removed or replaced, in words.
    pub(crate) overwritten: Option<String>,
    /// Why a harm in this take is not a failure of the schema.
    pub(crate) excuse: Option<Excuse>,
    pub(crate) notes: Vec<String>,
}

impl History {
    /// Adds an answer to a client.
    pub(crate) fn answer(&mut self, operation: &'static str, answer: ClientAnswer) {
        self.answers.push(Answered { operation, answer, after: self.executions.len() });
    }

    /// Records that a client was rejected although no worker was running. Only the longest block is
    /// kept.
    pub(crate) fn note_block(&mut self, block: Block) {
        // A block without a time never ends, so that no other one is longer.
        let length = |block: &Block| block.ms.unwrap_or(u64::MAX);
        if self.block.as_ref().is_none_or(|longest| length(&block) > length(longest)) {
            self.block = Some(block);
        }
    }

    /// How many executions of an operation had an effect.
    pub(crate) fn effects_of(&self, operation: &str) -> usize {
        let mut effects = 0;
        for execution in &self.executions {
            if execution.operation == operation && execution.effect {
                effects += 1;
            }
        }
        effects
    }

    /// The operations of this take, each with its number of effects, the highest number first.
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
    fn the_longest_block_counts() {
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
