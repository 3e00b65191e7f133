//! Finds the prefix with which a schema would own given Redis keys: its own prefix, or another one
//! that the keys contain.

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

/// A schema with the prefix that the keys imply.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) schema: Arc<Schema>,
    /// True if the prefix is the one that the schema defines.
    pub(super) is_default: bool,
}

/// Finds the prefix with which all these Redis keys are the schema's key with this index; `None` if
/// there is none. `leader` is the text with which all of them begin.
pub(super) fn place(
    schema_set: &dyn SchemaSet,
    schema: &Arc<Schema>,
    key_index: usize,
    leader: &[u8],
    redis_keys: &[&[u8]],
) -> Option<Placed> {
    let is_default = has_all(schema, key_index, redis_keys);
    let own = Placed { schema: Arc::clone(schema), is_default: true };
    let with = |schema| Some(Placed { schema, is_default: false });
    if is_default && !schema.prefix.text.is_empty() {
        return Some(own);
    }
    // Prefer the prefix that covers all common words, so that none of them counts as a part of the
    // idempotency key.
    let prefixes = prefixes(leader);
    let own_is_whole = is_default && schema.keys[key_index].template.prefix() == leader;
    if !own_is_whole {
        for prefix in &prefixes {
            if let Some(other) = schema_set.with_prefix(&schema.name, prefix)
                && other.keys[key_index].template.prefix() == leader
                && has_all(&other, key_index, redis_keys)
            {
                return with(other);
            }
        }
    }
    if is_default {
        return Some(own);
    }
    // Prefer a prefix that ends with the same separator as the schema's own prefix.
    let own_end = schema.prefix.text.chars().next_back();
    let mut first = None;
    for prefix in &prefixes {
        let Some(other) = schema_set.with_prefix(&schema.name, prefix) else { continue };
        if !has_all(&other, key_index, redis_keys) {
            continue;
        }
        if other.prefix.text.chars().next_back() == own_end {
            return with(other);
        }
        first = first.or(Some(other));
    }
    with(first?)
}

/// True if each of these Redis keys is the schema's key with this index.
fn has_all(schema: &Schema, key_index: usize, redis_keys: &[&[u8]]) -> bool {
    let template = &schema.keys[key_index].template;
    redis_keys.iter().all(|redis_key| template.idempotency_key(redis_key).is_some())
}

/// The possible prefixes: runs of adjacent words of the leader, the longest first. Each is listed
/// with and without its last separator, because some schemas write that separator themselves.
fn prefixes(leader: &[u8]) -> Vec<String> {
    // Prefixes come from settings and schema files, which are UTF-8.
    let Ok(leader) = std::str::from_utf8(leader) else { return Vec::new() };
    let boundaries = boundaries(leader.as_bytes());
    let mut runs = Vec::new();
    for from in &boundaries {
        for to in &boundaries {
            if to > from {
                runs.push(*from..*to);
            }
        }
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
    let mut prefixes = Vec::new();
    for run in runs {
        let words = &leader[run];
        for prefix in [words, words.trim_end_matches(is_separator)] {
            if !prefix.is_empty() {
                prefixes.push(prefix.to_owned());
            }
        }
    }
    prefixes.dedup();
    prefixes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples;

    fn placed(name: &str, key_index: usize, leader: &str, keys: &[&str]) -> Option<(String, bool)> {
        let schema_set = samples::schema_set();
        let schema = schema_set.all().iter().find(|schema| schema.name == name).cloned().unwrap();
        let keys: Vec<_> = keys.iter().map(|key| key.as_bytes()).collect();
        let placed = place(&schema_set, &schema, key_index, leader.as_bytes(), &keys)?;
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
