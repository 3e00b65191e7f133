//! Predicts the reply of a step, and the record that the step leaves, without running the step.

use super::begin::{lacks_fingerprint, why_unpredicted};
use super::complete::lock_for_step;
use crate::domain::record::{
    Content, Deadline, KeyState, Observation, Reading, Record, TimeLeft, age, decode,
};
use crate::domain::schema::value_template::Placeholder;
use crate::domain::schema::{Action, Meaning, NO_TTL, OnFailure, State, Step};
use crate::domain::step::next_request::{
    compares_itself, fails_without_prediction, possible_meaning, predict_reply,
    why_field_is_lacking,
};
use crate::domain::step::{Answer, StepInputs, UnknownAnswer};

/// The begin step's reply to a request with this hash of its payload; `None` if the schema has no
/// condition that holds in this state.
pub(crate) fn predict_begin(record: &Record, fingerprint: &str) -> Option<Meaning> {
    let other_payload = match record.fingerprint() {
        Some(stored) => stored != fingerprint,
        None => false,
    };
    let begin = record.schema.begin.as_ref()?;
    // A service may compare an empty fingerprint, or take it for none.
    if lacks_fingerprint(record, fingerprint) {
        return None;
    }
    if other_payload && compares_itself(begin) {
        return Some(Meaning::Mismatch);
    }
    if let Some((_, condition)) = predict_reply(begin, &record.readings, other_payload)
        && why_field_is_lacking(condition, &record.readings).is_some()
    {
        return None;
    }
    // The prediction of the next request, which `inspect` shows, must not say otherwise.
    if why_unpredicted(record, fingerprint).is_some() {
        return None;
    }
    match possible_meaning(begin, &record.readings, other_payload) {
        None if !fails_without_prediction(begin, &record.readings) => None,
        predicted => Some(predicted.unwrap_or(Meaning::Fail)),
    }
}

/// Why a begin that left its record as it was has shown that the answer to the next request is not
/// the one that the schema predicts for this record; `None` if it has not shown this.
/// `changes_others` is true if the step may write Redis keys that are not the record's.
pub(crate) fn why_disproved(
    record: &Record,
    replied: Option<Meaning>,
    changes_others: bool,
) -> Option<UnknownAnswer> {
    let answer = record.next_request.answer;
    let is_disproved = match replied {
        _ if answer == Answer::Unknown => false,
        // It replied as predicted, but the next request may find the lock that it took elsewhere.
        Some(Meaning::Acquired) if answer == Answer::Execute => {
            return changes_others.then_some(UnknownAnswer::MayHoldLockOutside);
        }
        Some(Meaning::Acquired) => true,
        Some(Meaning::Conflict) => answer != Answer::Conflict,
        Some(Meaning::Replay) => answer != Answer::Replay,
        // The request may have had another payload than the next one.
        Some(Meaning::Mismatch) => answer == Answer::Execute,
        // To an unlisted reply, the service reacts with an error.
        _ => answer != Answer::Fail,
    };
    is_disproved.then_some(UnknownAnswer::RepliedOtherwise)
}

/// The complete step's reply to this owner, given the lock that it finds.
pub(crate) fn predict_complete(
    record: &Record,
    owner: &[u8],
    step_lock: Option<&Content>,
) -> Meaning {
    let mut readings = record.readings.clone();
    if let Some(lock) = step_lock {
        let key_index = record.schema.lock_key_index();
        readings[key_index] = decode::decode_value(&record.schema, key_index, lock);
    }
    by_owner(record.schema.complete.as_ref(), &readings, owner)
}

/// The release step's reply to this owner.
pub(crate) fn predict_release(record: &Record, step: &Step, owner: &[u8]) -> Meaning {
    by_owner(Some(step), &record.readings, owner)
}

