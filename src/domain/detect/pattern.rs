//! Redis keys that are named alike: a tree of their parts, in which the parts that differ from key to key are folded.

use std::collections::BTreeMap;

use super::token::{ANY, Folded, LOOSE, fold};

/// Where a Redis key is taken apart.
const SEPARATORS: &[u8] = b":/#_.";

/// Parts that are looked at; what comes behind them is any text.
const MOST_PARTS: usize = 8;

/// A part that one key in so many has is no word of a pattern, where there are others like it.
const RARE: usize = 20;

/// Words that may stand beside each other in front of further parts.
const MOST_WORDS: usize = 20;

/// Redis keys named alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) text: String,
    /// The bytes with which each of the keys begins, up to a separator.
    pub(super) leader: Vec<u8>,
    /// The indexes of the keys.
    pub(super) members: Vec<usize>,
}

/// The patterns of these Redis keys; each key is a member of one of them.
pub(super) fn patterns(keys: &[&[u8]]) -> Vec<Pattern> {
    let split: Vec<_> = keys.iter().map(|key| parts(key)).collect();
    let mut found = Vec::new();
    grow(&split, (0..keys.len()).collect(), 0, Trunk::default(), &mut found);
    together(found)
}

pub(super) fn is_separator(letter: char) -> bool {
    u8::try_from(letter).is_ok_and(|byte| SEPARATORS.contains(&byte))
}

/// The places of a leader where a word may begin or end.
pub(crate) fn boundaries(leader: &[u8]) -> Vec<usize> {
    let ends = leader
        .iter()
        .enumerate()
        .filter(|(_, byte)| SEPARATORS.contains(byte))
        .map(|(at, _)| at + 1);
    let mut all: Vec<_> = [0].into_iter().chain(ends).chain([leader.len()]).collect();
    all.dedup();
    all
}

/// A part of a key, and the separator behind it; the last one has none.
struct Part<'a> {
    raw: &'a [u8],
    folded: Folded,
    separator: Option<u8>,
}

fn parts(key: &[u8]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = key;
    while parts.len() < MOST_PARTS
        && let Some(at) = rest.iter().position(|byte| SEPARATORS.contains(byte))
    {
        parts.push(Part { raw: &rest[..at], folded: fold(&rest[..at]), separator: Some(rest[at]) });
        rest = &rest[at + 1..];
    }
    let folded = if parts.len() == MOST_PARTS { any() } else { fold(rest) };
    parts.push(Part { raw: rest, folded, separator: None });
    parts
}

fn any() -> Folded {
    Folded { shape: ANY.to_owned(), varies: true }
}

/// What a branch has come to.
#[derive(Clone, Default)]
struct Trunk {
    text: String,
    leader: Vec<u8>,
    /// True behind the first part that varies.
    varies: bool,
}

impl Trunk {
    fn and(&self, branch: &Branch) -> Self {
        let mut next = self.clone();
        let any_behind_any = branch.folded.shape == ANY && next.text.ends_with('*');
        if !any_behind_any {
            next.text.push_str(&branch.folded.shape);
        }
        next.varies |= branch.folded.varies;
        if let Some(separator) = branch.separator {
            next.text.push(char::from(separator));
            if !next.varies {
                next.leader.extend(&branch.raw);
                next.leader.push(separator);
            }
        }
        next
    }
}

/// Keys with the same part at one place.
struct Branch {
    raw: Vec<u8>,
    folded: Folded,
    separator: Option<u8>,
    members: Vec<usize>,
}

