//! What Redis holds between the requests.

use super::judging::success_of;
use crate::domain::duration::{longer_than, short};
use crate::domain::probe::message::ProbeExchange;
use crate::domain::probe::probe_check::{
    Judged, ProbeCheck, ProbeGroup, ProbeJudgement, ProbeStep, ProbeStepResult, StoredRecord,
    StoredTime,
};
use crate::domain::probe::task::ProbeTask;
use crate::domain::record::age;

pub(in crate::domain::probe) const LOCK: ProbeCheck = ProbeCheck {
    id: "record-lock",
    group: ProbeGroup::Record,
    title: "a lock with a TTL is held while the handler runs",
    steps: read_while_running,
    judge: judge_lock,
};

pub(in crate::domain::probe) const OWNER: ProbeCheck = ProbeCheck {
    id: "record-owner",
    group: ProbeGroup::Record,
    title: "the locks of two requests have different owners",
    steps: read_two_locks,
    judge: judge_owner,
};

pub(in crate::domain::probe) const STORED: ProbeCheck = ProbeCheck {
    id: "record-stored",
    group: ProbeGroup::Record,
    title: "the result is stored when the answer has arrived",
    steps: watch,
    judge: judge_stored,
};

pub(in crate::domain::probe) const TTL: ProbeCheck = ProbeCheck {
    id: "record-ttl",
    group: ProbeGroup::Record,
    title: "the stored result expires, and not before its TTL or the promised retention",
    steps: send_once,
    judge: judge_ttl,
};

fn needs_redis(task: &ProbeTask) -> Result<(), String> {
    match task.reads_records {
        true => Ok(()),
        false => Err("it needs --schema and a Redis server on the command line".to_owned()),
    }
}

fn read_while_running(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    needs_redis(task)?;
    let request = task.request(&task.new_key())?;
    Ok(vec![ProbeStep::Overlap(request.clone(), request, task.part_of_request())])
}

fn read_two_locks(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let mut steps = read_while_running(task)?;
    steps.extend(read_while_running(task)?);
    Ok(steps)
}

fn watch(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    needs_redis(task)?;
    Ok(vec![ProbeStep::Watch(task.request(&task.new_key())?)])
}

fn send_once(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    needs_redis(task)?;
    Ok(vec![ProbeStep::Send(task.request(&task.new_key())?)])
}

/// The record that was read after a step.
fn record_of(result: &ProbeStepResult) -> Result<&StoredRecord, ProbeJudgement> {
    match &result.record {
        Some(Ok(record)) if record.state == "unrecognised" => {
            let key = record.redis_keys.first().cloned().unwrap_or_default();
            Err(ProbeJudgement::inconclusive(format!(
                "{} exists, but {} does not recognise its value",
                String::from_utf8_lossy(&key),
                record.schema
            )))
        }
        Some(Ok(record)) if record.state == "absent" => {
            let (when, what) = match result.is_read_meanwhile {
                true => ("while the handler ran", "takes no lock"),
                false => ("after the answer", "stores nothing"),
            };
            Err(ProbeJudgement::inconclusive(format!(
                "no Redis key of this schema existed for this key {when}. The service {what}, or \
                 it uses another Redis key"
            )))
        }
        Some(Ok(record)) => Ok(record),
        Some(Err(why)) => {
            Err(ProbeJudgement::inconclusive(format!("the record cannot be read: {why}")))
        }
        None => Err(ProbeJudgement::inconclusive("the record was not read")),
    }
}

/// The TTL that the schema states for the record. Only a comparison with it shows that a service
/// passes milliseconds instead of seconds.
fn stated_ttl(record: &StoredRecord) -> String {
    match record.stated_ttl_ms {
        Some(stated) => format!("; the schema states {}", short(stated)),
        None => String::new(),
    }
}

/// The lock that was read while the handler ran.
fn lock_of(result: &ProbeStepResult) -> Result<&StoredRecord, ProbeJudgement> {
    let record = record_of(result)?;
    match record.state.as_str() {
        "in-progress" => Ok(record),
        state => Err(ProbeJudgement::inconclusive(format!(
            "the record was already {state} when idemctl read it"
        ))),
    }
}

fn judge_lock(_: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let shown = [(0, 0), (0, 1)];
    let record = lock_of(&results[0]).map_err(|judged| judged.showing(&shown))?;
    let owner = match &record.owner {
        Some(_) => "with an owner",
        None => "without an owner",
    };
    let judged = match (record.never_expires, record.ttl_ms) {
        (true, _) => ProbeJudgement::fail(format!("the lock never expires ({owner})")),
        (false, Some(ttl)) => {
            let stated = stated_ttl(record);
            let ttl = short(ttl);
            ProbeJudgement::pass(format!("the lock expires in {ttl}{stated} ({owner})"))
        }
        (false, None) => ProbeJudgement::inconclusive("the TTL of the lock is unknown"),
    };
    Ok(judged.showing(&shown))
}

