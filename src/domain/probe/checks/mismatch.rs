//! A key that is missing, or is used again for something else.

use super::judging::{
    Executions, OTHER_PAYLOAD, compare, fail, fail_by_number, inconclusive, not_applicable, pass,
    showing, statuses,
};
use crate::domain::probe::message::{ProbeAnswer, ProbeRequest};
use crate::domain::probe::payload::{members_of, with_other_member, with_path};
use crate::domain::probe::probe_check::ProbeAction::{Count, Send, SendUntilFree};
use crate::domain::probe::probe_check::{Judged, MadeSteps, Steps};
use crate::domain::probe::task::ProbeTask;
use crate::domain::probe::template::KeyPlace;

pub(super) fn without_key(task: &ProbeTask) -> Steps {
    if task.template.place == KeyPlace::Mark {
        return Err("the key is a part of the request".to_owned());
    }
    let request = task.template.without_key(&task.new_key())?;
    Ok(request.steps(&[Count, Send, Count]))
}

/// A control with a key of its own, the first request, and the second one.
pub(super) fn other_payload(task: &ProbeTask) -> Steps {
    let key = task.new_key();
    Ok(vec![
        task.other_request(&task.new_key(), 1)?.step(Send),
        task.request(&key)?.step(Send),
        task.other_request(&key, 1)?.step(SendUntilFree),
    ])
}

/// The first request, and for each member of its body a control with a key of its own, and the first
/// request with another value of this member.
pub(super) fn other_members(task: &ProbeTask) -> Steps {
    let request = task.new_request()?;
    let mut steps = vec![request.clone().step(Send)];
    for pointer in members_of(&request) {
        if let Some(control) = with_other_member(&task.new_request()?, &pointer)
            && let Some(other) = with_other_member(&request, &pointer)
        {
            steps.push(control.step(Send));
            steps.push(other.step(SendUntilFree));
        }
    }
    if steps.len() == 1 {
        return Err("the body is not JSON, or has no member to change".to_owned());
    }
    Ok(steps)
}

/// The first request, a control with a key of its own, and the first request at the other path. The
/// control is not the first, because a path that only looks something up must give it the same.
pub(super) fn other_path(task: &ProbeTask) -> Steps {
    // A path that does not exist rejects everything, so idemctl does not choose one.
    let Some(path) = &task.other_path else { return Err("it needs --other-path".to_owned()) };
    let request = task.new_request()?;
    Ok(vec![
        request.clone().step(Send),
        with_path(&task.new_request()?, path)?.step(Send),
        with_path(&request, path)?.step(SendUntilFree),
    ])
}

pub(super) fn other_caller(task: &ProbeTask) -> Steps {
    let Some((name, value)) = &task.other_caller else { return Err("it needs --as".to_owned()) };
    let as_other = |mut request: ProbeRequest| {
        request.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        request.headers.push((name.clone(), value.clone()));
        request
    };
    let request = task.new_request()?;
    let mut steps = request.clone().steps(&[Send, Count]);
    steps.push(as_other(request.clone()).step(SendUntilFree));
    steps.push(request.step(Count));
    steps.push(as_other(task.new_request()?).step(Send));
    Ok(steps)
}

pub(super) fn missing(made: &MadeSteps<'_>) -> Judged {
    let answer = made.answer(1)?;
    let wanted = &made.task.profile.statuses.missing_key;
    let said = format!("it got {}", answer.status);
    if let Executions::Times(1..) = made.executions() {
        return fail_by_number(format!("it was executed; {said}"));
    }
    if wanted.contains(&answer.status) {
        return pass(said);
    }
    if answer.is_overload() {
        return inconclusive(said);
    }
    fail(format!("{said}, and not {}", statuses(wanted)))
}

