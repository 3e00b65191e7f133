//! A key that is used again for something else.

use super::judging::{
    Executions, Results, answer_of, compare, executions, last, statuses, success_of,
};
use crate::domain::probe::message::{ProbeAnswer, ProbeRequest};
use crate::domain::probe::payload::{members_of, with_other_member, with_path};
use crate::domain::probe::probe_check::{
    Judged, ProbeCheck, ProbeGroup, ProbeJudgement, ProbeStep, ProbeStepResult,
};
use crate::domain::probe::task::ProbeTask;

pub(in crate::domain::probe) const PAYLOAD: ProbeCheck = ProbeCheck {
    id: "mismatch-payload",
    group: ProbeGroup::Mismatch,
    title: "another payload with a used key is rejected with the status of the profile, if it names \
            one",
    steps: other_payload,
    judge: judge_payload,
};

pub(in crate::domain::probe) const MEMBERS: ProbeCheck = ProbeCheck {
    id: "mismatch-members",
    group: ProbeGroup::Mismatch,
    title: "another value of any one member of the body with a used key is rejected",
    steps: other_members,
    judge: judge_members,
};

pub(in crate::domain::probe) const PATH: ProbeCheck = ProbeCheck {
    id: "mismatch-path",
    group: ProbeGroup::Mismatch,
    title: "another path with a used key is rejected",
    steps: other_path,
    judge: judge_path,
};

pub(in crate::domain::probe) const CALLER: ProbeCheck = ProbeCheck {
    id: "mismatch-caller",
    group: ProbeGroup::Mismatch,
    title: "another caller with the same key does not get the first caller's result",
    steps: other_caller,
    judge: judge_caller,
};

/// A control with a key of its own, the first request, and the second one.
fn other_payload(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let key = task.new_key();
    Ok(vec![
        ProbeStep::Send(task.other_request(&task.new_key(), 1)?),
        ProbeStep::Send(task.request(&key)?),
        ProbeStep::SendUntilFree(task.other_request(&key, 1)?),
    ])
}

/// The first request, and for each member of its body a control with a key of its own, and the first
/// request with another value of this member.
fn other_members(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let request = task.request(&task.new_key())?;
    let mut steps = vec![ProbeStep::Send(request.clone())];
    for pointer in members_of(&request) {
        let own = task.request(&task.new_key())?;
        if let Some(control) = with_other_member(&own, &pointer)
            && let Some(other) = with_other_member(&request, &pointer)
        {
            steps.push(ProbeStep::Send(control));
            steps.push(ProbeStep::SendUntilFree(other));
        }
    }
    if steps.len() == 1 {
        return Err("the body is not JSON, or has no member to change".to_owned());
    }
    Ok(steps)
}

/// The first request, a control with a key of its own, and the first request at the other path. The
/// control is not the first, because a path that only looks something up must give it the same.
fn other_path(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    // A path that does not exist rejects everything, so idemctl does not choose one.
    let Some(path) = &task.other_path else { return Err("it needs --other-path".to_owned()) };
    let request = task.request(&task.new_key())?;
    let other = with_path(&request, path)?;
    let control = with_path(&task.request(&task.new_key())?, path)?;
    Ok(vec![ProbeStep::Send(request), ProbeStep::Send(control), ProbeStep::SendUntilFree(other)])
}

fn other_caller(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let Some((name, value)) = &task.other_caller else { return Err("it needs --as".to_owned()) };
    let as_other = |mut request: ProbeRequest| {
        request.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        request.headers.push((name.clone(), value.clone()));
        request
    };
    let request = task.request(&task.new_key())?;
    Ok(vec![
        ProbeStep::Send(request.clone()),
        ProbeStep::CountEffects(request.clone()),
        ProbeStep::SendUntilFree(as_other(request.clone())),
        ProbeStep::CountEffects(request),
        ProbeStep::Send(as_other(task.request(&task.new_key())?)),
    ])
}

fn judge_payload(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let first = success_of(results[1].exchanges.first(), "the first request")?;
    let (place, other) = last(&results[2]);
    let other = answer_of(other)?;
    let shown = [(1, 0), (2, place)];
    if other.is_success() {
        let message = match compare(task, first, other) {
            Results::Same => "another payload got the result of the first one",
            Results::Different => "another payload got a result of its own",
            Results::Unknown(_) => "another payload was accepted with the same key",
        };
        return Ok(ProbeJudgement::fail(message).showing(&shown));
    }
    // Otherwise a validation error would look like a mismatch.
    success_of(results[0].exchanges.first(), "the other payload with a key of its own")?;
    let status = other.status;
    let judged = if !task.baseline.retries_succeed {
        same_is_rejected("another payload", status)
    } else if task.is_mismatch(other) {
        ProbeJudgement::pass(format!("another payload got {status}"))
    } else if other.is_overload() || task.profile.statuses.mismatch.is_empty() {
        // Without a status in the profile, this can be a conflict or an error of the service.
        ProbeJudgement::inconclusive(format!("another payload got {status}"))
    } else {
        let wanted = statuses(&task.profile.statuses.mismatch);
        ProbeJudgement::fail(format!("another payload got {status}, and not {wanted}"))
    };
    Ok(judged.showing(&shown))
}

/// The judgement if the service rejects retries of the same request, too.
fn same_is_rejected(what: &str, status: u16) -> ProbeJudgement {
    ProbeJudgement::inconclusive(format!(
        "{what} got {status}, but a retry of the same request does not succeed either"
    ))
}

