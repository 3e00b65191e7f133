//! The predicted answer to the next request with a key, derived from the replies of the schema's
//! begin step.

use std::sync::Arc;

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::record::{Observation, Reading, TimeLeft, ValueField};
use crate::domain::schema::{Call, Condition, KeyIs, Meaning, Reply, ReplyPattern, Schema, Step};

/// The predicted answer to the next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextRequest {
    pub answer: Answer,
    /// The first expiry after which the answer is another one. `TimeLeft::NoExpiry` if the answer
    /// depends on a Redis key that never expires. `None` if the request executes, because then the
    /// request itself changes it, or if the answer is unknown.
    pub until: Option<TimeLeft>,
    /// The Redis key whose expiry changes it, by its index in the record.
    pub(crate) until_key: Option<usize>,
    /// The client's response, if the schema describes it.
    pub client: Option<Arc<str>>,
    /// Why the answer is unknown, if the value causes it.
    pub unknown_because: Option<UnknownAnswer>,
    /// True if the stored fingerprint is empty, and the service compares it: the answer is only for
    /// a request whose fingerprint is empty, too. What others get is not known.
    pub only_without_fingerprint: bool,
    /// True if this request meets a lock that never expires, and gives it the lock TTL. `until` is
    /// then `None`, because nothing ends the answer before that request.
    pub gives_ttl: bool,
}

impl NextRequest {
    /// An answer that is not known, and why, if the schema describes the begin step.
    pub(crate) fn unknown(because: Option<UnknownAnswer>) -> Self {
        Self {
            answer: Answer::Unknown,
            until: None,
            until_key: None,
            client: None,
            unknown_because: because,
            only_without_fingerprint: false,
            gives_ttl: false,
        }
    }
}

/// Why the answer to a record's next request is unknown although the schema describes the begin
/// step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownAnswer {
    /// Why, in words: the value lacks a field, or its expiry is not a time.
    Value(String),
    /// The value contains an expiry, and the Redis user may not read the server's time.
    NoServerTime,
    /// Only part of a value was read, and the rest decides.
    Unread,
    /// The begin step was sent, and replied otherwise than the schema predicts for this record.
    RepliedOtherwise,
    /// The begin step acquired a lock as predicted, and may have taken it in a Redis key that is
    /// not the record's.
    MayHoldLockOutside,
}

impl UnknownAnswer {
    /// The reason in JSON output.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Value(why) => why,
            Self::NoServerTime => {
                "the value contains an expiry, but idemctl cannot read the server's time; the user \
                needs the permission for TIME (+time)"
            }
            Self::Unread => {
                "idemctl read only part of the value, and the rest decides; `inspect --full` reads \
                all of it"
            }
            Self::RepliedOtherwise => {
                "the begin step has just replied otherwise than the schema predicts for this \
                record, so something outside the record decides, or the step refused its arguments"
            }
            Self::MayHoldLockOutside => {
                "the begin step has just acquired the lock, and may have taken it in a Redis key \
                outside the record, which idemctl does not read"
            }
        }
    }
}

/// How the service answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Answer {
    /// The request acquires the lock, and the operation is executed.
    Execute,
    /// The request is rejected, because another request holds the lock.
    Conflict,
    /// The request gets the stored response.
    Replay,
    /// The request fails with an error.
    Fail,
    /// The schema does not describe the begin step, or lists a reply of it without a condition and
    /// no other condition holds. Also if the value lacks a field, or the server's time is unknown
    /// ([`UnknownAnswer`]).
    Unknown,
}

as_str!(Answer);

