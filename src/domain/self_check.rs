//! Checks a schema against itself: its written values must be read back as their own state, and
//! lead to the predicted answers.

use crate::domain::duration;
use crate::domain::record::age::millis;
use crate::domain::record::response::CONTENT_TYPE;
use crate::domain::record::{
    Content, Deadline, KeyState, Observation, Reading, Response, Stored, TimeLeft, decode,
};
use crate::domain::schema::{BodyEncoding, Schema, State, TtlOf};
use crate::domain::step::{Answer, StepInputs, next_request};

/// A contradiction within a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// The beginning of the line in `schema.toml` that is wrong.
    pub(crate) about: &'static str,
    /// The contradiction in words.
    pub(crate) message: String,
}

const OWNER: &str = "7b0e2c1a-5d0f-4a6e-9a57-0b7f3a3f6f11";
const FINGERPRINT: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const ERROR: &str = "card declined";
const BODY: &[u8] = br#"{"id":"order-1","amount":10}"#;

/// Writes a lock and results as the schema's service does, reads them back, and predicts the next
/// request after each.
pub(crate) fn mismatches(schema: &Schema) -> Vec<Mismatch> {
    if schema.read_only_because().is_some() {
        return Vec::new();
    }
    let response = Response {
        status: Some(201),
        headers: headers(schema),
        body: sample_body(schema, BODY),
        whole: true,
    };
    let inputs = StepInputs {
        fingerprint: FINGERPRINT,
        ..StepInputs::new(schema, b"order-1", OWNER, &response)
    };
    let lock = inputs.lock();
    let lock_index = schema.lock_key_index();
    let writes_lock = schema.write.lock_value.is_some();
    let result = inputs.result_over_lock();
    let result_index = schema.result_key_index();
    let writes_result = schema.write.result_value.is_some();

    let mut found = Vec::new();
    if writes_lock {
        found.extend(reads_as(schema, lock_index, &lock, State::InProgress, "lock_value"));
        found.extend(keeps_owner(schema, &lock));
        found.extend(keeps_fingerprint(schema, lock_index, &lock, "lock_value"));
    }
    if writes_result {
        found.extend(reads_as(schema, result_index, &result, State::Completed, "result_value"));
        found.extend(keeps_fingerprint(schema, result_index, &result, "result_value"));
        found.extend(keeps_body(schema, &result, &response.body));
        found.extend(keeps_response(&inputs));
    }
    if schema.write.failed_value.is_some() {
        let failed = StepInputs { error: Some(ERROR), ..inputs.clone() }.result();
        found.extend(reads_as(schema, result_index, &failed, State::Failed, "failed_value"));
        found.extend(keeps_fingerprint(schema, result_index, &failed, "failed_value"));
        found.extend(keeps_error(schema, &failed));
    }
    found.extend(constant_times(&inputs));

    // Without a begin step, idemctl predicts nothing.
    if schema.begin.is_none() {
        return found;
    }
    let now_ms = inputs.now_ms;
    let nothing = vec![Content::Absent; schema.keys.len()];
    found.extend(leads_to(schema, nothing.clone(), now_ms, Answer::Execute, "nothing is stored"));
    if writes_lock {
        let mut contents = nothing.clone();
        contents[lock_index] = lock;
        found.extend(leads_to(schema, contents, now_ms, Answer::Conflict, "a lock is held"));
    }
    if writes_result {
        let mut contents = nothing;
        contents[result_index] = result;
        found.extend(leads_to(schema, contents, now_ms, Answer::Replay, "a result is stored"));
    }
    found
}

/// The headers of a complete response. A service that keeps the content type needs one.
fn headers(schema: &Schema) -> Vec<(String, String)> {
    let content_type = (CONTENT_TYPE.to_owned(), "application/json".to_owned());
    if schema.write.keeps().content_type { vec![content_type] } else { Vec::new() }
}

/// The body of a response that idemctl makes up: the schema's sample, because the service may read
/// no other bodies, or else this one.
fn sample_body(schema: &Schema, made_up: &[u8]) -> Vec<u8> {
    match schema.service.sample_body_of("worker-1") {
        Some(body) => body.into_bytes(),
        None => made_up.to_vec(),
    }
}

/// A response with every part that the schema stores of a success, or of a failure.
pub(crate) fn sample_response(schema: &Schema, is_failed: bool) -> Response {
    let keeps = schema.write.keeps_of(is_failed);
    let mut status = 201;
    if let Some(stores) = &schema.service.stores
        && !stores.contains(status)
    {
        status = stores.first();
    }
    Response {
        status: if keeps.status { Some(status) } else { None },
        headers: headers(schema),
        body: if keeps.body { sample_body(schema, BODY) } else { Vec::new() },
        whole: true,
    }
}

