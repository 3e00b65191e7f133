//! What Redis holds between the requests.

use super::judging::{fail, inconclusive, not_applicable, pass, reported};
use crate::domain::duration::{longer_than, short};
use crate::domain::probe::message::ProbeExchange;
use crate::domain::probe::probe_check::{
    Judged, MadeSteps, ProbeAction, Steps, StoredRecord, StoredTime,
};
use crate::domain::probe::task::ProbeTask;
use crate::domain::record::age;

/// How much may be missing from a promised retention: the time since the result was stored, and
/// rounding to seconds.
const RETENTION_SLACK_MS: u64 = 10_000;

pub(super) fn read_while_running(task: &ProbeTask) -> Steps {
    task.steps(&[ProbeAction::Overlap(task.part_of_request())])
}

pub(super) fn read_two_locks(task: &ProbeTask) -> Steps {
    let mut steps = read_while_running(task)?;
    steps.extend(read_while_running(task)?);
    Ok(steps)
}

pub(super) fn watch(task: &ProbeTask) -> Steps {
    task.steps(&[ProbeAction::Watch])
}

pub(super) fn send_once(task: &ProbeTask) -> Steps {
    task.steps(&[ProbeAction::Send])
}

/// The record that was read after a step.
fn record_of<'a>(made: &MadeSteps<'a>, step: usize) -> Judged<&'a StoredRecord> {
    match &made.results[step].record {
        Some(Ok(record)) if record.state == "unrecognised" => {
            let key = record.redis_keys.first().cloned().unwrap_or_default();
            let key = String::from_utf8_lossy(&key);
            let schema = &record.schema;
            inconclusive(format!("{key} exists, but {schema} does not recognise its value"))
        }
        Some(Ok(record)) if record.state == "absent" => {
            inconclusive("no Redis key of this schema existed for this key when idemctl looked")
        }
        Some(Ok(record)) => Ok(record),
        Some(Err(why)) => inconclusive(format!("the record cannot be read: {why}")),
        None => inconclusive("the record was not read"),
    }
}

/// The lock that was read while the handler ran.
fn lock_of<'a>(made: &MadeSteps<'a>, step: usize) -> Judged<&'a StoredRecord> {
    let record = record_of(made, step)?;
    match record.state.as_str() {
        "in-progress" => Ok(record),
        state => inconclusive(format!("the record was already {state} when idemctl read it")),
    }
}

/// When a record expires, and the TTL that the schema states. Only a comparison with it shows that a
/// service passes milliseconds instead of seconds.
///
/// # Errors
/// The judgement if it never expires, or its TTL is unknown.
fn expiry(record: &StoredRecord) -> Judged<(u64, String)> {
    if record.never_expires {
        return fail("the record never expires");
    }
    let Some(ttl) = record.ttl_ms else { return inconclusive("the TTL is unknown") };
    let mut words = format!("it expires in {}", short(ttl));
    if let Some(stated) = record.stated_ttl_ms {
        words.push_str(&format!("; the schema states {}", short(stated)));
    }
    Ok((ttl, words))
}

pub(super) fn lock(made: &MadeSteps<'_>) -> Judged {
    let record = lock_of(made, 0)?;
    let (_, words) = expiry(record)?;
    let owner = if record.owner.is_some() { "with an owner" } else { "without an owner" };
    pass(format!("{words} ({owner})"))
}

pub(super) fn owner(made: &MadeSteps<'_>) -> Judged {
    let (first, second) = (lock_of(made, 0)?, lock_of(made, 1)?);
    match (&first.owner, &second.owner) {
        (Some(first), Some(second)) if first != second => {
            pass("both locks have owners of their own")
        }
        (Some(_), Some(_)) => {
            fail("both locks have the same owner, so a late request can take the lock of its retry")
        }
        _ => not_applicable("the locks have no owner"),
    }
}

pub(super) fn stored(made: &MadeSteps<'_>) -> Judged {
    made.success(0, "the request")?;
    let result = &made.results[0];
    let when = stored_when(&result.exchanges[0], result.stored.unwrap_or_default());
    // The record as it was right after the answer.
    let state = match (&result.record, &when) {
        (Some(Ok(record)), Some(_)) => record.state.as_str(),
        _ => record_of(made, 0)?.state.as_str(),
    };
    let said = match when {
        Some(when) => format!("the result was stored {when}"),
        None => format!("the record is {state} when the answer has arrived"),
    };
    match state {
        "completed" => pass(said),
        "in-progress" | "absent" => {
            fail(format!("{said}. If the service crashes before, a retry can execute again"))
        }
        state => reported(format!("the record is {state}")),
    }
}

/// When a result was stored, as seen from the arrival of the whole answer; `None` if it was not seen.
/// The bounds are rounded so that they stay true.
fn stored_when(exchange: &ProbeExchange, time: StoredTime) -> Option<String> {
    let arrived = exchange.ended_us?;
    let before = time.before_us?;
    // Nothing is stored before the request was sent.
    let after = time.after_us.max(exchange.sent_us).unwrap_or_default();
    let (least, most, side) = if before <= arrived {
        (arrived - before, arrived.saturating_sub(after), "before")
    } else if after >= arrived {
        (after - arrived, before - arrived, "after")
    } else {
        let (earlier, later) = (at_most(arrived - after), at_most(before - arrived));
        return Some(format!("at most {earlier} before and {later} after the answer arrived"));
    };
    let least = in_millis(least / 100);
    Some(format!("between {least} and {} {side} the answer arrived", at_most(most)))
}

/// A time in microseconds as milliseconds, rounded up.
fn at_most(us: u64) -> String {
    in_millis(us.div_ceil(100))
}

fn in_millis(tenths: u64) -> String {
    format!("{}.{} ms", tenths / 10, tenths % 10)
}

/// Judges how long a result stays that was stored a moment ago, so that nearly its whole TTL is left.
pub(super) fn ttl(made: &MadeSteps<'_>) -> Judged {
    made.success(0, "the request")?;
    let record = record_of(made, 0)?;
    let (ttl, words) = expiry(record)?;
    if record.stated_ttl_ms.is_some_and(|stated| ttl < stated / 2) {
        return fail(words);
    }
    let profile = &made.task.profile;
    if let Some(retention) = profile.retention
        && ttl + RETENTION_SLACK_MS < age::millis(retention)
    {
        return fail(format!(
            "{words}; {} promises to keep results for {}",
            profile.title,
            longer_than(age::millis(retention), ttl)
        ));
    }
    pass(words)
}
