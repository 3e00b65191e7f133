//! Deleting what is old in the state folder.

use std::time::{Duration, SystemTime};

use clap::Args;

use super::{Output, parse_duration};

/// What is deleted, and whether idemctl asks.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Delete only what is older than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    older_than: Duration,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,

    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    pub(crate) yes: bool,

    /// Show what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl PruneArgs {
    /// The time before which something is old.
    pub(crate) fn before(&self, now: SystemTime) -> SystemTime {
        now.checked_sub(self.older_than).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}
