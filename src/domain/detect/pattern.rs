//! Finds the patterns of Redis keys: a tree of key parts, in which parts that vary from key to key
//! are folded into classes.

use std::collections::BTreeMap;

use super::token::{ANY, Folded, LOOSE, fold};

/// The bytes at which a Redis key is divided into parts.
const SEPARATORS: &[u8] = b":/#_.";

/// The separators that also occur in Base64 text.
const BASE64_SEPARATORS: [char; 3] = ['/', '_', '.'];

/// The most parts that are compared; the remainder of a longer key counts as any text. The tree is
/// built recursively, so the limit protects the stack.
const MAX_PARTS: usize = 8;

/// A part that fewer than one key in this many has is not a word of a pattern, if there are similar
/// ones.
const RARE: usize = 20;

/// The most distinct words at one level of the tree that each keep a branch. More are names of
/// tenants or users.
const MAX_WORDS: usize = 50;

/// Redis keys with similar names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// The pattern for people, such as `pay:{n}`.
    pub(super) text: String,
    /// The words with which all the keys begin, up to and including a separator.
    pub(super) leader: Vec<u8>,
    /// The indexes of the keys.
    pub(super) members: Vec<usize>,
}

/// Divides these Redis keys among patterns; each key is a member of exactly one.
pub(super) fn patterns(keys: &[&[u8]]) -> Vec<Pattern> {
    let split: Vec<_> = keys.iter().map(|key| parts(key)).collect();
    let mut found = Vec::new();
    grow(&split, (0..keys.len()).collect(), 0, Trunk::default(), &mut found);
    together(found)
}

/// True for a character that separates the parts of a key.
pub(crate) fn is_separator(letter: char) -> bool {
    u8::try_from(letter).is_ok_and(|byte| SEPARATORS.contains(&byte))
}

/// The byte positions in a leader at which a word begins or ends, from 0 to its length.
pub(crate) fn boundaries(leader: &[u8]) -> Vec<usize> {
    let mut boundaries = vec![0];
    for (at, byte) in leader.iter().enumerate() {
        if SEPARATORS.contains(byte) {
            boundaries.push(at + 1);
        }
    }
    boundaries.push(leader.len());
    boundaries.dedup();
    boundaries
}

/// A part of a key and the separator after it; the last part has none.
struct PatternPart<'a> {
    raw: &'a [u8],
    folded: Folded,
    separator: Option<u8>,
}

fn parts(key: &[u8]) -> Vec<PatternPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = key;
    while parts.len() < MAX_PARTS
        && let Some(at) = rest.iter().position(|byte| SEPARATORS.contains(byte))
    {
        parts.push(PatternPart {
            raw: &rest[..at],
            folded: fold(&rest[..at]),
            separator: Some(rest[at]),
        });
        rest = &rest[at + 1..];
    }
    // The remainder may contain separators, so folding it as one token would give a meaningless
    // shape.
    let folded = if parts.len() == MAX_PARTS { any() } else { fold(rest) };
    parts.push(PatternPart { raw: rest, folded, separator: None });
    parts
}

fn any() -> Folded {
    Folded { shape: ANY.to_owned(), varies: true }
}

/// The path from the root of the tree to a branch.
#[derive(Clone, Default)]
struct Trunk {
    text: String,
    leader: Vec<u8>,
    /// True after the first part that varies.
    varies: bool,
}

impl Trunk {
    fn and(&self, branch: &Branch) -> Self {
        let mut next = self.clone();
        // Two adjacent stars match the same keys as one.
        let any_behind_any = branch.folded.shape == ANY && next.text.ends_with('*');
        if !any_behind_any {
            next.text.push_str(&branch.folded.shape);
        }
        next.varies |= branch.folded.varies;
        if let Some(separator) = branch.separator {
            next.text.push(char::from(separator));
            // The leader ends at the first part that varies: it must be a prefix of every member.
            if !next.varies {
                next.leader.extend(&branch.raw);
                next.leader.push(separator);
            }
        }
        next
    }
}

/// Keys that have the same part at the same level.
struct Branch {
    raw: Vec<u8>,
    folded: Folded,
    separator: Option<u8>,
    members: Vec<usize>,
}

