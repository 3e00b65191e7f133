//! What Redis holds between the requests.

use super::judging::{answer_of, last, settled, success_of};
use crate::domain::probe::probe_check::{
    ProbeCheck, ProbeGroup, ProbeJudgement, ProbeStep, ProbeStepResult, StoredRecord,
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

pub(in crate::domain::probe) const STORED: ProbeCheck = ProbeCheck {
    id: "record-stored",
    group: ProbeGroup::Record,
    title: "the result is stored when the answer has arrived",
    steps: send_once,
    judge: judge_stored,
};

pub(in crate::domain::probe) const TTL: ProbeCheck = ProbeCheck {
    id: "record-ttl",
    group: ProbeGroup::Record,
    title: "the stored result expires, and not before its TTL or the promised retention",
    steps: send_once,
    judge: judge_ttl,
};

pub(in crate::domain::probe) const BODY: ProbeCheck = ProbeCheck {
    id: "record-body",
    group: ProbeGroup::Record,
    title: "a retry gets the stored body",
    steps: send_twice,
    judge: judge_body,
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

fn send_once(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    needs_redis(task)?;
    Ok(vec![ProbeStep::Send(task.request(&task.new_key())?)])
}

fn send_twice(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    needs_redis(task)?;
    let request = task.request(&task.new_key())?;
    Ok(vec![ProbeStep::Send(request.clone()), ProbeStep::SendUntilFree(request)])
}

/// The record that was read after a step.
fn record_of(result: &ProbeStepResult) -> Result<&StoredRecord, ProbeJudgement> {
    match &result.record {
        Some(Ok(record)) if record.state == "absent" => Err(ProbeJudgement::inconclusive(
            "the schema has no record for this key, so the service may use another Redis key",
        )),
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
        Some(stated) => format!("; the schema states {stated} ms"),
        None => String::new(),
    }
}

fn judge_lock(_: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        let shown = [(0, 0), (0, 1)];
        let record = record_of(&results[0])?;
        if record.state != "in-progress" {
            return Ok(ProbeJudgement::inconclusive(format!(
                "the record was already {} when idemctl read it",
                record.state
            ))
            .showing(&shown));
        }
        let owner = match &record.owner {
            Some(_) => "with an owner",
            None => "without an owner",
        };
        let judged = match (record.never_expires, record.ttl_ms) {
            (true, _) => ProbeJudgement::fail(format!("the lock never expires ({owner})")),
            (false, Some(ttl)) => {
                let stated = stated_ttl(record);
                ProbeJudgement::pass(format!("the lock expires in {ttl} ms{stated} ({owner})"))
            }
            (false, None) => ProbeJudgement::inconclusive("the TTL of the lock is unknown"),
        };
        Ok(judged.showing(&shown))
    })())
}

fn judge_stored(_: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        success_of(results[0].exchanges.first(), "the request")?;
        let record = record_of(&results[0])?;
        let judged = match record.state.as_str() {
            "completed" => ProbeJudgement::pass("the result is stored"),
            "in-progress" => {
                ProbeJudgement::fail("the answer has arrived, and the record is still in progress")
            }
            state => ProbeJudgement::reported(format!("the record is {state}")),
        };
        Ok(judged.showing(&[(0, 0)]))
    })())
}

/// How much may be missing from a promised retention: the time since the result was stored, and
/// rounding to seconds.
const RETENTION_SLACK_MS: u64 = 10_000;

fn judge_ttl(task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        success_of(results[0].exchanges.first(), "the request")?;
        let record = record_of(&results[0])?;
        let judged = match (record.never_expires, record.ttl_ms) {
            (true, _) => ProbeJudgement::fail("the record never expires"),
            (false, Some(ttl)) => judge_result_ttl(task, record, ttl),
            (false, None) => ProbeJudgement::inconclusive("its TTL is unknown"),
        };
        Ok(judged.showing(&[(0, 0)]))
    })())
}

/// Judges how long a result stays that was stored a moment ago, so that nearly its whole TTL is left.
fn judge_result_ttl(task: &ProbeTask, record: &StoredRecord, ttl: u64) -> ProbeJudgement {
    if let Some(stated) = record.stated_ttl_ms
        && ttl < stated / 2
    {
        return ProbeJudgement::fail(format!(
            "it expires in {ttl} ms, and the schema states {stated} ms"
        ));
    }
    if let Some(retention) = task.profile.retention
        && ttl + RETENTION_SLACK_MS < age::millis(retention)
    {
        return ProbeJudgement::fail(format!(
            "it expires in {ttl} ms, and {} promises to keep results for {} ms",
            task.profile.title,
            age::millis(retention)
        ));
    }
    let stated = stated_ttl(record);
    ProbeJudgement::pass(format!("it expires in {ttl} ms{stated}"))
}

fn judge_body(_: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
    settled((|| {
        let (place, retry) = last(&results[1]);
        let retry = answer_of(retry)?;
        let record = record_of(&results[1])?;
        let shown = [(0, 0), (1, place)];
        let Some(body) = &record.body else {
            return Ok(
                ProbeJudgement::inconclusive("the record has no body to compare").showing(&shown)
            );
        };
        let judged = if **body == *retry.body {
            ProbeJudgement::pass(format!("both have the same {} bytes", body.len()))
        } else if is_same_json(body, &retry.body) {
            ProbeJudgement::pass("they are equal as JSON, but not in their bytes")
        } else {
            ProbeJudgement::fail("the retry got another body than the stored one")
        };
        Ok(judged.showing(&shown))
    })())
}

fn is_same_json(one: &[u8], other: &[u8]) -> bool {
    let first: Option<serde_json::Value> = serde_json::from_slice(one).ok();
    let second: Option<serde_json::Value> = serde_json::from_slice(other).ok();
    first.is_some() && first == second
}
