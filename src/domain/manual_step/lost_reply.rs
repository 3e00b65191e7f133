//! The outcome of a step whose reply was lost, as far as the record shows it. `None` if the record
//! does not show it, because a slow server may still execute the step.

use super::predict::found_by_step;
use crate::domain::record::{Decoded, Record, TimeLeft, decode};
use crate::domain::schema::{Meaning, State};
use crate::domain::step::StepInputs;

/// Begin: a lock with this owner exists, and did not exist before.
pub(crate) fn was_acquired(before: &Record, now: &Record, owner: &[u8]) -> Option<Meaning> {
    // The same owner may have held the lock before. Then the lock does not show what begin did.
    if holds(now, owner) && !holds(before, owner) { Some(Meaning::Acquired) } else { None }
}

fn holds(record: &Record, owner: &[u8]) -> bool {
    record.state == State::InProgress && record.owner() == Some(owner)
}

/// Complete: the result that was sent is stored, was not stored before, and the lock is gone.
pub(crate) fn was_stored(
    before: &Record,
    now: &Record,
    inputs: &StepInputs<'_>,
) -> Option<Meaning> {
    let schema = &now.schema;
    let key_index = schema.result_key_index();
    let old = &before.seen.keys[key_index];
    let new = &now.seen.keys[key_index];
    let sent = inputs.result_over(&found_by_step(before, inputs));
    if new.content != sent {
        // A script may add the time to the result.
        let sent = decode::decode_value(schema, key_index, &sent);
        let sent = sent.decoded()?;
        let stored = now.readings[key_index].decoded()?;
        if !says_the_same(sent, stored) {
            return None;
        }
    }
    let lives_longer = match (old.time_left, new.time_left) {
        (TimeLeft::Millis(old), TimeLeft::Millis(new)) => new > old,
        (old, new) => old != new,
    };
    // The same result may have been stored before. Then it does not show what complete did.
    if old.content == new.content && !lives_longer {
        return None;
    }
    let shares_key = key_index == schema.lock_key_index();
    if shares_key || now.lock().is_none() { Some(Meaning::Stored) } else { None }
}

/// Release: there is no lock any more.
pub(crate) fn was_released(now: &Record) -> Option<Meaning> {
    if now.lock().is_none() { Some(Meaning::Released) } else { None }
}

/// True if both values have the same format and the same data, whatever times they hold.
fn says_the_same(one: &Decoded, other: &Decoded) -> bool {
    one.format == other.format
        && one.response == other.response
        && one.error == other.error
        && one.owner == other.owner
        && one.fingerprint == other.fingerprint
        && one.blob == other.blob
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Content, Response};
    use crate::domain::samples::{record, text};

    const SOON: TimeLeft = TimeLeft::Millis(9_000);
    const LATER: TimeLeft = TimeLeft::Millis(90_000);

    fn reference(value: &str, time_left: TimeLeft) -> Record {
        record("reference", &[(text(value), time_left)])
    }

    fn lock(owner: &str) -> Record {
        reference(
            &format!(
                r#"{{"state":"in-progress","owner":"{owner}","fingerprint":"","created_at":1}}"#
            ),
            SOON,
        )
    }

    fn result(at: u64, status: u64, time_left: TimeLeft) -> Record {
        let response = format!(r#"{{"status":{status},"headers":{{}},"body":"","error":null}}"#);
        let value = format!(
            r#"{{"state":"completed","owner":"w","fingerprint":"","created_at":1,"completed_at":{at},"response":{response}}}"#
        );
        reference(&value, time_left)
    }

    #[test]
    fn a_lock_is_ours_by_its_owner_alone() {
        assert_eq!(was_acquired(&lock("v"), &lock("w"), b"w"), Some(Meaning::Acquired));
        assert_eq!(was_acquired(&lock("v"), &lock("v"), b"w"), None);
        assert_eq!(was_acquired(&lock("w"), &lock("w"), b"w"), None, "it was before");
        let chi = |value| record("go-chi", &[(value, SOON)]);
        let taken = chi(text(r#"{"status":0}"#));
        assert_eq!(was_acquired(&chi(Content::Absent), &taken, b"w"), None, "it names nobody");
    }

    #[test]
    fn a_result_is_ours_by_what_it_says_whatever_the_time() {
        let response = Response { status: Some(201), whole: true, ..Response::default() };
        let schema = lock("w").schema;
        let inputs = StepInputs::new(&schema, b"k", "w", &response);
        let stored = |before: &Record, now: &Record| was_stored(before, now, &inputs);
        assert_eq!(stored(&lock("w"), &result(77, 201, LATER)), Some(Meaning::Stored));
        assert_eq!(stored(&lock("w"), &result(77, 200, LATER)), None);
        assert_eq!(stored(&lock("w"), &lock("w")), None);
        assert_eq!(
            stored(&result(77, 201, LATER), &result(77, 201, LATER)),
            None,
            "it was there before"
        );
        assert_eq!(stored(&result(77, 201, SOON), &result(77, 201, LATER)), Some(Meaning::Stored));
    }

    #[test]
    fn a_lock_that_is_still_beside_the_result_leaves_it_open() {
        let two = |lock: Content, result: &str| {
            let result = if result.is_empty() { Content::Absent } else { text(result) };
            record("event-consumer", &[(lock, SOON), (result, SOON)])
        };
        let response = Response { body: b"{}".to_vec(), ..Response::default() };
        let before = two(text("1"), "");
        let inputs = StepInputs::new(&before.schema, b"k", "", &response);
        assert_eq!(
            was_stored(&before, &two(Content::Absent, "{}"), &inputs),
            Some(Meaning::Stored)
        );
        assert_eq!(was_stored(&before, &two(text("1"), "{}"), &inputs), None);
        assert_eq!(was_released(&two(Content::Absent, "")), Some(Meaning::Released));
        assert_eq!(was_released(&before), None);
    }
}
