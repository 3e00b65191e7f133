//! What a service does if its record is lost or replaced.

use super::judging::{
    Executions, Results, answer_of, compare, executions, last, success_of, times,
};
use crate::domain::probe::message::{ProbeExchange, ProbeOutcome};
use crate::domain::probe::probe_check::{
    Judged, ProbeCheck, ProbeGroup, ProbeJudgement, ProbeStep, ProbeStepResult, RecordFault,
};
use crate::domain::probe::task::ProbeTask;

pub(in crate::domain::probe) const LOCK_EXPIRES: ProbeCheck = ProbeCheck {
    id: "fault-lock-expires",
    group: ProbeGroup::Fault,
    title: "a retry after the lock expired while the handler runs executes nothing",
    steps: lose_lock,
    judge: judge_lost_lock,
};

pub(in crate::domain::probe) const FOREIGN_VALUE: ProbeCheck = ProbeCheck {
    id: "fault-foreign-value",
    group: ProbeGroup::Fault,
    title: "a retry that finds an unrecognised value in place of its result executes nothing and \
            keeps the value",
    steps: replace_result,
    judge: judge_foreign_value,
};

pub(in crate::domain::probe) const RESULT_EXPIRES: ProbeCheck = ProbeCheck {
    id: "fault-result-expires",
    group: ProbeGroup::Fault,
    title: "a retry after the stored result expired executes nothing",
    steps: expire_result,
    judge: judge_expired_result,
};

/// A quick handler ends before the lock can be changed.
const MIN_HANDLER_US: u64 = 20_000;

fn needs_faults(task: &ProbeTask) -> Result<(), String> {
    match task.makes_faults {
        true => Ok(()),
        false => Err("it needs --faults".to_owned()),
    }
}

/// The first request loses its lock, a second one is sent meanwhile, and a third one afterwards.
fn lose_lock(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    needs_faults(task)?;
    let request = task.request(&task.new_key())?;
    // The rest of the handler's time is for the change and the second request.
    let early = task.part_of_request() / 2;
    Ok(vec![
        ProbeStep::CountEffects(request.clone()),
        ProbeStep::FaultDuring(request.clone(), RecordFault::ExpireLock, early),
        ProbeStep::SendUntilFree(request.clone()),
        ProbeStep::CountEffects(request),
    ])
}

fn replace_result(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    needs_faults(task)?;
    let request = task.request(&task.new_key())?;
    Ok(vec![
        ProbeStep::CountEffects(request.clone()),
        ProbeStep::Send(request.clone()),
        ProbeStep::Fault(request.clone(), RecordFault::ReplaceResult),
        ProbeStep::Send(request.clone()),
        ProbeStep::TakeFaultBack(request.clone()),
        ProbeStep::CountEffects(request),
    ])
}

fn expire_result(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    needs_faults(task)?;
    let request = task.request(&task.new_key())?;
    Ok(vec![
        ProbeStep::CountEffects(request.clone()),
        ProbeStep::Send(request.clone()),
        ProbeStep::Fault(request.clone(), RecordFault::ExpireResult),
        ProbeStep::SendUntilFree(request.clone()),
        ProbeStep::CountEffects(request),
    ])
}

/// Passes if the fault was made.
///
/// # Errors
/// The judgement if it was not.
fn check_made(result: &ProbeStepResult) -> Result<(), ProbeJudgement> {
    match &result.fault {
        Some(Ok(())) => Ok(()),
        Some(Err(why)) => {
            Err(ProbeJudgement::inconclusive(format!("idemctl could not change the record: {why}")))
        }
        None => Err(ProbeJudgement::inconclusive("idemctl did not change the record")),
    }
}

fn judge_lost_lock(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let during = &results[1].exchanges;
    let first = answer_of(during.first())?;
    if let Err(judged) = check_made(&results[1]) {
        let is_quick = task.baseline.answer_us < MIN_HANDLER_US;
        return Err(match is_quick {
            true => ProbeJudgement::inconclusive(
                "the handler is too quick for a change of its lock while it runs",
            ),
            false => judged,
        });
    }
    let retry = answer_of(during.get(1))?;
    let (place, late) = last(&results[2]);
    let late = answer_of(late)?;
    let shown = [(1, 0), (1, 1)];
    let said = format!("the retry got {}, and the first request {}", retry.status, first.status);
    match executions(task, &results[0], &results[3]) {
        Executions::Times(count @ 2..) => {
            let message = format!("{}; {said}", times(count));
            return Ok(ProbeJudgement::fail(message).by_number().showing(&shown));
        }
        Executions::Times(0) => {
            let message = format!("the number of effects did not change; {said}");
            return Ok(ProbeJudgement::inconclusive(message).showing(&shown));
        }
        Executions::Unknown(why) => {
            return Ok(ProbeJudgement::inconclusive(format!("{why}; {said}")).showing(&shown));
        }
        Executions::Times(_) | Executions::NotCounted => {}
    }
    for (answer, shown) in [(retry, (1, 1)), (late, (2, place))] {
        if first.is_success()
            && answer.is_success()
            && let Results::Different = compare(task, first, answer)
        {
            let message = format!("two requests got different results; {said}");
            return Ok(ProbeJudgement::fail(message).showing(&[(1, 0), shown]));
        }
    }
    if !during[1].was_sent_before_answer_of(&during[0]) {
        let message = "the first request was answered before the retry was sent";
        return Ok(ProbeJudgement::inconclusive(message).showing(&shown));
    }
    if retry.is_overload() || !first.is_success() {
        return Ok(ProbeJudgement::inconclusive(said).showing(&shown));
    }
    if task.counts_effects {
        return Ok(ProbeJudgement::pass(format!("executed once; {said}")).showing(&shown));
    }
    // Without a number, only a rejection or the same result shows that the retry did not execute.
    let is_same = retry.is_success() && matches!(compare(task, first, retry), Results::Same);
    let judged = match is_same || task.is_conflict(retry) {
        true => ProbeJudgement::pass(format!("the answers agree; {said}")),
        false => ProbeJudgement::inconclusive(said),
    };
    Ok(judged.showing(&shown))
}

