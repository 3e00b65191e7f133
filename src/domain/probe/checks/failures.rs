//! Clients that go away, and requests that fail.

use std::time::Duration;

use super::judging::{
    Executions, Results, answer_of, compare, executions, last, success_of, times,
};
use crate::domain::probe::message::ProbeOutcome;
use crate::domain::probe::probe_check::{
    Judged, ProbeCheck, ProbeGroup, ProbeJudgement, ProbeStep, ProbeStepResult, ProbeVerdict,
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

fn judge_disconnect(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let judged = judge_given_up(task, results)?;
    let was_answered =
        results[1].exchanges.first().is_some_and(|exchange| exchange.answered_us.is_some());
    if judged.verdict == ProbeVerdict::Pass && was_answered {
        let message = "the service answered before idemctl disconnected";
        return Ok(ProbeJudgement::inconclusive(message).showing(&judged.shown));
    }
    Ok(judged)
}

fn judge_given_up(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let (place, retry) = last(&results[2]);
    let shown = [(1, 0), (2, place)];
    let count = match executions(task, &results[0], &results[3]) {
        Executions::Times(count @ 2..) => {
            return Ok(ProbeJudgement::fail(times(count)).by_number().showing(&shown));
        }
        Executions::Times(count) => count,
        Executions::NotCounted => return Ok(ProbeJudgement::not_applicable("it needs --effects")),
        Executions::Unknown(why) => return Ok(ProbeJudgement::inconclusive(why).showing(&shown)),
    };
    if let Some(given_up) = results[1].exchanges.first()
        && given_up.outcome != ProbeOutcome::Abandoned
    {
        let message = format!("the first request got {}", given_up.in_words());
        return Ok(ProbeJudgement::inconclusive(message).showing(&shown));
    }
    let answer = answer_of(retry).map_err(|judged| judged.showing(&shown))?;
    let status = answer.status;
    let judged = if task.is_conflict(answer) {
        ProbeJudgement::inconclusive(format!(
            "the retry got {status} until the time limit, so the lock of the first request is \
             still held"
        ))
    } else if !answer.is_success() {
        ProbeJudgement::inconclusive(format!("the retry got {status} ({})", times(count)))
    } else if count == 0 {
        ProbeJudgement::inconclusive("the number of effects did not change")
    } else {
        ProbeJudgement::pass(format!("executed once, and the retry got {status}"))
    };
    Ok(judged.showing(&shown))
}

fn judge_before(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let executed = executions(task, &results[0], &results[3]);
    let shown = [(1, 0), (1, 1)];
    if let Executions::Times(count @ 2..) = executed {
        return Ok(ProbeJudgement::fail(times(count)).by_number().showing(&shown));
    }
    let overlap = &results[1].exchanges;
    let first = success_of(overlap.first(), "the first request")?;
    let early = answer_of(overlap.get(1))?;
    let (place, late) = last(&results[2]);
    for (answer, of_answer) in
        [(Some(early), (1, 1)), (late.and_then(|late| late.answer()), (2, place))]
    {
        if let Some(answer) = answer
            && answer.is_success()
            && let Results::Different = compare(task, first, answer)
        {
            let message = "the retry got another result";
            return Ok(ProbeJudgement::fail(message).showing(&[(1, 0), of_answer]));
        }
    }
    if !overlap[1].was_sent_before_answer_of(&overlap[0]) {
        let message = "the service answered before the retry was sent, so nothing overlapped";
        return Ok(ProbeJudgement::inconclusive(message).showing(&shown));
    }
    let late = success_of(late, "the last retry")?;
    if let Results::Unknown(why) = compare(task, first, late)
        && !task.counts_effects
    {
        return Ok(ProbeJudgement::inconclusive(why).showing(&[(1, 0), (2, place)]));
    }
    let status = early.status;
    let judged = match executed {
        _ if !early.is_success() && !task.is_conflict(early) => {
            ProbeJudgement::inconclusive(format!("the retry got {status}"))
        }
        Executions::Times(1) => {
            ProbeJudgement::pass(format!("executed once; the early retry got {status}"))
        }
        Executions::Times(_) => {
            ProbeJudgement::inconclusive("the number of effects did not change")
        }
        Executions::Unknown(why) => ProbeJudgement::inconclusive(why),
        Executions::NotCounted => {
            ProbeJudgement::pass(format!("the answers agree; the early retry got {status}"))
        }
    };
    Ok(judged.showing(&shown))
}

fn judge_error(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
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
        let message = format!("{} is stored without expiry, so no retry succeeds", failed.status);
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
}
