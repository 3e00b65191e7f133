//! Finds the prefix with which a schema would own given Redis keys: its own prefix, or another one
//! that the keys contain.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::pattern::{boundaries, is_separator};
use crate::domain::schema::Schema;

/// The available schemas.
pub trait SchemaSet {
    /// Every schema with its own prefix, the operator's own schemas first.
    fn all(&self) -> &[Arc<Schema>];

    /// A schema with another prefix; `None` if it accepts no prefix.
    fn with_prefix(&self, name: &str, prefix: &str) -> Option<Arc<Schema>>;
}

/// The schemas that were identified in a part of the keyspace, each as its name and prefix.
pub(super) type NamedSchemas = BTreeSet<(String, String)>;

/// A schema with the prefix that the keys imply.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) schema: Arc<Schema>,
    /// True if the prefix is the one that the schema defines.
    pub(super) is_default: bool,
}

/// Redis keys with one pattern, and the facts that are known about the whole keyspace.
#[derive(Clone, Copy)]
pub(super) struct KeyspacePart<'a> {
    /// The bytes with which all the keys begin.
    pub(super) leader: &'a [u8],
    pub(super) redis_keys: &'a [&'a [u8]],
    /// The schemas that were identified elsewhere. A schema that has its own prefix there has no
    /// other prefix here.
    pub(super) named: &'a NamedSchemas,
}

/// Finds the prefix with which all these Redis keys are the schema's key with this index; `None` if
/// there is none.
pub(super) fn place(
    schema_set: &dyn SchemaSet,
    schema: &Arc<Schema>,
    key_index: usize,
    at: KeyspacePart<'_>,
) -> Option<Placed> {
    let KeyspacePart { leader, redis_keys, named } = at;
    let default = || Placed { schema: Arc::clone(schema), is_default: true };
    let has_all = |schema: &Schema| {
        let template = &schema.keys[key_index].template;
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
    // Prefer the prefix that covers all common words, so that none of them counts as a part of the
    // idempotency key.
    let is_whole = |schema: &Arc<Schema>| {
        schema.keys[key_index].template.prefix() == leader && has_all(schema)
    };
    let own_is_whole = is_default && schema.keys[key_index].template.prefix() == leader;
    match others().find(is_whole).filter(|_| !own_is_whole) {
        Some(schema) => other(schema),
        None if is_default => Some(default()),
        None => {
            // Prefer a prefix that ends with the same separator as the schema's own prefix.
            let end = |prefix: &str| prefix.chars().next_back();
            let is_alike =
                |other: &Arc<Schema>| end(&other.prefix.text) == end(&schema.prefix.text);
            let fitting = || others().filter(|schema| has_all(schema));
            fitting().find(is_alike).or_else(|| fitting().next()).and_then(other)
        }
    }
}

/// The possible prefixes: runs of adjacent words of the leader, the longest first. Each is listed
/// with and without its last separator, because some schemas write that separator themselves.
fn prefixes(leader: &[u8]) -> Vec<String> {
    // Prefixes come from settings and schema files, which are UTF-8.
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

    fn placed(name: &str, key_index: usize, leader: &str, keys: &[&str]) -> Option<(String, bool)> {
        let schema_set = samples::schema_set();
        let schema = schema_set.all().iter().find(|schema| schema.name == name).cloned().unwrap();
        let keys: Vec<_> = keys.iter().map(|key| key.as_bytes()).collect();
        let at = KeyspacePart {
            leader: leader.as_bytes(),
            redis_keys: &keys,
            named: &NamedSchemas::new(),
        };
        let placed = place(&schema_set, &schema, key_index, at)?;
        Some((placed.schema.prefix.text.clone(), placed.is_default))
    }

    fn with(prefix: &str) -> Option<(String, bool)> {
        Some((prefix.to_owned(), false))
    }

    #[test]
    fn keys_with_the_schemas_own_words_need_no_prefix() {
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
    fn a_prefix_is_found_where_the_schema_accepts_one() {
        assert_eq!(placed("express", 0, "shop:idem:", &["shop:idem:a"]), with("shop:"));
        assert_eq!(placed("go-chi", 0, "pay:v2:", &["pay:v2:a"]), with("pay:v2:"));
        assert_eq!(
            placed("event-driven", 1, "idem:result:shop:", &["idem:result:shop:a"]),
            with("shop:")
        );
        assert_eq!(placed("event-consumer", 0, "a:idem:lock:", &["a:idem:lock:x"]), with("a:"));
    }

    #[test]
    fn keys_without_the_schemas_words_do_not_match() {
        assert_eq!(placed("express", 0, "pay:", &["pay:a"]), None);
        assert_eq!(placed("express", 0, "idem", &["idem"]), None);
    }
}
