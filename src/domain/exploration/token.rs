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
        let mut parts = text.trim().splitn(3, ':');
        let format = parts.next();
        let workers = parts.next();
        let acts = parts.next();
        let (Some(format), Some(workers), Some(acts)) = (format, workers, acts) else {
            return Err("it is not a token; `explore -o json` writes tokens".to_owned());
        };
        if format != "1" {
            return Err(format!("its format is {format}, and this idemctl reads format 1"));
        }
        let without_mark = workers.strip_suffix(OTHER_PAYLOAD);
        let has_other_payload = without_mark.is_some();
        let workers = without_mark.unwrap_or(workers);
        let workers: Vec<_> = workers.split(',').map(str::to_owned).collect();
        let mut schedule = Vec::new();
        for word in acts.split('.') {
            if schedule.len() == MAX_ACTS {
                return Err(format!("it has more than {MAX_ACTS} steps"));
            }
            let Some(act) = Act::from_word(word) else {
                return Err(format!("`{word}` is not a step"));
            };
            schedule.push(act);
        }
        Ok(Self { workers, has_other_payload, acts: schedule })
    }
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
