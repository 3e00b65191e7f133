//! Redis keys that exist, and hold no record of any schema that was looked for.

use super::claim::Claim;
use super::decode;
use super::locate::Candidate;
use super::observation::{Content, Observation, SeenKey};
use crate::domain::schema::{Catalog, Exclusion, Schema};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnclaimedKey {
    pub(crate) seen: SeenKey,
    /// The schema that comes nearest, and what parts the value from the schema's forms.
    pub(crate) nearest: Option<(String, String)>,
    /// The schemas that keep records under such names and leave this one out, each with the word that says so.
    pub(crate) left_out_by: Vec<(String, Exclusion)>,
}

impl UnclaimedKey {
    /// With the chosen schemas that leave its Redis key out.
    #[must_use]
    pub(crate) fn left_out_by(self, catalog: &Catalog) -> Self {
        let mut left_out_by: Vec<_> = leaving_out(catalog, &self.seen.redis_key).collect();
        // A schema stands in the list once for each of its prefixes.
        left_out_by.dedup();
        Self { left_out_by, ..self }
    }
}

/// The places to look at for a KEY that names no record: the Redis key of that name, and those that the chosen schemas would have
/// for it and leave out.
pub(crate) fn places(catalog: &Catalog, key: &[u8]) -> Vec<Vec<u8>> {
    let is_left_out = |redis_key: &Vec<u8>| leaving_out(catalog, redis_key).next().is_some();
    let theirs =
        catalog.places().iter().flat_map(|schema| schema.redis_keys(key)).filter(is_left_out);
    let mut places: Vec<_> = [key.to_vec()].into_iter().chain(theirs).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// The chosen schemas that leave a Redis key out. One without a literal prefix is asked only where it is named, for any Redis key
/// may be its.
fn leaving_out(catalog: &Catalog, redis_key: &[u8]) -> impl Iterator<Item = (String, Exclusion)> {
    let asked =
        catalog.places().iter().filter(|schema| catalog.takes_bare() || schema.has_prefix());
    asked.filter_map(|schema| Some((schema.name.clone(), schema.leaves_out(redis_key)?)))
}

/// The Redis keys of a place that exist, where no schema took them for a record.
pub(crate) fn strangers(candidate: &Candidate, seen: &Observation) -> Vec<UnclaimedKey> {
    let nearest = candidate
        .schemas
        .iter()
        .find_map(|schema| Some((schema.name.clone(), parts(schema, seen)?)));
    let there = seen.keys.iter().filter(|key| key.content != Content::Absent);
    there
        .map(|key| UnclaimedKey {
            seen: outline(key),
            nearest: nearest.clone(),
            left_out_by: Vec::new(),
        })
        .collect()
}

/// A Redis key without its value's bytes, which may be many.
fn outline(key: &SeenKey) -> SeenKey {
    let content = match &key.content {
        Content::Text { length, .. } => Content::Text { head: Vec::new(), length: *length },
        Content::Hash(_) => Content::Other("hash".to_owned()),
        other => other.clone(),
    };
    SeenKey { content, ..SeenKey::new(&key.redis_key, Content::Absent, key.expiry, key.deadline) }
}

/// What parts the values at a schema's Redis keys from the schema's forms.
fn parts(schema: &Schema, seen: &Observation) -> Option<String> {
    let read = |(role, seen): (usize, &SeenKey)| decode::read(schema, role, &seen.content);
    let readings: Vec<_> = seen.keys.iter().enumerate().map(read).collect();
    Claim::of(schema, &readings).foreign_because()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::record::Expiry;
    use crate::domain::samples::{self, text};

    #[test]
    fn a_stranger_is_told_from_the_nearest_schema() {
        let schema = Arc::new(samples::schema("go-chi"));
        let seen = samples::seen(&schema, &[(text(r#"{"status":0,"name":"Ann"}"#), Expiry::Never)]);
        let redis_keys = schema.redis_keys(b"user:42");
        let place = Candidate {
            key: b"user:42".to_vec(),
            redis_keys,
            schemas: Arc::from([schema]),
            is_owned: true,
        };
        let found = strangers(&place, &seen);
        let (name, why) = found[0].nearest.clone().expect("a nearest schema");
        assert_eq!((name.as_str(), found.len()), ("go-chi", 1));
        assert!(why.contains("/name"), "{why}");
        let unclaimed = Candidate { schemas: Arc::from([]), ..place };
        assert_eq!(strangers(&unclaimed, &seen)[0].nearest, None);
    }
}
