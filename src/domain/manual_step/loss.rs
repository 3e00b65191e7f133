//! The data that a completion would lose from the value that the result replaces.

use super::predict::found_by_step;
use crate::domain::record::{Content, Json, Reading, Record, decode};
use crate::domain::schema::closed_fields::escaped;
use crate::domain::schema::{Schema, State};
use crate::domain::step::StepInputs;
use crate::domain::step::kept::{document, unknown_fields};

/// JSON pointers to the data in the previous value that the result lacks: fields that the value
/// format does not name, and the hash of the payload. Without either, the service may reject a
/// retry.
///
/// Empty if the step does not send the whole result, because the service's own script then writes
/// the rest.
pub(crate) fn lost_fields(record: &Record, inputs: &StepInputs<'_>) -> Vec<String> {
    let schema = &record.schema;
    let key_index = schema.lock_key_index();
    // With a Redis key of its own, the result does not replace the lock's value.
    if key_index != schema.result_key_index() || !schema.sends_result_value() {
        return Vec::new();
    }
    let before = &record.seen.keys[key_index].content;
    let result = inputs.result_over(before);
    // What cannot be read back has lost everything, for another reason, which is reported instead.
    if decode::decode_value(schema, key_index, &result).decoded().is_none() {
        return Vec::new();
    }
    let old = document(schema, before).unwrap_or(Json::Null);
    let new = document(schema, &result).unwrap_or(Json::Null);
    let mut lost = Vec::new();
    for (name, _) in unknown_fields(schema, before) {
        let path = format!("/{}", escaped(&name));
        let old_value = old.pointer(&path).map(|value| value.to_value());
        let new_value = new.pointer(&path).map(|value| value.to_value());
        if old_value != new_value {
            lost.push(path);
        }
    }
    if let Some(path) = lost_fingerprint(record, inputs, &result)
        && !lost.contains(&path)
    {
        lost.push(path);
    }
    lost
}

/// The fields of the previous result that a result which replaces it does not have, by their JSON
/// pointers. Empty if the step does not send the whole result.
pub(crate) fn dropped_fields(record: &Record, inputs: &StepInputs<'_>) -> Vec<String> {
    let schema = &record.schema;
    let before = &record.seen.keys[schema.result_key_index()].content;
    if !schema.sends_result_value() {
        return Vec::new();
    }
    let after = document(schema, &inputs.result_over(before));
    let (Some(Json::Object(old)), Some(Json::Object(new))) = (document(schema, before), after)
    else {
        return Vec::new();
    };
    let mut dropped = Vec::new();
    for (name, _) in old {
        if !new.iter().any(|(other, _)| *other == name) {
            dropped.push(format!("/{name}"));
        }
    }
    dropped
}

/// How a stored result differs from the one that `completed` has: in its state, such as a success
/// instead of the failure that the operator asked for, or in its error. `None` if it does not, or
/// if the schema does not say what is stored.
pub(crate) fn other_outcome(completed: &Record, stored: &Content) -> Option<String> {
    let schema = &completed.schema;
    let key_index = schema.result_key_index();
    let wanted = completed.readings[key_index].decoded()?;
    let wanted_state = schema.values[wanted.format].state;
    let reading = decode::decode_value(schema, key_index, stored);
    let Some(found) = reading.decoded() else {
        // The caller reports a success that cannot be read.
        return match wanted_state {
            State::Failed => Some("it is not stored as failed".to_owned()),
            _ => None,
        };
    };
    let found_state = schema.values[found.format].state;
    if found_state != wanted_state {
        let (found, wanted) = (found_state.as_str(), wanted_state.as_str());
        return Some(format!("it is stored as {found}, not as {wanted}"));
    }
    if wanted.error.is_some() && wanted.error != found.error {
        return Some("its error is lost or changed".to_owned());
    }
    None
}

/// The pointer to the payload's hash in the previous value, if the result contains neither that
/// hash nor the one that the operator gave. An empty hash is no loss.
fn lost_fingerprint(record: &Record, inputs: &StepInputs<'_>, result: &Content) -> Option<String> {
    let schema = &record.schema;
    let before = record.readings[schema.lock_key_index()].decoded()?;
    let stored = before.fingerprint.as_ref().filter(|stored| !stored.is_empty())?;
    let after = decode::decode_value(schema, schema.result_key_index(), result);
    if let Some(value) = after.decoded()
        && let Some(kept) = &value.fingerprint
        && (kept == stored || (!inputs.fingerprint.is_empty() && kept == inputs.fingerprint))
    {
        return None;
    }
    schema.values[before.format].fields.fingerprint.clone()
}

/// Why the result of this request cannot be written. `None` if it can be, or if the service's own
/// script writes it.
pub(crate) fn unwritten_result(record: &Record, inputs: &StepInputs<'_>) -> Option<String> {
    if !record.schema.sends_result_value() {
        return None;
    }
    inputs.unwritten_result()
}

/// Why the result of this request would not be read back as a result. `None` if it would be, or if
/// the service's own script writes it.
pub(crate) fn unread_result(record: &Record, inputs: &StepInputs<'_>) -> Option<String> {
    let schema = &record.schema;
    if !schema.sends_result_value() {
        return None;
    }
    // Fields of a hash that the result does not have stay, and may be part of its format.
    no_result(schema, &inputs.result_over(&found_by_step(record, inputs)))
}

/// Why a content of the result's Redis key is not a result that the service itself writes; `None`
/// if it is one.
pub(crate) fn no_result(schema: &Schema, content: &Content) -> Option<String> {
    match decode::decode_value(schema, schema.result_key_index(), content) {
        Reading::Value(value) if !schema.values[value.format].state.is_result() => {
            Some(format!("it would be `{}`", schema.values[value.format].name))
        }
        Reading::Value(value) => value.conformance.deviation().map(str::to_owned),
        reading => Some(reading.mismatch().unwrap_or("it is of no form").to_owned()),
    }
}