fn grow(
    keys: &[Vec<Part<'_>>],
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

fn branches(keys: &[Vec<Part<'_>>], members: Vec<usize>, depth: usize) -> Vec<Branch> {
    let all = members.len();
    let mut apart: BTreeMap<(Option<u8>, Folded), Vec<usize>> = BTreeMap::new();
    for member in members {
        let part = &keys[member][depth];
        apart.entry((part.separator, part.folded.clone())).or_default().push(member);
    }
    let branches = apart.into_iter().map(|((separator, folded), members)| {
        let raw = keys[members[0]][depth].raw.to_vec();
        // A number that all keys have is a word of theirs: a version, a database, a tenant.
        let is_word =
            members.len() > 2 && members.iter().all(|member| keys[*member][depth].raw == raw);
        let word = || Folded { shape: String::from_utf8_lossy(&raw).into_owned(), varies: false };
        Branch {
            folded: if is_word && folded.varies { word() } else { folded },
            raw,
            separator,
            members,
        }
    });
    joined(branches.collect(), all)
}

/// The branches, where those that few keys have are one: any text.
fn joined(branches: Vec<Branch>, all: usize) -> Vec<Branch> {
    let mut kept = Vec::new();
    let mut rare: BTreeMap<Option<u8>, Vec<Branch>> = BTreeMap::new();
    let inner = branches.iter().filter(|branch| branch.separator.is_some()).count();
    for branch in branches {
        let is_class = ["{uuid}", "{n}", "{hex}"].contains(&branch.folded.shape.as_str());
        let is_few = branch.members.len() == 1 || branch.members.len() * RARE < all;
        let is_rare = match branch.separator {
            None => is_few || LOOSE.contains(&branch.folded.shape.as_str()),
            Some(_) => is_few && inner > MOST_WORDS,
        };
        if is_rare && !is_class {
            rare.entry(branch.separator).or_default().push(branch)
        } else {
            kept.push(branch)
        }
    }
    for (separator, mut few) in rare {
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

/// The patterns, where several that came to the same text are one.
fn together(found: Vec<Pattern>) -> Vec<Pattern> {
    let mut all: BTreeMap<String, Pattern> = BTreeMap::new();
    for mut pattern in found {
        // Base64 has separators among its characters: what comes behind any text in it is more of the same.
        let leader = String::from_utf8_lossy(&pattern.leader).into_owned();
        let tail = pattern.text.strip_prefix(&leader).unwrap_or_default();
        let is_loose = |part: &str| part == ANY || LOOSE.contains(&part);
        if tail.contains(['/', '_', '.']) && tail.split(['/', '_', '.']).all(is_loose) {
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
    fn keys_named_alike_are_one_pattern_and_its_words_the_leader() {
        assert_eq!(texts(&["idem:order-1", "idem:order-22"]), [is("idem:order-{n}", "idem:", 2)]);
        assert_eq!(texts(&["idem:a", "idem:b", "idem:c"]), [is("idem:*", "idem:", 3)]);
        assert_eq!(
            texts(&["user:1:cart", "user:2:cart", "user:2:name", "user:3:name"]),
            [is("user:{n}:cart", "user:", 2), is("user:{n}:name", "user:", 2)]
        );
        assert_eq!(texts(&["leader"]), [is("leader", "", 1)]);
    }

    #[test]
    fn a_number_that_all_keys_have_is_a_word() {
        assert_eq!(
            texts(&["v2:idem:a", "v2:idem:b", "v2:idem:c"]),
            [is("v2:idem:*", "v2:idem:", 3)]
        );
        assert_eq!(texts(&["u1:a", "u2:a", "u3:a"]), [is("u{n}:a", "", 3)], "these differ");
    }

    #[test]
    fn base64_is_one_text_whatever_separators_are_in_it() {
        let keys = [
            "pay#0tXET60XEBZ+v9jUIdm9A==",
            "pay#Fk/aoM3qMy2bB1o6sRuKqPA==",
            "pay#c7qkXDggW6_dpZY0h7tXDjw==",
        ];
        let found = texts(&keys);
        assert!(found.iter().all(|(_, leader, _)| leader.starts_with("pay#")), "{found:?}");
    }

    #[test]
    fn the_places_of_a_leader_are_behind_its_separators() {
        assert_eq!(boundaries(b"shop:idem:"), [0, 5, 10]);
        assert_eq!(boundaries(b""), [0]);
    }

    proptest! {
        #[test]
        fn each_key_is_a_member_of_one_pattern_and_begins_with_its_leader(
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
