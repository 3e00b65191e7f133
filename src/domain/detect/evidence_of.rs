//! The evidence for a schema in short sentences, and the fields that distinguish two schemas.

use std::collections::BTreeSet;

use serde_json::Value;

use super::group::{Guess, Other};
use super::placing::{KeyspacePart, SchemaSet, place};
use super::schema_match::SampleSet;
use crate::domain::record::{Content, decode};
use crate::domain::schema::{Schema, ValueFormat};

/// The most samples of an unclaimed group whose fields are read.
pub(super) const ASKED: usize = 50;

/// Parts of a Redis key that suggest a lock.
const LOCK_WORDS: [&str; 8] =
    ["lock", "locks", "mutex", "started", "idem", "idempotency", "idempotent", "dedup"];

/// The longest value that may be an owner token; longer values are data.
const LONGEST_TOKEN: usize = 64;

/// The evidence that the values and the keys give for a schema.
pub(super) fn of(guess: &Guess) -> Vec<String> {
    let cases: Vec<_> = guess.cases.iter().map(|case| &guess.schema.values[*case]).collect();
    let template = &guess.schema.keys[guess.role].template;
    let key = template.has_prefix().then(|| format!("the keys are {}", template.display()));
    words(&cases).into_iter().chain(fields(&cases)).chain(any_text(&cases)).chain(key).collect()
}

/// A sentence for each field that identifies a value format, then one for values that are a single
/// word.
fn words(cases: &[&ValueFormat]) -> Vec<String> {
    let paths: BTreeSet<_> =
        cases.iter().flat_map(|case| &case.tests.fields).map(|(path, _)| path.as_str()).collect();
    let values = |path: &str| {
        let of =
            cases.iter().flat_map(|case| &case.tests.fields).filter(|(found, _)| found == path);
        of.map(|(_, value)| value.to_string())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    };
    let whole = cases.iter().filter_map(|case| case.tests.equals.as_ref());
    let whole: BTreeSet<_> =
        whole.map(|word| format!("\"{}\"", String::from_utf8_lossy(word))).collect();
    let whole = whole.into_iter().collect::<Vec<_>>().join(" or ");
    let fields = paths.into_iter().map(|path| format!("{path} is {}", values(path).join(" or ")));
    fields.chain((!whole.is_empty()).then(|| format!("the value is {whole}"))).collect()
}

/// The required fields of the value formats, except the fields that identify the formats.
fn fields(cases: &[&ValueFormat]) -> Option<String> {
    let tested: Vec<_> =
        cases.iter().flat_map(|case| &case.tests.fields).map(|(path, _)| path).collect();
    let mut paths: Vec<String> = cases.iter().flat_map(|case| required(case)).collect();
    paths.retain(|path| !tested.contains(&path));
    paths.sort_unstable();
    paths.dedup();
    let inner = |path: &String| !paths.iter().any(|other| other.starts_with(&format!("{path}/")));
    let shown: Vec<_> = paths.iter().filter(|path| inner(path)).map(String::as_str).collect();
    (!shown.is_empty()).then(|| format!("fields {}", shown.join(", ")))
}

/// A sentence for schemas that accept any text, so that only the key names identify their records.
fn any_text(cases: &[&ValueFormat]) -> Option<String> {
    let any = cases.iter().any(|case| case.is_opaque());
    any.then(|| "any text is of its form: the keys alone tell".to_owned())
}

/// The JSON pointers of the fields that a value format requires.
fn required(case: &ValueFormat) -> Vec<String> {
    let closed = case.closed.as_ref().map(|closed| closed.paths(|member| member.is_required));
    closed.unwrap_or_else(|| case.tests.has.clone())
}

/// The field that distinguishes two schemas: one that the formats of one schema require and those
/// of the other do not have.
pub(super) fn parting(first: &Schema, second: &Schema) -> String {
    let only = |of: &Schema, not_of: &Schema| {
        let others: Vec<_> = not_of.values.iter().flat_map(known).collect();
        of.values.iter().flat_map(required).find(|path| !others.contains(path))
    };
    let word = |of: &Schema, not_of: &Schema| {
        let others: Vec<_> = not_of.values.iter().flat_map(|case| &case.tests.fields).collect();
        let own = of
            .values
            .iter()
            .flat_map(|case| &case.tests.fields)
            .find(|test| !others.contains(test));
        own.map(|(path, value): &(String, Value)| format!("{path} = {value}"))
    };
    let parts = [(first, second), (second, first)].map(|(of, not_of)| {
        let sign = only(of, not_of).or_else(|| word(of, not_of))?;
        Some(format!("{sign} is of {} alone", of.name))
    });
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "no field parts the two".to_owned() } else { parts.join(", ") }
}

/// The JSON pointers of every field that a value format allows; empty if it allows any field.
fn known(case: &ValueFormat) -> Vec<String> {
    case.closed.as_ref().map(|closed| closed.paths(|_| true)).unwrap_or_default()
}

/// The schema whose words are in these keys and whose value format the values nearly match.
pub(super) fn nearest(schema_set: &dyn SchemaSet, sample_set: SampleSet<'_>) -> Option<Other> {
    let SampleSet { samples, among, leader, named } = sample_set;
    let asked = &among[..among.len().min(ASKED)];
    let redis_keys: Vec<_> = asked.iter().map(|sample| &samples[*sample].redis_key[..]).collect();
    schema_set.all().iter().find_map(|schema| {
        (0..schema.keys.len()).find_map(|role| {
            let why = asked.iter().find_map(|sample| {
                let reading = decode::decode_value(schema, role, &samples[*sample].content);
                let decoded = reading.decoded()?;
                // A format without tests reads any hash or object, so a near miss of it is not
                // evidence.
                let is_tested = !schema.values[decoded.format].tests.is_empty();
                let why = decoded.conformance.deviation().filter(|_| is_tested)?;
                Some(why.to_owned())
            })?;
            let placed = place(
                schema_set,
                schema,
                role,
                KeyspacePart { leader, redis_keys: &redis_keys, named },
            )?;
            let has_words =
                placed.schema.keys[role].template.specificity() > placed.schema.prefix.text.len();
            has_words.then(|| Other {
                schema: schema.name.clone(),
                why: format!("comes nearest, but {why}"),
            })
        })
    })
}

/// A guess about unknown keys: they are locks if their names suggest it and their values are short
/// texts.
pub(super) fn look(pattern: &str, sample_set: SampleSet<'_>) -> Option<String> {
    let names_locks = pattern
        .split([':', '/', '#', '_', '.', '-'])
        .any(|word| LOCK_WORDS.contains(&word.to_ascii_lowercase().as_str()));
    let is_token = |sample: &usize| match &sample_set.samples[*sample].content {
        Content::Text { head, length } => {
            *length == Some(head.len() as u64)
                && head.len() <= LONGEST_TOKEN
                && head.first() != Some(&b'{')
        }
        _ => false,
    };
    (names_locks && sample_set.among.iter().all(is_token))
        .then(|| "looks like locks, library unknown".to_owned())
}
