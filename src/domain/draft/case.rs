//! The value formats of sample values: one for each state word.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::sample::SampleValue;
use super::states;
use crate::domain::schema::{Decoding, State};

/// The most state words of one field; a field with more values is not a state.
const MOST_WORDS: usize = 8;

/// The longest text that counts as a word of the service if all samples have it.
const LONGEST_MARKER: usize = 16;

/// The samples of one value format.
#[derive(Debug)]
pub(super) struct DraftFormat {
    /// How a value is recognised.
    pub(super) test: FormatTest,
    /// How a value is decoded.
    pub(super) decoding: Decoding,
    /// The state of the records; `None` if a person must decide.
    pub(super) state: Option<State>,
    pub(super) samples: Vec<SampleValue>,
}

/// How values of a format are recognised.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FormatTest {
    /// A field of a JSON value, by name, and its value.
    Field(String, Value),
    /// Any object with these fields.
    Fields,
    /// Any array with this many items.
    Items(usize),
    /// The whole text.
    Word(String),
    AnyText,
}

/// Divides the values among formats. Formats of documents come first, because a format for any text
/// would match documents too.
pub(super) fn cases(samples: Vec<SampleValue>) -> Vec<DraftFormat> {
    let (documents, texts): (Vec<_>, Vec<_>) =
        samples.into_iter().partition(|sample| sample.document.is_some());
    let of_documents = match state_field(&documents) {
        Some(field) => by(documents, |sample| {
            let value =
                sample.fields().and_then(|fields| fields.get(&field)).cloned().unwrap_or_default();
            FormatTest::Field(field.clone(), value)
        }),
        None => by(documents, |sample| match sample.document.as_ref().and_then(Value::as_array) {
            Some(items) => FormatTest::Items(items.len()),
            None => FormatTest::Fields,
        }),
    };
    let words: BTreeSet<_> = texts.iter().map(|sample| sample.text.as_str()).collect();
    let are_words = words.iter().all(|word| states::of_word(word).is_some());
    // A constant such as `1` carries no state word, but every lock of the service holds it.
    let is_marker = texts.len() > 1
        && words.len() == 1
        && words.iter().all(|word| word.len() <= LONGEST_MARKER);
    let are_words = are_words || is_marker;
    let of_texts = by(texts, |sample| {
        if are_words { FormatTest::Word(sample.text.clone()) } else { FormatTest::AnyText }
    });
    of_documents.into_iter().chain(of_texts).collect()
}

fn by(samples: Vec<SampleValue>, test: impl Fn(&SampleValue) -> FormatTest) -> Vec<DraftFormat> {
    let mut apart: BTreeMap<String, DraftFormat> = BTreeMap::new();
    for sample in samples {
        let (test, decoding) = (test(&sample), sample.decoding.clone());
        let state = match &test {
            FormatTest::Field(_, value) => value.as_str().and_then(states::of_word),
            FormatTest::Word(word) => states::of_word(word),
            FormatTest::Fields | FormatTest::Items(_) | FormatTest::AnyText => None,
        };
        // The debug text is the map key, because JSON values have no order.
        let case = apart.entry(format!("{test:?} {decoding:?}"));
        case.or_insert_with(|| DraftFormat { test, decoding, state, samples: Vec::new() })
            .samples
            .push(sample);
    }
    apart.into_values().collect()
}

/// True if the other fields of a value depend on this field: `st`, if each `P` has an owner and
/// each `D` a response.
fn parts_fields(objects: &[&Map<String, Value>], name: &str) -> bool {
    let mut by_value: BTreeMap<String, (usize, BTreeSet<&String>)> = BTreeMap::new();
    for object in objects {
        let Some(value) = object.get(name) else { return false };
        let fields: BTreeSet<_> = object.keys().collect();
        let (count, known) =
            by_value.entry(value.to_string()).or_insert_with(|| (0, fields.clone()));
        if *known != fields {
            return false;
        }
        *count += 1;
    }
    let kinds: BTreeSet<_> = by_value.values().map(|(_, fields)| fields).collect();
    // A value that occurs once is not evidence: unique owners and times would also divide the
    // fields.
    kinds.len() > 1 && by_value.values().all(|(count, _)| *count > 1)
}

/// The field that holds the state: every value has it, and it has few distinct words.
fn state_field(samples: &[SampleValue]) -> Option<String> {
    let objects: Vec<_> = samples.iter().filter_map(SampleValue::fields).collect();
    let first = objects.first()?;
    let is_word = |value: &Value| {
        value.is_string() || value.is_boolean() || value.as_u64().is_some_and(|n| n < 10)
    };
    let tells = |name: &&String| {
        let values: Vec<_> = objects.iter().filter_map(|object| object.get(*name)).collect();
        let distinct: BTreeSet<_> = values.iter().map(ToString::to_string).collect();
        let knows = || {
            values
                .iter()
                .all(|value| value.as_str().is_some_and(|word| states::of_word(word).is_some()))
        };
        let is_named =
            states::rank(name) < usize::MAX && (states::rank(name) < states::rank("") || knows());
        values.len() == objects.len()
            && values.iter().all(|value| is_word(value))
            && distinct.len() <= MOST_WORDS
            && (is_named || parts_fields(&objects, name))
    };
    first.keys().filter(tells).min_by_key(|name| states::rank(name)).cloned()
}
