//! The evidence for a schema in short sentences, and the fields that distinguish two schemas.

use std::collections::{BTreeMap, BTreeSet};

use super::group::{Guess, Other};
use super::placing::{KeyspacePart, SchemaSet, place};
use super::schema_match::SampleSet;
use crate::domain::record::{Content, KeyState, decode};
use crate::domain::schema::{Schema, ValueFormat};

/// The most samples of an unclaimed group whose fields are read, because every schema is tried on
/// each of them.
pub(super) const ASKED: usize = 50;

/// Words of a Redis key that name a lock, in any case. Words that end in `lock` do as well, e.g.
/// `SINGLETONLOCK` and `MyLock`.
const LOCK_NAMES: [&str; 3] = ["mutex", "semaphore", "lease"];

/// Words that end in `lock` and name no lock.
const NO_LOCKS: [&str; 3] = ["block", "clock", "unlock"];

/// Parts of a Redis key that name work in progress.
const PROGRESS_NAMES: [&str; 6] =
    ["started", "running", "processing", "in-progress", "in_progress", "inprogress"];

/// Words of a Redis key that suggest an idempotency key, whose value may be a lock or anything
/// else.
const IDEMPOTENCY_NAMES: [&str; 5] = ["idem", "idempotency", "idempotent", "dedup", "dedupe"];

/// The shortest hash of a payload in hexadecimal digits, MD5's.
const SHORTEST_HASH: usize = 32;

/// The longest value that may be an owner token; longer values are data. A UUID fits, and so does a
/// SHA-256 in hexadecimal digits.
const LONGEST_TOKEN: usize = 64;

/// The evidence that the values and the keys give for a schema.
pub(super) fn of(guess: &Guess) -> Vec<String> {
    let cases: Vec<_> = guess.cases.iter().map(|case| &guess.schema.values[*case]).collect();
    let mut evidence = words(&cases);
    evidence.extend(fields(&cases));
    if cases.iter().any(|case| case.is_opaque()) {
        evidence.push("any text matches, so only the keys are evidence".to_owned());
    }
    let template = &guess.schema.keys[guess.key_index].template;
    if template.has_fixed_prefix() {
        evidence.push(format!("the keys are {}", template.display()));
    }
    evidence
}

/// A sentence for each field that identifies a value format, then one for values that are a single
/// word.
fn words(cases: &[&ValueFormat]) -> Vec<String> {
    let mut values: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut whole_words = BTreeSet::new();
    for case in cases {
        for (path, value) in &case.tests.fields {
            values.entry(path).or_default().insert(value.to_string());
        }
        if let Some(word) = &case.tests.equals {
            whole_words.insert(format!("\"{}\"", String::from_utf8_lossy(word)));
        }
    }
    let mut sentences = Vec::new();
    for (path, values) in values {
        sentences.push(format!("{path} is {}", alternatives(values)));
    }
    if !whole_words.is_empty() {
        sentences.push(format!("the value is {}", alternatives(whole_words)));
    }
    sentences
}

/// The words, with `or` between them.
fn alternatives(words: BTreeSet<String>) -> String {
    words.into_iter().collect::<Vec<_>>().join(" or ")
}

/// The required fields of the value formats, except the fields that identify the formats.
fn fields(cases: &[&ValueFormat]) -> Option<String> {
    let mut tested = Vec::new();
    let mut paths = Vec::new();
    for case in cases {
        paths.extend(required(case));
        for (path, _) in &case.tests.fields {
            tested.push(path);
        }
    }
    paths.retain(|path| !tested.contains(&path));
    paths.sort_unstable();
    paths.dedup();
    let mut shown = Vec::new();
    for path in &paths {
        // The fields in an object already show the object.
        let inside = format!("{path}/");
        if !paths.iter().any(|other| other.starts_with(&inside)) {
            shown.push(path.as_str());
        }
    }
    if shown.is_empty() {
        return None;
    }
    Some(format!("fields {}", shown.join(", ")))
}

/// The JSON pointers of the fields that a value format requires.
fn required(case: &ValueFormat) -> Vec<String> {
    match &case.closed {
        Some(closed) => closed.paths(|member| member.is_required),
        None => case.tests.has.clone(),
    }
}

