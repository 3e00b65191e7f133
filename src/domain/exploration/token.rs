//! A schedule as one word that can be copied and replayed.

use std::fmt;
use std::str::FromStr;

use super::act::Act;

/// The longest schedule that is accepted; explorations find shorter ones.
const MOST_ACTS: usize = 1_000;

/// The schemas of the workers, and the order of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScheduleToken {
    /// The name of each worker's schema.
    pub(crate) workers: Vec<String>,
    pub(crate) acts: Vec<Act>,
}

/// Writes `1:orders,orders:s0.x0.s1`: the format, the schemas, the acts.
impl fmt::Display for ScheduleToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let acts: Vec<_> = self.acts.iter().map(|act| act.word()).collect();
        write!(f, "1:{}:{}", self.workers.join(","), acts.join("."))
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
        let workers: Vec<_> = workers.split(',').map(str::to_owned).collect();
        let mut schedule = Vec::new();
        for word in acts.split('.') {
            if schedule.len() == MOST_ACTS {
                return Err(format!("it has more than {MOST_ACTS} steps"));
            }
            let Some(act) = Act::from_word(word) else {
                return Err(format!("`{word}` is not a step"));
            };
            schedule.push(act);
        }
        Ok(Self { workers, acts: schedule })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let text = "1:mine,mine:s0.x0.s1.e0.e1";
        assert_eq!(text.parse::<ScheduleToken>().unwrap().to_string(), text);
        for wrong in ["", "1:mine", "2:mine:s0", "1:mine:", "1:mine:s0,s1", "1:mine:s0..s1"] {
            assert!(wrong.parse::<ScheduleToken>().is_err(), "{wrong}");
        }
        let endless = format!("1:mine:{}", vec!["s0"; MOST_ACTS + 1].join("."));
        assert!(endless.parse::<ScheduleToken>().is_err());
    }
}
