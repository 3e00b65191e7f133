//! What the words and times of sample values mean, as far as their names tell.

use std::collections::BTreeMap;

use crate::domain::record::{Content, Expiry, SeenKey};
use crate::domain::schema::State;

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

/// Fields in which a service keeps a record's state, the likeliest first.
const STATE_FIELDS: [&str; 8] = ["status", "state", "phase", "stage", "stat", "st", "s", "done"];

/// TTLs that people configure, in seconds.
const USUAL: [u64; 20] = [
    5, 10, 15, 30, 60, 90, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400,
    172_800, 259_200, 604_800, 2_592_000,
];

/// The state that a word names; `None` where a person has to say.
pub(super) fn of_word(word: &str) -> Option<State> {
    let plain: String =
        word.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let is_in = |words: &[&str]| words.contains(&plain.as_str());
    is_in(&AT_WORK)
        .then_some(State::InProgress)
        .or_else(|| is_in(&DONE).then_some(State::Completed))
}

/// How likely a field of this name holds the state: less is likelier.
pub(super) fn rank(name: &str) -> usize {
    STATE_FIELDS
        .iter()
        .position(|known| name.eq_ignore_ascii_case(known))
        .unwrap_or(STATE_FIELDS.len())
}

/// The TTL that was configured, where this is the most that was left of it.
pub(super) fn usual_ttl(most_ms: u64) -> String {
    let seconds = USUAL
        .into_iter()
        .find(|seconds| seconds * 1_000 >= most_ms)
        .unwrap_or(most_ms.div_ceil(1_000));
    match seconds {
        seconds if seconds % 86_400 == 0 && seconds > 259_200 => format!("{}d", seconds / 86_400),
        seconds if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

/// Bytes at the beginning of a value that tell formats apart.
const BEGINNING: usize = 32;

/// At most `most` of these keys: of each format as many as of any other, as far as there are some.
///
/// Two values have one format if they begin alike (digits aside) or have the same fields, and either both expire or neither.
pub(crate) fn representatives(samples: Vec<SeenKey>, most: usize) -> Vec<SeenKey> {
    let mut formats: BTreeMap<(bool, Vec<Vec<u8>>), Vec<SeenKey>> = BTreeMap::new();
    for sample in samples {
        let expires = sample.expiry != Expiry::Never;
        formats.entry((expires, signature(&sample.content))).or_default().push(sample);
    }
    let mut chosen = Vec::with_capacity(most);
    while chosen.len() < most {
        let before = chosen.len();
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

fn signature(content: &Content) -> Vec<Vec<u8>> {
    match content {
        Content::Hash(hash) => {
            let mut names: Vec<_> = hash.fields.iter().map(|field| field.name.clone()).collect();
            names.sort_unstable();
            names
        }
        Content::Text { head, .. } => {
            let beginning = head.iter().take(BEGINNING);
            vec![beginning.map(|byte| if byte.is_ascii_digit() { b'0' } else { *byte }).collect()]
        }
        Content::Absent | Content::Other(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_tell_states_however_they_are_written() {
        assert_eq!(of_word("IN_PROGRESS"), Some(State::InProgress));
        assert_eq!(of_word("In-Progress"), Some(State::InProgress));
        assert_eq!(of_word("COMPLETED"), Some(State::Completed));
        assert_eq!(of_word("amber"), None);
        assert!(rank("Status") < rank("done") && rank("done") < rank("colour"));
    }

    #[test]
    fn a_ttl_is_the_next_usual_one() {
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

    fn sample(key: &str, text: &str, expiry: Expiry) -> SeenKey {
        SeenKey::new(
            key.as_bytes(),
            Content::text(text.as_bytes().to_vec()),
            expiry,
            Deadline::Unknown,
        )
    }

    #[test]
    fn each_format_is_represented_however_rare() {
        let expires = Expiry::In(1_000);
        let mut samples: Vec<_> =
            (0..100).map(|n| sample(&format!("done-{n}"), "{\"s\":\"done\"}", expires)).collect();
        samples.push(sample("held", "{\"s\":\"held\"}", expires));
        samples.push(sample("stuck", "{\"s\":\"held\"}", Expiry::Never));
        let chosen = representatives(samples.clone(), 10);
        assert_eq!(chosen.len(), 10);
        for key in ["held", "stuck"] {
            assert!(chosen.iter().any(|sample| sample.redis_key == key.as_bytes()), "{key}");
        }
        assert_eq!(representatives(samples, 1_000).len(), 102);
    }
}
