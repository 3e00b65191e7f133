//! What the words and times of sample values mean, as far as their names tell.

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