fn judge_foreign_value(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let first = success_of(results[1].exchanges.first(), "the first request")?;
    check_made(&results[2])?;
    let retry = results[3].exchanges.first();
    let shown = [(1, 0), (3, 0)];
    let was_kept = match &results[4].was_kept {
        Some(Ok(was_kept)) => Ok(*was_kept),
        Some(Err(why)) => Err(why.clone()),
        None => Err("the value was not read".to_owned()),
    };
    let left = match &was_kept {
        Ok(true) => "kept the value",
        Ok(false) => "overwrote or removed the value",
        Err(_) => "it is unknown whether the value was kept",
    };
    let said = match retry.map(|retry| &retry.outcome) {
        Some(ProbeOutcome::Answered(answer)) => {
            format!("the retry got {} and {left}", answer.status)
        }
        Some(ProbeOutcome::Unanswered(why)) => {
            format!("the retry that found the unrecognised value got no answer ({why}) and {left}")
        }
        _ => "the retry was not sent".to_owned(),
    };
    let counted = executions(task, &results[0], &results[5]);
    if let Executions::Times(count @ 2..) = counted {
        let message = format!("{}; {said}", times(count));
        return Ok(ProbeJudgement::fail(message).by_number().showing(&shown));
    }
    if was_kept == Ok(false) {
        return Ok(ProbeJudgement::fail(said).showing(&shown));
    }
    let Some(retry) = retry.and_then(ProbeExchange::answer) else {
        return Ok(ProbeJudgement::inconclusive(said).showing(&shown));
    };
    if retry.is_success()
        && let Results::Different = compare(task, first, retry)
    {
        let message = format!("the retry got another result; {said}");
        return Ok(ProbeJudgement::fail(message).showing(&shown));
    }
    let judged = match (counted, was_kept) {
        (_, Err(why)) => ProbeJudgement::inconclusive(format!("{said}: {why}")),
        (Executions::Unknown(why), _) => ProbeJudgement::inconclusive(format!("{why}; {said}")),
        (Executions::Times(0), _) => {
            ProbeJudgement::inconclusive("the number of effects did not change")
        }
        _ if retry.is_overload() => ProbeJudgement::inconclusive(said),
        (Executions::Times(_), _) => ProbeJudgement::pass(format!("executed once; {said}")),
        (Executions::NotCounted, _) => {
            let is_same =
                retry.is_success() && matches!(compare(task, first, retry), Results::Same);
            match is_same || matches!(retry.status, 400..=499) {
                true => ProbeJudgement::pass(said),
                false => ProbeJudgement::inconclusive(format!(
                    "{said}; without --effects, idemctl does not know whether it executed"
                )),
            }
        }
    };
    Ok(judged.showing(&shown))
}

fn judge_expired_result(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let first = success_of(results[1].exchanges.first(), "the first request")?;
    check_made(&results[2])?;
    let (place, retry) = last(&results[3]);
    let retry = answer_of(retry)?;
    let shown = [(1, 0), (3, place)];
    let said = format!("the retry got {}", retry.status);
    let judged = match executions(task, &results[0], &results[4]) {
        Executions::Times(count @ 2..) => {
            ProbeJudgement::fail(format!("{}; {said}", times(count))).by_number()
        }
        Executions::Times(0) => {
            ProbeJudgement::inconclusive("the number of effects did not change")
        }
        Executions::Unknown(why) => ProbeJudgement::inconclusive(format!("{why}; {said}")),
        Executions::Times(_) if retry.is_overload() => ProbeJudgement::inconclusive(said),
        Executions::Times(_) => ProbeJudgement::pass(format!("executed once; {said}")),
        Executions::NotCounted if retry.is_success() => match compare(task, first, retry) {
            Results::Different => ProbeJudgement::fail("the retry got another result".to_owned()),
            Results::Same => ProbeJudgement::pass("the retry got the first result".to_owned()),
            Results::Unknown(why) => ProbeJudgement::inconclusive(why),
        },
        Executions::NotCounted => ProbeJudgement::inconclusive(format!(
            "{said}; without --effects, idemctl does not know whether it executed"
        )),
    };
    Ok(judged.showing(&shown))
}
