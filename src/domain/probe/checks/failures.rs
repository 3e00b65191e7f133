//! Clients that go away, and requests that fail.

use std::time::Duration;

use super::judging::{
    Executions, Results, answer_of, compare, executions, last, settled, success_of, times,
};
use crate::domain::probe::message::{ProbeExchange, ProbeOutcome};
use crate::domain::probe::probe_check::{
    ProbeCheck, ProbeGroup, ProbeJudgement, ProbeStep, ProbeStepResult, ProbeVerdict,
};
use crate::domain::probe::task::ProbeTask;

pub(in crate::domain::probe) const DISCONNECT: ProbeCheck = ProbeCheck {
    id: "disconnect-retry",
    group: ProbeGroup::Failures,
    title: "a client that disconnects before the answer and retries executes once",
    steps: disconnect,
    judge: judge_disconnect,
};

pub(in crate::domain::probe) const TIMEOUT_BEFORE: ProbeCheck = ProbeCheck {
    id: "timeout-retry-early",
    group: ProbeGroup::Failures,
    title: "a retry on a second connection, before the first answer, executes nothing",
    steps: retry_before,
    judge: judge_before,
};

pub(in crate::domain::probe) const TIMEOUT_AFTER: ProbeCheck = ProbeCheck {
    id: "timeout-retry-late",
    group: ProbeGroup::Failures,
    title: "a retry after an answer that the client did not read executes nothing",
    steps: retry_after,
    judge: judge_given_up,
};

pub(in crate::domain::probe) const SERVER_ERROR: ProbeCheck = ProbeCheck {
    id: "error-then-retry",
    group: ProbeGroup::Failures,
    title: "after a server error, a retry executes nothing a second time, and the error is not \
            stored without expiry",
    steps: error_then_retry,
    judge: judge_error,
};

fn disconnect(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    give_up_after(task, task.part_of_request())
}

fn retry_after(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    // Long enough for the handler to end.
    give_up_after(
        task,
        Duration::from_micros(task.baseline.answer_us * 2) + Duration::from_millis(50),
    )
}

fn give_up_after(task: &ProbeTask, time: Duration) -> Result<Vec<ProbeStep>, String> {
    if !task.counts_effects {
        return Err("it needs --effects".to_owned());
    }
    let request = task.request(&task.new_key())?;
    Ok(vec![
        ProbeStep::CountEffects(request.clone()),
        ProbeStep::Abandon(request.clone(), time),
        ProbeStep::SendUntilFree(request.clone()),
        ProbeStep::CountEffects(request),
    ])
}

fn retry_before(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let request = task.request(&task.new_key())?;
    Ok(vec![
        ProbeStep::CountEffects(request.clone()),
        ProbeStep::Overlap(request.clone(), request.clone(), task.part_of_request()),
        ProbeStep::SendUntilFree(request.clone()),
        ProbeStep::CountEffects(request),
    ])
}

fn error_then_retry(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let Some(request) = task.failing_request(&task.new_key())? else {
        return Err("it needs --failing-data".to_owned());
    };
    Ok(vec![
        ProbeStep::CountEffects(request.clone()),
        ProbeStep::Send(request.clone()),
        ProbeStep::Send(request.clone()),
        ProbeStep::CountEffects(request),
    ])
}

fn judge_disconnect(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    let judged = judge_given_up(task, results);
    let was_answered =
        results[1].exchanges.first().is_some_and(|exchange| exchange.answered_us.is_some());
    if judged.verdict == ProbeVerdict::Pass && was_answered {
        let shown = judged.shown;
        return ProbeJudgement::inconclusive("the service answered before idemctl disconnected")
            .showing(&shown);
    }
    judged
}

fn judge_given_up(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    let (place, retry) = last(&results[2]);
    let shown = [(1, 0), (2, place)];
    let given_up = results[1].exchanges.first();
    let was_sent = given_up.is_some_and(|exchange| exchange.outcome == ProbeOutcome::Abandoned);
    let judged = match executions(task, &results[0], &results[3]) {
        Executions::Times(count @ 2..) => ProbeJudgement::fail(times(count)).by_number(),
        Executions::Times(count) => settled((|| {
            if !was_sent {
                let why = given_up.map(ProbeExchange::in_words).unwrap_or_default();
                return Ok(ProbeJudgement::inconclusive(format!("the first request got {why}")));
            }
            let answer = answer_of(retry)?;
            if task.is_conflict(answer) {
                return Ok(ProbeJudgement::inconclusive(format!(
                    "the retry got {} until the time limit, so the lock of the first request is \
                     still held",
                    answer.status
                )));
            }
            if !answer.is_success() {
                return Ok(ProbeJudgement::inconclusive(format!(
                    "the retry got {} ({})",
                    answer.status,
                    times(count)
                )));
            }
            match count {
                0 => Ok(ProbeJudgement::inconclusive("the number of effects did not change")),
                _ => Ok(ProbeJudgement::pass(format!(
                    "executed once, and the retry got {}",
                    answer.status
                ))),
            }
        })()),
        Executions::NotCounted => ProbeJudgement::not_applicable("it needs --effects"),
        Executions::Unknown(why) => ProbeJudgement::inconclusive(why),
    };
    judged.showing(&shown)
}