fn judge_owner(_: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let shown = [(0, 0), (1, 0)];
    let first = lock_of(&results[0]).map_err(|judged| judged.showing(&shown))?;
    let second = lock_of(&results[1]).map_err(|judged| judged.showing(&shown))?;
    let (Some(first), Some(second)) = (&first.owner, &second.owner) else {
        return Ok(ProbeJudgement::not_applicable("the locks have no owner"));
    };
    let judged = match first == second {
        true => ProbeJudgement::fail(
            "both locks have the same owner, so it does not name one request. A late request \
                 can take the lock of its retry for its own",
        ),
        false => ProbeJudgement::pass("both locks have owners of their own"),
    };
    Ok(judged.showing(&shown))
}

fn judge_stored(_: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    success_of(results[0].exchanges.first(), "the request")?;
    let when = stored_when(&results[0].exchanges[0], results[0].stored.unwrap_or_default());
    // The record as it was right after the answer.
    let state = match (&results[0].record, &when) {
        (Some(Ok(record)), Some(_)) => record.state.as_str(),
        _ => record_of(&results[0])?.state.as_str(),
    };
    let judged = match (state, when) {
        ("completed", Some(when)) => ProbeJudgement::pass(format!("the result was stored {when}")),
        ("completed", None) => ProbeJudgement::pass("the result is stored"),
        ("in-progress", Some(when)) => ProbeJudgement::fail(format!(
            "the result was stored {when}. A crash in this time loses it, and a retry can \
                 execute again",
        )),
        ("in-progress", None) => ProbeJudgement::fail(
            "the answer has arrived, and the record is still in progress. A retry can execute \
                 again when the lock expires",
        ),
        ("absent", Some(when)) => ProbeJudgement::fail(format!(
            "the result was stored {when}. A retry in this time finds no record, and can \
                 execute again",
        )),
        (state, _) => ProbeJudgement::reported(format!("the record is {state}")),
    };
    Ok(judged.showing(&[(0, 0)]))
}

/// When a result was stored, as seen from the arrival of the whole answer; `None` if it was not seen.
/// The bounds are rounded so that they stay true.
fn stored_when(exchange: &ProbeExchange, time: StoredTime) -> Option<String> {
    let arrived = exchange.ended_us?;
    let before = time.before_us?;
    // Nothing is stored before the request was sent.
    let after = time.after_us.max(exchange.sent_us).unwrap_or_default();
    if before <= arrived {
        let least = at_least(arrived - before);
        let most = at_most(arrived.saturating_sub(after));
        return Some(format!("between {least} and {most} before the answer arrived"));
    }
    if after >= arrived {
        let least = at_least(after - arrived);
        let most = at_most(before - arrived);
        return Some(format!("between {least} and {most} after the answer arrived"));
    }
    let (earlier, later) = (at_most(arrived - after), at_most(before - arrived));
    Some(format!("at most {earlier} before and {later} after the answer arrived"))
}

/// A time in microseconds as milliseconds, rounded down.
fn at_least(us: u64) -> String {
    in_millis(us / 100)
}

/// The same, rounded up.
fn at_most(us: u64) -> String {
    in_millis(us.div_ceil(100))
}

fn in_millis(tenths: u64) -> String {
    format!("{}.{} ms", tenths / 10, tenths % 10)
}

/// How much may be missing from a promised retention: the time since the result was stored, and
/// rounding to seconds.
const RETENTION_SLACK_MS: u64 = 10_000;

fn judge_ttl(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    success_of(results[0].exchanges.first(), "the request")?;
    let record = record_of(&results[0])?;
    let judged = match (record.never_expires, record.ttl_ms) {
        (true, _) => ProbeJudgement::fail("the record never expires"),
        (false, Some(ttl)) => judge_result_ttl(task, record, ttl),
        (false, None) => ProbeJudgement::inconclusive("its TTL is unknown"),
    };
    Ok(judged.showing(&[(0, 0)]))
}

/// Judges how long a result stays that was stored a moment ago, so that nearly its whole TTL is left.
fn judge_result_ttl(task: &ProbeTask, record: &StoredRecord, ttl: u64) -> ProbeJudgement {
    if let Some(stated) = record.stated_ttl_ms
        && ttl < stated / 2
    {
        return ProbeJudgement::fail(format!(
            "it expires in {}, and the schema states {}",
            short(ttl),
            short(stated)
        ));
    }
    if let Some(retention) = task.profile.retention
        && ttl + RETENTION_SLACK_MS < age::millis(retention)
    {
        return ProbeJudgement::fail(format!(
            "it expires in {}, and {} promises to keep results for {}",
            short(ttl),
            task.profile.title,
            longer_than(age::millis(retention), ttl)
        ));
    }
    let stated = stated_ttl(record);
    ProbeJudgement::pass(format!("it expires in {}{stated}", short(ttl)))
}
