//! A retry after the request completed.

use super::judging::{
    Executions, Results, answer_of, compare, executions, last, success_of, times,
};
use crate::domain::duration::exact;
use crate::domain::probe::message::ProbeAnswer;
use crate::domain::probe::probe_check::{
    Judged, ProbeCheck, ProbeGroup, ProbeJudgement, ProbeStep, ProbeStepResult,
};
use crate::domain::probe::task::ProbeTask;

pub(in crate::domain::probe) const AT_ONCE: ProbeCheck = ProbeCheck {
    id: "replay-at-once",
    group: ProbeGroup::Replay,
    title: "a retry right after the whole answer is a success, too",
    steps: send_twice_at_once,
    judge: judge_at_once,
};

pub(in crate::domain::probe) const STATUS: ProbeCheck = ProbeCheck {
    id: "replay-status",
    group: ProbeGroup::Replay,
    title: "a retry gets the status of the first answer",
    steps: send_twice,
    judge: judge_status,
};

pub(in crate::domain::probe) const BODY: ProbeCheck = ProbeCheck {
    id: "replay-body",
    group: ProbeGroup::Replay,
    title: "a retry gets the body of the first answer",
    steps: send_twice,
    judge: judge_body,
};

pub(in crate::domain::probe) const HEADERS: ProbeCheck = ProbeCheck {
    id: "replay-headers",
    group: ProbeGroup::Replay,
    title: "a retry gets Location, ETag and Content-Type of the first answer",
    steps: send_twice,
    judge: judge_headers,
};

pub(in crate::domain::probe) const ONE_EFFECT: ProbeCheck = ProbeCheck {
    id: "replay-one-effect",
    group: ProbeGroup::Replay,
    title: "a request and its two retries execute once",
    steps: send_three_times,
    judge: judge_one_effect,
};

pub(in crate::domain::probe) const LATER: ProbeCheck = ProbeCheck {
    id: "replay-later",
    group: ProbeGroup::Replay,
    title: "a retry after a pause (--later) gets the result",
    steps: send_again_later,
    judge: judge_later,
};

fn send_twice(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let request = task.request(&task.new_key())?;
    Ok(vec![ProbeStep::Send(request.clone()), ProbeStep::SendUntilFree(request)])
}

fn send_twice_at_once(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let request = task.request(&task.new_key())?;
    Ok(vec![ProbeStep::Send(request.clone()), ProbeStep::Send(request)])
}

fn send_three_times(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    if !task.counts_effects {
        return Err("it needs --effects".to_owned());
    }
    let request = task.request(&task.new_key())?;
    Ok(vec![
        ProbeStep::CountEffects(request.clone()),
        ProbeStep::Send(request.clone()),
        ProbeStep::SendUntilFree(request.clone()),
        ProbeStep::SendUntilFree(request.clone()),
        ProbeStep::CountEffects(request),
    ])
}

fn send_again_later(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let request = task.request(&task.new_key())?;
    Ok(vec![
        ProbeStep::CountEffects(request.clone()),
        ProbeStep::Send(request.clone()),
        ProbeStep::Wait(task.later),
        ProbeStep::SendUntilFree(request.clone()),
        ProbeStep::CountEffects(request),
    ])
}

/// The first success and the answer to its retry.
fn pair(
    results: &[ProbeStepResult],
) -> Result<(&ProbeAnswer, &ProbeAnswer, usize), ProbeJudgement> {
    let first = success_of(results[0].exchanges.first(), "the first request")?;
    let (place, retry) = last(&results[1]);
    let retry = answer_of(retry)?;
    if retry.is_overload() {
        return Err(ProbeJudgement::inconclusive(format!(
            "the retry was answered {}",
            retry.status
        )));
    }
    Ok((first, retry, place))
}

fn judge_at_once(_: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let (_, retry, place) = pair(results)?;
    let message = format!("the retry got {}", retry.status);
    let judged = match retry.is_success() {
        true => ProbeJudgement::pass(message),
        false => ProbeJudgement::fail(message),
    };
    Ok(judged.showing(&[(0, 0), (1, place)]))
}

fn judge_status(_: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let (first, retry, place) = pair(results)?;
    let judged = if first.status == retry.status {
        ProbeJudgement::pass(format!("both are {}", first.status))
    } else {
        ProbeJudgement::fail(format!(
            "the first answer is {}, and the retry got {}",
            first.status, retry.status
        ))
    };
    Ok(judged.showing(&[(0, 0), (1, place)]))
}