fn judge_before(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    if let Executions::Times(count @ 2..) = executions(task, &results[0], &results[3]) {
        return ProbeJudgement::fail(times(count)).by_number().showing(&[(1, 0), (1, 1)]);
    }
    settled(before_judged(task, results))
}

fn before_judged(
    task: &ProbeTask,
    results: &[ProbeStepResult],
) -> Result<ProbeJudgement, ProbeJudgement> {
    let overlap = &results[1].exchanges;
    let first = success_of(overlap.first(), "the first request")?;
    let early = answer_of(overlap.get(1))?;
    let (place, late) = last(&results[2]);
    for (shown, answer) in
        [((1, 1), Some(early)), ((2, place), late.and_then(|late| late.answer()))]
    {
        let Some(answer) = answer else { continue };
        if answer.is_success()
            && let Results::Different = compare(task, first, answer)
        {
            return Ok(
                ProbeJudgement::fail("the retry got another result").showing(&[(1, 0), shown])
            );
        }
    }
    let shown = [(1, 0), (1, 1)];
    let was_early = match (overlap[0].answered_us, overlap[1].sent_us) {
        (Some(answered), Some(sent)) => sent < answered,
        _ => false,
    };
    if !was_early {
        return Ok(ProbeJudgement::inconclusive(
            "the service answered before the retry was sent, so nothing overlapped",
        )
        .showing(&shown));
    }
    let late = success_of(late, "the last retry")?;
    if let Results::Unknown(why) = compare(task, first, late)
        && !task.counts_effects
    {
        return Ok(ProbeJudgement::inconclusive(why).showing(&[(1, 0), (2, place)]));
    }
    if !early.is_success() && !task.is_conflict(early) {
        return Ok(
            ProbeJudgement::inconclusive(format!("the retry got {}", early.status)).showing(&shown)
        );
    }
    let message = match executions(task, &results[0], &results[3]) {
        Executions::Times(1) => format!("executed once; the early retry got {}", early.status),
        Executions::Times(_) => {
            return Ok(ProbeJudgement::inconclusive("the number of effects did not change")
                .showing(&shown));
        }
        Executions::Unknown(why) => {
            return Ok(ProbeJudgement::inconclusive(why).showing(&shown));
        }
        Executions::NotCounted => {
            format!("the answers agree; the early retry got {}", early.status)
        }
    };
    Ok(ProbeJudgement::pass(message).showing(&shown))
}

fn judge_error(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        let failed = answer_of(results[1].exchanges.first())?;
        if failed.status < 500 {
            return Ok(ProbeJudgement::not_applicable(format!(
                "the failing payload got {}, which is not a server error",
                failed.status
            )));
        }
        let retry = answer_of(results[2].exchanges.first())?;
        let shown = [(1, 0), (2, 0)];
        if let Executions::Times(count @ 2..) = executions(task, &results[0], &results[3]) {
            let message = format!("{} (the retry got {})", times(count), retry.status);
            return Ok(ProbeJudgement::fail(message).by_number().showing(&shown));
        }
        let is_same = retry.status == failed.status && retry.body.has_same_bytes(&failed.body);
        if is_same
            && let Some(Ok(record)) = &results[2].record
            && record.never_expires
        {
            let message =
                format!("{} is stored without expiry, so no retry succeeds", failed.status);
            return Ok(ProbeJudgement::fail(message).showing(&shown));
        }
        let what = if task.is_conflict(retry) {
            "was rejected as in progress: the failed request still holds the lock"
        } else if is_same {
            "got the same error again"
        } else {
            "got another answer"
        };
        let message = format!("after {}, the retry {what} ({})", failed.status, retry.status);
        Ok(ProbeJudgement::reported(message).showing(&shown))
    })())
}
