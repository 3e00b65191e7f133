//! A retry after the request completed.

use super::judging::{TOO_LONG, compare, fail, inconclusive, not_applicable, pass};
use crate::domain::duration::exact;
use crate::domain::probe::message::ProbeAnswer;
use crate::domain::probe::probe_check::ProbeAction::{Count, Send, SendUntilFree, Wait};
use crate::domain::probe::probe_check::{Judged, MadeSteps, Steps};
use crate::domain::probe::task::ProbeTask;

pub(super) fn send_twice(task: &ProbeTask) -> Steps {
    task.steps(&[Send, SendUntilFree])
}

pub(super) fn send_twice_at_once(task: &ProbeTask) -> Steps {
    task.steps(&[Send, Send])
}

pub(super) fn send_three_times(task: &ProbeTask) -> Steps {
    task.steps(&[Count, Send, SendUntilFree, SendUntilFree, Count])
}

pub(super) fn send_again_later(task: &ProbeTask) -> Steps {
    task.steps(&[Count, Send, Wait(task.later), SendUntilFree, Count])
}

/// The first success and the answer to its retry.
fn pair<'a>(made: &MadeSteps<'a>) -> Judged<(&'a ProbeAnswer, &'a ProbeAnswer)> {
    Ok((made.success(0, "the first request")?, made.retry(1)?))
}

pub(super) fn at_once(made: &MadeSteps<'_>) -> Judged {
    let (_, retry) = pair(made)?;
    let message = format!("the retry got {}", retry.status);
    if retry.is_success() { pass(message) } else { fail(message) }
}

pub(super) fn status(made: &MadeSteps<'_>) -> Judged {
    let (first, retry) = pair(made)?;
    let message =
        format!("the first answer is {}, and the retry got {}", first.status, retry.status);
    if first.status == retry.status { pass(message) } else { fail(message) }
}

pub(super) fn body(made: &MadeSteps<'_>) -> Judged {
    let (first, retry) = pair(made)?;
    if !first.is_whole || !retry.is_whole {
        return inconclusive(TOO_LONG);
    }
    if !first.body.is_same(&retry.body) {
        return fail("the retry got another body");
    }
    if first.body.length + retry.body.length == 0 {
        return not_applicable("the answers have no body");
    }
    if !first.body.has_same_bytes(&retry.body) {
        return pass("the bodies are equal as JSON, but not in their bytes");
    }
    match compare(made.task, first, retry) {
        Err(why) => inconclusive(why),
        Ok(_) => pass(format!("both have the same {} bytes", first.body.length)),
    }
}

pub(super) fn headers(made: &MadeSteps<'_>) -> Judged {
    let (first, retry) = pair(made)?;
    let mut changed = Vec::new();
    for name in ["location", "etag", "content-type"] {
        let Some(before) = first.header(name) else { continue };
        match retry.header(name) {
            None => changed.push(format!("{name} is missing")),
            Some(after) if !is_same_value(name, before, after) => {
                changed.push(format!("{name} differs"));
            }
            Some(_) => {}
        }
    }
    if changed.is_empty() {
        return pass("the retry has all that the first answer has");
    }
    fail(format!("in the retry, {}", changed.join(", ")))
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

pub(super) fn one_effect(made: &MadeSteps<'_>) -> Judged {
    let said = format!("the retries got {} and {}", made.words(2), made.words(3));
    made.once(&said)?;
    made.retry(2)?;
    made.retry(3)?;
    pass(format!("executed once; {said}"))
}

pub(super) fn later(made: &MadeSteps<'_>) -> Judged {
    let first = made.success(1, "the first request")?;
    let retry = made.retry(3)?;
    let said =
        format!("{} after the answer, the retry got {}", exact(made.task.later), retry.status);
    if !retry.is_success() {
        return fail(said);
    }
    let compared = compare(made.task, first, retry);
    if compared == Ok(false) {
        return fail(format!("{said} with another result"));
    }
    made.not_twice(&said)?;
    match compared {
        Err(why) if !made.once(&said)? => inconclusive(why),
        _ => pass(said),
    }
}
