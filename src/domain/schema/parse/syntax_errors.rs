//! All syntax errors of a `schema.toml`. The TOML parser stops at the first error, so each part of
//! the file is parsed again by itself.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::domain::removed::{self, RemovedKind};
use crate::domain::schema::location::{CALL, REPLIES, in_field, line_of};
use crate::domain::schema::raw::{RawCall, RawReply, RawStep, RawValue};

const STEPS: [&str; 4] = ["begin", "renew", "complete", "release"];

/// The lines and messages of all parts that cannot be parsed; `first` is the error of the whole
/// file.
pub(super) fn all(toml: &str, first: toml::de::Error) -> Vec<(usize, String)> {
    // A file that is not TOML at all has no parts, and only its own error.
    let table = DeTable::parse(toml).map(Spanned::into_inner).unwrap_or_default();
    let mut errors = vec![first];
    if let Some(values) = table.get("value") {
        for value in items(values) {
            errors.extend(error::<RawValue>(value));
        }
    }
    for name in STEPS {
        if let Some(step) = table.get(name) {
            errors.extend(errors_of_step(step));
        }
    }
    let mut all = Vec::with_capacity(errors.len());
    for error in errors {
        let at = match error.span() {
            Some(span) => span.start,
            None => 0,
        };
        let mut message = in_field(error.message(), &field_of_call(&table, at));
        if let Some(removed) = removed::field_in(RemovedKind::Word, error.message()) {
            message = format!("{message}; {}", removed.hint());
        }
        all.push((line_of(toml, at), message));
    }
    // The first error of the file is also the error of its part.
    all.sort();
    all.dedup();
    all
}

/// The lines where `schema new` wrote that a person must decide.
pub(super) fn open_points(toml: &str) -> Vec<(usize, String)> {
    let mut open = Vec::new();
    for (index, line) in toml.lines().enumerate() {
        if line.contains("= \"DECIDE\"") {
            open.push((index + 1, format!("replace DECIDE: {}", line.trim())));
        }
    }
    open
}

/// The errors of a step's replies; if there are none, those of its calls; otherwise that of the
/// step. An error in a part is also an error of everything around it.
fn errors_of_step(step: &Spanned<DeValue<'_>>) -> Vec<toml::de::Error> {
    let mut errors = Vec::new();
    for call in items_at(step, CALL) {
        let before = errors.len();
        for reply in items_at(call, REPLIES) {
            errors.extend(error::<RawReply>(reply));
        }
        if errors.len() == before {
            errors.extend(error::<RawCall>(call));
        }
    }
    if errors.is_empty() {
        errors.extend(error::<RawStep>(step));
    }
    errors
}

/// Why a part cannot be parsed; `None` if it can.
fn error<T: for<'de> Deserialize<'de>>(part: &Spanned<DeValue<'_>>) -> Option<toml::de::Error> {
    T::deserialize(ValueDeserializer::from(part.clone())).err()
}

/// The keys from a call to the innermost value at this byte offset; empty outside all calls.
fn field_of_call<'a>(table: &'a DeTable<'_>, at: usize) -> Vec<&'a str> {
    for name in STEPS {
        let Some(step) = table.get(name) else { continue };
        for call in items_at(step, CALL) {
            if let Some(field) = field_at(call, at) {
                return field;
            }
        }
    }
    Vec::new()
}

/// The keys to the innermost value at this byte offset; `None` if the value has no part there.
fn field_at<'a>(value: &'a Spanned<DeValue<'_>>, at: usize) -> Option<Vec<&'a str>> {
    match value.get_ref() {
        DeValue::Table(fields) => {
            let (key, inner) = fields.iter().find(|(_, value)| value.span().contains(&at))?;
            let mut keys = vec![key.get_ref().as_ref()];
            keys.extend(field_at(inner, at).unwrap_or_default());
            Some(keys)
        }
        DeValue::Array(items) => field_at(items.iter().find(|item| item.span().contains(&at))?, at),
        _ => None,
    }
}

/// The elements of the array under this key.
fn items_at<'a, 'd>(value: &'a Spanned<DeValue<'d>>, key: &str) -> &'a [Spanned<DeValue<'d>>] {
    match value.get_ref().get(key) {
        Some(inner) => items(inner),
        None => &[],
    }
}

fn items<'a, 'd>(value: &'a Spanned<DeValue<'d>>) -> &'a [Spanned<DeValue<'d>>] {
    match value.get_ref().as_array() {
        Some(array) => array,
        None => &[],
    }
}
