//! A key that is used again for something else.

use serde_json::Value;

use super::judging::{
    Executions, Results, answer_of, compare, executions, last, settled, statuses, success_of,
};
use crate::domain::probe::message::ProbeRequest;
use crate::domain::probe::payload::{with_other_order, with_path};
use crate::domain::probe::probe_check::{
    ProbeCheck, ProbeGroup, ProbeJudgement, ProbeStep, ProbeStepResult,
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

pub(in crate::domain::probe) const ECHO: ProbeCheck = ProbeCheck {
    id: "mismatch-echo",
    group: ProbeGroup::Mismatch,
    title: "the rejection shows nothing of the first request and its result",
    steps: other_payload,
    judge: judge_echo,
};

pub(in crate::domain::probe) const ORDER: ProbeCheck = ProbeCheck {
    id: "mismatch-order",
    group: ProbeGroup::Mismatch,
    title: "the order of JSON members and white space make no other payload",
    steps: other_order,
    judge: judge_same_request,
};

pub(in crate::domain::probe) const URL: ProbeCheck = ProbeCheck {
    id: "mismatch-url",
    group: ProbeGroup::Mismatch,
    title: "another query with a used key is another request",
    steps: other_url,
    judge: judge_url,
};

pub(in crate::domain::probe) const PATH: ProbeCheck = ProbeCheck {
    id: "mismatch-path",
    group: ProbeGroup::Mismatch,
    title: "another path with a used key is rejected",
    steps: other_path,
    judge: judge_path,
};

pub(in crate::domain::probe) const METHOD: ProbeCheck = ProbeCheck {
    id: "mismatch-method",
    group: ProbeGroup::Mismatch,
    title: "another method with a used key does not get the first result",
    steps: other_method,
    judge: judge_method,
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

fn other_order(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let request = task.request(&task.new_key())?;
    let other = with_other_order(&request)
        .ok_or_else(|| "the body is not a JSON object with two members".to_owned())?;
    Ok(vec![ProbeStep::Send(request), ProbeStep::SendUntilFree(other)])
}

fn other_url(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let request = task.request(&task.new_key())?;
    let join = if request.url.contains('?') { '&' } else { '?' };
    let url = format!("{}{join}idemctl-probe=1", request.url);
    let other = ProbeRequest { url, ..request.clone() };
    Ok(vec![ProbeStep::Send(request), ProbeStep::SendUntilFree(other)])
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

/// A control with a key of its own, the first request, and the second one.
fn other_method(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    // Another method may do anything, so idemctl does not choose one.
    let Some(method) = &task.other_method else { return Err("it needs --other-method".to_owned()) };
    let request = task.request(&task.new_key())?;
    let with_method = |request| ProbeRequest { method: method.clone(), ..request };
    let control = with_method(task.request(&task.new_key())?);
    let other = with_method(request.clone());
    Ok(vec![ProbeStep::Send(control), ProbeStep::Send(request), ProbeStep::SendUntilFree(other)])
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

fn judge_payload(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled(payload_judged(task, results))
}

fn payload_judged(
    task: &ProbeTask,
    results: &[ProbeStepResult],
) -> Result<ProbeJudgement, ProbeJudgement> {
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

fn judge_echo(_: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        let first = success_of(results[1].exchanges.first(), "the first request")?;
        let (place, other) = last(&results[2]);
        let other = answer_of(other)?;
        let shown = [(1, 0), (2, place)];
        if other.is_success() {
            return Ok(ProbeJudgement::not_applicable("another payload is not rejected"));
        }
        if !first.body.is_kept() || !other.body.is_kept() {
            return Ok(
                ProbeJudgement::inconclusive("a body is too long to compare").showing(&shown)
            );
        }
        let rejection = String::from_utf8_lossy(&other.body.beginning);
        let request = &results[1].exchanges[0].request;
        let sent = results[2].exchanges.first();
        let sent = sent.map(|exchange| exchange.request.body.clone()).unwrap_or_default();
        let sent = String::from_utf8_lossy(&sent);
        for (what, body) in
            [("result", first.body.beginning.as_slice()), ("payload", request.body.as_slice())]
        {
            let mut words = Vec::new();
            if let Ok(document) = serde_json::from_slice::<Value>(body) {
                leaves(&document, &mut words);
            }
            for word in words {
                // The client knows what it sent itself, and short words may be in any answer.
                let is_status = word == other.status.to_string();
                let is_new = word.len() >= MIN_ECHO && !is_status && !has_word(&sent, &word);
                if is_new && has_word(&rejection, &word) {
                    let message = format!("it contains a value of the first {what}");
                    return Ok(ProbeJudgement::fail(message).showing(&shown));
                }
            }
        }
        Ok(ProbeJudgement::pass("it contains no value of the first request and its result")
            .showing(&shown))
    })())
}

/// The shortest value that counts as an echo. A shorter word may be in any answer.
const MIN_ECHO: usize = 3;

/// All texts and numbers in a document.
fn leaves(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.clone()),
        Value::Number(number) => words.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, words)),
        Value::Object(members) => members.values().for_each(|member| leaves(member, words)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// True if the text contains this word, and not only as a part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    for (at, _) in text.match_indices(word) {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        if !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric) {
            return true;
        }
    }
    false
}

