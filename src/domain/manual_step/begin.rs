//! What a begin step that an operator executes does to a record: whether it may take a lock, and
//! whether it may overwrite a value of which nothing is predicted.

use crate::domain::record::{Reading, Record};
use crate::domain::schema::{Call, Meaning, Reply, ReplyPattern};
use crate::domain::step::Answer;
use crate::domain::step::next_request::{compares_itself, predict_reply};

/// Why the schema does not say how the service answers a request with this hash of its payload,
/// although it describes the begin step: the same reasons as those of the next request, and a
/// record without the hash that the service compares. `None` if it says so, or gives no reason.
pub(crate) fn why_unpredicted(record: &Record, fingerprint: &str) -> Option<String> {
    if record.next_request.answer != Answer::Unknown {
        return lacks_fingerprint(record, fingerprint).then(|| {
            let lacking = match record.fingerprint() {
                Some(_) => "the stored fingerprint is empty",
                None => "the stored value has no fingerprint",
            };
            format!(
                "{lacking}, and the schema does not say how the service compares the request's \
                with that"
            )
        });
    }
    match &record.next_request.unknown_because {
        Some(because) => Some(because.as_str().to_owned()),
        None => record.unreadable_because().map(str::to_owned),
    }
}

/// True if the request has a fingerprint, the stored value has none in its place for one, or an
/// empty one, and the service compares them: it may take the request for one with another payload.
pub(super) fn lacks_fingerprint(record: &Record, fingerprint: &str) -> bool {
    let Some(begin) = &record.schema.begin else { return false };
    let has_one = record.fingerprint().is_some_and(|stored| !stored.is_empty());
    if fingerprint.is_empty() || has_one {
        return false;
    }
    let has_place = record.readings.iter().filter_map(Reading::decoded).any(|value| {
        let format = &record.schema.values[value.format];
        format.fields.fingerprint.is_some()
    });
    if !has_place {
        return false;
    }
    let of_others = predict_reply(begin, &record.readings, true);
    for predicted in [of_others, predict_reply(begin, &record.readings, false)] {
        // The schema says it of a record without one.
        if predicted.is_some_and(|(_, condition)| condition.no_fingerprint) {
            return false;
        }
    }
    match of_others {
        Some((reply, _)) if reply.means == Meaning::Mismatch => true,
        _ => compares_itself(begin),
    }
}

/// True if a request with a fingerprint may be rejected, because the stored value has none.
pub(crate) fn may_lack_fingerprint(record: &Record) -> bool {
    lacks_fingerprint(record, "any")
}

/// Why the step must not be sent: the record holds a value of which nothing is predicted, and a
/// command of the step may overwrite it. A script, or SET with NX, decides that by itself.
pub(crate) fn why_overwrites(record: &Record, fingerprint: &str) -> Option<String> {
    let is_unclear =
        |reading: &Reading| reading.mismatch().is_some() || reading.lacks_field().is_some();
    if !record.readings.iter().any(is_unclear) {
        return None;
    }
    let schema = &record.schema;
    for call in schema.begin_calls() {
        let touches_value =
            schema.touches_lock(call) || schema.touches(call, schema.result_key_index());
        if call.is_plain_write() && touches_value {
            return why_unpredicted(record, fingerprint);
        }
        // Such a value ends the step here, unless a reply for any text leads on.
        if let Some(key_index) = call.reads
            && is_unclear(&record.readings[key_index])
            && !call.replies.iter().any(is_any_text_and_leads_on)
        {
            return None;
        }
    }
    None
}

fn is_any_text_and_leads_on(reply: &Reply) -> bool {
    let is_any = matches!(reply.pattern, ReplyPattern::Text | ReplyPattern::Word(_));
    reply.means == Meaning::Next && is_any
}

/// True if the step may take a lock before or with its predicted reply: a call up to there is a
/// script, or a command that writes the lock's Redis key in this state.
pub(crate) fn may_take_lock(record: &Record, fingerprint: &str) -> bool {
    let schema = &record.schema;
    let Some(begin) = &schema.begin else { return false };
    if !schema.has_locks() {
        return false;
    }
    let other_payload = record.fingerprint().is_some_and(|stored| stored != fingerprint);
    let mut calls = &begin.calls[..];
    if let Some((predicted, _)) = predict_reply(begin, &record.readings, other_payload) {
        let decides = |call: &Call| call.replies.iter().any(|reply| std::ptr::eq(reply, predicted));
        if let Some(index) = begin.calls.iter().position(decides) {
            calls = &begin.calls[..=index];
        }
    }
    let is_free = record.seen.keys[schema.lock_key_index()].content.is_absent();
    calls.iter().any(|call| {
        let writes =
            call.is_script() || call.is_plain_write() || (call.writes_if_free() && is_free);
        // A command that only writes other Redis keys may still send the key, as a set's member.
        let is_elsewhere = !call.is_script()
            && !schema.keys_beside_record(std::slice::from_ref(call), &record.key).is_empty();
        writes && schema.touches_lock(call) && !is_elsewhere
    })
}
