//! Guesses states and TTLs from the words and times of sample values.

use std::collections::BTreeMap;

use crate::domain::record::{Content, KeyState, TimeLeft};
use crate::domain::schema::State;

/// Words for a request in progress, in lower case without punctuation.
const AT_WORK: [&str; 12] = [
    "pending",
    "inprogress",
    "processing",
    "started",
    "running",
    "locked",
    "lock",
    "acquired",
    "held",
    "executing",
    "new",
    "active",
];

/// Words for a finished request. A stored failure is a result as well: the next request gets it.
const DONE: [&str; 12] = [
    "completed",
    "complete",
    "done",
    "finished",
    "success",
    "succeeded",
    "processed",
    "stored",
    "failed",
    "failure",
    "error",
    "ok",
];

/// Names of fields that hold a record's state, the likeliest first.
const STATE_FIELDS: [&str; 8] = ["status", "state", "phase", "stage", "stat", "st", "s", "done"];

/// Common TTLs, in seconds.
const USUAL: [u64; 20] = [
    5, 10, 15, 30, 60, 90, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400,
    172_800, 259_200, 604_800, 2_592_000,
];

/// The state that a word names; `None` if a person must decide.
pub(super) fn of_word(word: &str) -> Option<State> {
    let mut plain: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
    plain.make_ascii_lowercase();
    if AT_WORK.contains(&plain.as_str()) {
        return Some(State::InProgress);
    }
    if DONE.contains(&plain.as_str()) {
        return Some(State::Completed);
    }
    None
}

/// True for a word that names a failed request.
pub(super) fn is_failure(word: &str) -> bool {
    ["failed", "failure", "error"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// How likely a field with this name holds the state; a lower rank is likelier.
pub(super) fn rank(name: &str) -> usize {
    let index = STATE_FIELDS.iter().position(|known| name.eq_ignore_ascii_case(known));
    index.unwrap_or(STATE_FIELDS.len())
}

/// The configured TTL, given the longest remaining time among the samples: the next common TTL
/// above it.
pub(super) fn usual_ttl(most_ms: u64) -> String {
    let usual = USUAL.into_iter().find(|seconds| seconds * 1_000 >= most_ms);
    let seconds = usual.unwrap_or(most_ms.div_ceil(1_000));
    match seconds {
        // Up to three days, people write hours: `24h`, `72h`.
        seconds if seconds % 86_400 == 0 && seconds > 259_200 => format!("{}d", seconds / 86_400),
        seconds if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

/// The number of leading bytes by which formats are distinguished.
const BEGINNING: usize = 32;

/// At most `most` of these keys, with an equal share of each format as far as possible.
///
/// Two values have one format if they begin alike (digits aside) or have the same fields, and
/// either both expire or neither.
pub(crate) fn representatives(samples: Vec<KeyState>, most: usize) -> Vec<KeyState> {
    let mut formats: BTreeMap<(bool, Vec<Vec<u8>>), Vec<KeyState>> = BTreeMap::new();
    for sample in samples {
        let expires = sample.time_left != TimeLeft::NoExpiry;
        formats.entry((expires, signature(&sample.content))).or_default().push(sample);
    }
    let mut chosen = Vec::with_capacity(most);
    while chosen.len() < most {
        let before = chosen.len();
        // One of each format per round: a rare format is represented before a common one fills the
        // space.
        for samples in formats.values_mut() {
            if chosen.len() < most {
                chosen.extend(samples.pop());
            }
        }
        if chosen.len() == before {
            break;
        }
    }
    chosen
}

/// The part of a value that distinguishes formats: the names of its fields, or its beginning.
fn signature(content: &Content) -> Vec<Vec<u8>> {
    match content {
        Content::Hash(hash) => {
            let mut names: Vec<_> = hash.fields.iter().map(|field| field.name.clone()).collect();
            names.sort_unstable();
            names
        }
        Content::Text { head, .. } => {
            let mut beginning = head[..head.len().min(BEGINNING)].to_vec();
            // Numbers differ from value to value of one format.
            for byte in &mut beginning {
                if byte.is_ascii_digit() {
                    *byte = b'0';
                }
            }
            vec![beginning]
        }
        Content::Absent | Content::Other(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_states_in_any_spelling() {
        assert_eq!(of_word("IN_PROGRESS"), Some(State::InProgress));
        assert_eq!(of_word("In-Progress"), Some(State::InProgress));
        assert_eq!(of_word("COMPLETED"), Some(State::Completed));
        assert_eq!(of_word("amber"), None);
        assert!(rank("Status") < rank("done") && rank("done") < rank("colour"));
    }

    #[test]
    fn a_ttl_is_the_next_common_one() {
        assert_eq!(usual_ttl(291_000), "5m");
        assert_eq!(usual_ttl(86_399_765), "24h");
        assert_eq!(usual_ttl(300_000), "5m");
        assert_eq!(usual_ttl(2_592_001_000), "2592001s");
    }
}

#[cfg(test)]
mod representatives_tests {
    use super::*;
    use crate::domain::record::Deadline;

    fn sample(key: &str, text: &str, time_left: TimeLeft) -> KeyState {
        KeyState::new(
            key.as_bytes(),
            Content::text(text.as_bytes().to_vec()),
            time_left,
            Deadline::Unknown,
        )
    }

    #[test]
    fn each_format_is_represented_however_rare() {
        let expires = TimeLeft::Millis(1_000);
        let mut samples: Vec<_> =
            (0..100).map(|n| sample(&format!("done-{n}"), "{\"s\":\"done\"}", expires)).collect();
        samples.push(sample("held", "{\"s\":\"held\"}", expires));
        samples.push(sample("stuck", "{\"s\":\"held\"}", TimeLeft::NoExpiry));
        let chosen = representatives(samples.clone(), 10);
        assert_eq!(chosen.len(), 10);
        for key in ["held", "stuck"] {
            assert!(chosen.iter().any(|sample| sample.redis_key == key.as_bytes()), "{key}");
        }
        assert_eq!(representatives(samples, 1_000).len(), 102);
    }
}
