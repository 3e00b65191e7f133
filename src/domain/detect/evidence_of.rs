//! The evidence for a schema in short sentences, and the names that suggest locks.

use super::group::Guess;
use super::schema_match::SampleSet;
use crate::domain::record::Content;

/// Words of a Redis key that name a lock, in any case. Words that end in `lock` do as well, e.g.
/// `SINGLETONLOCK` and `MyLock`.
const LOCK_NAMES: [&str; 3] = ["mutex", "semaphore", "lease"];

/// A word of Redis keys beside a lock that was given up.
const RELEASED: &str = "released";

/// Words that end in `lock` and name no lock.
const NO_LOCKS: [&str; 3] = ["block", "clock", "unlock"];

/// Parts of a Redis key that name work in progress.
const PROGRESS_NAMES: [&str; 6] =
    ["started", "running", "processing", "in-progress", "in_progress", "inprogress"];

/// The longest value that may be an owner token; longer values are data. A UUID fits, and so does a
/// SHA-256 in hexadecimal digits.
const LONGEST_TOKEN: usize = 64;

/// The evidence that the values and the keys give for a schema.
pub(super) fn of(guess: &Guess) -> Vec<String> {
    let formats: Vec<_> = guess.cases.iter().map(|case| &guess.schema.values[*case]).collect();
    let names: Vec<_> = formats.iter().map(|format| format.name.as_str()).collect();
    let mut evidence = Vec::new();
    if !names.is_empty() {
        evidence.push(format!("the values have the format {}", names.join(" or ")));
    }
    if formats.iter().any(|format| format.is_opaque()) {
        evidence.push("any text matches, so only the keys are evidence".to_owned());
    }
    let template = &guess.schema.keys[guess.key_index].template;
    if template.has_fixed_prefix() {
        evidence.push(format!("the keys are {}", template.display()));
    }
    evidence
}

/// A guess about unknown keys: they are locks if their names suggest it and their values are short
/// texts.
pub(super) fn lock_guess(pattern: &str, sample_set: SampleSet<'_>) -> Option<String> {
    let lower = pattern.to_ascii_lowercase();
    let names_progress = PROGRESS_NAMES.iter().any(|name| lower.contains(name));
    if lower.contains(RELEASED)
        || !names_progress && !words_of(pattern).iter().any(|word| names_lock(word))
    {
        return None;
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

/// True for a word in lower case that names locks.
fn names_lock(word: &str) -> bool {
    // Names of Redis keys use the plural as well.
    let word = word.strip_suffix('s').unwrap_or(word);
    let is_other = NO_LOCKS.iter().any(|other| word.ends_with(other));
    LOCK_NAMES.contains(&word) || (word.ends_with("lock") && !is_other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Deadline, KeyState, TimeLeft};

    fn looks_like_locks(pattern: &str, value: &str) -> bool {
        let content = Content::text(value.as_bytes().to_vec());
        let sample = KeyState::new(b"k", content, TimeLeft::NoExpiry, Deadline::Never);
        lock_guess(pattern, SampleSet { samples: &[sample], among: &[0], leader: b"" }).is_some()
    }

    #[test]
    fn names_of_locks_are_seen_in_any_case() {
        for pattern in [
            "SINGLETONLOCK_{n}",
            "app:MyLock{n}",
            "LockOfOrder:{n}",
            "arq:in-progress:{uuid}",
            "pay:mutex:{n}",
        ] {
            assert!(looks_like_locks(pattern, "1"), "{pattern}");
        }
        for pattern in ["cache:{n}", "roadblock:{n}", "clocks:{n}", "unlock:{n}"] {
            assert!(!looks_like_locks(pattern, "worker-7"), "{pattern}");
        }
        assert!(!looks_like_locks("lock:{n}", "{\"status\":1}"));
    }
}