fn grow(
    keys: &[Vec<PatternPart<'_>>],
    members: Vec<usize>,
    depth: usize,
    trunk: Trunk,
    found: &mut Vec<Pattern>,
) {
    for branch in branches(keys, members, depth) {
        let next = trunk.and(&branch);
        match branch.separator {
            Some(_) => grow(keys, branch.members, depth + 1, next, found),
            None => found.push(Pattern {
                text: next.text,
                leader: next.leader,
                members: branch.members,
            }),
        }
    }
}

fn branches(keys: &[Vec<PatternPart<'_>>], members: Vec<usize>, depth: usize) -> Vec<Branch> {
    let all = members.len();
    let mut apart: BTreeMap<(Option<u8>, Folded), Vec<usize>> = BTreeMap::new();
    for member in members {
        let part = &keys[member][depth];
        apart.entry((part.separator, part.folded.clone())).or_default().push(member);
    }
    let mut branches = Vec::new();
    for ((separator, mut folded), members) in apart {
        let raw = keys[members[0]][depth].raw;
        // A number that all keys share is a word, such as a version, a database or a tenant.
        let is_word =
            members.len() > 2 && members.iter().all(|member| keys[*member][depth].raw == raw);
        if is_word && folded.varies {
            folded = Folded { shape: String::from_utf8_lossy(raw).into_owned(), varies: false };
        }
        branches.push(Branch { raw: raw.to_vec(), folded, separator, members });
    }
    joined(branches, all)
}

/// True for a class that recognises every text of its kind.
fn is_class(shape: &str) -> bool {
    ["{uuid}", "{n}", "{hex}"].contains(&shape)
}

/// Joins the branches that few keys have into one branch for any text.
fn joined(branches: Vec<Branch>, all: usize) -> Vec<Branch> {
    let mut kept = Vec::new();
    let mut rare: BTreeMap<Option<u8>, Vec<Branch>> = BTreeMap::new();
    let inner = branches.iter().filter(|branch| branch.separator.is_some()).count();
    for branch in branches {
        let is_few = branch.members.len() == 1 || branch.members.len() * RARE < all;
        // Last parts are usually identifiers, so rare ones always fold. Inner parts fold only if
        // there are too many words.
        let is_rare = match branch.separator {
            None => is_few || LOOSE.contains(&branch.folded.shape.as_str()),
            Some(_) => is_few && inner > MAX_WORDS,
        };
        if is_rare && !is_class(&branch.folded.shape) {
            rare.entry(branch.separator).or_default().push(branch)
        } else {
            kept.push(branch)
        }
    }
    for (separator, mut few) in rare {
        // A single rare branch gains nothing by becoming `*`.
        if few.len() == 1 {
            kept.append(&mut few);
            continue;
        }
        let mut members: Vec<_> = few.into_iter().flat_map(|branch| branch.members).collect();
        members.sort_unstable();
        kept.push(Branch { raw: Vec::new(), folded: any(), separator, members });
    }
    kept
}

/// Joins the patterns that have the same text.
fn together(found: Vec<Pattern>) -> Vec<Pattern> {
    let mut all: BTreeMap<String, Pattern> = BTreeMap::new();
    for mut pattern in found {
        // Base64 contains separator characters, so several loose parts in a row are one Base64
        // text.
        let leader = String::from_utf8_lossy(&pattern.leader).into_owned();
        let tail = pattern.text.strip_prefix(&leader).unwrap_or_default();
        let is_loose =
            tail.split(BASE64_SEPARATORS).all(|part| part == ANY || LOOSE.contains(&part));
        if is_loose && tail.contains(BASE64_SEPARATORS) {
            pattern.text = leader + ANY;
        }
        match all.get_mut(&pattern.text) {
            Some(same) => same.members.append(&mut pattern.members),
            None => _ = all.insert(pattern.text.clone(), pattern),
        }
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(keys: &[&str]) -> Vec<(String, String, usize)> {
        let keys: Vec<_> = keys.iter().map(|key| key.as_bytes()).collect();
        let shown = |pattern: Pattern| {
            (
                pattern.text,
                String::from_utf8_lossy(&pattern.leader).into_owned(),
                pattern.members.len(),
            )
        };
        patterns(&keys).into_iter().map(shown).collect()
    }

    fn is(text: &str, leader: &str, members: usize) -> (String, String, usize) {
        (text.to_owned(), leader.to_owned(), members)
    }

    #[test]
    fn keys_with_similar_names_share_a_pattern_and_a_leader() {
        assert_eq!(texts(&["idem:order-1", "idem:order-22"]), [is("idem:order-{n}", "idem:", 2)]);
        assert_eq!(texts(&["idem:a", "idem:b", "idem:c"]), [is("idem:*", "idem:", 3)]);
        assert_eq!(
            texts(&["user:1:cart", "user:2:cart", "user:2:name", "user:3:name"]),
            [is("user:{n}:cart", "user:", 2), is("user:{n}:name", "user:", 2)]
        );
        assert_eq!(texts(&["leader"]), [is("leader", "", 1)]);
    }

    #[test]
    fn a_number_that_all_keys_share_is_a_word() {
        assert_eq!(
            texts(&["v2:idem:a", "v2:idem:b", "v2:idem:c"]),
            [is("v2:idem:*", "v2:idem:", 3)]
        );
        assert_eq!(texts(&["u1:a", "u2:a", "u3:a"]), [is("u{n}:a", "", 3)], "these differ");
    }

    #[test]
    fn base64_is_one_part_despite_its_separators() {
        let keys = [
            "pay#0tXET60XEBZ+v9jUIdm9A==",
            "pay#Fk/aoM3qMy2bB1o6sRuKqPA==",
            "pay#c7qkXDggW6_dpZY0h7tXDjw==",
        ];
        let found = texts(&keys);
        assert!(found.iter().all(|(_, leader, _)| leader.starts_with("pay#")), "{found:?}");
    }

    #[test]
    fn the_boundaries_of_a_leader_follow_its_separators() {
        assert_eq!(boundaries(b"shop:idem:"), [0, 5, 10]);
        assert_eq!(boundaries(b""), [0]);
    }

    proptest! {
        #[test]
        fn each_key_belongs_to_one_pattern_and_begins_with_its_leader(
            keys in prop::collection::vec("[ab1:/_]{0,8}|[a-z]{1,3}:[0-9]{1,3}|\\PC{0,6}", 0..40),
        ) {
            let keys: Vec<_> = keys.iter().map(|key| key.as_bytes()).collect();
            let found = patterns(&keys);
            let mut members: Vec<_> = found.iter().flat_map(|pattern| pattern.members.clone()).collect();
            members.sort_unstable();
            prop_assert_eq!(members, (0..keys.len()).collect::<Vec<_>>());
            for pattern in &found {
                prop_assert!(pattern.members.iter().all(|member| keys[*member].starts_with(&pattern.leader)));
            }
        }
    }
}
