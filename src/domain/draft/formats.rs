//! The value formats of sample values: one for each word of the field that holds the state.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::sample::SampleValue;
use crate::domain::schema::Decoding;
use crate::domain::schema::closed_fields::escaped;

/// Names of fields that hold a record's state, the likeliest first.
const STATE_FIELDS: [&str; 7] = ["status", "state", "phase", "stage", "st", "s", "done"];

/// The most words of one field, or of values that are a word; more are no states.
const MAX_WORDS: usize = 8;

/// The samples of one value format.
#[derive(Debug)]
pub(super) struct DraftFormat {
    /// How a value is recognised.
    pub(super) test: FormatTest,
    /// How a value is decoded.
    pub(super) decoding: Decoding,
    pub(super) samples: Vec<SampleValue>,
}

/// How values of a format are recognised.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FormatTest {
    /// A field of a document, by its JSON pointer, and its value.
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
pub(super) fn formats(samples: Vec<SampleValue>) -> Vec<DraftFormat> {
    let (documents, texts): (Vec<_>, Vec<_>) =
        samples.into_iter().partition(|sample| sample.document.is_some());
    let state_field = state_field(&documents);
    let mut formats = apart(documents, |sample| document_test(sample, state_field.as_deref()));
    let words: BTreeSet<_> = texts.iter().map(|sample| sample.text.as_str()).collect();
    // Owner tokens differ from value to value; words of a service repeat, more of them if they have
    // digits.
    let are_letters = words.iter().all(|word| {
        word.chars().all(|letter| letter.is_ascii_alphabetic() || "-_".contains(letter))
    });
    let are_words = words.len() <= MAX_WORDS
        && (are_letters && words.len() < texts.len() || words.len() * 2 <= texts.len());
    formats.extend(apart(texts, |sample| {
        if are_words { FormatTest::Word(sample.text.clone()) } else { FormatTest::AnyText }
    }));
    formats
}

/// How a document is recognised: by the field that holds the state, if there is one.
fn document_test(sample: &SampleValue, state_field: Option<&str>) -> FormatTest {
    let document = sample.document.as_ref();
    match (state_field, document) {
        (Some(pointer), _) => {
            let value = document.and_then(|document| document.pointer(pointer)).cloned();
            FormatTest::Field(pointer.to_owned(), value.unwrap_or_default())
        }
        (None, Some(Value::Array(items))) => FormatTest::Items(items.len()),
        (None, _) => FormatTest::Fields,
    }
}

/// Groups the values that have the same test and the same decoding.
fn apart(samples: Vec<SampleValue>, test: impl Fn(&SampleValue) -> FormatTest) -> Vec<DraftFormat> {
    let mut formats: BTreeMap<String, DraftFormat> = BTreeMap::new();
    for sample in samples {
        let test = test(&sample);
        let decoding = sample.decoding.clone();
        // The debug text is the map key, because JSON values have no order.
        let format = formats
            .entry(format!("{test:?} {decoding:?}"))
            .or_insert_with(|| DraftFormat { test, decoding, samples: Vec::new() });
        format.samples.push(sample);
    }
    formats.into_values().collect()
}

/// The pointer to the field that holds the state: one with a usual name and few words, which every
/// document has at its top or in one object.
fn state_field(samples: &[SampleValue]) -> Option<String> {
    let documents: Vec<_> = samples.iter().filter_map(|sample| sample.document.as_ref()).collect();
    let first = documents.first()?.as_object()?;
    let mut pointers: Vec<_> = first.keys().map(|name| format!("/{}", escaped(name))).collect();
    for (outer, value) in first {
        for inner in value.as_object().into_iter().flat_map(|members| members.keys()) {
            pointers.push(format!("/{}/{}", escaped(outer), escaped(inner)));
        }
    }
    for name in STATE_FIELDS {
        for pointer in &pointers {
            let last = pointer.rsplit('/').next().unwrap_or_default();
            if last.eq_ignore_ascii_case(name) && holds_state(&documents, pointer) {
                return Some(pointer.clone());
            }
        }
    }
    None
}

/// True if every document has one of a few words at this pointer.
fn holds_state(documents: &[&Value], pointer: &str) -> bool {
    let mut words = BTreeSet::new();
    for document in documents {
        let Some(value) = document.pointer(pointer) else { return false };
        // A code of one digit may be a state; `201` is the status of a response.
        let is_code = value.as_u64().is_some_and(|code| code < 10);
        if !(value.is_string() || value.is_boolean() || is_code) {
            return false;
        }
        words.insert(value.to_string());
    }
    words.len() <= MAX_WORDS
}
