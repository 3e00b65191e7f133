//! What several judgements share.

use crate::domain::probe::message::{ProbeAnswer, ProbeExchange, ProbeOutcome};
use crate::domain::probe::probe_check::{Judged, MadeSteps, ProbeJudgement, ProbeVerdict};
use crate::domain::probe::task::ProbeTask;

/// How often the service executed between the first and the last count.
pub(super) enum Executions {
    Times(u64),
    /// No oracle was given.
    NotCounted,
    /// The oracle proves nothing.
    Unknown(String),
}

pub(super) const ANOTHER_RESULT: &str = "the retry got another result";

pub(super) const TOO_LONG: &str = "a body is too long to compare";

pub(super) const NOT_COUNTED: &str = "the effects were not counted";

pub(super) const OTHER_PAYLOAD: &str = "the other payload with a key of its own";

pub(super) fn pass(message: impl Into<String>) -> Judged {
    Ok(ProbeJudgement::new(ProbeVerdict::Pass, message))
}

pub(super) fn reported(message: impl Into<String>) -> Judged {
    Ok(ProbeJudgement::new(ProbeVerdict::Reported, message))
}

pub(super) fn fail<T>(message: impl Into<String>) -> Judged<T> {
    Err(ProbeJudgement::new(ProbeVerdict::Fail, message))
}

/// A failure that only the number of effects shows.
pub(super) fn fail_by_number<T>(message: impl Into<String>) -> Judged<T> {
    let judged = ProbeJudgement::new(ProbeVerdict::Fail, message);
    Err(ProbeJudgement { is_by_number: true, ..judged })
}

pub(super) fn inconclusive<T>(message: impl Into<String>) -> Judged<T> {
    Err(ProbeJudgement::new(ProbeVerdict::Inconclusive, message))
}

pub(super) fn not_applicable<T>(message: impl Into<String>) -> Judged<T> {
    Err(ProbeJudgement::new(ProbeVerdict::NotApplicable, message))
}

/// The same with these exchanges as its proof, instead of those that the check names.
pub(super) fn showing<T>(judged: Judged<T>, shown: &[(usize, usize)]) -> Judged<T> {
    judged.map_err(|judged| ProbeJudgement { shown: shown.to_vec(), ..judged })
}

/// True if two successes of one key have the same result.
///
/// # Errors
/// Why their results cannot be told apart.
pub(super) fn compare(
    task: &ProbeTask,
    one: &ProbeAnswer,
    other: &ProbeAnswer,
) -> Result<bool, String> {
    let baseline = &task.baseline;
    let why = match one.is_other_result(other) {
        true if baseline.replays_equal => return Ok(false),
        // A time or a signed URL, which changes with each answer, shows no execution.
        true => "their results differ, but so do those of a request and its retry",
        false if !one.is_whole || !other.is_whole => TOO_LONG,
        false if baseline.tells_results_apart => return Ok(true),
        false => "the answers agree, but so do those of two different keys",
    };
    Err(why.to_owned())
}

impl<'a> MadeSteps<'a> {
    /// The exchanges of a step.
    pub(super) fn exchanges(&self, step: usize) -> &'a [ProbeExchange] {
        &self.results[step].exchanges
    }

    /// The answer to the last request of a step.
    ///
    /// # Errors
    /// The judgement if there is none.
    pub(super) fn answer(&self, step: usize) -> Judged<&'a ProbeAnswer> {
        answer_of(self.exchanges(step).last())
    }

    /// The success with which the last request of a step was answered. `what` is the request.
    ///
    /// # Errors
    /// The judgement if the service gave no success.
    pub(super) fn success(&self, step: usize, what: &str) -> Judged<&'a ProbeAnswer> {
        success(self.answer(step)?, what)
    }

    /// The answer to the last request of a step, a retry that the service did not turn away because
    /// of its load.
    ///
    /// # Errors
    /// The judgement if there is none.
    pub(super) fn retry(&self, step: usize) -> Judged<&'a ProbeAnswer> {
        let answer = self.answer(step)?;
        if answer.is_overload() {
            return inconclusive(format!("the retry got {}", answer.status));
        }
        Ok(answer)
    }

    /// What came back for the last request of a step, in words.
    pub(super) fn words(&self, step: usize) -> String {
        let last = self.exchanges(step).last();
        last.map_or_else(|| "not sent".to_owned(), ProbeExchange::in_words)
    }

    /// How often the service executed.
    pub(super) fn executions(&self) -> Executions {
        if !self.task.counts_effects {
            return Executions::NotCounted;
        }
        if let Some(why) = &self.task.effects_drift {
            return Executions::Unknown(why.clone());
        }
        let mut counts = self.results.iter().filter_map(|result| result.effects.as_ref());
        let (Some(before), Some(after)) = (counts.next(), counts.next_back()) else {
            return Executions::Unknown(NOT_COUNTED.to_owned());
        };
        match (before, after) {
            (Ok(before), Ok(after)) => match after.checked_sub(*before) {
                Some(times) => Executions::Times(times),
                None => Executions::Unknown("the number of effects became smaller".to_owned()),
            },
            (Err(why), _) | (_, Err(why)) => Executions::Unknown(why.clone()),
        }
    }

    /// Passes unless the service certainly executed more than once.
    ///
    /// # Errors
    /// The failure. `said` is what came back.
    pub(super) fn not_twice(&self, said: &str) -> Judged<()> {
        match self.executions() {
            Executions::Times(count @ 2..) => {
                fail_by_number(format!("executed {count} times; {said}"))
            }
            _ => Ok(()),
        }
    }

    /// True if the service executed once, and false if this was not counted.
    ///
    /// # Errors
    /// The judgement if it did not, or this is not known. `said` is what came back.
    pub(super) fn once(&self, said: &str) -> Judged<bool> {
        self.not_twice(said)?;
        match self.executions() {
            Executions::Times(0) => {
                inconclusive(format!("the number of effects did not change; {said}"))
            }
            Executions::Times(_) => Ok(true),
            Executions::NotCounted => Ok(false),
            Executions::Unknown(why) => inconclusive(format!("{why}; {said}")),
        }
    }

    /// Passes if a rejection shows something: a retry of the same request succeeds.
    ///
    /// # Errors
    /// The judgement if it does not.
    pub(super) fn rejection_counts(&self, said: &str) -> Judged<()> {
        if self.task.baseline.retries_succeed {
            return Ok(());
        }
        inconclusive(format!("{said}, but a retry of the same request does not succeed either"))
    }
}

/// The answer of an exchange.
///
/// # Errors
/// The judgement if there is none.
pub(super) fn answer_of(exchange: Option<&ProbeExchange>) -> Judged<&ProbeAnswer> {
    match exchange.map(|exchange| &exchange.outcome) {
        Some(ProbeOutcome::Answered(answer)) => Ok(answer),
        Some(ProbeOutcome::Unanswered(why)) => {
            inconclusive(format!("a request got no answer: {why}"))
        }
        Some(ProbeOutcome::Abandoned) | None => inconclusive("the request was not sent"),
    }
}

/// The answer, if it is a success. `what` is the request.
///
/// # Errors
/// The judgement if it is not.
pub(super) fn success<'a>(answer: &'a ProbeAnswer, what: &str) -> Judged<&'a ProbeAnswer> {
    match answer.is_success() {
        true => Ok(answer),
        false => inconclusive(format!("{what} was answered {}", answer.status)),
    }
}

/// Status codes in words: `409 or 422`.
pub(super) fn statuses(statuses: &[u16]) -> String {
    statuses.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ")
}
