//! The evidence for a schema in short sentences, and the fields that distinguish two schemas.

use std::collections::BTreeSet;

use serde_json::Value;

use super::group::{Guess, Other};
use super::placing::{KeyspacePart, SchemaSet, place};
use super::schema_match::SampleSet;
use crate::domain::record::{Content, decode};
use crate::domain::schema::{Schema, ValueFormat};

/// The most samples of an unclaimed group whose fields are read.
pub(super) const ASKED: usize = 50;

/// Words of a Redis key that name a lock, in any case. Words that end in `lock` do as well, e.g.
/// `SINGLETONLOCK` and `MyLock`.
const LOCK_NAMES: [&str; 3] = ["mutex", "semaphore", "lease"];

/// Words that end in `lock` and name no lock.
const NO_LOCKS: [&str; 3] = ["block", "clock", "unlock"];

/// What separates the words of a Redis key.
const SEPARATORS: [char; 6] = [':', '/', '#', '_', '.', '-'];

/// Parts of a Redis key that name work in progress.
const PROGRESS_NAMES: [&str; 6] =
    ["started", "running", "processing", "in-progress", "in_progress", "inprogress"];

/// Words of a Redis key that suggest an idempotency key, whose value may be a lock or anything
/// else.
const IDEMPOTENCY_NAMES: [&str; 5] = ["idem", "idempotency", "idempotent", "dedup", "dedupe"];

/// The shortest hash of a payload in hexadecimal digits, MD5's.
const SHORTEST_HASH: usize = 32;

/// The longest value that may be an owner token; longer values are data.
const LONGEST_TOKEN: usize = 64;

/// The evidence that the values and the keys give for a schema.
pub(super) fn of(guess: &Guess) -> Vec<String> {
    let cases: Vec<_> = guess.cases.iter().map(|case| &guess.schema.values[*case]).collect();
    let template = &guess.schema.keys[guess.key_index].template;
    let key = template.has_prefix().then(|| format!("the keys are {}", template.display()));
    words(&cases).into_iter().chain(fields(&cases)).chain(any_text(&cases)).chain(key).collect()
}

/// A sentence for each field that identifies a value format, then one for values that are a single
/// word.
fn words(cases: &[&ValueFormat]) -> Vec<String> {
    let paths: BTreeSet<_> =
        cases.iter().flat_map(|case| &case.tests.fields).map(|(path, _)| path.as_str()).collect();
    let values = |path: &str| {
        let of =
            cases.iter().flat_map(|case| &case.tests.fields).filter(|(found, _)| found == path);
        of.map(|(_, value)| value.to_string())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    };
    let whole = cases.iter().filter_map(|case| case.tests.equals.as_ref());
    let whole: BTreeSet<_> =
        whole.map(|word| format!("\"{}\"", String::from_utf8_lossy(word))).collect();
    let whole = whole.into_iter().collect::<Vec<_>>().join(" or ");
    let fields = paths.into_iter().map(|path| format!("{path} is {}", values(path).join(" or ")));
    fields.chain((!whole.is_empty()).then(|| format!("the value is {whole}"))).collect()
}

/// The required fields of the value formats, except the fields that identify the formats.
fn fields(cases: &[&ValueFormat]) -> Option<String> {
    let tested: Vec<_> =
        cases.iter().flat_map(|case| &case.tests.fields).map(|(path, _)| path).collect();
    let mut paths: Vec<String> = cases.iter().flat_map(|case| required(case)).collect();
    paths.retain(|path| !tested.contains(&path));
    paths.sort_unstable();
    paths.dedup();
    let inner = |path: &String| !paths.iter().any(|other| other.starts_with(&format!("{path}/")));
    let shown: Vec<_> = paths.iter().filter(|path| inner(path)).map(String::as_str).collect();
    (!shown.is_empty()).then(|| format!("fields {}", shown.join(", ")))
}

/// A sentence for schemas that accept any text, so that only the key names identify their records.
fn any_text(cases: &[&ValueFormat]) -> Option<String> {
    let any = cases.iter().any(|case| case.is_opaque());
    any.then(|| "any text matches, so only the keys are evidence".to_owned())
}

/// The JSON pointers of the fields that a value format requires.
fn required(case: &ValueFormat) -> Vec<String> {
    let closed = case.closed.as_ref().map(|closed| closed.paths(|member| member.is_required));
    closed.unwrap_or_else(|| case.tests.has.clone())
}

