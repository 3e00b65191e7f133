//! Durations as people write them.

use std::time::Duration;

/// Milliseconds as `4m 12s`: the two largest units, rounded down. Below a second `350ms`.
pub fn short(millis: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    if millis < 1_000 {
        return format!("{millis}ms");
    }
    let seconds = millis / 1_000;
    let largest = UNITS.iter().position(|(size, _)| seconds >= *size).unwrap_or(UNITS.len() - 1);
    let mut rest = seconds;
    let mut parts = Vec::with_capacity(2);
    for (size, unit) in UNITS.iter().skip(largest).take(2) {
        if rest >= *size {
            parts.push(format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    parts.join(" ")
}

/// Milliseconds rounded up to hours, below an hour to minutes, below a minute to seconds.
pub(crate) fn rounded_up(millis: u64) -> u64 {
    let unit = match millis {
        3_600_000.. => 3_600_000,
        60_000.. => 60_000,
        _ => 1_000,
    };
    millis.div_ceil(unit) * unit
}

/// A duration as its parser reads it back, without loss.
pub(crate) fn exact(span: Duration) -> String {
    let text = u64::try_from(span.as_millis()).map(short).unwrap_or_default();
    if parse_duration(&text) == Ok(span) {
        return text;
    }
    humantime::format_duration(span).to_string()
}

/// A duration that is longer than another one, as [`short`] writes it, or as `1d and 3s` if that
/// would not show the difference.
pub(crate) fn longer_than(millis: u64, shorter: u64) -> String {
    let text = short(millis);
    if millis > shorter && text == short(shorter) {
        return format!("{text} and {}", short(millis - shorter));
    }
    text
}

/// The longest duration that idemctl accepts: 100 years. Added to any point in time, it gives one
/// that clocks can represent.
const LONGEST: Duration = Duration::from_secs(100 * 31_557_600);

/// Parses `90s`, `10m`, `24h`. Options, settings and schemas all use this parser.
///
/// # Errors
/// The text is not a duration, or the duration is longer than 100 years.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write 90s, 10m or 24h (1m is a minute, 1M a month)"))?;
    if duration > LONGEST {
        Err("it is longer than 100y, the longest duration".to_owned())
    } else {
        Ok(duration)
    }
}

/// True for a text that is a duration, even one that is too long.
pub(crate) fn is_duration(text: &str) -> bool {
    humantime::parse_duration(text).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shows_the_two_largest_units() {
        assert_eq!(short(0), "0ms");
        assert_eq!(short(999), "999ms");
        assert_eq!(short(1_000), "1s");
        assert_eq!(short(252_000), "4m 12s");
        assert_eq!(short(300_000), "5m");
        assert_eq!(short(86_400_000), "1d");
        assert_eq!(short(86_399_999), "23h 59m");
        assert_eq!(short(90_061_000), "1d 1h");
    }

    #[test]
    fn a_longer_duration_is_shown_as_longer() {
        assert_eq!([0, 1, 60_001, 85_680_000].map(rounded_up), [0, 1_000, 120_000, 86_400_000]);
        assert_eq!(longer_than(600_000, 60_000), "10m");
        assert_eq!(longer_than(86_403_000, 86_400_000), "1d and 3s");
        assert_eq!(longer_than(60_000, 60_000), "1m");
    }

    #[test]
    fn a_duration_is_at_most_a_hundred_years() {
        assert_eq!(parse_duration("100y"), Ok(LONGEST));
        for longer in ["100y 1ns", "101y", "292277026596y", "584542046090y"] {
            assert!(parse_duration(longer).unwrap_err().contains("longer than 100y"), "{longer}");
        }
        assert!(std::time::Instant::now().checked_add(LONGEST).is_some());
        assert!(std::time::SystemTime::now().checked_add(LONGEST).is_some());
    }

    proptest! {
        #[test]
        fn is_what_people_write_rounded_down_to_the_second_unit(millis in prop_oneof![0..100_000_u64, 0..10_000_000_000_u64, any::<u64>()]) {
            let text = short(millis);
            let parsed = humantime::parse_duration(&text).unwrap();
            let lost = Duration::from_millis(millis).checked_sub(parsed).unwrap();
            let smallest = match millis {
                0..1_000 => 1,
                1_000..3_600_000 => 1_000,
                3_600_000..86_400_000 => 60_000,
                _ => 3_600_000,
            };
            prop_assert!(lost < Duration::from_millis(smallest), "{millis} is shown as {text}");
        }
    }
}