/// Predicts the answer to the next request: the first reply of the begin step whose condition holds
/// in this state of the Redis keys. If no condition holds, the service fails, unless the schema
/// lists a reply without a condition.
pub fn of(schema: &Schema, readings: &[Reading], seen: &Observation) -> NextRequest {
    let mut next = NextRequest::unknown(None);
    let Some(begin) = &schema.begin else { return next };
    for (key_index, reading) in readings.iter().enumerate() {
        if matches!(reading, Reading::Undecided) && asks_of_value(begin, key_index) {
            return NextRequest::unknown(Some(UnknownAnswer::Unread));
        }
    }
    // The next request is assumed to be a retry with the same payload.
    let predicted = predict_reply(begin, readings, false);
    next.answer = answer_of(begin, predicted, readings);
    if let Some((_, condition)) = predicted
        && let Some(why) = why_field_is_lacking(condition, readings)
    {
        next.answer = Answer::Unknown;
        next.unknown_because = Some(UnknownAnswer::Value(why.to_owned()));
        return next;
    }
    if next.answer == Answer::Unknown {
        let ambiguous = readings.iter().find(|reading| matches!(reading, Reading::Ambiguous(_)));
        let why = ambiguous.and_then(Reading::lacks_field);
        next.unknown_because = why.map(|why| UnknownAnswer::Value(why.to_owned()));
    }
    if depends_on_time(schema, begin, next.answer, readings, seen) {
        next.answer = Answer::Unknown;
        next.unknown_because = Some(UnknownAnswer::NoServerTime);
        return next;
    }
    if let Some((reply, _)) = predicted {
        next.client.clone_from(&reply.client);
    }
    let is_stored = matches!(next.answer, Answer::Conflict | Answer::Replay);
    next.only_without_fingerprint = is_stored && is_mismatch_for_others(begin, readings);
    match predicted {
        _ if matches!(next.answer, Answer::Execute | Answer::Unknown) => {}
        None => {
            let (until, key_index) = first_key_expiry(seen);
            next.until = Some(until);
            next.until_key = key_index;
        }
        Some((_, condition)) => {
            let (until, key_index) = expiry_of_answer(condition, readings, seen);
            next.until = Some(until);
            next.until_key = key_index;
        }
    }
    let is_lock = next.until_key == Some(schema.lock_key_index());
    if begin.gives_ttl
        && next.answer == Answer::Conflict
        && is_lock
        && next.until == Some(TimeLeft::NoExpiry)
    {
        next.gives_ttl = true;
        next.until = None;
    }
    next
}

/// Why a field of a value is lacking, although the condition is about a value with it. The service
/// may take such a value for another one, or fail.
pub(crate) fn why_field_is_lacking<'a>(
    condition: &Condition,
    readings: &'a [Reading],
) -> Option<&'a str> {
    for (key_index, asked) in &condition.keys {
        if matches!(asked, KeyIs::Value(_) | KeyIs::Reclaimable | KeyIs::Unreadable)
            && let Some(why) = readings[*key_index].lacks_field()
        {
            return Some(why);
        }
        // The service looks at the expiry of such a value, too.
        if *asked == KeyIs::Present
            && let Some(value) = readings[*key_index].decoded()
            && let Some(why) = value.unclear_expiry.as_deref()
        {
            return Some(why);
        }
    }
    None
}

/// True if begin looks at a value of which only part was read, so that the rest may change the
/// answer.
pub(crate) fn depends_on_rest(schema: &Schema, readings: &[Reading], seen: &Observation) -> bool {
    let Some(begin) = &schema.begin else { return false };
    for (key_index, key) in seen.keys.iter().enumerate() {
        let is_any_text = match readings[key_index].decoded() {
            Some(value) => schema.values[value.format].takes_any_text(),
            None => false,
        };
        if !key.content.is_whole() && !is_any_text && asks_of_value(begin, key_index) {
            return true;
        }
    }
    false
}

/// True if a prediction of the step needs more of this Redis key than whether it exists.
fn asks_of_value(step: &Step, key_index: usize) -> bool {
    let replies = step.calls.iter().flat_map(|call| &call.replies);
    let mut keys = replies.flat_map(|reply| &reply.when).flat_map(|condition| &condition.keys);
    keys.any(|(index, asked)| {
        *index == key_index && !matches!(asked, KeyIs::Absent | KeyIs::Present | KeyIs::WrongType)
    })
}

