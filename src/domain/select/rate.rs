//! Limits the rate of changes.

use std::num::NonZeroU32;
use std::time::Duration;

/// A number of records per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(NonZeroU32);

impl Rate {
    /// Parses `500` or `500/s`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix("/s").unwrap_or(text);
        match number.parse() {
            Ok(rate) => Ok(Self(rate)),
            Err(_) => Err("write a whole number a second above 0, e.g. 500/s".to_owned()),
        }
    }

    /// How many records to process at a time, so that the rate holds within each tenth of a second.
    pub(crate) fn at_a_time(self, most: usize) -> usize {
        usize::try_from(self.0.get() / 10).unwrap_or(most).clamp(1, most)
    }

    /// How long this many records take at this rate.
    pub(crate) fn time_for(self, count: usize) -> Duration {
        Duration::from_secs(1) * u32::try_from(count).unwrap_or(u32::MAX) / self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_a_second() {
        assert_eq!(Rate::parse("500/s"), Rate::parse("500"));
        for wrong in ["", "0", "0/s", "-1", "5/m", "1.5", "/s", "99999999999"] {
            assert!(Rate::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_low_rate_goes_in_small_steps() {
        let steps = |rate| Rate::parse(rate).unwrap().at_a_time(500);
        assert_eq!([steps("3"), steps("50"), steps("1000"), steps("100000")], [1, 5, 100, 500]);
        assert_eq!(Rate::parse("50/s").unwrap().time_for(5), Duration::from_millis(100));
    }
}
