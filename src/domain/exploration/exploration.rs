//! What an exploration comes to.

use super::assumption::Assumptions;
use super::fault::Budget;
use super::invariants::Invariant;
use super::token::Token;
use super::trace::Line;

/// One schema, or two that share Redis keys, explored.
#[derive(Debug, Clone)]
pub(crate) struct Exploration {
    /// The schemas whose steps the workers perform.
    pub(crate) schemas: Vec<String>,
    pub(crate) workers: u8,
    /// How often each fault might happen.
    pub(crate) most: Budget,
    pub(crate) assumptions: Assumptions,
    pub(crate) harms: Vec<Harm>,
    /// The invariants that the schemas cannot be asked for.
    pub(crate) not_asked: Vec<&'static str>,
    pub(crate) covered: Covered,
    pub(crate) wall_ms: u64,
    /// The history that was played again, where that was asked for in place of an exploration.
    pub(crate) replay: Option<Replay>,
    /// A call that answered otherwise the second time.
    pub(crate) unsteady: Option<String>,
}

/// A history that was played again.
#[derive(Debug, Clone)]
pub(crate) struct Replay {
    pub(crate) lines: Vec<Line>,
    pub(crate) token: Token,
    /// Where the history went another way when it was played.
    pub(crate) deviates: Option<String>,
}

/// A harm, with a set of faults of which none can be left out.
#[derive(Debug, Clone)]
pub(crate) struct Harm {
    pub(crate) invariant: &'static Invariant,
    pub(crate) faults: Budget,
    /// What to change, as the history shows.
    pub(crate) remedy: String,
    /// A shortest history, as workers played it.
    pub(crate) lines: Vec<Line>,
    pub(crate) token: Token,
    /// Where the history went another way when it was played.
    pub(crate) deviates: Option<String>,
}

/// What an exploration has seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Covered {
    /// False when the most states were there first, or somebody asked to stop.
    pub complete: bool,
    pub states: usize,
    pub transitions: usize,
    /// Where the exploration is complete: how many schedules the states stand for.
    pub schedules: Option<f64>,
    /// All schedules up to so many steps were seen.
    pub depth: usize,
    pub server_calls: usize,
    pub bytes_a_state: usize,
    /// How long the search took, the server's calls left out, in microseconds.
    pub search_us: u64,
}

impl Exploration {
    /// The history that was played again, or that of each harm, with a title.
    pub(crate) fn histories(&self) -> Vec<(String, &[Line])> {
        let name = self.name();
        match &self.replay {
            Some(replay) => vec![(format!("{name}, {}", self.most), &replay.lines)],
            None => {
                let title = |harm: &Harm| format!("{name}, {}, {}", harm.invariant.name, harm.faults);
                self.harms.iter().map(|harm| (title(harm), &*harm.lines)).collect()
            }
        }
    }

    /// The schemas in words.
    pub(crate) fn name(&self) -> String {
        self.schemas.join(" beside ")
    }
}
