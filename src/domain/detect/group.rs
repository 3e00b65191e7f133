//! A group of Redis keys, and the schema that they seem to belong to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::domain::schema::Schema;

/// Redis keys of one type that have similar names and similar values.
#[derive(Debug, Clone)]
pub(crate) struct KeyGroup {
    /// The shape of the keys' names, such as `pay:{n}`.
    pub(crate) pattern: String,
    /// The type of the values, as Redis names it.
    pub(crate) kind: String,
    /// How many of the samples are in the group.
    pub(crate) sampled: usize,
    pub(crate) confidence: Confidence,
    /// The likeliest schema; `None` if the keys are attributed to no schema.
    pub(crate) guess: Option<Guess>,
    /// Other schemas that may have written the keys, the likeliest first.
    pub(crate) others: Vec<Other>,
    /// The evidence for the schema, in short sentences.
    pub(crate) evidence: Vec<String>,
    /// The number of samples by record state; `foreign` counts the unrecognised values, and
    /// `undecided` those whose beginning does not tell.
    pub(crate) states: BTreeMap<&'static str, usize>,
    /// The number of locks without expiry among the samples; `None` if that is unknown, for example
    /// for a service whose locks never expire by design.
    pub(crate) stuck: Option<usize>,
    /// How many of the samples never expire.
    pub(crate) no_expiry: usize,
    /// Some of these, up to two.
    pub(crate) endless_keys: Vec<Vec<u8>>,
    /// How many of the samples expire in more than a year.
    pub(crate) over_a_year: usize,
    /// One of the Redis keys.
    pub(crate) example: Vec<u8>,
}

impl KeyGroup {
    /// A glob for SCAN that matches the Redis keys of the group. It may match other keys as well.
    pub(crate) fn glob(&self) -> String {
        let mut glob = String::with_capacity(self.pattern.len());
        let mut rest = self.pattern.chars();
        while let Some(character) = rest.next() {
            match character {
                '{' => {
                    // Braces hold a class such as `{uuid}`, or a hash tag. Either may vary from key
                    // to key.
                    rest.by_ref().find(|inner| *inner == '}');
                    glob.push('*');
                }
                '*' => glob.push('*'),
                '?' | '[' | ']' | '\\' => glob.extend(['\\', character]),
                _ => glob.push(character),
            }
        }
        // Adjacent parts that vary give `**`, which matches the same keys as `*`.
        while glob.contains("**") {
            glob = glob.replace("**", "*");
        }
        glob
    }
}

/// How certain the schema of a group is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Confidence {
    /// One schema reads the values, and no other one reaches half of its points.
    Is,
    /// Several schemas read the values, or the values are too plain for certainty.
    Perhaps,
    /// The keys are attributed to no schema.
    Unknown,
}

impl Confidence {
    /// The word for JSON and for people.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Is => "is",
            Self::Perhaps => "perhaps",
            Self::Unknown => "unknown",
        }
    }
}

/// The schema to which a group seems to belong.
#[derive(Debug, Clone)]
pub(crate) struct Guess {
    /// The schema with the prefix of these keys.
    pub(crate) schema: Arc<Schema>,
    /// The index of the schema's Redis key that these keys are.
    pub(crate) key_index: usize,
    /// True if the prefix is the one that the schema defines.
    pub(crate) is_default: bool,
    /// The value formats that occur, as indexes into the schema's list.
    pub(crate) cases: BTreeSet<usize>,
}

impl Guess {
    /// True if both name one schema with one prefix.
    pub(super) fn has_schema_of(&self, other: &Self) -> bool {
        self.schema.name == other.schema.name && self.schema.prefix.text == other.schema.prefix.text
    }

    /// The prefix, if it differs from the one that the schema defines.
    pub(crate) fn other_prefix(&self) -> Option<&str> {
        (!self.is_default).then_some(self.schema.prefix.text.as_str())
    }
}

/// Another schema that may have written the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Other {
    pub(crate) schema: String,
    /// The evidence for the schema.
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
                no_expiry: 0,
                endless_keys: Vec::new(),
                over_a_year: 0,
                example: Vec::new(),
            };
            group.glob()
        };
        assert_eq!(glob("pay:idem:*:{hex}"), "pay:idem:*:*");
        assert_eq!(glob("x-idem/{n}"), "x-idem/*");
        assert_eq!(glob("order-{n}{uuid}"), "order-*");
        assert_eq!(glob("a[b]?:{n}"), "a\\[b\\]\\?:*");
    }
}
