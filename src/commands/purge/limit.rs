//! How many records a purge may remove.

use clap::Args;

use crate::exit::CommandError;

/// The options that limit a purge.
#[derive(Debug, Args)]
pub(super) struct LimitArgs {
    /// Refuse if more records are selected than this, and never remove more
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub(super) max: Option<u64>,

    /// Refuse to remove more than this percentage of the schemas' records
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = parse_percent,
        conflicts_with_all = ["key_file", "keys"],
        allow_negative_numbers = true
    )]
    pub(super) max_percent: Option<f64>,
}

impl LimitArgs {
    /// True if an option bounds how many records are chosen, so that they are counted before any is
    /// removed.
    pub(super) fn is_given(&self) -> bool {
        self.max.is_some() || self.max_percent.is_some()
    }

    /// How many records may be removed, if `total` of `records` are chosen: as many as the options
    /// allow, because there may be more by then; without options, as many as were counted.
    ///
    /// # Errors
    /// Refused: more are chosen than the options allow.
    pub(super) fn limit_for(&self, total: u64, records: u64) -> Result<u64, CommandError> {
        if total == 0 {
            return Ok(0);
        }
        let mut most = total;
        if let Some(max) = self.max {
            if total > max {
                return Err(too_many(total, max, "--max"));
            }
            most = max;
        }
        let Some(percent) = self.max_percent else { return Ok(most) };
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a percentage of a count, rounded down"
        )]
        let part = (records as f64 * percent / 100.0) as u64;
        if total > part {
            let by = format!("--max-percent {percent} of {records}");
            return Err(too_many(total, part, &by));
        }
        // Only --max permits more than were shown.
        Ok(most.min(part))
    }
}

/// That more records are selected than an option allows.
fn too_many(total: u64, allowed: u64, by: &str) -> CommandError {
    CommandError::usage(format!(
        "{total} records are selected, but {by} allows {allowed}; nothing was changed"
    ))
    .hint("select fewer records, or allow more")
}

fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a number of records must be a whole number, and 0 or more".to_owned())
}

/// Parses `5`, `0.5` or `5%`.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse() {
        // This also refuses NaN, which no range contains.
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("a percentage must be a number from 0 to 100".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_max_permits_more_than_were_shown() {
        let limit = |max, max_percent| LimitArgs { max, max_percent };
        // Ten of a hundred records were selected and shown.
        assert_eq!(limit(None, None).limit_for(10, 100).unwrap(), 10);
        assert_eq!(limit(None, Some(50.0)).limit_for(10, 100).unwrap(), 10);
        assert_eq!(limit(Some(20), None).limit_for(10, 100).unwrap(), 20);
        assert_eq!(limit(Some(20), Some(15.0)).limit_for(10, 100).unwrap(), 15);
        assert!(limit(None, Some(5.0)).limit_for(10, 100).is_err());
        assert!(limit(Some(9), None).limit_for(10, 100).is_err());
    }
}
