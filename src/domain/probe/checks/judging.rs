//! What several judgements share.

use crate::domain::probe::message::{ProbeAnswer, ProbeExchange, ProbeOutcome};
use crate::domain::probe::probe_check::{ProbeJudgement, ProbeStepResult};
use crate::domain::probe::task::ProbeTask;

/// How often the service executed between two counts.
pub(super) enum Executions {
    Times(u64),
    /// No oracle was given.
    NotCounted,
    /// The oracle proves nothing.
    Unknown(String),
}

/// How two successes relate.
pub(super) enum Results {
    Same,
    Different,
    /// They cannot be told apart, for this reason.
    Unknown(String),
}

pub(super) fn executions(
    task: &ProbeTask,
    before: &ProbeStepResult,
    after: &ProbeStepResult,
) -> Executions {
    if !task.counts_effects {
        return Executions::NotCounted;
    }
    if let Some(why) = &task.effects_drift {
        return Executions::Unknown(why.clone());
    }
    match (&before.effects, &after.effects) {
        (Some(Ok(before)), Some(Ok(after))) => match after.checked_sub(*before) {
            Some(times) => Executions::Times(times),
            None => Executions::Unknown("the number of effects became smaller".to_owned()),
        },
        (Some(Err(why)), _) | (_, Some(Err(why))) => Executions::Unknown(why.clone()),
        _ => Executions::NotCounted,
    }
}

/// Compares two successes of one key.
pub(super) fn compare(task: &ProbeTask, one: &ProbeAnswer, other: &ProbeAnswer) -> Results {
    if one.is_other_result(other) {
        // A result that changes with each answer, such as one with a time or a signed URL, shows no
        // execution.
        return match task.baseline.replays_equal {
            true => Results::Different,
            false => Results::Unknown(
                "their results differ, but so do those of a request and its retry".to_owned(),
            ),
        };
    }
    if !one.is_whole || !other.is_whole {
        return Results::Unknown("a body is too long to compare".to_owned());
    }
    match task.baseline.tells_results_apart {
        true => Results::Same,
        false => {
            Results::Unknown("the answers agree, but so do those of two different keys".to_owned())
        }
    }
}

/// The answer of an exchange.
///
/// # Errors
/// The judgement if there is none.
pub(super) fn answer_of(exchange: Option<&ProbeExchange>) -> Result<&ProbeAnswer, ProbeJudgement> {
    let Some(exchange) = exchange else {
        return Err(ProbeJudgement::inconclusive("the request was not sent"));
    };
    match &exchange.outcome {
        ProbeOutcome::Answered(answer) => Ok(answer),
        ProbeOutcome::Unanswered(why) => {
            Err(ProbeJudgement::inconclusive(format!("a request got no answer: {why}")))
        }
        ProbeOutcome::Abandoned => Err(ProbeJudgement::inconclusive("the request was given up")),
    }
}

/// The success with which an exchange was answered.
///
/// # Errors
/// The judgement if the service gave no success.
pub(super) fn success_of<'a>(
    exchange: Option<&'a ProbeExchange>,
    what: &str,
) -> Result<&'a ProbeAnswer, ProbeJudgement> {
    let answer = answer_of(exchange)?;
    if answer.is_success() {
        return Ok(answer);
    }
    Err(ProbeJudgement::inconclusive(format!("{what} was answered {}", answer.status)))
}

/// The last exchange of a step, with its place.
pub(super) fn last(result: &ProbeStepResult) -> (usize, Option<&ProbeExchange>) {
    let place = result.exchanges.len().saturating_sub(1);
    (place, result.exchanges.last())
}

/// A number of executions in words.
pub(super) fn times(count: u64) -> String {
    match count {
        1 => "executed once".to_owned(),
        count => format!("executed {count} times"),
    }
}

/// Status codes in words: `409 or 422`.
pub(super) fn statuses(statuses: &[u16]) -> String {
    statuses.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ")
}