/// True if the server's time is unknown, and the service would give another answer if a value had
/// passed its contained expiry.
fn depends_on_time(
    schema: &Schema,
    begin: &Step,
    answer: Answer,
    readings: &[Reading],
    seen: &Observation,
) -> bool {
    if seen.server_ms.is_some() {
        return false;
    }
    // Each value with an expiry may have passed it, whatever the others did.
    let mut possible = vec![readings.to_vec()];
    for (key_index, reading) in readings.iter().enumerate() {
        if reading.decoded().is_none_or(|value| value.expires_ms.is_none()) {
            continue;
        }
        let Some(after) = after_expiry(schema, reading) else { continue };
        for mut readings in possible.clone() {
            readings[key_index] = after.clone();
            possible.push(readings);
        }
    }
    possible.iter().any(|readings| {
        let predicted = predict_reply(begin, readings, false);
        answer_of(begin, predicted, readings) != answer
    })
}

/// True if the stored fingerprint is empty, and the service may reject a request with another one.
/// Only a reply for records without a fingerprint says what the service makes of an empty one.
fn is_mismatch_for_others(begin: &Step, readings: &[Reading]) -> bool {
    let values = readings.iter().filter_map(Reading::decoded);
    let mut stored = values.filter_map(|value| value.fingerprint.as_deref());
    if stored.next() != Some("") {
        return false;
    }
    match predict_reply(begin, readings, true) {
        Some((reply, _)) if reply.means == Meaning::Mismatch => true,
        _ => compares_itself(begin),
    }
}

/// True if a script of begin compares the payload itself, because the schema does not say when it
/// replies that the payload differs.
pub(crate) fn compares_itself(begin: &Step) -> bool {
    let mut replies = begin.calls.iter().flat_map(|call| &call.replies);
    replies.any(|reply| reply.means == Meaning::Mismatch && reply.when.is_empty())
}

/// The answer that a predicted reply of begin gives.
fn answer_of(
    begin: &Step,
    predicted: Option<(&Reply, &Condition)>,
    readings: &[Reading],
) -> Answer {
    match predicted {
        None if !fails_without_prediction(begin, readings) => Answer::Unknown,
        None => Answer::Fail,
        Some((reply, _)) => match reply.means {
            Meaning::Acquired => Answer::Execute,
            Meaning::Conflict => Answer::Conflict,
            Meaning::Replay => Answer::Replay,
            _ => Answer::Fail,
        },
    }
}

/// True if begin fails in a state in which no condition of it holds. Otherwise the answer is not
/// known: the schema lists an answer without a condition, or says nothing of the value that a call
/// reads.
pub(crate) fn fails_without_prediction(begin: &Step, readings: &[Reading]) -> bool {
    let has_unpredicted_answers = begin.calls.iter().flat_map(|call| &call.replies).any(|reply| {
        let is_answer =
            matches!(reply.means, Meaning::Acquired | Meaning::Conflict | Meaning::Replay);
        is_answer && reply.when.is_empty()
    });
    if has_unpredicted_answers {
        return false;
    }
    for call in &begin.calls {
        if let Some(key_index) = call.reads {
            // Redis itself refuses to read another type.
            if readings[key_index].is(&KeyIs::WrongType) {
                return true;
            }
            if readings[key_index].mismatch().is_some() || !may_lead_on(call, readings) {
                return false;
            }
        }
        // Only such a reply leads to the next call.
        if !call.replies.iter().any(|reply| reply.means == Meaning::Next) {
            return true;
        }
    }
    true
}

/// False if the call reads a Redis key, and the reply to what is there cannot lead to the next call:
/// the schema lists no such reply, or one that decides. What it then means, no condition says.
fn may_lead_on(call: &Call, readings: &[Reading]) -> bool {
    let Some(key_index) = call.reads else { return true };
    let reading = &readings[key_index];
    let fitting = call.replies.iter().find(|reply| match (reading, &reply.pattern, reply.value) {
        // Of a value that was read in part, or holds an expiry, the reply is not known.
        (Reading::Undecided, ..) => true,
        (Reading::Value(value), ..) if value.past_expiry.is_some() => true,
        (Reading::Absent, pattern, _) => *pattern == ReplyPattern::Nil,
        (Reading::WrongType(_), pattern, _) => matches!(pattern, ReplyPattern::Error(_)),
        (_, ReplyPattern::Nil | ReplyPattern::Error(_), _) => false,
        (reading, ReplyPattern::Word(word), None) if word.is_empty() => {
            matches!(reading, Reading::EmptyText | Reading::Value(_))
        }
        (reading, _, Some(format)) => reading.decoded().is_some_and(|value| value.format == format),
        (_, _, None) => true,
    });
    match (reading, fitting) {
        (_, None) => false,
        // Any text is this one.
        (
            Reading::Unreadable(_) | Reading::Unrecognised { .. } | Reading::Ambiguous(_),
            Some(reply),
        ) => reply.pattern != ReplyPattern::Text || reply.means == Meaning::Next,
        (_, Some(_)) => true,
    }
}

