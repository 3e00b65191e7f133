//! What a service does if its record is lost or replaced.

use super::judging::{ANOTHER_RESULT, answer_of, compare, fail, inconclusive, pass, showing};
use crate::domain::probe::probe_check::ProbeAction::{
    Count, Fault, FaultDuring, Send, SendUntilFree, TakeFaultBack,
};
use crate::domain::probe::probe_check::{Judged, MadeSteps, RecordFault, Steps};
use crate::domain::probe::task::ProbeTask;

/// A quick handler ends before the lock can be changed.
const MIN_HANDLER_US: u64 = 20_000;

/// The first request loses its lock, a second one is sent meanwhile, and a third one afterwards.
pub(super) fn lose_lock(task: &ProbeTask) -> Steps {
    // The rest of the handler's time is for the change and the second request.
    let early = task.part_of_request() / 2;
    task.steps(&[Count, FaultDuring(RecordFault::ExpireLock, early), SendUntilFree, Count])
}

pub(super) fn replace_result(task: &ProbeTask) -> Steps {
    task.steps(&[Count, Send, Fault(RecordFault::ReplaceResult), Send, TakeFaultBack, Count])
}

pub(super) fn expire_result(task: &ProbeTask) -> Steps {
    task.steps(&[Count, Send, Fault(RecordFault::ExpireResult), SendUntilFree, Count])
}

/// Passes if the fault was made in a step.
///
/// # Errors
/// The judgement if it was not.
fn check_made(made: &MadeSteps<'_>, step: usize) -> Judged<()> {
    match &made.results[step].fault {
        Some(Ok(())) => Ok(()),
        Some(Err(why)) => inconclusive(format!("idemctl could not change the record: {why}")),
        None => inconclusive("idemctl did not change the record"),
    }
}

pub(super) fn lost_lock(made: &MadeSteps<'_>) -> Judged {
    let during = made.exchanges(1);
    let first = answer_of(during.first())?;
    let is_quick = made.task.baseline.answer_us < MIN_HANDLER_US;
    if is_quick && check_made(made, 1).is_err() {
        return inconclusive("the handler is too quick for a change of its lock while it runs");
    }
    check_made(made, 1)?;
    let retry = answer_of(during.get(1))?;
    let late = made.answer(2)?;
    let said = format!("the retry got {}, and the first request {}", retry.status, first.status);
    let is_counted = made.once(&said)?;
    let last = made.exchanges(2).len() - 1;
    for (answer, place) in [(retry, (1, 1)), (late, (2, last))] {
        if first.is_success()
            && answer.is_success()
            && compare(made.task, first, answer) == Ok(false)
        {
            let judged = fail(format!("two requests got different results; {said}"));
            return showing(judged, &[(1, 0), place]);
        }
    }
    if !during[1].was_sent_before_answer_of(&during[0]) {
        return inconclusive("the first request was answered before the retry was sent");
    }
    if retry.is_overload() || !first.is_success() {
        return inconclusive(said);
    }
    if is_counted {
        return pass(format!("executed once; {said}"));
    }
    // Without a number, only a rejection or the same result shows that the retry did not execute.
    let is_same = retry.is_success() && compare(made.task, first, retry) == Ok(true);
    if is_same || made.task.is_conflict(retry) { pass(said) } else { inconclusive(said) }
}

pub(super) fn foreign_value(made: &MadeSteps<'_>) -> Judged {
    let first = made.success(1, "the first request")?;
    check_made(made, 2)?;
    let was_kept = made.results[4].was_kept.clone();
    let was_kept = was_kept.unwrap_or_else(|| Err("the value was not read".to_owned()));
    let left = match &was_kept {
        Ok(true) => "kept the value",
        Ok(false) => "overwrote or removed the value",
        Err(why) => &format!("left a value that idemctl cannot read: {why}"),
    };
    let said =
        format!("the retry that found the unrecognised value got {} and {left}", made.words(3));
    made.not_twice(&said)?;
    if was_kept == Ok(false) {
        return fail(said);
    }
    let Ok(retry) = made.answer(3) else { return inconclusive(said) };
    let compared = compare(made.task, first, retry);
    if retry.is_success() && compared == Ok(false) {
        return fail(format!("{ANOTHER_RESULT}; {said}"));
    }
    if was_kept.is_err() || retry.is_overload() {
        return inconclusive(said);
    }
    if made.once(&said)? {
        return pass(format!("executed once; {said}"));
    }
    let is_same = retry.is_success() && compared == Ok(true);
    if is_same || matches!(retry.status, 400..=499) { pass(said) } else { inconclusive(said) }
}

pub(super) fn expired_result(made: &MadeSteps<'_>) -> Judged {
    let first = made.success(1, "the first request")?;
    check_made(made, 2)?;
    let said = format!("the retry got {}", made.words(3));
    made.not_twice(&said)?;
    let retry = made.retry(3)?;
    if made.once(&said)? {
        return pass(format!("executed once; {said}"));
    }
    match compare(made.task, first, retry) {
        _ if !retry.is_success() => inconclusive(said),
        Ok(true) => pass("the retry got the first result"),
        Ok(false) => fail(ANOTHER_RESULT),
        Err(why) => inconclusive(why),
    }
}
