//! A schedule as one word that can be copied and replayed.

use std::fmt;
use std::str::FromStr;

use super::act::Act;

/// The longest schedule that is accepted; explorations find shorter ones.
const MAX_ACTS: usize = 1_000;

/// The schemas of the workers, and the order of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScheduleToken {
    /// The name of each worker's schema.
    pub(crate) workers: Vec<String>,
    /// True if the last worker requests another operation with the same key.
    pub(crate) has_other_payload: bool,
    pub(crate) acts: Vec<Act>,
}

/// Follows the schema of a worker that requests another operation.
const OTHER_PAYLOAD: char = '+';

/// Writes `1:orders,orders:s0.x0.s1`: the format, the schemas, the acts. A last worker with another
/// payload is `orders+`.
impl fmt::Display for ScheduleToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let acts: Vec<_> = self.acts.iter().map(|act| act.word()).collect();
        let mark = if self.has_other_payload { OTHER_PAYLOAD.to_string() } else { String::new() };
        write!(f, "1:{}{mark}:{}", self.workers.join(","), acts.join("."))
    }
}

impl FromStr for ScheduleToken {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        read(text).ok_or_else(|| "it is not a token; `explore -o json` writes tokens".to_owned())
    }
}

fn read(text: &str) -> Option<ScheduleToken> {
    let (workers, acts) = text.trim().strip_prefix("1:")?.split_once(':')?;
    let without_mark = workers.strip_suffix(OTHER_PAYLOAD);
    let has_other_payload = without_mark.is_some();
    let workers = without_mark.unwrap_or(workers);
    let workers = workers.split(',').map(str::to_owned).collect();
    let acts: Vec<Act> =
        acts.split('.').take(MAX_ACTS + 1).map(Act::from_word).collect::<Option<_>>()?;
    if acts.len() > MAX_ACTS {
        return None;
    }
    Some(ScheduleToken { workers, has_other_payload, acts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        for text in ["1:mine,mine:s0.x0.s1.e0.e1", "1:mine,mine+:s0.s1"] {
            let token: ScheduleToken = text.parse().unwrap();
            assert_eq!(token.to_string(), text);
            assert_eq!(token.workers, ["mine", "mine"]);
            assert_eq!(token.has_other_payload, text.contains('+'));
        }
        for wrong in ["", "1:mine", "2:mine:s0", "1:mine:", "1:mine:s0,s1", "1:mine:s0..s1"] {
            assert!(wrong.parse::<ScheduleToken>().is_err(), "{wrong}");
        }
        let endless = format!("1:mine:{}", vec!["s0"; MAX_ACTS + 1].join("."));
        assert!(endless.parse::<ScheduleToken>().is_err());
    }
}
