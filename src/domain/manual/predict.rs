//! Predicts the reply of a step, and the record that the step leaves, without running the step.

use crate::domain::record::{
    Content, Deadline, Expiry, KeyState, Observation, Reading, Record, age, decode,
};
use crate::domain::schema::{Meaning, Step, TtlOf};
use crate::domain::step::Request;
use crate::domain::step::next_request::predict_reply;

/// The begin step's reply to a request with this hash of its payload.
pub(crate) fn predict_begin(record: &Record, fingerprint: &str) -> Meaning {
    let mut replies = record.schema.begin_calls().iter().flat_map(|call| &call.replies);
    // A script that compares the payload itself reports a mismatch without a `when` condition.
    let compares = replies.any(|reply| reply.means == Meaning::Mismatch && reply.when.is_empty());
    let other_payload = record.fingerprint().is_some_and(|stored| stored != fingerprint);
    if compares && other_payload {
        return Meaning::Mismatch;
    }
    let begin = record.schema.begin.as_ref();
    let predicted = begin.and_then(|step| predict_reply(step, &record.readings, other_payload));
    predicted.map_or(Meaning::Fail, |(reply, _)| reply.means)
}

/// The complete step's reply to this owner, given the lock that it finds.
pub(crate) fn predict_complete(record: &Record, owner: &[u8], held: Option<&Content>) -> Meaning {
    let mut readings = record.readings.clone();
    if let Some(lock) = held {
        let key_index = record.schema.lock_key_index();
        readings[key_index] = decode::decode_value(&record.schema, key_index, lock);
    }
    by_owner(record.schema.complete.as_ref(), &readings, owner, Meaning::Refused)
}

/// The release step's reply to this owner.
pub(crate) fn predict_release(record: &Record, step: &Step, owner: &[u8]) -> Meaning {
    by_owner(Some(step), &record.readings, owner, Meaning::Refused)
}

fn by_owner(
    step: Option<&Step>,
    readings: &[Reading],
    owner: &[u8],
    otherwise: Meaning,
) -> Meaning {
    let holder =
        readings.iter().filter_map(Reading::decoded).find_map(|value| value.owner.as_deref());
    if step.is_some_and(|step| step.checks_owner) && holder.is_some_and(|holder| holder != owner) {
        return otherwise;
    }
    answer(step, readings)
}

fn answer(step: Option<&Step>, readings: &[Reading]) -> Meaning {
    step.and_then(|step| predict_reply(step, readings, false))
        .map_or(Meaning::Fail, |(reply, _)| reply.means)
}

/// The record that the complete step leaves if it stores its result.
///
/// `lives` is the TTL of the result if a trial run measured it; otherwise the schema gives the TTL.
pub(crate) fn completed(record: &Record, request: &Request<'_>, lives: Option<Expiry>) -> Record {
    let schema = &record.schema;
    // TTLs are sent in whole seconds, rounded up.
    let whole = |ttl| Expiry::In(age::millis(ttl).div_ceil(1_000).saturating_mul(1_000));
    let expiry = lives.unwrap_or_else(|| schema.ttl(TtlOf::Result).map_or(Expiry::Never, whole));
    let left = |(key_index, seen): (usize, &KeyState)| {
        let is_result = key_index == schema.result_key_index();
        let content = if is_result { request.result_over(&seen.content) } else { Content::Absent };
        KeyState::new(&seen.redis_key, content, expiry, Deadline::Unknown)
    };
    let keys: Vec<_> = record.seen.keys.iter().enumerate().map(left).collect();
    let seen = Observation { server_ms: record.seen.server_ms, keys, atomic: true };
    let readings = decode::decode_all(schema, &seen);
    Record::new(schema.clone(), record.key.clone(), seen, readings)
}

/// True if a worker that is still running would store its own result over a completed record. A
/// fenced worker does not, because its lock is gone.
pub(crate) fn is_overwritten_later(completed: &Record) -> bool {
    answer(completed.schema.complete.as_ref(), &completed.readings) == Meaning::Stored
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Response;
    use crate::domain::samples::{record, schemas, text};
    use crate::domain::step::Answer;

    const SOON: Expiry = Expiry::In(9_000);

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
        assert_eq!(predict_begin(&reference_lock(), "f"), Meaning::Conflict);
        assert_eq!(predict_begin(&reference_lock(), "g"), Meaning::Mismatch);
        let plain = record("go-chi", &[(text(r#"{"status":0}"#), SOON)]);
        assert_eq!(predict_begin(&plain, "g"), Meaning::Conflict);
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
            &[(Content::Absent, Expiry::In(0)), (Content::Absent, Expiry::In(0))],
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
            let nothing = vec![(Content::Absent, Expiry::In(0)); schema.keys.len()];
            let record = record(&schema.name, &nothing);
            let response =
                Response { status: Some(201), body: b"{}".to_vec(), ..Response::default() };
            let request = Request::new(&schema, b"k", "w", &response);
            let completed = completed(&record, &request, None);
            assert_eq!(completed.next_request.answer, Answer::Replay, "{}", schema.name);
            let blind = ["go-chi", "go-middleware-v1", "express", "event-consumer"]
                .contains(&schema.name.as_str());
            assert_eq!(is_overwritten_later(&completed), blind, "{}", schema.name);
        }
    }
}
