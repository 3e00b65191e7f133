//! Clients that go away, and requests that fail.

use std::time::Duration;

use super::judging::{
    ANOTHER_RESULT, answer_of, compare, fail, inconclusive, not_applicable, pass, reported,
    showing, success,
};
use crate::domain::probe::message::ProbeOutcome;
use crate::domain::probe::probe_check::ProbeAction::{
    Abandon, Count, Overlap, Send, SendUntilFree,
};
use crate::domain::probe::probe_check::{Judged, MadeSteps, Steps};
use crate::domain::probe::task::ProbeTask;

pub(super) fn disconnect(task: &ProbeTask) -> Steps {
    give_up_after(task, task.part_of_request())
}

pub(super) fn retry_after(task: &ProbeTask) -> Steps {
    // Long enough for the handler to end.
    let time = Duration::from_micros(task.baseline.answer_us * 2) + Duration::from_millis(50);
    give_up_after(task, time)
}

fn give_up_after(task: &ProbeTask, time: Duration) -> Steps {
    task.steps(&[Count, Abandon(time), SendUntilFree, Count])
}

pub(super) fn retry_before(task: &ProbeTask) -> Steps {
    task.steps(&[Count, Overlap(task.part_of_request()), SendUntilFree, Count])
}

pub(super) fn error_then_retry(task: &ProbeTask) -> Steps {
    let Some(request) = task.failing_request()? else {
        return Err("it needs --failing-data".to_owned());
    };
    Ok(request.steps(&[Count, Send, Send, Count]))
}

pub(super) fn disconnected(made: &MadeSteps<'_>) -> Judged {
    let judged = given_up(made)?;
    if made.exchanges(1).iter().any(|exchange| exchange.answered_us.is_some()) {
        return inconclusive("the service answered before idemctl disconnected");
    }
    Ok(judged)
}

pub(super) fn given_up(made: &MadeSteps<'_>) -> Judged {
    let said = format!("the retry got {}", made.words(2));
    made.not_twice(&said)?;
    if let Some(given_up) = made.exchanges(1).first()
        && given_up.outcome != ProbeOutcome::Abandoned
    {
        return inconclusive(format!("the first request got {}", given_up.in_words()));
    }
    if !made.answer(2)?.is_success() {
        return inconclusive(said);
    }
    made.once(&said)?;
    pass(format!("executed once; {said}"))
}

pub(super) fn early(made: &MadeSteps<'_>) -> Judged {
    let overlap = made.exchanges(1);
    let said = format!("the early retry got {}, and the last one {}", made.words(1), made.words(2));
    made.not_twice(&said)?;
    let first = success(answer_of(overlap.first())?, "the first request")?;
    let early = made.answer(1)?;
    let last = made.exchanges(2).len().saturating_sub(1);
    let late = made.answer(2);
    for (answer, place) in [(Ok(early), (1, 1)), (late.clone(), (2, last))] {
        if let Ok(answer) = answer
            && answer.is_success()
            && compare(made.task, first, answer) == Ok(false)
        {
            return showing(fail(ANOTHER_RESULT), &[(1, 0), place]);
        }
    }
    if !overlap[1].was_sent_before_answer_of(&overlap[0]) {
        return inconclusive("the service answered before the retry was sent");
    }
    let late = success(late?, "the last retry")?;
    if !early.is_success() && !made.task.is_conflict(early) {
        return inconclusive(said);
    }
    if made.once(&said)? {
        return pass(format!("executed once; {said}"));
    }
    match compare(made.task, first, late) {
        Err(why) => inconclusive(why),
        Ok(_) => pass(said),
    }
}

pub(super) fn error(made: &MadeSteps<'_>) -> Judged {
    let failed = made.answer(1)?;
    if failed.status < 400 {
        return not_applicable(format!("the failing payload got {}", failed.status));
    }
    let retry = made.answer(2)?;
    let said = format!("after {}, the retry got {}", failed.status, retry.status);
    if failed.status < 500 && retry.status >= 500 {
        return fail(said);
    }
    made.not_twice(&said)?;
    let is_same = retry.status == failed.status && retry.body.has_same_bytes(&failed.body);
    if is_same
        && let Some(Ok(record)) = &made.results[2].record
        && record.never_expires
    {
        return fail(format!("{} is stored without expiry", failed.status));
    }
    reported(said)
}