fn judge_same_request(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        let first = success_of(results[0].exchanges.first(), "the first request")?;
        let (place, other) = last(&results[1]);
        let other = answer_of(other)?;
        let shown = [(0, 0), (1, place)];
        let judged = if !other.is_success() && !task.baseline.retries_succeed {
            same_is_rejected("they", other.status)
        } else if task.is_mismatch(other) {
            ProbeJudgement::fail(format!("they got {}: the service compares bytes", other.status))
        } else if !other.is_success() {
            ProbeJudgement::inconclusive(format!("they got {}", other.status))
        } else {
            match compare(task, first, other) {
                Results::Same => ProbeJudgement::pass("they got the first result"),
                Results::Different => ProbeJudgement::fail("they got another result"),
                Results::Unknown(why) => ProbeJudgement::inconclusive(why),
            }
        };
        Ok(judged.showing(&shown))
    })())
}

fn judge_url(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        let first = success_of(results[0].exchanges.first(), "the first request")?;
        let (place, other) = last(&results[1]);
        let other = answer_of(other)?;
        let message = if task.is_mismatch(other) && task.baseline.retries_succeed {
            format!("it was rejected ({})", other.status)
        } else if !other.is_success() {
            format!("no statement: the service answers this URL with {}", other.status)
        } else {
            match compare(task, first, other) {
                Results::Same => "it got the first result".to_owned(),
                Results::Different => "it got another result".to_owned(),
                Results::Unknown(why) => why,
            }
        };
        Ok(ProbeJudgement::reported(message).showing(&[(0, 0), (1, place)]))
    })())
}

fn judge_path(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled(path_judged(task, results))
}

fn path_judged(
    task: &ProbeTask,
    results: &[ProbeStepResult],
) -> Result<ProbeJudgement, ProbeJudgement> {
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

fn judge_method(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        let control = answer_of(results[0].exchanges.first())?;
        let first = success_of(results[1].exchanges.first(), "the first request")?;
        let (place, other) = last(&results[2]);
        let other = answer_of(other)?;
        let shown = [(1, 0), (2, place)];
        let method = &results[2].exchanges[place].request.method;
        if other.is_success()
            && let Results::Same = compare(task, first, other)
        {
            // A PUT may return the resource that the first request created.
            let message = format!("{method} got an answer that is equal to the first result");
            return Ok(ProbeJudgement::reported(message).showing(&shown));
        }
        // A rejection shows something only if the service accepts the method at all.
        if !control.is_success() {
            return Ok(ProbeJudgement::not_applicable(format!(
                "{method} with a key of its own got {}, so a rejection shows nothing",
                control.status
            )));
        }
        let judged = if other.is_overload() || other.status >= 500 {
            ProbeJudgement::inconclusive(format!("{method} got {}", other.status))
        } else if !other.is_success() {
            match task.baseline.retries_succeed {
                true => ProbeJudgement::pass(format!("{method} got {}", other.status)),
                false => same_is_rejected(method, other.status),
            }
        } else {
            match compare(task, first, other) {
                Results::Unknown(why) => ProbeJudgement::inconclusive(why),
                _ => ProbeJudgement::pass(format!("{method} got a result of its own")),
            }
        };
        Ok(judged.showing(&shown))
    })())
}

fn judge_caller(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled(caller_judged(task, results))
}

fn caller_judged(
    task: &ProbeTask,
    results: &[ProbeStepResult],
) -> Result<ProbeJudgement, ProbeJudgement> {
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