/// The step's reply to this owner. The `when` conditions do not tell owners apart, so a step that
/// checks the owner is known to refuse any other one.
fn by_owner(step: Option<&Step>, readings: &[Reading], owner: &[u8]) -> Meaning {
    if let Some(step) = step
        && step.checks_owner
        && let Some(holder) = holder(readings)
        && holder != owner
    {
        return Meaning::Refused;
    }
    predicted_meaning(step, readings, false)
}

/// The first owner that the values name.
fn holder(readings: &[Reading]) -> Option<&[u8]> {
    for reading in readings {
        if let Some(value) = reading.decoded()
            && let Some(owner) = &value.owner
        {
            return Some(owner);
        }
    }
    None
}

/// The meaning of the reply whose condition holds, or of a success without a condition. If there is
/// neither, the service fails.
fn predicted_meaning(step: Option<&Step>, readings: &[Reading], other_payload: bool) -> Meaning {
    let Some(step) = step else { return Meaning::Fail };
    possible_meaning(step, readings, other_payload).unwrap_or(Meaning::Fail)
}

/// The content of the result's Redis key when the complete step begins. It is the lock that idemctl
/// takes for the step, or the content that was read.
pub(super) fn found_by_step(record: &Record, inputs: &StepInputs<'_>) -> Content {
    let schema = &record.schema;
    let key_index = schema.result_key_index();
    if record.state != State::InProgress
        && key_index == schema.lock_key_index()
        && let Ok(Some(lock)) = lock_for_step(record, inputs)
    {
        return lock;
    }
    record.seen.keys[key_index].content.clone()
}

/// The record that the complete step will leave if it stores its result.
///
/// `rehearsed` is the time that the result has left if the rehearsal showed it. Otherwise the schema
/// gives its TTL.
pub(crate) fn predicted_record(
    record: &Record,
    inputs: &StepInputs<'_>,
    rehearsed: Option<TimeLeft>,
) -> Record {
    let schema = &record.schema;
    let time_left = match (rehearsed, schema.result_ttl) {
        (Some(rehearsed), _) => rehearsed,
        (None, NO_TTL) => TimeLeft::NoExpiry,
        (None, ttl) if schema.sends_result_ttl_in_milliseconds() => {
            TimeLeft::Millis(age::millis(ttl))
        }
        // Other TTLs are sent in whole seconds, rounded up.
        (None, ttl) => TimeLeft::Millis(age::millis(ttl).div_ceil(1_000).saturating_mul(1_000)),
    };
    let mut keys = Vec::with_capacity(record.seen.keys.len());
    for (key_index, seen) in record.seen.keys.iter().enumerate() {
        let content = if key_index == schema.result_key_index() {
            inputs.result_over(&found_by_step(record, inputs))
        } else {
            Content::Absent
        };
        keys.push(KeyState::new(&seen.redis_key, content, time_left, Deadline::Unknown));
    }
    let seen = Observation { server_ms: record.seen.server_ms, keys, atomic: true };
    let readings = decode::decode_all(schema, &seen);
    Record::new(schema.clone(), record.key.clone(), seen, readings)
}

/// True if the worker that held the lock, and is still running, would store its own result over a
/// completed record. `worker` is its owner token; `None` if the result has another one.
pub(crate) fn is_overwritten_later(predicted_record: &Record, worker: Option<&[u8]>) -> bool {
    by_worker(predicted_record, predicted_record.schema.complete.as_ref(), worker)
        == Meaning::Stored
}

/// True if that worker, while it is still running, renews its lock by writing it anew, over the
/// result.
pub(crate) fn is_overwritten_by_renewal(predicted_record: &Record, worker: Option<&[u8]>) -> bool {
    let schema = &predicted_record.schema;
    let Some(renew) = &schema.renew else { return false };
    let sends_lock = renew.calls.iter().any(|call| {
        call.words().any(|word| word.has(&[Placeholder::LockValue]))
            && schema.touches(call, schema.result_key_index())
    });
    if !sends_lock {
        return false;
    }
    if renew.checks_owner
        && let Some(holder) = holder(&predicted_record.readings)
        && holder != worker.unwrap_or_default()
    {
        return false;
    }
    match predict_reply(renew, &predicted_record.readings, false) {
        Some((reply, _)) => reply.means == Meaning::Renewed,
        // A script may compare the value before it writes; a command does not.
        None => renew.calls.iter().all(|call| matches!(call.action, Action::Command(_))),
    }
}