/// Predicts the reply of a step from the content of the Redis keys. It returns the reply and the
/// condition that holds. `other_payload` is true for a request whose payload differs from the
/// stored one.
pub(crate) fn predict_reply<'a>(
    step: &'a Step,
    readings: &[Reading],
    other_payload: bool,
) -> Option<(&'a Reply, &'a Condition)> {
    for call in &step.calls {
        for reply in &call.replies {
            // The replies of the next call predict what it decides.
            if reply.means == Meaning::Next {
                let leads_on = |condition| holds(condition, readings, other_payload);
                if reply.when.iter().any(leads_on) {
                    break;
                }
                continue;
            }
            for condition in &reply.when {
                if holds(condition, readings, other_payload) {
                    return Some((reply, condition));
                }
            }
        }
        // The service does not come to the next call with such a value.
        if !may_lead_on(call, readings) {
            return None;
        }
    }
    None
}

/// What a step other than begin replies in this state. If no condition holds, a reply without any
/// is possible, because nothing says when the service sends it: then the step may succeed. A
/// success must not be ruled out without evidence. `None` if no reply is possible.
pub(crate) fn possible_meaning(
    step: &Step,
    readings: &[Reading],
    other_payload: bool,
) -> Option<Meaning> {
    if let Some((reply, _)) = predict_reply(step, readings, other_payload) {
        return Some(reply.means);
    }
    for reply in step.calls.iter().flat_map(|call| &call.replies) {
        let is_success = matches!(reply.means, Meaning::Stored | Meaning::Released);
        if is_success && reply.when.is_empty() {
            return Some(reply.means);
        }
    }
    None
}

/// True if no value stores a hash of a payload, as far as the values were read.
fn has_no_fingerprint(readings: &[Reading]) -> bool {
    for value in readings.iter().filter_map(Reading::decoded) {
        let stored = value.fingerprint.as_deref().unwrap_or_default();
        if !stored.is_empty() || value.unread.contains(ValueField::Fingerprint) {
            return false;
        }
    }
    true
}

fn holds(condition: &Condition, readings: &[Reading], other_payload: bool) -> bool {
    if condition.other_payload && !other_payload {
        return false;
    }
    if condition.no_fingerprint && !has_no_fingerprint(readings) {
        return false;
    }
    condition.keys.iter().all(|(key_index, asked)| readings[*key_index].is(asked))
}

/// The expiry of the Redis key that decides the answer, and that key's index: the first key that
/// the condition requires to exist. If the value itself expires earlier, that expiry counts.
fn expiry_of_answer(
    condition: &Condition,
    readings: &[Reading],
    seen: &Observation,
) -> (TimeLeft, Option<usize>) {
    let Some((key_index, _)) = condition.keys.iter().find(|(_, asked)| *asked != KeyIs::Absent)
    else {
        return first_key_expiry(seen);
    };
    let time_left = seen.keys[*key_index].time_left;
    let Some(left) = own_time_left(&readings[*key_index], seen) else {
        return (time_left, Some(*key_index));
    };
    let time_left = match time_left {
        TimeLeft::Millis(ms) => TimeLeft::Millis(ms.min(left)),
        TimeLeft::NoExpiry => TimeLeft::Millis(left),
    };
    (time_left, Some(*key_index))
}

