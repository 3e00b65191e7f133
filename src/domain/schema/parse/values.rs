//! `[[value]]`: how a value is told, and where its fields stand.

use serde_json::Value;

use super::closed_form;
use super::format;
use super::names::Names;
use super::opening;
use crate::domain::schema::forms::{ValueCase, Where};
use crate::domain::schema::location::{At as _, Checked, wrong};
use crate::domain::schema::opening::{Encoding, Opening};
use crate::domain::schema::raw::RawValue;
use crate::domain::schema::steps::KeyIs;

/// A value case, whose role is one of the schema's.
pub(super) fn resolve(names: &Names, raw: RawValue) -> Checked<ValueCase> {
    let role = role(names, &raw)?;
    let opening = opening::resolve(&raw)?;
    let encoding = opening.value.encoding;
    check_tests(&raw, encoding)?;
    if names.format > 1 {
        tells_something(&raw, encoding)?;
    }
    let closed = closed_form::resolve(&raw, encoding)?;
    for (name, path) in raw.fields.pointers() {
        pointer(path, encoding).at(name).at("fields")?;
    }
    if let Some(expires_at) = &raw.expires_at {
        pointer(&expires_at.field, encoding).at("field").at("expires_at")?;
    }
    Ok(ValueCase {
        name: raw.name,
        role,
        tests: Where {
            equals: raw.equals.map(String::into_bytes),
            fields: raw
                .fields_are
                .into_iter()
                .map(|(path, value)| (path.clone(), stored(&opening, &path, value)))
                .collect(),
            has: raw.has,
        },
        opening,
        closed,
        is_marked_opaque: raw.opaque,
        state: raw.state,
        fields: raw.fields,
        body_encoding: raw.body_encoding,
        timestamp: raw.timestamp,
        expires_at: raw.expires_at,
    })
}

/// The role of the Redis key that holds the value, when no other value of that role has its name.
fn role(names: &Names, raw: &RawValue) -> Checked<usize> {
    let name = &raw.name;
    if KeyIs::of_word(name, names.format).is_some() {
        return wrong(format!("`{name}` is a word that `when` already uses")).at("name");
    }
    let role = format::place(raw, &names.keys)?;
    if names.value(role, name).is_some() {
        let at = names.keys[role].role.as_str();
        return wrong(format!("`{name}` is defined twice at `{at}`")).at("name");
    }
    Ok(role)
}

/// Passes a form that tells its values from others, or says that any text is meant.
fn tells_something(raw: &RawValue, encoding: Encoding) -> Checked<()> {
    let tells = match encoding {
        Encoding::Text => raw.equals.is_some() || raw.opaque,
        Encoding::Json | Encoding::Msgpack | Encoding::Cbor => {
            !raw.fields_are.is_empty() || !raw.has.is_empty() || raw.required.is_some()
        }
        // The type of the Redis key, or the first bytes, tell.
        _ => true,
    };
    match encoding {
        _ if tells => Ok(()),
        Encoding::Text => wrong("takes any text: write `equals`, or `opaque = true` where any text is meant"),
        _ => wrong(
            "takes any JSON, or what stands for JSON: write `where`, `has` or `required`, or leave `encoding` out and mark it `opaque`",
        ),
    }
}

fn check_tests(raw: &RawValue, encoding: Encoding) -> Checked<()> {
    let asks_for_fields = !raw.fields_are.is_empty() || !raw.has.is_empty();
    if asks_for_fields && !encoding.has_fields() {
        return wrong("`where` and `has` look into JSON and the like: use `equals` with encoding = \"text\"");
    }
    if encoding != Encoding::Text && raw.equals.is_some() {
        return wrong("`equals` compares the whole text: use `where` with fields").at("equals");
    }
    for (index, path) in raw.has.iter().enumerate() {
        pointer(path, encoding).at(index).at("has")?;
    }
    for (path, value) in &raw.fields_are {
        compared(path, value).at(path.as_str()).at("where")?;
    }
    Ok(())
}

/// A value as `where` compares with it: a field of a hash holds text, unless something is in the text.
fn stored(opening: &Opening, path: &str, value: Value) -> Value {
    let is_within = |outer: &str| path.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/') || rest.is_empty());
    match value {
        Value::String(_) => value,
        _ if opening.value.encoding != Encoding::Hash => value,
        _ if opening.inside.iter().any(|(outer, _)| is_within(outer)) => value,
        other => Value::String(other.to_string()),
    }
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
    match encoding.has_fields() {
        _ if path.is_empty() => Ok(()),
        false => wrong(format!("{} has no fields: only \"\", the whole value", encoding.as_str())),
        true if !path.starts_with('/') => {
            wrong(format!("`{path}` is not a JSON pointer: it starts with `/`, or is empty for the whole value"))
        }
        true => Ok(()),
    }
}
