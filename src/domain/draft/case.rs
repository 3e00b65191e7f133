//! The forms that sample values have: one for each word that tells them apart.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::sample::SampleValue;
use super::states;
use crate::domain::schema::{Decoding, State};

/// Words that tell so many forms apart; more of them are no states.
const MOST_WORDS: usize = 8;

/// A text that all samples have and that is no longer than this is a word of the service.
const LONGEST_MARKER: usize = 16;

/// Values of one form.
#[derive(Debug)]
pub(super) struct DraftFormat {
    pub(super) test: FormatTest,
    pub(super) decoding: Decoding,
    pub(super) state: Option<State>,
    pub(super) samples: Vec<SampleValue>,
}

/// What tells a form.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FormatTest {
    /// A field of a JSON value, and what stands there.
    Field(String, Value),
    /// Any object of its fields.
    Fields,
    /// Any array of so many items.
    Items(usize),
    /// The whole text.
    Word(String),
    AnyText,
}

/// The forms of these values, those of documents first: any text may be of the others.
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
        let case = apart.entry(format!("{test:?} {decoding:?}"));
        case.or_insert_with(|| DraftFormat { test, decoding, state, samples: Vec::new() })
            .samples
            .push(sample);
    }
    apart.into_values().collect()
}

/// True if the values of a field go with different further fields: `st` if each `P` has an owner and each `D` a response.
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
    // A value that occurs once tells nothing: each owner and each time would part the fields.
    kinds.len() > 1 && by_value.values().all(|(count, _)| *count > 1)
}

/// The field whose words tell the values apart: one that all of them have, of few words.
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