/// True if that worker would remove or replace the result once its handler fails.
pub(crate) fn is_removed_by_failure(predicted_record: &Record, worker: Option<&[u8]>) -> bool {
    let schema = &predicted_record.schema;
    let Some(release) = &schema.release else { return false };
    let releases = schema.service.on_failure == Some(OnFailure::Release);
    let touches_result =
        release.calls.iter().any(|call| schema.touches(call, schema.result_key_index()));
    releases
        && touches_result
        && by_worker(predicted_record, Some(release), worker) == Meaning::Released
}

/// What a step replies to a worker whose operation was completed by someone else.
fn by_worker(predicted_record: &Record, step: Option<&Step>, worker: Option<&[u8]>) -> Meaning {
    // An empty token never matches, because an owner has at least one character.
    by_owner(step, &predicted_record.readings, worker.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Response;
    use crate::domain::samples::{record, schemas, text};
    use crate::domain::step::Answer;

    const SOON: TimeLeft = TimeLeft::Millis(9_000);

    fn reference_lock() -> Record {
        record(
            "reference",
            &[(
                text(r#"{"state":"in-progress","owner":"w","fingerprint":"f","created_at":1}"#),
                SOON,
            )],
        )
    }

    #[test]
    fn another_payload_is_a_mismatch() {
        assert_eq!(predict_begin(&reference_lock(), "f"), Some(Meaning::Conflict));
        assert_eq!(predict_begin(&reference_lock(), "g"), Some(Meaning::Mismatch));
        let plain = record("go-chi", &[(text(r#"{"status":0}"#), SOON)]);
        assert_eq!(predict_begin(&plain, "g"), Some(Meaning::Conflict));
    }

    #[test]
    fn only_the_owner_completes_a_fenced_lock() {
        assert_eq!(predict_complete(&reference_lock(), b"w", None), Meaning::Stored);
        assert_eq!(predict_complete(&reference_lock(), b"v", None), Meaning::Refused);
        let step = reference_lock().schema.release.clone().unwrap();
        assert_eq!(predict_release(&reference_lock(), &step, b"w"), Meaning::Released);
        assert_eq!(predict_release(&reference_lock(), &step, b"v"), Meaning::Refused);
        let nothing = record(
            "event-driven",
            &[(Content::Absent, TimeLeft::Millis(0)), (Content::Absent, TimeLeft::Millis(0))],
        );
        assert_eq!(
            predict_complete(&nothing, b"w", Some(&Content::text(b"w".to_vec()))),
            Meaning::Stored
        );
        assert_eq!(predict_complete(&nothing, b"w", None), Meaning::Refused);
    }

    #[test]
    fn every_schema_replays_what_was_completed() {
        for schema in schemas() {
            let nothing = vec![(Content::Absent, TimeLeft::Millis(0)); schema.keys.len()];
            let record = record(&schema.name, &nothing);
            let response =
                Response { status: Some(201), body: b"{}".to_vec(), ..Response::default() };
            let inputs = StepInputs::new(&schema, b"k", "w", &response);
            let predicted_record = predicted_record(&record, &inputs, None);
            assert_eq!(predicted_record.next_request.answer, Answer::Replay, "{}", schema.name);
            let blind = ["go-chi", "go-middleware-v1", "express", "event-consumer"]
                .contains(&schema.name.as_str());
            assert_eq!(
                is_overwritten_later(&predicted_record, Some(b"w")),
                blind,
                "{}",
                schema.name
            );
        }
    }
}