/// The field that distinguishes two schemas: one that the formats of one schema require and those
/// of the other do not have.
pub(super) fn parting(first: &Schema, second: &Schema) -> String {
    let only = |of: &Schema, not_of: &Schema| {
        let others: Vec<_> = not_of.values.iter().flat_map(known).collect();
        of.values.iter().flat_map(required).find(|path| !others.contains(path))
    };
    let word = |of: &Schema, not_of: &Schema| {
        let others: Vec<_> = not_of.values.iter().flat_map(|case| &case.tests.fields).collect();
        let own = of
            .values
            .iter()
            .flat_map(|case| &case.tests.fields)
            .find(|test| !others.contains(test));
        own.map(|(path, value): &(String, Value)| format!("{path} = {value}"))
    };
    let parts = [(first, second), (second, first)].map(|(of, not_of)| {
        let sign = only(of, not_of).or_else(|| word(of, not_of))?;
        Some(format!("only {} has {sign}", of.name))
    });
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "no field distinguishes them".to_owned() } else { parts.join(", ") }
}

/// The JSON pointers of every field that a value format allows; empty if it allows any field.
fn known(case: &ValueFormat) -> Vec<String> {
    case.closed.as_ref().map(|closed| closed.paths(|_| true)).unwrap_or_default()
}

/// The schema whose words are in these keys and whose value format the values nearly match.
pub(super) fn nearest(schema_set: &dyn SchemaSet, sample_set: SampleSet<'_>) -> Option<Other> {
    let SampleSet { samples, among, leader, named } = sample_set;
    let asked = &among[..among.len().min(ASKED)];
    let redis_keys: Vec<_> = asked.iter().map(|sample| &samples[*sample].redis_key[..]).collect();
    schema_set.all().iter().find_map(|schema| {
        (0..schema.keys.len()).find_map(|key_index| {
            let why = asked.iter().find_map(|sample| {
                let reading = decode::decode_value(schema, key_index, &samples[*sample].content);
                let decoded = reading.decoded()?;
                // A format without tests reads any hash or object, so a near miss of it is not
                // evidence.
                let is_tested = !schema.values[decoded.format].tests.is_empty();
                let why = decoded.conformance.deviation().filter(|_| is_tested)?;
                Some(why.to_owned())
            })?;
            let placed = place(
                schema_set,
                schema,
                key_index,
                KeyspacePart { leader, redis_keys: &redis_keys, named },
            )?;
            let has_words = placed.schema.keys[key_index].template.specificity()
                > placed.schema.prefix.text.len();
            has_words.then(|| Other {
                schema: schema.name.clone(),
                why: format!("is the closest schema, but {why}"),
            })
        })
    })
}

/// A guess about unknown keys: they are locks if their names suggest it and their values are short
/// texts. Under a name that only suggests idempotency, the hash of a payload and the status code of
/// a response are no sign of a lock.
pub(super) fn look(pattern: &str, sample_set: SampleSet<'_>) -> Option<String> {
    let pattern = pattern.to_ascii_lowercase();
    let names_locks = pattern.split(SEPARATORS).any(names_lock)
        || PROGRESS_NAMES.iter().any(|name| pattern.contains(name));
    let names_idempotency = pattern.split(SEPARATORS).any(|word| IDEMPOTENCY_NAMES.contains(&word));
    if !names_locks && !names_idempotency {
        return None;
    }
    for sample in sample_set.among {
        let Content::Text { head, length } = &sample_set.samples[*sample].content else {
            return None;
        };
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

/// True for a word in lower case that names locks.
fn names_lock(word: &str) -> bool {
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
    use crate::domain::record::{Deadline, Expiry, KeyState};

    fn looks_like_locks(pattern: &str, value: &str) -> bool {
        let content = Content::text(value.as_bytes().to_vec());
        let sample = KeyState::new(b"k", content, Expiry::Never, Deadline::Never);
        let sample_set = SampleSet {
            samples: &[sample],
            among: &[0],
            leader: b"",
            named: &super::super::placing::NamedSchemas::new(),
        };
        look(pattern, sample_set).is_some()
    }

    #[test]
    fn names_of_locks_in_any_case_are_seen_and_hashes_and_status_codes_are_not() {
        for pattern in
            ["SINGLETONLOCK_{n}", "app:MyLock:{n}", "arq:in-progress:{uuid}", "pay:mutex:{n}"]
        {
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
