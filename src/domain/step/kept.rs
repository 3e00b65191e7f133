//! The parts of the previous value that a new value keeps. Fields that the schema does not name
//! belong to other programs.

use crate::domain::record::{Content, Json, decode, json_prefix};
use crate::domain::schema::closed_fields::unescaped;
use crate::domain::schema::{Member, Schema, ValueFormat};

/// The JSON text at a pointer of the previous value; `None` if it does not exist.
pub(super) fn at(before: &Json<'_>, pointer: &str) -> Option<Vec<u8>> {
    before.pointer(pointer).map(text)
}

/// The fields of the previous value that neither its value format names nor `written` contains.
/// Each is a further member of an object.
pub(super) fn unnamed(schema: &Schema, before: &Content, written: &Json<'_>) -> Vec<u8> {
    let mut members = Vec::new();
    for (name, value) in unknown_fields(schema, before) {
        if !has_member(written, &name) {
            members.extend([b",", &string(&name)[..], b":", &value].concat());
        }
    }
    members
}

fn has_member(object: &Json<'_>, name: &str) -> bool {
    match object {
        Json::Object(members) => members.iter().any(|(known, _)| known == name),
        _ => false,
    }
}

/// The value at the lock's Redis key as JSON, decoded by its value format if it has one.
pub(crate) fn document(schema: &Schema, value: &Content) -> Option<Json<'static>> {
    if let Some(document) = decode::document(schema, schema.lock_key_index(), value) {
        return Some(document);
    }
    match value {
        Content::Text { head, .. } => json_prefix::parse(head, true).ok().map(Json::into_owned),
        _ => None,
    }
}

/// The fields of a value at the lock's Redis key that its value format does not name, each with its
/// JSON text.
pub(crate) fn unknown_fields(schema: &Schema, value: &Content) -> Vec<(String, Vec<u8>)> {
    let Some(Json::Object(members)) = document(schema, value) else { return Vec::new() };
    let reading = decode::decode_value(schema, schema.lock_key_index(), value);
    // A value without a recognised format may have any format, so that a field named by any of
    // them is known.
    let formats = match reading.decoded() {
        Some(value) => std::slice::from_ref(&schema.values[value.format]),
        None => &schema.values[..],
    };
    let mut unknown = Vec::new();
    for (name, value) in members {
        if !formats.iter().any(|format| names(format, &name)) {
            unknown.push((name.into_owned(), text(value)));
        }
    }
    unknown
}

/// True if a value format refers to the field with this name, or to a field in it.
fn names(format: &ValueFormat, name: &str) -> bool {
    if format.fields.pointers().any(|(_, path)| starts_with_field(path, name)) {
        return true;
    }
    if let Some(expires_at) = &format.expires_at
        && starts_with_field(&expires_at.field, name)
    {
        return true;
    }
    if format.tests.fields.iter().any(|(path, _)| starts_with_field(path, name)) {
        return true;
    }
    if format.tests.has.iter().any(|path| starts_with_field(path, name)) {
        return true;
    }
    match &format.closed {
        Some(closed) => {
            closed.paths(|_: &Member| true).iter().any(|path| starts_with_field(path, name))
        }
        None => false,
    }
}

/// True for a JSON pointer to the field with this name, or to a field in it.
fn starts_with_field(pointer: &str, name: &str) -> bool {
    let Some(path) = pointer.strip_prefix('/') else { return false };
    unescaped(path.split('/').next().unwrap_or_default()) == name
}

fn text(value: Json<'_>) -> Vec<u8> {
    match value {
        // Numbers are copied as text, so that no digit is lost.
        Json::Raw(text) | Json::Number(text) => text.into_owned().into_bytes(),
        Json::String(text) => string(&text),
        other => other.to_value().to_string().into_bytes(),
    }
}

fn string(text: &str) -> Vec<u8> {
    serde_json::Value::from(text).to_string().into_bytes()
}
