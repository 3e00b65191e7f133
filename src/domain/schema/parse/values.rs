//! `[[value]]`: how a value is told, and where its fields stand.

use serde_json::Value;

use super::closed_form;
use super::names::Names;
use crate::domain::schema::forms::{Encoding, ValueCase, Where};
use crate::domain::schema::location::{At as _, Checked, wrong};
use crate::domain::schema::raw::RawValue;
use crate::domain::schema::steps::SlotIs;

/// A value case, whose slot is one of the schema's.
pub(super) fn resolve(names: &Names, raw: RawValue) -> Checked<ValueCase> {
    let slot = slot(names, &raw)?;
    check_tests(&raw)?;
    let closed = closed_form::resolve(&raw)?;
    for (name, path) in raw.fields.pointers() {
        pointer(path, raw.encoding).at(name).at("fields")?;
    }
    Ok(ValueCase {
        name: raw.name,
        slot,
        encoding: raw.encoding,
        tests: Where {
            equals: raw.equals.map(String::into_bytes),
            fields: raw.fields_are.into_iter().collect(),
            has: raw.has,
        },
        closed,
        is_marked_opaque: raw.opaque,
        state: raw.state,
        fields: raw.fields,
        body_encoding: raw.body_encoding,
        timestamp: raw.timestamp,
    })
}

/// The index of the slot that holds the value, when no other value of that slot has its name.
fn slot(names: &Names, RawValue { name, at, .. }: &RawValue) -> Checked<usize> {
    if SlotIs::of_word(name).is_some() {
        return wrong(format!("`{name}` is a word that `when` already uses")).at("name");
    }
    let role = at.as_str();
    let Some(slot) = names.slot(role) else {
        return wrong(format!("[keys] has no `{role}`")).at("at");
    };
    if names.value(slot, name).is_some() {
        return wrong(format!("`{name}` is defined twice at `{role}`")).at("name");
    }
    Ok(slot)
}

fn check_tests(raw: &RawValue) -> Checked<()> {
    if raw.encoding == Encoding::Text && !(raw.fields_are.is_empty() && raw.has.is_empty()) {
        return wrong("`where` and `has` look into JSON: use `equals` with encoding = \"text\"");
    }
    if raw.encoding == Encoding::Json && raw.equals.is_some() {
        return wrong("`equals` compares the whole text: use `where` with encoding = \"json\"").at("equals");
    }
    for (index, path) in raw.has.iter().enumerate() {
        pointer(path, raw.encoding).at(index).at("has")?;
    }
    for (path, value) in &raw.fields_are {
        compared(path, value).at(path.as_str()).at("where")?;
    }
    Ok(())
}

fn compared(path: &str, value: &Value) -> Checked<()> {
    if !path.starts_with('/') {
        return wrong(format!("`{path}` is not a JSON pointer: it starts with `/`"));
    }
    if value.is_string() || value.is_boolean() || value.is_i64() {
        return Ok(());
    }
    wrong("`where` compares with a text, a whole number, true or false")
}

fn pointer(path: &str, encoding: Encoding) -> Checked<()> {
    match encoding {
        Encoding::Text if !path.is_empty() => wrong("text has no fields: only \"\", the whole value"),
        Encoding::Json if !path.is_empty() && !path.starts_with('/') => {
            wrong(format!("`{path}` is not a JSON pointer: it starts with `/`, or is empty for the whole value"))
        }
        _ => Ok(()),
    }
}
