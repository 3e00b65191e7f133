//! Keys that are missing, or written in an unusual way.

use super::judging::{
    Executions, Results, answer_of, compare, executions, last, settled, statuses, success_of,
};
use crate::domain::probe::probe_check::{
    ProbeCheck, ProbeGroup, ProbeJudgement, ProbeStep, ProbeStepResult,
};
use crate::domain::probe::task::ProbeTask;
use crate::domain::probe::template::KeyPlace;

pub(in crate::domain::probe) const MISSING: ProbeCheck = ProbeCheck {
    id: "key-missing",
    group: ProbeGroup::Header,
    title: "a request without a key is rejected",
    steps: without_key,
    judge: judge_missing,
};

pub(in crate::domain::probe) const EMPTY: ProbeCheck = ProbeCheck {
    id: "key-empty",
    group: ProbeGroup::Header,
    title: "an empty key is rejected",
    steps: empty_key,
    judge: judge_empty,
};

pub(in crate::domain::probe) const QUOTED: ProbeCheck = ProbeCheck {
    id: "key-quoted",
    group: ProbeGroup::Header,
    title: "a key with and without quotation marks is one key, or one form is rejected",
    steps: quoted_and_bare,
    judge: judge_two_forms,
};

pub(in crate::domain::probe) const PARAMETERS: ProbeCheck = ProbeCheck {
    id: "key-parameters",
    group: ProbeGroup::Header,
    title: "a key with a parameter is the key without it, or is rejected",
    steps: with_parameters,
    judge: judge_two_forms,
};

pub(in crate::domain::probe) const LONG: ProbeCheck = ProbeCheck {
    id: "key-long",
    group: ProbeGroup::Header,
    title: "two keys of 256 characters that differ at the end are two keys, or are rejected",
    steps: long_keys,
    judge: judge_two_keys,
};

pub(in crate::domain::probe) const TAB: ProbeCheck = ProbeCheck {
    id: "key-control",
    group: ProbeGroup::Header,
    title: "a key with a control character (a tab) is rejected",
    steps: key_with_tab,
    judge: judge_rejected,
};

pub(in crate::domain::probe) const TWO_LINES: ProbeCheck = ProbeCheck {
    id: "key-twice",
    group: ProbeGroup::Header,
    title: "a request with two different keys is rejected",
    steps: two_lines,
    judge: judge_rejected,
};

fn without_key(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    if task.template.place == KeyPlace::Mark {
        return Err("the key is a part of the request".to_owned());
    }
    let key = task.new_key();
    let request = task.template.with_header_lines(&key, &[]).map_err(|why| why.to_string())?;
    Ok(vec![
        ProbeStep::CountEffects(request.clone()),
        ProbeStep::Send(request.clone()),
        ProbeStep::CountEffects(request),
    ])
}

fn empty_key(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    if task.template.place == KeyPlace::Mark {
        return Err("the key is a part of the request".to_owned());
    }
    let key = task.new_key();
    let line = task.template.written("");
    let request = task.template.with_header_lines(&key, &[line]).map_err(|why| why.to_string())?;
    Ok(vec![
        ProbeStep::CountEffects(request.clone()),
        ProbeStep::Send(request.clone()),
        ProbeStep::CountEffects(request),
    ])
}

fn quoted_and_bare(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let key = task.new_key();
    Ok(vec![
        ProbeStep::Send(task.header_request(&key, &[format!("\"{key}\"")])?),
        ProbeStep::SendUntilFree(task.header_request(&key, std::slice::from_ref(&key))?),
    ])
}

fn with_parameters(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let key = task.new_key();
    Ok(vec![
        ProbeStep::Send(task.header_request(&key, &[format!("\"{key}\"")])?),
        ProbeStep::SendUntilFree(task.header_request(&key, &[format!("\"{key}\";a=1")])?),
    ])
}

fn long_keys(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let key = task.new_key();
    let stem = format!("{key:x<255}");
    let mut steps = Vec::new();
    for end in ["a", "b"] {
        let long = format!("{stem}{end}");
        let request = task.request(&long)?;
        steps.push(ProbeStep::SendUntilFree(request));
    }
    Ok(steps)
}

fn key_with_tab(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let key = task.new_key();
    let line = task.template.written(&format!("{key}\tx"));
    Ok(vec![ProbeStep::Send(task.header_request(&key, &[line])?)])
}