/// The reading of a value after its contained expiry; `None` if its format has none.
fn after_expiry(schema: &Schema, reading: &Reading) -> Option<Reading> {
    let mut value = reading.decoded()?.clone();
    value.past_expiry = Some(schema.values[value.format].expires_at.as_ref()?.past);
    Some(Reading::Value(Box::new(value)))
}

/// The time in milliseconds until the expiry that a value holds; `None` if it holds none, or if it
/// has passed.
fn own_time_left(reading: &Reading, seen: &Observation) -> Option<u64> {
    let value = reading.decoded()?;
    if value.past_expiry.is_some() {
        return None;
    }
    Some(value.expires_ms?.saturating_sub(seen.server_ms?))
}

/// The expiry of the first Redis key that exists, and that key's index.
fn first_key_expiry(seen: &Observation) -> (TimeLeft, Option<usize>) {
    for (key_index, key) in seen.keys.iter().enumerate() {
        if !key.content.is_absent() {
            return (key.time_left, Some(key_index));
        }
    }
    (TimeLeft::Millis(0), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Content;
    use crate::domain::record::decode;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, schemas, seen, text};

    /// Contents of a Redis key for every kind of condition.
    fn contents() -> Vec<Content> {
        let texts = [
            "",
            "1",
            "in-progress",
            "completed",
            CHI_LOCK,
            CHI_RESULT,
            r#"{"status":"PENDING"}"#,
            r#"{"status":"IN_PROGRESS"}"#,
            r#"{"status":"COMPLETED"}"#,
            r#"{"statusCode":200}"#,
            r#"{"storage":1,"bucket":1,"key":1}"#,
        ];
        let others = [Content::Absent, Content::Other("hash".to_owned())];
        texts.iter().map(text).chain(others).collect()
    }

    /// The answer to the next request if the Redis keys have these contents. The lock expires in 1
    /// ms, and the result in 2 ms.
    fn next(schema: &Schema, contents: &[Content]) -> NextRequest {
        let contents: Vec<_> = contents.iter().cloned().zip([1, 2].map(TimeLeft::Millis)).collect();
        let seen = seen(schema, &contents);
        of(schema, &decode::decode_all(schema, &seen), &seen)
    }

    fn without(contents: &[Content], key_index: usize) -> Vec<Content> {
        let mut contents = contents.to_vec();
        contents[key_index] = Content::Absent;
        contents
    }

    #[test]
    fn the_answer_holds_until_the_key_that_decides_it_is_gone() {
        for schema in schemas().iter().filter(|schema| schema.keys.len() == 2) {
            for lock in contents() {
                for result in contents() {
                    let held = [lock.clone(), result];
                    let now = next(schema, &held);
                    let Some(TimeLeft::Millis(until)) = now.until else { continue };
                    let decider = usize::from(until == 2);
                    let other_gone = next(schema, &without(&held, 1 - decider));
                    assert_eq!(other_gone.answer, now.answer, "{}: {held:?}", schema.name);
                    let gone = next(schema, &without(&held, decider));
                    assert_ne!(gone, now, "{}: {held:?}", schema.name);
                }
            }
        }
    }

    #[test]
    fn a_permanent_answer_never_ends_and_an_execution_has_no_end() {
        assert_eq!(chi(CHI_LOCK, TimeLeft::NoExpiry).next_request.until, Some(TimeLeft::NoExpiry));
        assert_eq!(
            chi(CHI_LOCK, TimeLeft::Millis(7)).next_request.until,
            Some(TimeLeft::Millis(7))
        );
        let chi = schemas().into_iter().find(|schema| schema.name == "go-chi").unwrap();
        assert_eq!(next(&chi, &[Content::Absent]).until, None);
    }

    #[test]
    fn a_state_for_which_no_reply_is_predicted_makes_the_service_fail() {
        let mut schema = schemas().into_iter().find(|schema| schema.name == "express").unwrap();
        if let Some(begin) = &mut schema.begin {
            begin.calls[0].replies.retain(|reply| reply.means == Meaning::Acquired);
        }
        let unpredicted = next(&schema, &[text("x")]);
        assert_eq!(
            (unpredicted.answer, unpredicted.until),
            (Answer::Fail, Some(TimeLeft::Millis(1)))
        );
    }
}
