//! Matches one schema against a group of Redis keys: which values it reads, and how strong that
//! evidence is.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::detect::placing::{Placed, SchemaSet, place};
use crate::domain::record::{KeyState, decode};
use crate::domain::schema::{PrefixPlace, Schema, ValueFormat};

/// How many samples are tried first. A schema that reads none of them is skipped.
const PROBES: usize = 50;

/// A schema that may have written some values of a group.
pub(super) struct SchemaMatch {
    /// The schema with the prefix that the keys imply.
    pub(super) placed: Placed,
    /// The index of the schema's Redis key that the keys would be.
    pub(super) key_index: usize,
    /// The samples that match a value format of the schema: the sample's index and the format's
    /// index.
    pub(super) own: Vec<(usize, usize)>,
    /// The samples of which too few bytes were read for a decision.
    pub(super) undecided: Vec<usize>,
}

impl SchemaMatch {
    /// The schema with the implied prefix.
    pub(super) fn schema(&self) -> &Arc<Schema> {
        &self.placed.schema
    }

    /// The average points per value among these samples. A sample that the schema does not read
    /// counts as zero.
    pub(super) fn points(&self, among: &[usize]) -> f64 {
        let mut values = Vec::new();
        for (sample, case) in &self.own {
            if among.binary_search(sample).is_ok() {
                values.push(of_value(&self.schema().values[*case]));
            }
        }
        share(values.len(), among.len()) * (mean(&values) + self.points_of_keys())
    }

    /// The part of the points that the names of the Redis keys give.
    pub(super) fn points_of_keys(&self) -> f64 {
        of_keys(self.schema(), self.key_index, self.placed.is_default)
    }

    /// The samples among these that the schema reads.
    pub(super) fn own_among(&self, among: &[usize]) -> Vec<usize> {
        let own = self.own.iter().map(|(sample, _)| *sample);
        own.filter(|sample| among.binary_search(sample).is_ok()).collect()
    }
}

/// Samples whose Redis keys have one pattern.
#[derive(Clone, Copy)]
pub(super) struct SampleSet<'a> {
    pub(super) samples: &'a [KeyState],
    /// The indexes of the samples that belong to the set.
    pub(super) among: &'a [usize],
    /// The bytes with which their Redis keys begin.
    pub(super) leader: &'a [u8],
}

/// Matches every key of every schema against these samples.
pub(super) fn match_schemas(
    schema_set: &dyn SchemaSet,
    sample_set: SampleSet<'_>,
) -> Vec<SchemaMatch> {
    let mut matches = Vec::new();
    for schema in schema_set.all() {
        for key_index in 0..schema.keys.len() {
            matches.extend(schema_match(schema_set, schema, key_index, sample_set));
        }
    }
    matches
}

fn schema_match(
    schema_set: &dyn SchemaSet,
    schema: &Arc<Schema>,
    key_index: usize,
    sample_set: SampleSet<'_>,
) -> Option<SchemaMatch> {
    let SampleSet { samples, among, leader } = sample_set;
    let reader = reader(schema_set, schema, key_index, leader);
    // A keyspace has thousands of samples and dozens of schemas. A few probes rule most schemas out
    // cheaply.
    let step = among.len().div_ceil(PROBES).max(1);
    let may_match = among.iter().step_by(step).any(|sample| {
        let reading = decode::decode_value(&reader, key_index, &samples[*sample].content);
        reading.conforms_or_absent() || reading.is_undecided()
    });
    if !may_match {
        return None;
    }
    let mut own = Vec::new();
    let mut undecided = Vec::new();
    let mut redis_keys = Vec::new();
    for sample in among {
        let reading = decode::decode_value(&reader, key_index, &samples[*sample].content);
        if reading.is_undecided() {
            undecided.push(*sample);
        } else if reading.conforms_or_absent()
            && let Some(value) = reading.decoded()
        {
            own.push((*sample, value.format));
            redis_keys.push(&samples[*sample].redis_key[..]);
        }
    }
    if own.is_empty() {
        return None;
    }
    let placed = place(schema_set, schema, key_index, leader, &redis_keys)?;
    Some(SchemaMatch { placed, key_index, own, undecided })
}

/// That some of these samples differ only by one field from what a schema reads; `None` if none of
/// the first ones does.
pub(super) fn near_misses(schema_set: &dyn SchemaSet, sample_set: SampleSet<'_>) -> Option<String> {
    let SampleSet { samples, among, leader } = sample_set;
    let step = among.len().div_ceil(PROBES).max(1);
    for schema in schema_set.all() {
        for key_index in 0..schema.keys.len() {
            let reader = reader(schema_set, schema, key_index, leader);
            let mut fields: BTreeMap<String, usize> = BTreeMap::new();
            for sample in among.iter().step_by(step) {
                let reading = decode::decode_value(&reader, key_index, &samples[*sample].content);
                if let Some(value) = reading.decoded()
                    && let Some(field) = value.conformance.only_extra()
                    && of_value(&reader.values[value.format]) >= WORD
                {
                    *fields.entry(field.to_owned()).or_default() += 1;
                }
            }
            if let Some((field, _)) = fields.into_iter().max_by_key(|(_, count)| *count) {
                return Some(format!("some differ from {} only by {field}", schema.name));
            }
        }
    }
    None
}