pub(super) fn payload(made: &MadeSteps<'_>) -> Judged {
    made.success(1, "the first request")?;
    let other = made.answer(2)?;
    if other.is_success() {
        return fail("another payload was accepted with the same key");
    }
    // Otherwise a validation error would look like a mismatch.
    made.success(0, OTHER_PAYLOAD)?;
    let said = format!("another payload got {}", other.status);
    made.rejection_counts(&said)?;
    let wanted = &made.task.profile.statuses.mismatch;
    if made.task.is_mismatch(other) {
        pass(said)
    } else if other.is_overload() || wanted.is_empty() {
        // Without a status in the profile, this can be a conflict or an error of the service.
        inconclusive(said)
    } else {
        fail(format!("{said}, and not {}", statuses(wanted)))
    }
}

pub(super) fn members(made: &MadeSteps<'_>) -> Judged {
    made.success(0, "the first request")?;
    let mut accepted = Vec::new();
    let mut rejected = Vec::new();
    let mut open = Vec::new();
    let mut shown = vec![(0, 0)];
    for (index, pointer) in members_of(&made.exchanges(0)[0].request).into_iter().enumerate() {
        let (control, step) = (1 + 2 * index, 2 + 2 * index);
        let other = made.answer(step)?;
        let is_shown = made.answer(control).is_ok_and(ProbeAnswer::is_success);
        if other.is_success() {
            shown.push((step, made.exchanges(step).len() - 1));
            accepted.push(pointer);
        } else if made.task.is_mismatch(other) && is_shown {
            rejected.push(pointer);
        } else {
            // A value that the service rejects under any key shows nothing.
            open.push(pointer);
        }
    }
    let open = open.join(", ");
    if !accepted.is_empty() {
        shown.truncate(2);
        let judged = fail(format!("another value was accepted of {}", accepted.join(", ")));
        return showing(judged, &shown);
    }
    if rejected.is_empty() {
        return inconclusive(format!("no rejection shows that the service compares {open}"));
    }
    let said = format!("another value was rejected of {}", rejected.join(", "));
    made.rejection_counts(&said)?;
    pass(if open.is_empty() { said } else { format!("{said}; no statement about {open}") })
}

pub(super) fn path(made: &MadeSteps<'_>) -> Judged {
    let first = made.success(0, "the first request")?;
    let control = made.answer(1)?;
    let other = made.answer(2)?;
    let path = made.task.other_path.as_deref().unwrap_or_default();
    let said = format!("{path} got {}", other.status);
    if !control.is_success() {
        let of_control = format!("{path} with a key of its own got {}", control.status);
        // It may only look up what the first request created.
        return match other.is_success() {
            true => inconclusive(format!("{of_control}, and {said} with the used one")),
            false => not_applicable(of_control),
        };
    }
    if other.is_success() {
        return match compare(made.task, first, other) {
            // It may show the newest result to everyone.
            Ok(true) if !first.is_other_result(control) => {
                inconclusive(format!("{path} gives the first result, whatever the key"))
            }
            _ => fail(format!("{path} was accepted with the same key")),
        };
    }
    rejected(made, other, said)
}

pub(super) fn caller(made: &MadeSteps<'_>) -> Judged {
    let first = made.success(0, "the first caller")?;
    let other = made.answer(2)?;
    let tells = made.task.baseline.tells_results_apart;
    if tells && other.is_success() && !first.is_other_result(other) {
        return fail("another caller got the first caller's result");
    }
    // Otherwise unknown credentials would look like a guard.
    made.success(4, "the other caller with a key of its own")?;
    if !other.is_success() {
        return rejected(made, other, format!("another caller got {}", other.status));
    }
    if tells {
        return pass("another caller got a result of its own");
    }
    // The results do not tell, so only the effects can.
    match made.executions() {
        Executions::Times(0) => {
            fail_by_number("another caller got a success, although nothing was executed")
        }
        Executions::Times(_) => pass("another caller's request was executed"),
        Executions::NotCounted => inconclusive("the answers of two keys are equal; pass --effects"),
        Executions::Unknown(why) => inconclusive(why),
    }
}

/// Judges a rejection whose status is not that of a profile.
fn rejected(made: &MadeSteps<'_>, answer: &ProbeAnswer, said: String) -> Judged {
    if answer.is_overload() || answer.status >= 500 {
        return inconclusive(said);
    }
    made.rejection_counts(&said)?;
    pass(said)
}
