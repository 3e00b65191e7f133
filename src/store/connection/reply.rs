//! Converts replies of the client crate into simple types.

use redis::Value;

use crate::domain::step::StepReply;

/// The bytes of a string reply.
pub(in crate::store) fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        Value::VerbatimString { text, .. } => Some(text.into_bytes()),
        Value::Okay => Some(b"OK".to_vec()),
        _ => None,
    }
}

/// The number of an integer reply.
pub(in crate::store) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

/// The elements of an array reply.
pub(in crate::store) fn array(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

/// The word of a string reply.
pub(in crate::store) fn word(value: Value) -> Option<String> {
    String::from_utf8(bytes(value)?).ok()
}

/// The reply of TIME, in milliseconds since the epoch.
pub(in crate::store) fn millis(time: Value) -> Option<u64> {
    let [seconds, micros] = <[Value; 2]>::try_from(array(time)?).ok()?;
    let seconds: u64 = word(seconds)?.parse().ok()?;
    let micros: u64 = word(micros)?.parse().ok()?;
    Some(seconds.saturating_mul(1_000).saturating_add(micros / 1_000))
}

/// Converts a reply into the type that schemas use.
pub(in crate::store) fn step_reply(value: Value) -> StepReply {
    match value {
        Value::Int(number) => StepReply::Integer(number),
        Value::Array(items) => StepReply::Array(items.into_iter().map(step_reply).collect()),
        // As an array, which is how protocol version 2 sends it and how schemas describe it.
        Value::Map(pairs) => {
            let mut items = Vec::with_capacity(2 * pairs.len());
            for (name, value) in pairs {
                items.push(step_reply(name));
                items.push(step_reply(value));
            }
            StepReply::Array(items)
        }
        Value::ServerError(error) => StepReply::Error {
            code: error.code().to_owned(),
            message: error.details().unwrap_or_default().to_owned(),
        },
        other => match bytes(other) {
            Some(text) => StepReply::Text(text),
            None => StepReply::Nil,
        },
    }
}