fn judge_members(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    success_of(results[0].exchanges.first(), "the first request")?;
    let mut accepted = Vec::new();
    let mut rejected = Vec::new();
    let mut open = Vec::new();
    let mut shown = vec![(0, 0)];
    let members = members_of(&results[0].exchanges[0].request);
    for (index, (pointer, pair)) in members.into_iter().zip(results[1..].chunks(2)).enumerate() {
        let control = pair[0].exchanges.first().and_then(|control| control.answer());
        let (place, other) = last(&pair[1]);
        let other = answer_of(other)?;
        if other.is_success() {
            if accepted.is_empty() {
                shown.push((2 + 2 * index, place));
            }
            accepted.push(pointer);
        } else if task.is_mismatch(other) && control.is_some_and(ProbeAnswer::is_success) {
            rejected.push(pointer);
        } else {
            // A value that the service rejects under any key shows nothing.
            open.push(pointer);
        }
    }
    let judged = if !accepted.is_empty() {
        let accepted = accepted.join(", ");
        ProbeJudgement::fail(format!("another value was accepted of {accepted}"))
    } else if rejected.is_empty() {
        let open = open.join(", ");
        ProbeJudgement::inconclusive(format!("no rejection shows that the service compares {open}"))
    } else if !task.baseline.retries_succeed {
        let message =
            "another value is rejected, but a retry of the same request does not succeed either";
        ProbeJudgement::inconclusive(message)
    } else {
        let mut message = format!("another value was rejected of {}", rejected.join(", "));
        if !open.is_empty() {
            message.push_str(&format!("; no statement about {}", open.join(", ")));
        }
        ProbeJudgement::pass(message)
    };
    Ok(judged.showing(&shown))
}

fn judge_path(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let first = success_of(results[0].exchanges.first(), "the first request")?;
    let control = answer_of(results[1].exchanges.first())?;
    let (place, other) = last(&results[2]);
    let other = answer_of(other)?;
    let shown = [(0, 0), (2, place)];
    let path = task.other_path.as_deref().unwrap_or_default();
    let (status, of_control) = (other.status, control.status);
    if !control.is_success() && !other.is_success() {
        return Ok(ProbeJudgement::not_applicable(format!(
            "{path} with a key of its own got {of_control}, so a rejection shows nothing"
        )));
    }
    if !control.is_success() {
        // It may only look up what the first request created.
        let message = format!(
            "{path} got {status} with the used key, and {of_control} with a key of its own"
        );
        return Ok(ProbeJudgement::inconclusive(message).showing(&shown));
    }
    if other.is_success() {
        let judged = match compare(task, first, other) {
            // It may show the newest result to everyone.
            Results::Same if !first.is_other_result(control) => ProbeJudgement::inconclusive(
                format!("{path} gives the first result, whatever the key"),
            ),
            Results::Same => ProbeJudgement::fail(format!("{path} got the first result")),
            Results::Different => ProbeJudgement::fail(format!("{path} got a result of its own")),
            Results::Unknown(_) => {
                ProbeJudgement::fail(format!("{path} was accepted with the same key"))
            }
        };
        return Ok(judged.showing(&shown));
    }
    let judged = if other.is_overload() || status >= 500 {
        ProbeJudgement::inconclusive(format!("{path} got {status}"))
    } else if !task.baseline.retries_succeed {
        same_is_rejected(path, status)
    } else {
        ProbeJudgement::pass(format!("{path} got {status}"))
    };
    Ok(judged.showing(&shown))
}

fn judge_caller(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let first = success_of(results[0].exchanges.first(), "the first caller")?;
    let (place, other) = last(&results[2]);
    let other = answer_of(other)?;
    let shown = [(0, 0), (2, place)];
    let is_first_result =
        task.baseline.tells_results_apart && other.is_success() && !first.is_other_result(other);
    if is_first_result {
        let message = "another caller got the first caller's result";
        return Ok(ProbeJudgement::fail(message).showing(&shown));
    }
    // Otherwise unknown credentials would look like a guard.
    success_of(results[4].exchanges.first(), "the other caller with a key of its own")?;
    if !other.is_success() && !task.baseline.retries_succeed {
        return Ok(same_is_rejected("another caller", other.status).showing(&shown));
    }
    if !other.is_success() {
        let judged = match other.is_overload() || other.status >= 500 {
            true => ProbeJudgement::inconclusive(format!("another caller got {}", other.status)),
            false => ProbeJudgement::pass(format!("another caller got {}", other.status)),
        };
        return Ok(judged.showing(&shown));
    }
    if task.baseline.tells_results_apart {
        let message = "another caller got a result of its own";
        return Ok(ProbeJudgement::pass(message).showing(&shown));
    }
    // The results do not tell, so only the effects can.
    let judged = match executions(task, &results[1], &results[3]) {
        Executions::Times(0) => ProbeJudgement::fail(
            "another caller got a success, although the service did not execute its request",
        )
        .by_number(),
        Executions::Times(_) => ProbeJudgement::pass("another caller's request was executed"),
        Executions::NotCounted => ProbeJudgement::inconclusive(
            "the answers of two keys are equal, so the answers do not tell; pass --effects",
        ),
        Executions::Unknown(why) => ProbeJudgement::inconclusive(why),
    };
    Ok(judged.showing(&shown))
}
