//! A group of Redis keys, and whose they seem to be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::domain::schema::Schema;

/// Redis keys named alike, of one type, whose values are alike.
#[derive(Debug, Clone)]
pub(crate) struct KeyGroup {
    pub(crate) pattern: String,
    /// Redis's name of the type.
    pub(crate) kind: String,
    /// The Redis keys among the samples.
    pub(crate) sampled: usize,
    pub(crate) confidence: Confidence,
    /// The schema that comes first; `None` where nobody claims the keys.
    pub(crate) guess: Option<Guess>,
    /// Schemas that may be meant as well, the likeliest first.
    pub(crate) others: Vec<Other>,
    /// How that is known, in short sentences.
    pub(crate) evidence: Vec<String>,
    /// Samples by the record's state; `foreign` are those of another form.
    pub(crate) states: BTreeMap<&'static str, usize>,
    /// Locks without expiry among the samples; `None` where nobody can tell.
    pub(crate) stuck: Option<usize>,
    /// One of the Redis keys.
    pub(crate) example: Vec<u8>,
    /// The names of the fields that the values have, where they are hashes or JSON objects and nobody claims the keys.
    pub(crate) fields: BTreeSet<Vec<u8>>,
}

impl KeyGroup {
    /// A glob, as SCAN takes one, that matches the Redis keys of the group.
    pub(crate) fn glob(&self) -> String {
        let mut glob = String::with_capacity(self.pattern.len());
        let mut rest = self.pattern.chars();
        while let Some(character) = rest.next() {
            match character {
                '{' => {
                    // What stands in braces is a class of text, or a hash tag.
                    rest.by_ref().find(|inner| *inner == '}');
                    glob.push('*');
                }
                '*' => glob.push('*'),
                '?' | '[' | ']' | '\\' => glob.extend(['\\', character]),
                _ => glob.push(character),
            }
        }
        while glob.contains("**") {
            glob = glob.replace("**", "*");
        }
        glob
    }
}

/// How sure it is whose the keys are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Confidence {
    /// One schema reads them, and no other half as well.
    Is,
    /// Several schemas read them.
    Perhaps,
    Unknown,
}

impl Confidence {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Is => "is",
            Self::Perhaps => "perhaps",
            Self::Unknown => "unknown",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Guess {
    /// The schema, with the prefix that these keys have.
    pub(crate) schema: Arc<Schema>,
    pub(crate) role: usize,
    /// True when the prefix is the schema's own.
    pub(crate) is_default: bool,
    /// The forms that the values have, as indexes into the schema's.
    pub(crate) cases: BTreeSet<usize>,
}

impl Guess {
    /// The prefix, where it is not the schema's own.
    pub(crate) fn other_prefix(&self) -> Option<&str> {
        (!self.is_default).then_some(self.schema.prefix.text.as_str())
    }
}

/// A schema that may be meant as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Other {
    pub(crate) schema: String,
    /// What speaks for the schema, or parts it from the first one.
    pub(crate) why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_has_a_star_for_each_part_that_varies() {
        let glob = |pattern: &str| {
            let group = KeyGroup {
                pattern: pattern.to_owned(),
                kind: "hash".to_owned(),
                sampled: 1,
                confidence: Confidence::Unknown,
                guess: None,
                others: Vec::new(),
                evidence: Vec::new(),
                states: BTreeMap::new(),
                stuck: None,
                example: Vec::new(),
                fields: BTreeSet::new(),
            };
            group.glob()
        };
        assert_eq!(glob("pay:idem:*:{hex}"), "pay:idem:*:*");
        assert_eq!(glob("x-idem/{n}"), "x-idem/*");
        assert_eq!(glob("order-{n}{uuid}"), "order-*");
        assert_eq!(glob("a[b]?:{n}"), "a\\[b\\]\\?:*");
    }
}