/// A warning if results expire before locks do; `None` if they do not.
pub(crate) fn short_results(schema: &Schema) -> Option<String> {
    let lock = schema.ttl(TtlOf::Lock)?;
    let result = schema.ttl(TtlOf::Result)?;
    if result >= lock {
        return None;
    }
    Some(format!(
        "results expire after {}, before locks do ({}); a later retry executes again",
        duration::short(millis(result)),
        duration::short(millis(lock))
    ))
}

/// Finds times that are constants in the file. A lock with a constant time would seem to date from
/// that day.
fn constant_times(inputs: &StepInputs<'_>) -> Vec<Mismatch> {
    let schema = inputs.schema;
    // A real time differs a day later, in any unit.
    let later = StepInputs { now_ms: inputs.now_ms + 86_400_000, ..inputs.clone() };
    let values = [
        ("lock_value", schema.lock_key_index(), inputs.lock(), later.lock()),
        ("result_value", schema.result_key_index(), inputs.result(), later.result()),
    ];
    let mut found = Vec::new();
    for (about, key_index, now, later) in values {
        let now = decode::decode_value(schema, key_index, &now);
        let later = decode::decode_value(schema, key_index, &later);
        let Some(field) = constant_time(&now, &later) else { continue };
        let message = format!(
            "`{field}` is written as the same time whenever: write {{now}}, {{now_s}} or \
            {{lock_expires_s}} and the like"
        );
        found.push(Mismatch { about, message });
    }
    found
}

/// The first time that two values, written a day apart, have in common.
fn constant_time(now: &Reading, later: &Reading) -> Option<&'static str> {
    let now = now.decoded()?;
    let later = later.decoded()?;
    let times = [
        ("created_at", now.created_ms, later.created_ms),
        ("completed_at", now.completed_ms, later.completed_ms),
        ("expires_at", now.expires_ms, later.expires_ms),
    ];
    for (field, now, later) in times {
        if now.is_some() && now == later {
            return Some(field);
        }
    }
    None
}

fn reads_as(
    schema: &Schema,
    key_index: usize,
    content: &Content,
    wanted: State,
    about: &'static str,
) -> Option<Mismatch> {
    let got = match decode::decode_value(schema, key_index, content) {
        Reading::Value(decoded) => {
            let format = &schema.values[decoded.format];
            // A service may store its failures as it stores any result.
            let is_failure = wanted == State::Failed && format.state == State::Completed;
            if format.body_encoding == BodyEncoding::Bytes && wanted.is_result() {
                let message = format!(
                    "idemctl reads the arrays of `body_encoding = \"bytes\"` and does not write \
                    them; leave `{about}` and [complete] out"
                );
                return Some(Mismatch { about, message });
            }
            if format.state == wanted || is_failure {
                let why = decoded.conformance.deviation()?;
                let message =
                    format!("the value that it writes does not match its own `[[value]]`: {why}");
                return Some(Mismatch { about, message });
            }
            format!("`{}`, {}", format.name, format.state.as_str())
        }
        Reading::Unreadable(why) | Reading::Unrecognised { why, .. } | Reading::Ambiguous(why) => {
            format!("unreadable ({why})")
        }
        Reading::EmptyText => "an empty text".to_owned(),
        Reading::Absent | Reading::Undecided | Reading::WrongType(_) => "unreadable".to_owned(),
    };
    let message =
        format!("the value that it writes is read back as {got}, not as {}", wanted.as_str());
    Some(Mismatch { about, message })
}

fn keeps_owner(schema: &Schema, lock: &Content) -> Option<Mismatch> {
    let reading = decode::decode_value(schema, schema.lock_key_index(), lock);
    let decoded = reading.decoded()?;
    // Without `fields.owner`, the file does not claim that the lock names its owner.
    schema.values[decoded.format].fields.owner.as_ref()?;
    let message = match decoded.owner.as_deref() {
        Some(owner) if owner == OWNER.as_bytes() => return None,
        Some(owner) => format!("the owner is read back as {:?}", String::from_utf8_lossy(owner)),
        None => "the owner cannot be read back at `fields.owner`".to_owned(),
    };
    Some(Mismatch { about: "lock_value", message })
}

