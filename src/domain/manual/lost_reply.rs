//! The outcome of a step whose reply was lost, as far as the record shows it. `None` if the record
//! does not show it, because a slow server may still execute the step.

use crate::domain::record::{Decoded, Expiry, Record, decode};
use crate::domain::schema::{Meaning, State};
use crate::domain::step::Request;

/// Begin: a lock with this owner exists, and did not exist before.
pub(crate) fn was_acquired(before: &Record, now: &Record, owner: &[u8]) -> Option<Meaning> {
    let holds =
        |record: &Record| record.state == State::InProgress && record.owner() == Some(owner);
    (holds(now) && !holds(before)).then_some(Meaning::Acquired)
}

/// Complete: the result that was sent is stored, was not stored before, and the lock is gone.
pub(crate) fn was_stored(before: &Record, now: &Record, request: &Request<'_>) -> Option<Meaning> {
    let key_index = now.schema.result_key_index();
    let (was, is) = (&before.seen.keys[key_index], &now.seen.keys[key_index]);
    let sent = request.result_over(&was.content);
    let same = is.content == sent
        || {
            // A script may add the time to the result.
            let sent = decode::decode_value(&now.schema, key_index, &sent);
            matches!((sent.decoded(), now.readings[key_index].decoded()), (Some(sent), Some(is)) if says_the_same(sent, is))
        };
    let longer = match (was.expiry, is.expiry) {
        (Expiry::In(was), Expiry::In(is)) => is > was,
        (was, is) => was != is,
    };
    let anew = was.content != is.content || longer;
    let lock_over = key_index == now.schema.lock_key_index() || now.lock().is_none();
    (same && anew && lock_over).then_some(Meaning::Stored)
}

/// Release: there is no lock any more.
pub(crate) fn was_released(now: &Record) -> Option<Meaning> {
    now.lock().is_none().then_some(Meaning::Released)
}

fn says_the_same(sent: &Decoded, is: &Decoded) -> bool {
    let all = |of: &Decoded| {
        (
            of.format,
            of.response.clone(),
            of.error.clone(),
            of.owner.clone(),
            of.fingerprint.clone(),
            of.blob.clone(),
        )
    };
    all(sent) == all(is)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Content, Response};
    use crate::domain::samples::{record, text};

    const SOON: Expiry = Expiry::In(9_000);
    const LATER: Expiry = Expiry::In(90_000);

    fn reference(value: &str, expiry: Expiry) -> Record {
        record("reference", &[(text(value), expiry)])
    }

    fn lock(owner: &str) -> Record {
        reference(
            &format!(
                r#"{{"state":"in-progress","owner":"{owner}","fingerprint":"","created_at":1}}"#
            ),
            SOON,
        )
    }

    fn result(at: u64, status: u64, expiry: Expiry) -> Record {
        let response = format!(r#"{{"status":{status},"headers":{{}},"body":"","error":null}}"#);
        let value = format!(
            r#"{{"state":"completed","owner":"w","fingerprint":"","created_at":1,"completed_at":{at},"response":{response}}}"#
        );
        reference(&value, expiry)
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
        let request = Request::new(&schema, b"k", "w", &response);
        let stored = |before: &Record, now: &Record| was_stored(before, now, &request);
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
        let request = Request::new(&before.schema, b"k", "", &response);
        assert_eq!(
            was_stored(&before, &two(Content::Absent, "{}"), &request),
            Some(Meaning::Stored)
        );
        assert_eq!(was_stored(&before, &two(text("1"), "{}"), &request), None);
        assert_eq!(was_released(&two(Content::Absent, "")), Some(Meaning::Released));
        assert_eq!(was_released(&before), None);
    }
}
