//! What a new value keeps of the value of before: the fields that the schema does not name are somebody's.

use crate::domain::record::{Content, Json, decode, json_prefix};
use crate::domain::schema::{Member, Schema, ValueFormat};

/// The JSON text at a pointer of the value of before; `None` where nothing stands there.
pub(super) fn at(before: &Json<'_>, pointer: &str) -> Option<Vec<u8>> {
    before.pointer(pointer).map(text)
}

/// The fields of the value of before that its form does not name and that `written` does not have, each as a further member
/// of an object.
pub(super) fn unnamed(schema: &Schema, before: &Content, written: &Json<'_>) -> Vec<u8> {
    let has = |name: &str| matches!(written, Json::Object(members) if members.iter().any(|(known, _)| known == name));
    let fields = unknown_fields(schema, before);
    fields
        .into_iter()
        .filter(|(name, _)| !has(name))
        .flat_map(|(name, value)| [b",", &string(&name)[..], b":", &value].concat())
        .collect()
}

/// The value at the lock's Redis key as a document: as its form sees the value, or else as JSON.
pub(crate) fn document(schema: &Schema, value: &Content) -> Option<Json<'static>> {
    let as_json = || match value {
        Content::Text { head, .. } => json_prefix::parse(head, true).ok().map(Json::into_owned),
        _ => None,
    };
    decode::document(schema, schema.lock_role(), value).or_else(as_json)
}

/// The fields that stand in a value at the lock's Redis key beside those that its form names, each with its JSON text.
pub(crate) fn unknown_fields(schema: &Schema, value: &Content) -> Vec<(String, Vec<u8>)> {
    let Some(Json::Object(members)) = document(schema, value) else { return Vec::new() };
    let reading = decode::read(schema, schema.lock_role(), value);
    let form = reading.decoded().map(|value| value.case);
    let cases = || schema.values.iter().enumerate().filter(|(case, _)| form.is_none_or(|form| form == *case));
    let is_named = |name: &str| cases().any(|(_, case)| names(case, name));
    let unknown = members.into_iter().filter(|(name, _)| !is_named(name));
    unknown.map(|(name, value)| (name.into_owned(), text(value))).collect()
}
/// True when a form says something of the field of this name, or of a field in it.
fn names(case: &ValueFormat, name: &str) -> bool {
    let of_closed = case.closed.iter().flat_map(|closed| closed.paths(|_: &Member| true));
    let tested = case.tests.fields.iter().map(|(path, _)| path).chain(&case.tests.has);
    let moment = case.expires_at.iter().map(|expires_at| expires_at.field.as_str());
    let fields = case.fields.pointers().map(|(_, path)| path).chain(moment).chain(tested.map(String::as_str));
    let starts = |path: &str| {
        let first = path.strip_prefix('/').map(|path| path.split('/').next().unwrap_or_default());
        first.is_some_and(|first| first.replace("~1", "/").replace("~0", "~") == name)
    };
    fields.into_iter().any(starts) || of_closed.into_iter().any(|path| starts(&path))
}

fn text(value: Json<'_>) -> Vec<u8> {
    match value {
        Json::Raw(text) | Json::Number(text) => text.into_owned().into_bytes(),
        Json::String(text) => string(&text),
        other => other.to_value().to_string().into_bytes(),
    }
}

fn string(text: &str) -> Vec<u8> {
    serde_json::Value::from(text).to_string().into_bytes()
}