fn two_lines(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let (one, other) = (task.new_key(), task.new_key());
    let lines = [task.template.written(&one), task.template.written(&other)];
    Ok(vec![ProbeStep::Send(task.header_request(&one, &lines)?)])
}

fn judge_missing(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        let answer = answer_of(results[1].exchanges.first())?;
        let status = answer.status;
        let wanted = statuses(&task.profile.statuses.missing_key);
        let executed = executions(task, &results[0], &results[2]);
        let judged = if let Executions::Times(1..) = executed {
            ProbeJudgement::fail(format!("it was executed, and answered {status}")).by_number()
        } else if task.profile.statuses.missing_key.contains(&status) {
            ProbeJudgement::pass(format!("it got {status}"))
        } else if answer.is_overload() {
            ProbeJudgement::inconclusive(format!("it got {status}"))
        } else {
            ProbeJudgement::fail(format!("it got {status}, and not {wanted}"))
        };
        Ok(judged.showing(&[(1, 0)]))
    })())
}

/// All runs share this key, so a stored answer may be that of an earlier run. Only the profile's
/// rejection of a key, and an execution that was counted, show what the service does.
fn judge_empty(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        let answer = answer_of(results[1].exchanges.first())?;
        let status = answer.status;
        let written = task.template.written("");
        let sent = match written.is_empty() {
            true => "an empty key".to_owned(),
            false => format!("the quoted empty string {written}"),
        };
        let executed = executions(task, &results[0], &results[2]);
        let judged = if let Executions::Times(1..) = executed {
            let message = format!("{sent} was accepted as a key: executed, and answered {status}");
            ProbeJudgement::fail(message).by_number()
        } else if task.profile.statuses.missing_key.contains(&status) {
            ProbeJudgement::pass(format!("{sent} got {status}"))
        } else {
            ProbeJudgement::inconclusive(format!(
                "{sent} got {status}. This is no statement, because an earlier request with this \
                 key may be the cause"
            ))
        };
        Ok(judged.showing(&[(1, 0)]))
    })())
}

fn judge_rejected(_: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        let answer = answer_of(results[0].exchanges.first())?;
        let status = answer.status;
        let judged = match status {
            200..=399 => ProbeJudgement::fail(format!("it got {status}")),
            400..=499 if !answer.is_overload() => ProbeJudgement::pass(format!("it got {status}")),
            500..=599 if !answer.is_overload() => {
                ProbeJudgement::fail(format!("it got {status}, which is no rejection"))
            }
            _ => ProbeJudgement::inconclusive(format!("it got {status}")),
        };
        Ok(judged.showing(&[(0, 0)]))
    })())
}

fn judge_two_forms(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        let first = answer_of(results[0].exchanges.first())?;
        let (place, other) = last(&results[1]);
        let other = answer_of(other)?;
        let shown = [(0, 0), (1, place)];
        for (form, answer) in [("first", first), ("second", other)] {
            if matches!(answer.status, 400..=499) && !answer.is_overload() {
                let message = format!("the {form} form got {}", answer.status);
                return Ok(ProbeJudgement::pass(message).showing(&shown));
            }
        }
        let first = success_of(results[0].exchanges.first(), "the first form")?;
        let other = success_of(results[1].exchanges.last(), "the second form")?;
        let judged = match compare(task, first, other) {
            Results::Same => ProbeJudgement::pass("both forms are one key"),
            Results::Different => ProbeJudgement::fail("the two forms are two keys"),
            Results::Unknown(why) => ProbeJudgement::inconclusive(why),
        };
        Ok(judged.showing(&shown))
    })())
}

fn judge_two_keys(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        let first = answer_of(results[0].exchanges.last())?;
        if matches!(first.status, 400..=499) && !first.is_overload() {
            return Ok(
                ProbeJudgement::pass(format!("a long key got {}", first.status)).showing(&[(0, 0)])
            );
        }
        let first = success_of(results[0].exchanges.last(), "a long key")?;
        let (place, _) = last(&results[1]);
        let other = success_of(results[1].exchanges.last(), "the second long key")?;
        let judged = match compare(task, first, other) {
            Results::Same => {
                ProbeJudgement::fail("both are one key, so the service cuts long keys")
            }
            Results::Different => ProbeJudgement::pass("they are two keys"),
            Results::Unknown(why) => ProbeJudgement::inconclusive(why),
        };
        Ok(judged.showing(&[(0, 0), (1, place)]))
    })())
}