/// The field that distinguishes two schemas: one that the formats of one schema require and those
/// of the other do not have.
pub(super) fn parting(first: &Schema, second: &Schema) -> String {
    let mut parts = Vec::new();
    for (schema, other) in [(first, second), (second, first)] {
        if let Some(sign) = only_in(schema, other) {
            parts.push(format!("only {} has {sign}", schema.name));
        }
    }
    if parts.is_empty() {
        return "no field distinguishes them".to_owned();
    }
    parts.join(", ")
}

/// A field that the formats of `schema` require and those of `other` do not have. If there is none,
/// a value of a field for which only the formats of `schema` test.
fn only_in(schema: &Schema, other: &Schema) -> Option<String> {
    let known_to_other: Vec<_> = other.values.iter().flat_map(known).collect();
    for format in &schema.values {
        for path in required(format) {
            if !known_to_other.contains(&path) {
                return Some(path);
            }
        }
    }
    for format in &schema.values {
        for test in &format.tests.fields {
            if !other.values.iter().any(|format| format.tests.fields.contains(test)) {
                let (path, value) = test;
                return Some(format!("{path} = {value}"));
            }
        }
    }
    None
}

/// The JSON pointers of every field that a value format allows; empty if it allows any field.
fn known(case: &ValueFormat) -> Vec<String> {
    match &case.closed {
        Some(closed) => closed.paths(|_| true),
        None => Vec::new(),
    }
}

/// The schema for which the members of this Redis key are records, if the samples are one such key.
pub(super) fn with_members(schema_set: &dyn SchemaSet, sample_set: SampleSet<'_>) -> Option<Other> {
    let [only] = sample_set.among else { return None };
    let redis_key = &sample_set.samples[*only].redis_key;
    for schema in schema_set.all() {
        if schema.members.is_some() && schema.redis_keys(b"").contains(redis_key) {
            return Some(Other {
                schema: schema.name.clone(),
                why: "shows its members as records".to_owned(),
            });
        }
    }
    None
}

/// The schema whose words are in these keys and whose value format the values nearly match.
pub(super) fn nearest(schema_set: &dyn SchemaSet, sample_set: SampleSet<'_>) -> Option<Other> {
    let SampleSet { samples, among, leader, named } = sample_set;
    let asked = &among[..among.len().min(ASKED)];
    let redis_keys: Vec<_> = asked.iter().map(|sample| &samples[*sample].redis_key[..]).collect();
    for schema in schema_set.all() {
        for key_index in 0..schema.keys.len() {
            if schema.is_part(key_index) {
                continue;
            }
            let Some(why) = near_miss(schema, key_index, samples, asked) else { continue };
            let part = KeyspacePart { leader, redis_keys: &redis_keys, named };
            let Some(placed) = place(schema_set, schema, key_index, part) else { continue };
            // A prefix that was taken from the keys themselves is not one of the schema's words.
            let template = &placed.schema.keys[key_index].template;
            if template.specificity() > placed.schema.prefix.text.len() {
                return Some(Other {
                    schema: schema.name.clone(),
                    why: format!("is the closest schema, but {why}"),
                });
            }
        }
    }
    None
}

/// Why the first sample that the schema reads only in part does not conform to its value format.
fn near_miss(
    schema: &Schema,
    key_index: usize,
    samples: &[KeyState],
    asked: &[usize],
) -> Option<String> {
    for sample in asked {
        let reading = decode::decode_value(schema, key_index, &samples[*sample].content);
        let Some(decoded) = reading.decoded() else { continue };
        // A format without tests reads any hash or object, so a near miss of it is not evidence.
        if schema.values[decoded.format].tests.is_empty() {
            continue;
        }
        if let Some(why) = decoded.conformance.deviation() {
            return Some(why.to_owned());
        }
    }
    None
}

