//! Redis keys that exist, but do not hold a record of any selected schema.

use super::author::Author;
use super::decode;
use super::locate::Candidate;
use super::observation::{Content, KeyState, Observation};
use super::record::Record;
use crate::domain::schema::{Catalog, Exclusion, Schema};

/// A Redis key that exists but does not hold a record of a selected schema (`unclaimed` in JSON).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnclaimedKey {
    pub(crate) seen: KeyState,
    /// The nearest schema, and how the value deviates from its formats.
    pub(crate) nearest: Option<(String, String)>,
    /// Other schemas that idemctl ships, of which the value fits a format.
    pub(crate) fits: Vec<String>,
    /// The schemas that store records under such names but exclude this one, each with the reason.
    pub(crate) left_out_by: Vec<(String, Exclusion)>,
}

impl UnclaimedKey {
    /// Adds the selected schemas that exclude this Redis key.
    #[must_use]
    pub(crate) fn left_out_by(self, catalog: &Catalog) -> Self {
        let mut left_out_by = leaving_out(catalog, &self.seen.redis_key);
        // A schema is listed once for each of its prefixes.
        left_out_by.dedup();
        Self { left_out_by, ..self }
    }
}

/// The Redis keys to read for a KEY that is not the name of a record: the key of that name, and the
/// keys that the selected schemas would use for it but exclude.
pub(crate) fn redis_keys_of(catalog: &Catalog, key: &[u8]) -> Vec<Vec<u8>> {
    let mut redis_keys = vec![key.to_vec()];
    for schema in catalog.chosen_under_each_prefix() {
        for redis_key in schema.redis_keys(key) {
            if !leaving_out(catalog, &redis_key).is_empty() {
                redis_keys.push(redis_key);
            }
        }
    }
    redis_keys.sort_unstable();
    redis_keys.dedup();
    redis_keys
}

/// The selected schemas that exclude a Redis key. A schema without a fixed prefix counts only if
/// the operator named it, because any Redis key may match it.
fn leaving_out(catalog: &Catalog, redis_key: &[u8]) -> Vec<(String, Exclusion)> {
    let mut leaving_out = Vec::new();
    for schema in catalog.chosen_under_each_prefix() {
        if !catalog.includes_unprefixed() && !schema.has_fixed_prefix() {
            continue;
        }
        if let Some(exclusion) = schema.leaves_out(redis_key) {
            leaving_out.push((schema.name.clone(), exclusion));
        }
    }
    leaving_out
}

/// The existing Redis keys of a candidate that does not hold a record.
pub(crate) fn unclaimed_in(candidate: &Candidate, seen: &Observation) -> Vec<UnclaimedKey> {
    let mut nearest = None;
    for schema in candidate.schemas.iter() {
        if nearest.is_none()
            && let Some(why) = deviation(schema, seen)
        {
            nearest = Some((schema.name.clone(), why));
        }
    }
    let mut unclaimed = Vec::new();
    for key in &seen.keys {
        if !key.content.is_absent() {
            let nearest = nearest.clone();
            unclaimed.push(UnclaimedKey {
                seen: outline(key),
                nearest,
                fits: Vec::new(),
                left_out_by: Vec::new(),
            });
        }
    }
    unclaimed
}

/// The existing Redis keys of a record whose values its schema does not write; `fits` names schemas
/// that may have written them.
pub(crate) fn of_unrecognised(record: &Record, fits: &[String]) -> Vec<UnclaimedKey> {
    let why = record.author.unrecognised_because().unwrap_or_default();
    let mut unclaimed = Vec::new();
    for key in &record.seen.keys {
        if !key.content.is_absent() {
            unclaimed.push(UnclaimedKey {
                seen: outline(key),
                nearest: Some((record.schema.name.clone(), why.clone())),
                fits: fits.to_vec(),
                left_out_by: Vec::new(),
            });
        }
    }
    unclaimed
}

/// A Redis key without the bytes of its value, which may be large.
fn outline(key: &KeyState) -> KeyState {
    let content = match &key.content {
        Content::Text { length, .. } => Content::Text { head: Vec::new(), length: *length },
        Content::Hash(_) => Content::Other("hash".to_owned()),
        other => other.clone(),
    };
    KeyState {
        content,
        ..KeyState::new(&key.redis_key, Content::Absent, key.time_left, key.deadline)
    }
}

/// How the values at a schema's Redis keys deviate from its formats.
fn deviation(schema: &Schema, seen: &Observation) -> Option<String> {
    let mut readings = Vec::with_capacity(seen.keys.len());
    for (key_index, key) in seen.keys.iter().enumerate() {
        readings.push(decode::decode_value(schema, key_index, &key.content));
    }
    Author::of(schema, &readings).unrecognised_because()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{self, text};

    #[test]
    fn an_unclaimed_key_is_told_from_the_nearest_schema() {
        let schema = Arc::new(samples::schema("go-chi"));
        let seen =
            samples::seen(&schema, &[(text(r#"{"status":0,"name":"Ann"}"#), TimeLeft::NoExpiry)]);
        let redis_keys = schema.redis_keys(b"user:42");
        let place = Candidate {
            key: b"user:42".to_vec(),
            redis_keys,
            schemas: Arc::from([schema]),
            is_most_specific: true,
        };
        let found = unclaimed_in(&place, &seen);
        let (name, why) = found[0].nearest.clone().expect("a nearest schema");
        assert_eq!((name.as_str(), found.len()), ("go-chi", 1));
        assert!(why.contains("/name"), "{why}");
        let unclaimed = Candidate { schemas: Arc::from([]), ..place };
        assert_eq!(unclaimed_in(&unclaimed, &seen)[0].nearest, None);
    }
}
