//! Where a schema would have to keep its records for these Redis keys to be its: with its own prefix, or with another one that
//! stands in the keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::pattern::{boundaries, is_separator};
use crate::domain::schema::Schema;

/// The schemas that there are.
pub trait SchemaSet {
    /// Each with its own prefix, the operator's own first.
    fn all(&self) -> &[Arc<Schema>];

    /// A schema with another prefix; `None` where it takes none.
    fn with_prefix(&self, name: &str, prefix: &str) -> Option<Arc<Schema>>;
}

/// The schemas that were named for a part of the keyspace, each with its prefix.
pub(super) type NamedSchemas = BTreeSet<(String, String)>;

/// A schema with the prefix that it would have.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) schema: Arc<Schema>,
    /// True when the prefix is the schema's own.
    pub(super) is_default: bool,
}

/// Redis keys of one name, and what of them all is known.
#[derive(Clone, Copy)]
pub(super) struct KeyspacePart<'a> {
    /// What all of them begin with.
    pub(super) leader: &'a [u8],
    pub(super) redis_keys: &'a [&'a [u8]],
    /// What was named elsewhere in the keyspace: a schema that has its own prefix there has no other one here.
    pub(super) named: &'a NamedSchemas,
}

/// The schema with the prefix under which these Redis keys have one of its roles.
pub(super) fn place(
    schema_set: &dyn SchemaSet,
    schema: &Arc<Schema>,
    role: usize,
    at: KeyspacePart<'_>,
) -> Option<Placed> {
    let KeyspacePart { leader, redis_keys, named } = at;
    let default = || Placed { schema: Arc::clone(schema), is_default: true };
    let has_all = |schema: &Schema| {
        let template = &schema.keys[role].template;
        redis_keys.iter().all(|redis_key| template.idempotency_key(redis_key).is_some())
    };
    let is_default = has_all(schema);
    let own = (schema.name.clone(), schema.prefix.text.clone());
    if is_default && (!schema.prefix.text.is_empty() || named.contains(&own)) {
        return Some(default());
    }
    let others = || {
        prefixes(leader)
            .into_iter()
            .filter_map(|prefix| schema_set.with_prefix(&schema.name, &prefix))
    };
    let other = |schema| Some(Placed { schema, is_default: false });
    // A prefix that takes all of the words in front leaves none of them to the idempotency key.
    let is_whole =
        |schema: &Arc<Schema>| schema.keys[role].template.prefix() == leader && has_all(schema);
    let own_is_whole = is_default && schema.keys[role].template.prefix() == leader;
    match others().find(is_whole).filter(|_| !own_is_whole) {
        Some(schema) => other(schema),
        None if is_default => Some(default()),
        None => {
            // A prefix ends as the schema's own does, where both are told.
            let end = |prefix: &str| prefix.chars().next_back();
            let is_alike =
                |other: &Arc<Schema>| end(&other.prefix.text) == end(&schema.prefix.text);
            let fitting = || others().filter(|schema| has_all(schema));
            fitting().find(is_alike).or_else(|| fitting().next()).and_then(other)
        }
    }
}

/// What may be a prefix: words of the leader that stand beside each other, the longest first. A schema may have the separator
/// behind its prefix.
fn prefixes(leader: &[u8]) -> Vec<String> {
    let Ok(leader) = std::str::from_utf8(leader) else { return Vec::new() };
    let at = boundaries(leader.as_bytes());
    let ends = |from: usize| at.iter().filter(move |to| **to > from).map(move |to| (from, *to));
    let mut all: Vec<_> = at.iter().flat_map(|from| ends(*from)).collect();
    all.sort_by_key(|(from, to)| std::cmp::Reverse(to - from));
    let words = |(from, to): (usize, usize)| {
        let bare = leader[from..to].trim_end_matches(is_separator);
        [&leader[from..to], bare]
    };
    let mut words: Vec<_> = all
        .into_iter()
        .flat_map(words)
        .filter(|words| !words.is_empty())
        .map(str::to_owned)
        .collect();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples;

    fn placed(name: &str, role: usize, leader: &str, keys: &[&str]) -> Option<(String, bool)> {
        let schema_set = samples::schema_set();
        let schema = schema_set.all().iter().find(|schema| schema.name == name).cloned().unwrap();
        let keys: Vec<_> = keys.iter().map(|key| key.as_bytes()).collect();
        let at = KeyspacePart {
            leader: leader.as_bytes(),
            redis_keys: &keys,
            named: &NamedSchemas::new(),
        };
        let placed = place(&schema_set, &schema, role, at)?;
        Some((placed.schema.prefix.text.clone(), placed.is_default))
    }

    fn with(prefix: &str) -> Option<(String, bool)> {
        Some((prefix.to_owned(), false))
    }

    #[test]
    fn a_schemas_own_keys_need_no_prefix() {
        let own = Some((String::new(), true));
        assert_eq!(placed("express", 0, "idem:", &["idem:a"]), own);
        assert_eq!(
            placed("express", 0, "idem:order:", &["idem:order:a"]),
            own,
            "the words are the key's"
        );
        assert_eq!(placed("go-chi", 0, "", &["a", "b"]), own);
        assert_eq!(placed("event-driven", 0, "idem:started:", &["idem:started:a"]), own);
    }

    #[test]
    fn a_prefix_is_found_where_the_schema_lets_one_stand() {
        assert_eq!(placed("express", 0, "shop:idem:", &["shop:idem:a"]), with("shop:"));
        assert_eq!(placed("go-chi", 0, "pay:v2:", &["pay:v2:a"]), with("pay:v2:"));
        assert_eq!(
            placed("event-driven", 1, "idem:result:shop:", &["idem:result:shop:a"]),
            with("shop:")
        );
        assert_eq!(placed("event-consumer", 0, "a:idem:lock:", &["a:idem:lock:x"]), with("a:"));
    }

    #[test]
    fn keys_without_the_schemas_words_are_not_its() {
        assert_eq!(placed("express", 0, "pay:", &["pay:a"]), None);
        assert_eq!(placed("express", 0, "idem", &["idem"]), None);
    }
}
