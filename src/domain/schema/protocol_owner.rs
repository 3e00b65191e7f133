//! What the scripts of a protocol compare to know a lock and its owner.

use super::decoder::Encoding;
use super::raw::{RawSchema, RawValue};
use super::value_format::State;

/// The values of this state.
pub(super) fn values(raw: &RawSchema, state: State) -> impl Iterator<Item = &RawValue> {
    raw.value.iter().filter(move |value| value.state == Some(state))
}

/// Where the lock names its owner, as a JSON array of member names; `None` if it names none.
pub(super) fn owner_path(raw: &RawSchema) -> Result<Option<String>, String> {
    let mut path: Option<String> = None;
    let locks: Vec<_> = values(raw, State::InProgress).collect();
    for value in &locks {
        let Some(pointer) = &value.fields.owner else { continue };
        let is_json = !matches!(value.encoding, Some(encoding) if encoding != Encoding::Json);
        let is_packed = value.decode.is_some() || !value.decode_at.is_empty();
        if is_packed || !(is_json || pointer.is_empty()) {
            return Err(format!("its scripts cannot read the owner in `{}`", value.name));
        }
        let names: Vec<String> = pointer
            .split('/')
            .skip(1)
            .map(|name| name.replace("~1", "/").replace("~0", "~"))
            .collect();
        let found = serde_json::Value::from(names).to_string();
        if path.as_ref().is_some_and(|path| *path != found) {
            return Err("locks name the owner at different places".to_owned());
        }
        path = Some(found);
    }
    match path {
        Some(_) if locks.iter().any(|value| value.fields.owner.is_none()) => {
            Err("some locks name an owner and some do not".to_owned())
        }
        path => Ok(path),
    }
}

/// The field of a hash that names the owner of a lock; `None` if no lock names one.
pub(super) fn owner_field(raw: &RawSchema) -> Result<Option<String>, String> {
    let mut field: Option<String> = None;
    for value in values(raw, State::InProgress) {
        let Some(pointer) = &value.fields.owner else { continue };
        let name = pointer.trim_start_matches('/');
        if name.contains(['/', '~']) {
            return Err("its scripts compare the owner with a whole field".to_owned());
        }
        if field.as_ref().is_some_and(|field| field != name) {
            return Err("locks name the owner in different fields".to_owned());
        }
        field = Some(name.to_owned());
    }
    Ok(field)
}

/// The fields that a lock has, as a JSON object of texts, so that the scripts leave a result of
/// the same owner alone.
pub(super) fn lock_fields(raw: &RawSchema) -> Result<String, String> {
    let mut locks = values(raw, State::InProgress);
    let Some(lock) = locks.next() else { return Ok("{}".to_owned()) };
    if locks.next().is_some() {
        return Err(
            "its scripts compare the fields of one lock format, and there are several".to_owned()
        );
    }
    let mut fields = serde_json::Map::new();
    for (pointer, value) in &lock.fields_are {
        let name = pointer.trim_start_matches('/');
        if name.contains(['/', '~']) {
            return Err(format!(
                "its scripts compare whole fields of the hash, and `where` tests `{pointer}`, \
                which is inside one; describe the steps yourself"
            ));
        }
        let text = match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        fields.insert(name.to_owned(), text.into());
    }
    Ok(serde_json::Value::Object(fields).to_string())
}