/// The schema for reading values. Without a prefix in its keys, any short text would count for a
/// schema, so the leader becomes its prefix.
fn reader(
    schema_set: &dyn SchemaSet,
    schema: &Arc<Schema>,
    key_index: usize,
    leader: &[u8],
) -> Arc<Schema> {
    let is_bare = !schema.keys[key_index].template.has_fixed_prefix()
        && schema.prefix.place == PrefixPlace::Written;
    // A leader that is not UTF-8 cannot be a prefix, because prefixes come from text files.
    if is_bare
        && let Ok(prefix) = std::str::from_utf8(leader)
        && !prefix.is_empty()
        && let Some(reader) = schema_set.with_prefix(&schema.name, prefix)
    {
        return reader;
    }
    Arc::clone(schema)
}

/// The arithmetic mean; 0 for no values.
pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / float(values.len()) }
}

/// The share of `part` in `all`, from 0 to 1; 0 if `all` is 0.
pub(super) fn share(part: usize, all: usize) -> f64 {
    if all == 0 { 0.0 } else { float(part) / float(all) }
}

#[expect(clippy::cast_precision_loss, reason = "a sample has some thousand keys")]
fn float(count: usize) -> f64 {
    count as f64
}

/// Points for a word of the service in a field, or as the whole value.
const WORD: f64 = 3.0;

/// Points for a number or a truth value that a field must have: fewer than for a word, because many
/// services write the same numbers.
const OTHER_VALUE: f64 = 2.0;

/// Points for a field that must exist.
const FIELD: f64 = 1.0;

/// Points for the service's own words in the Redis key.
const KEY: f64 = 2.0;

/// The shortest word that counts in full. Shorter ones, such as `1` or `ok`, are common to many
/// services.
const TELLING: usize = 4;

/// The points for a value of this format.
pub(super) fn of_value(case: &ValueFormat) -> f64 {
    let mut points = match &case.tests.equals {
        Some(word) if word.len() < TELLING => FIELD,
        Some(_) => WORD,
        None => 0.0,
    };
    for (_, value) in &case.tests.fields {
        points += if value.is_string() { WORD } else { OTHER_VALUE };
    }
    let required = match &case.closed {
        Some(closed) => closed.paths(|member| member.is_required).len(),
        None => 0,
    };
    // `required` lists the fields of `has` as well, so they are not added twice.
    points + FIELD * float(required.max(case.tests.has.len()))
}

/// The points for Redis keys that are a schema's key with this index. `is_default` is true if the
/// prefix is the schema's own, and not one that was guessed from the keys.
pub(super) fn of_keys(schema: &Schema, key_index: usize, is_default: bool) -> f64 {
    // A guessed prefix was taken from the keys themselves, so finding it there again is not
    // evidence.
    let words =
        schema.keys[key_index].template.specificity().saturating_sub(schema.prefix.text.len());
    let is_in_front = is_default || schema.prefix.text.is_empty();
    match words {
        0 if is_default && !schema.prefix.text.is_empty() => KEY,
        0 => 0.0,
        _ if is_in_front || words >= TELLING => KEY,
        _ => FIELD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{catalog, schema};

    fn value(name: &str, case: &str) -> f64 {
        of_value(schema(name).values.iter().find(|value| value.name == case).unwrap())
    }

    #[test]
    fn words_score_higher_than_fields_and_any_text_scores_zero() {
        assert!(
            (value("express", "in-progress") - 4.0).abs() < f64::EPSILON,
            "its word, and the field that has the word"
        );
        assert!(value("express", "completed") > value("express", "in-progress"));
        assert!(
            (value("go-chi", "in-progress") - 3.0).abs() < f64::EPSILON,
            "a number says less than a word"
        );
        assert!((value("event-consumer", "held") - 1.0).abs() < f64::EPSILON, "`1` is anybody's");
        assert!(value("event-consumer", "stored").abs() < f64::EPSILON, "any text");
    }

    #[test]
    fn only_a_schemas_own_words_in_a_key_score() {
        let express = schema("express");
        assert!((of_keys(&express, 0, true) - KEY).abs() < f64::EPSILON);
        assert!(of_keys(&schema("go-chi"), 0, true).abs() < f64::EPSILON, "it has no words");
        let chi = catalog(&["go-chi"], Some("pay:")).chosen()[0].clone();
        assert!(of_keys(&chi, 0, false).abs() < f64::EPSILON, "a prefix that was guessed");
    }
}
