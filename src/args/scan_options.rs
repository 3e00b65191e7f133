//! How the keyspace is scanned.

use clap::{Args, ValueEnum};

use crate::domain::select::Rate;
use crate::store::ScanOptions;

/// How a command that changes nothing scans the keyspace.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Scan")]
pub(crate) struct ScanArgs {
    /// Scan replicas instead of masters, if there are any; replicas may lag behind
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    pub(crate) read_from: ReadFrom,

    /// How fast.
    #[command(flatten)]
    pub(crate) rate: RateArgs,

    /// How much at a time.
    #[command(flatten)]
    pub(crate) page: ScanCountArgs,
}

impl ScanArgs {
    /// The options as the store takes them.
    pub(crate) fn scan_options(&self) -> ScanOptions {
        ScanOptions {
            from_replicas: self.read_from == ReadFrom::Replica,
            rate: self.rate.rate,
            ..self.page.scan_options()
        }
    }

    /// True if any of the options is given.
    pub(crate) fn is_given(&self) -> bool {
        self.read_from == ReadFrom::Replica
            || self.rate.rate.is_some()
            || self.page.scan_count.is_some()
    }
}

/// How fast the keyspace is scanned.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Scan")]
pub(crate) struct RateArgs {
    /// Read at most this many Redis keys per second, e.g. 5000/s
    #[arg(long, value_name = "N/s", value_parser = Rate::parse, allow_negative_numbers = true)]
    pub(crate) rate: Option<Rate>,
}

/// How much of the keyspace is scanned at a time.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Scan")]
pub(crate) struct ScanCountArgs {
    /// COUNT of each SCAN command [default: 500, and up to 2000 if the server is far away]
    ///
    /// Smaller values delay other clients less; larger values need fewer round trips.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) scan_count: Option<u32>,
}

impl ScanCountArgs {
    /// The options as the store takes them.
    pub(crate) fn scan_options(&self) -> ScanOptions {
        ScanOptions { page: self.scan_count, ..ScanOptions::default() }
    }
}

/// `--read-from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ReadFrom {
    /// The masters.
    #[default]
    Master,
    /// A replica of each master.
    Replica,
}