/// A guess about unknown keys: they are locks if their names suggest it and their values are short
/// texts, and a set with such a name may contain the keys that are locked. Under a name that only
/// suggests idempotency, the hash of a payload and the status code of a response are no sign of a
/// lock.
pub(super) fn lock_guess(pattern: &str, sample_set: SampleSet<'_>) -> Option<String> {
    let words = words_of(pattern);
    let pattern = pattern.to_ascii_lowercase();
    let names_progress = PROGRESS_NAMES.iter().any(|name| pattern.contains(name));
    let names_locks = names_progress || words.iter().any(|word| names_lock(word));
    let names_idempotency = words.iter().any(|word| IDEMPOTENCY_NAMES.contains(&word.as_str()));
    if !names_locks && !names_idempotency {
        return None;
    }
    let names_keys = names_idempotency || words.iter().any(|word| names_lock(word));
    let first = &sample_set.samples[*sample_set.among.first()?].content;
    // A sorted set with a name such as `jobs:processing` is usually a queue.
    if let Some(kind @ ("set" | "zset")) = first.other_type()
        && names_keys
    {
        let kind = if kind == "zset" { "sorted set" } else { kind };
        return Some(format!(
            "may be a {kind} of keys that are locked; a schema with `members` can show them"
        ));
    }
    for sample in sample_set.among {
        let Content::Text { head, length } = &sample_set.samples[*sample].content else {
            return None;
        };
        // Owner tokens are short texts. Longer values and JSON objects are data.
        let is_whole = *length == Some(head.len() as u64);
        if !is_whole || head.len() > LONGEST_TOKEN || head.first() == Some(&b'{') {
            return None;
        }
        if !names_locks && (is_status_code(head) || is_hash(head)) {
            return None;
        }
    }
    Some("looks like locks, library unknown".to_owned())
}

/// The words of a pattern in lower case: `MyLock{n}` has the words `my`, `lock` and `n`.
fn words_of(pattern: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for character in pattern.chars() {
        let begins = character.is_uppercase() && before.is_lowercase();
        if begins || !character.is_alphabetic() {
            words.push(String::new());
        }
        if character.is_alphabetic()
            && let Some(word) = words.last_mut()
        {
            word.extend(character.to_lowercase());
        }
        before = character;
    }
    words
}

/// True if a word of this Redis key names a lock.
pub(crate) fn has_lock_name(redis_key: &[u8]) -> bool {
    words_of(&String::from_utf8_lossy(redis_key)).iter().any(|word| names_lock(word))
}

/// True for a word in lower case that names locks.
fn names_lock(word: &str) -> bool {
    // Names of Redis keys use the plural as well.
    let word = word.strip_suffix('s').unwrap_or(word);
    let is_other = NO_LOCKS.iter().any(|other| word.ends_with(other));
    LOCK_NAMES.contains(&word) || (word.ends_with("lock") && !is_other)
}

/// True for `100` to `599`.
fn is_status_code(text: &[u8]) -> bool {
    matches!(text, [b'1'..=b'5', b'0'..=b'9', b'0'..=b'9'])
}

/// True for the hash of a payload in hexadecimal digits.
fn is_hash(text: &[u8]) -> bool {
    text.len() >= SHORTEST_HASH && text.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Deadline, KeyState, TimeLeft};

    fn looks_like_locks(pattern: &str, value: &str) -> bool {
        let content = Content::text(value.as_bytes().to_vec());
        let sample = KeyState::new(b"k", content, TimeLeft::NoExpiry, Deadline::Never);
        let sample_set = SampleSet {
            samples: &[sample],
            among: &[0],
            leader: b"",
            named: &super::super::placing::NamedSchemas::new(),
        };
        lock_guess(pattern, sample_set).is_some()
    }

    #[test]
    fn names_of_locks_in_any_case_are_seen_and_hashes_and_status_codes_are_not() {
        for pattern in [
            "SINGLETONLOCK_{n}",
            "app:MyLock{n}",
            "LockOfOrder:{n}",
            "arq:in-progress:{uuid}",
            "pay:mutex:{n}",
        ] {
            assert!(looks_like_locks(pattern, "1"), "{pattern}");
        }
        assert!(looks_like_locks("idem:{n}", "worker-7"));
        assert!(!looks_like_locks("idempotency-key-statuscodes:{n}", "201"));
        assert!(!looks_like_locks("idempotency:{n}:hash", &"0a".repeat(32)));
        for pattern in ["cache:{n}", "roadblock:{n}", "clocks:{n}", "unlock:{n}"] {
            assert!(!looks_like_locks(pattern, "worker-7"), "{pattern}");
        }
        assert!(!looks_like_locks("idem:{n}", "{\"status\":1}"));
    }
}
