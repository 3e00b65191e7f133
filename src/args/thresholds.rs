//! Limits that findings compare with.

use std::time::Duration;

use clap::Args;

use crate::domain::diagnosis::Thresholds;
use crate::domain::duration::parse_duration;
use crate::domain::record::age;

/// Limits that findings compare with.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ThresholdArgs {
    /// Report locks held longer than this as `overdue`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) overdue: Option<Duration>,
}

impl ThresholdArgs {
    /// The limits.
    pub(crate) fn thresholds(&self) -> Thresholds {
        Thresholds { overdue_ms: self.overdue.map(age::millis), ..Thresholds::default() }
    }
}
