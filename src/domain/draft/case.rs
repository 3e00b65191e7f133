//! The value formats of sample values: one for each state word.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::sample::SampleValue;
use super::{fields, states};
use crate::domain::schema::{Decoding, State};

/// The most state words of one field; a field with more values is not a state.
const MAX_WORDS: usize = 8;

/// Names of fields that hold a response or a message, whose text may be a word such as `ok`.
const NO_STATES: [&str; 5] = ["body", "resp", "response", "message", "error"];

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
    /// The Redis key that it is at, if the records have a lock and a result apart.
    pub(super) role: Option<&'static str>,
    pub(super) samples: Vec<SampleValue>,
}

impl DraftFormat {
    /// True if its word names a failed request.
    pub(super) fn is_failure(&self) -> bool {
        match &self.test {
            FormatTest::Field(_, Value::String(word)) | FormatTest::Word(word) => {
                states::is_failure(word)
            }
            _ => false,
        }
    }
}

/// How values of a format are recognised.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FormatTest {
    /// A field of a JSON value, by its JSON pointer, and its value.
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
    let state_field = state_field(&documents);
    let mut cases = by(documents, |sample| document_test(sample, state_field.as_deref()));
    let words: BTreeSet<_> = texts.iter().map(|sample| sample.text.as_str()).collect();
    let are_words = words.iter().all(|word| states::of_word(word).is_some());
    // A constant such as `1` carries no state word, but every lock of the service holds it.
    let is_marker = texts.len() > 1
        && words.len() == 1
        && words.iter().all(|word| word.len() <= LONGEST_MARKER);
    let are_words = are_words || is_marker;
    cases.extend(by(texts, |sample| {
        if are_words { FormatTest::Word(sample.text.clone()) } else { FormatTest::AnyText }
    }));
    cases
}

/// How a document is recognised: by the field that holds the state, if there is one.
fn document_test(sample: &SampleValue, state_field: Option<&str>) -> FormatTest {
    let Some(pointer) = state_field else {
        return match &sample.document {
            Some(Value::Array(items)) => FormatTest::Items(items.len()),
            _ => FormatTest::Fields,
        };
    };
    let document = sample.document.as_ref();
    let value = document.and_then(|document| document.pointer(pointer)).cloned();
    FormatTest::Field(pointer.to_owned(), value.unwrap_or_default())
}

/// Groups the values that have the same test and the same decoding.
fn by(samples: Vec<SampleValue>, test: impl Fn(&SampleValue) -> FormatTest) -> Vec<DraftFormat> {
    let mut apart: BTreeMap<String, DraftFormat> = BTreeMap::new();
    for sample in samples {
        let test = test(&sample);
        let decoding = sample.decoding.clone();
        let state = match &test {
            // Whether the next request gets a failure or executes again is not in the value.
            FormatTest::Field(_, Value::String(word)) | FormatTest::Word(word) => {
                if states::is_failure(word) {
                    None
                } else {
                    states::of_word(word)
                }
            }
            // A number or a truth value names no state, so a person must decide.
            FormatTest::Field(..)
            | FormatTest::Fields
            | FormatTest::Items(_)
            | FormatTest::AnyText => None,
        };
        // The debug text is the map key, because JSON values have no order.
        let case = apart.entry(format!("{test:?} {decoding:?}")).or_insert_with(|| DraftFormat {
            test,
            decoding,
            state,
            role: None,
            samples: Vec::new(),
        });
        case.samples.push(sample);
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

/// The pointer to the field that holds the state: every value has it, and it has few distinct
/// words.
fn state_field(samples: &[SampleValue]) -> Option<String> {
    let objects: Vec<_> = samples.iter().filter_map(SampleValue::fields).collect();
    if let Some(name) = best_name(&objects) {
        return Some(format!("/{}", fields::step(name)));
    }
    // The state may be in an object that every value has, such as `payload`. There the words
    // themselves have to be those of states, because a response has a `status` too.
    for outer in objects.first()?.keys() {
        let mut inner = Vec::with_capacity(objects.len());
        for object in &objects {
            inner.extend(object.get(outer).and_then(Value::as_object));
        }
        if inner.len() == objects.len()
            && let Some(name) = best_name(&inner)
            && has_state_words(&inner, name)
        {
            return Some(format!("/{}/{}", fields::step(outer), fields::step(name)));
        }
    }
    None
}

/// True if the field has several words of states, and no others.
fn has_state_words(objects: &[&Map<String, Value>], name: &str) -> bool {
    let mut distinct = BTreeSet::new();
    for object in objects {
        let word = object.get(name).and_then(Value::as_str).unwrap_or_default();
        if states::of_word(word).is_none() {
            return false;
        }
        distinct.insert(word);
    }
    distinct.len() > 1
}

/// The name of the field that holds the state of these objects.
fn best_name<'a>(objects: &[&'a Map<String, Value>]) -> Option<&'a String> {
    let mut best: Option<&String> = None;
    for name in objects.first()?.keys() {
        // Of two names with the same rank, the first wins.
        let is_better = match best {
            Some(best) => states::rank(name) < states::rank(best),
            None => true,
        };
        if is_better && may_hold_state(objects, name) {
            best = Some(name);
        }
    }
    best
}

/// True if the values of this field look like states: few distinct words, and either the name or
/// the words are those of states, or the other fields depend on them.
fn may_hold_state(objects: &[&Map<String, Value>], name: &str) -> bool {
    if NO_STATES.iter().any(|other| name.eq_ignore_ascii_case(other)) {
        return false;
    }
    let mut distinct = BTreeSet::new();
    let mut are_state_words = true;
    for object in objects {
        let Some(value) = object.get(name) else { return false };
        if !is_word(value) {
            return false;
        }
        if value.as_str().and_then(states::of_word).is_none() {
            are_state_words = false;
        }
        distinct.insert(value.to_string());
    }
    if distinct.len() > MAX_WORDS {
        return false;
    }
    // The rank of an empty name is that of every name that is not listed.
    let has_usual_name = states::rank(name) < states::rank("");
    has_usual_name || are_state_words || parts_fields(objects, name)
}

/// True for a value that can be a state: a text, a truth value, or a code of one digit.
fn is_word(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Bool(_) => true,
        _ => value.as_u64().is_some_and(|code| code < 10),
    }
}