fn judge_body(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let (first, retry, place) = pair(results)?;
    let bytes = first.body.length;
    let judged = if !first.is_whole || !retry.is_whole {
        ProbeJudgement::inconclusive("a body is too long to compare")
    } else if !first.body.is_same(&retry.body) {
        ProbeJudgement::fail("the retry got another body")
    } else if bytes + retry.body.length == 0 {
        ProbeJudgement::not_applicable("the answers have no body")
    } else if !first.body.has_same_bytes(&retry.body) {
        ProbeJudgement::pass("the bodies are equal as JSON, but not in their bytes")
    } else {
        match compare(task, first, retry) {
            Results::Unknown(why) => ProbeJudgement::inconclusive(why),
            _ => ProbeJudgement::pass(format!("both have the same {bytes} bytes")),
        }
    };
    Ok(judged.showing(&[(0, 0), (1, place)]))
}

fn judge_headers(_: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let (first, retry, place) = pair(results)?;
    let changed = changed_headers(first, retry);
    let judged = if changed.is_empty() {
        ProbeJudgement::pass("the retry has all that the first answer has")
    } else {
        ProbeJudgement::fail(format!("in the retry, {}", changed.join(", ")))
    };
    Ok(judged.showing(&[(0, 0), (1, place)]))
}

fn judge_one_effect(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let shown = [(1, 0), (2, last(&results[2]).0)];
    let judged = match executions(task, &results[0], &results[4]) {
        Executions::Times(1) => {
            for result in &results[2..4] {
                let retry = answer_of(last(result).1)?;
                if retry.is_overload() {
                    let message = format!("a retry was answered {}", retry.status);
                    return Ok(ProbeJudgement::inconclusive(message).showing(&shown));
                }
            }
            ProbeJudgement::pass("executed once")
        }
        Executions::Times(0) => {
            ProbeJudgement::inconclusive("the number of effects did not change at all")
        }
        Executions::Times(count) => ProbeJudgement::fail(times(count)).by_number(),
        Executions::NotCounted => ProbeJudgement::not_applicable("it needs --effects"),
        Executions::Unknown(why) => ProbeJudgement::inconclusive(why),
    };
    Ok(judged.showing(&shown))
}

fn judge_later(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let first = success_of(results[1].exchanges.first(), "the first request")?;
    let (place, retry) = last(&results[3]);
    let retry = answer_of(retry)?;
    let status = retry.status;
    let when = format!("{} after the answer", exact(task.later));
    let judged = if retry.is_overload() {
        ProbeJudgement::inconclusive(format!("the retry was answered {status}"))
    } else if !retry.is_success() {
        ProbeJudgement::fail(format!("{when}, the retry got {status}"))
    } else {
        match (compare(task, first, retry), executions(task, &results[0], &results[4])) {
            (Results::Different, _) => {
                ProbeJudgement::fail(format!("{when}, the retry got another result"))
            }
            (_, Executions::Times(count @ 2..)) => {
                ProbeJudgement::fail(format!("{}, the second time {when}", times(count)))
                    .by_number()
            }
            (Results::Same, _) | (_, Executions::Times(1)) => {
                ProbeJudgement::pass(format!("{when}, the retry got {status}"))
            }
            (Results::Unknown(why), _) => ProbeJudgement::inconclusive(why),
        }
    };
    Ok(judged.showing(&[(1, 0), (3, place)]))
}

/// The headers of a result that the first answer has and the replay lacks or changes, in words.
fn changed_headers(first: &ProbeAnswer, replay: &ProbeAnswer) -> Vec<String> {
    let mut changed = Vec::new();
    for name in ["location", "etag", "content-type"] {
        let Some(before) = first.header(name) else { continue };
        match replay.header(name) {
            None => changed.push(format!("{name} is missing")),
            Some(after) if !is_same_value(name, before, after) => {
                changed.push(format!("{name} differs"));
            }
            Some(_) => {}
        }
    }
    changed
}

fn is_same_value(name: &str, one: &[u8], other: &[u8]) -> bool {
    // Media types do not distinguish case, nor white space around their parameters.
    if name == "content-type" {
        let plain = |value: &[u8]| {
            let text = String::from_utf8_lossy(value).to_ascii_lowercase();
            text.split(';').map(|part| part.trim().to_owned()).collect::<Vec<_>>()
        };
        return plain(one) == plain(other);
    }
    one == other
}