/// Checks the fingerprint only if it is written, because a service may store one that idemctl
/// cannot compute.
fn keeps_fingerprint(
    schema: &Schema,
    key_index: usize,
    content: &Content,
    about: &'static str,
) -> Option<Mismatch> {
    let reading = decode::decode_value(schema, key_index, content);
    let decoded = reading.decoded()?;
    schema.values[decoded.format].fields.fingerprint.as_ref()?;
    let message = lost(
        content,
        FINGERPRINT,
        decoded.fingerprint.as_deref(),
        "the fingerprint",
        "fields.fingerprint",
    )?;
    Some(Mismatch { about, message })
}

fn keeps_error(schema: &Schema, failed: &Content) -> Option<Mismatch> {
    let reading = decode::decode_value(schema, schema.result_key_index(), failed);
    let decoded = reading.decoded()?;
    schema.values[decoded.format].fields.error.as_ref()?;
    let message = lost(failed, ERROR, decoded.error.as_deref(), "the error text", "fields.error")?;
    Some(Mismatch { about: "failed_value", message })
}

/// The message if a text that is part of a value is not read back; `None` if it is, or is not part
/// of the value.
fn lost(
    content: &Content,
    written: &str,
    read: Option<&str>,
    what: &str,
    field: &str,
) -> Option<String> {
    let Content::Text { head, .. } = content else { return None };
    if read == Some(written) || !contains(head, written.as_bytes()) {
        return None;
    }
    Some(match read {
        Some(other) => format!("{what} is read back as {other:?}"),
        None => format!("{what} cannot be read back at `{field}`"),
    })
}

fn contains(whole: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && whole.windows(part.len()).any(|bytes| bytes == part)
}

/// A replay returns the response exactly as the result contains it. The fields of a hash may be
/// encoded; [`keeps_body`] reads them back.
fn keeps_response(inputs: &StepInputs<'_>) -> Option<Mismatch> {
    inputs.schema.write.response.as_ref()?;
    let Content::Text { head, .. } = inputs.result() else { return None };
    if contains(&head, &inputs.stored_response()) {
        return None;
    }
    Some(Mismatch {
        about: "response",
        message: "`result_value` does not contain the response; add {response} to it".to_owned(),
    })
}

fn keeps_body(schema: &Schema, result: &Content, written: &[u8]) -> Option<Mismatch> {
    let reading = decode::decode_value(schema, schema.result_key_index(), result);
    let decoded = reading.decoded()?;
    schema.values[decoded.format].fields.body.as_ref()?;
    let body = decoded.response.as_ref().map(Stored::body).unwrap_or_default();
    if body == written || is_same_json(&body, written) {
        return None;
    }
    Some(Mismatch {
        about: "result_value",
        message: format!(
            "the body is read back as {:?}, not as it was written: do `fields.body` and \
            `body_encoding` fit?",
            String::from_utf8_lossy(&body)
        ),
    })
}

/// True if both are JSON of the same value. A service may write it with other spaces.
fn is_same_json(left: &[u8], right: &[u8]) -> bool {
    let left: Result<serde_json::Value, _> = serde_json::from_slice(left);
    let right: Result<serde_json::Value, _> = serde_json::from_slice(right);
    matches!((left, right), (Ok(left), Ok(right)) if left == right)
}

fn leads_to(
    schema: &Schema,
    contents: Vec<Content>,
    now_ms: u64,
    wanted: Answer,
    given: &str,
) -> Option<Mismatch> {
    let mut keys = Vec::with_capacity(contents.len());
    for content in contents {
        // No reply depends on how long a Redis key still lives, so any expiry will do.
        keys.push(KeyState::new(&[], content, TimeLeft::Millis(1_000), Deadline::Unknown));
    }
    let seen = Observation { server_ms: Some(now_ms), atomic: true, keys };
    let readings = decode::decode_all(schema, &seen);
    let answer = next_request::of(schema, &readings, &seen).answer;
    if answer == wanted {
        return None;
    }
    Some(Mismatch {
        about: "[[begin.call]]",
        message: format!(
            "when {given}, the prediction for the next request is to {}, not to {}; check the \
            `when` of the replies",
            sentence(answer),
            sentence(wanted)
        ),
    })
}

fn sentence(answer: Answer) -> &'static str {
    match answer {
        Answer::Execute => "execute",
        Answer::Conflict => "be rejected",
        Answer::Replay => "get the stored response",
        Answer::Fail => "fail",
        Answer::Unknown => "get an unknown reply",
    }
}
