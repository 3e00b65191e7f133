//! Repeating a command, and waiting for a state.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{parse_duration, parse_ttl};
use crate::domain::duration::is_duration;
use crate::domain::schema::State;
use crate::domain::select::Rate;
use crate::exit::CommandError;
use crate::store::ScanOptions;

/// The default time between two reads.
const DEFAULT: Duration = Duration::from_secs(1);

/// The shortest time between two reads. `--watch 0s` would otherwise send requests without a pause.
const SHORTEST: Duration = Duration::from_millis(10);

/// The interval of a watch.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Watch")]
pub(crate) struct WatchArgs {
    /// Repeat every INTERVAL [default: 1s] and repaint the terminal
    ///
    /// Without a terminal, appends new output. `list` and `stats` wait at least ten times as long
    /// as their last scan took.
    #[arg(short, long, value_name = "INTERVAL", num_args = 0..=1, default_missing_value = "1s")]
    pub(crate) watch: Option<OsString>,
}

/// The interval of a watch, and when it ends.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Watch")]
pub(crate) struct FollowArgs {
    #[command(flatten)]
    pub(crate) watch: WatchArgs,

    /// Repeat until all have this state, or exit with 1
    #[arg(long, value_name = "STATE", value_enum)]
    pub(crate) until: Option<UntilArg>,

    /// Wait at most this long for --until, then end with exit status 1
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl, requires = "until")]
    pub(crate) within: Option<Duration>,
}

/// `--until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UntilArg {
    /// A lock is held.
    InProgress,
    /// A result is stored.
    Completed,
    /// A failure is stored.
    Failed,
    /// The lock was given up, and the record remains.
    Released,
    /// No record exists.
    Absent,
}

impl From<UntilArg> for State {
    fn from(arg: UntilArg) -> Self {
        match arg {
            UntilArg::InProgress => Self::InProgress,
            UntilArg::Completed => Self::Completed,
            UntilArg::Failed => Self::Failed,
            UntilArg::Released => Self::Released,
            UntilArg::Absent => Self::Absent,
        }
    }
}

impl WatchArgs {
    /// The time between two reads; `None` for a single read.
    ///
    /// # Errors
    /// Usage: the word is not a duration.
    pub(crate) fn interval(&self) -> Result<Option<Duration>, CommandError> {
        let Some(word) = &self.watch else { return Ok(None) };
        let text = word.to_string_lossy();
        // As in `watch -n 1`.
        let interval = match text.parse::<u32>() {
            Ok(seconds) => Duration::from_secs(seconds.into()),
            Err(_) => parse_duration(&text)
                .map_err(|why| CommandError::usage(format!("--watch {text}: {why}")))?,
        };
        // `--watch 0s` would send requests without a pause.
        Ok(Some(interval.max(SHORTEST)))
    }

    /// In `--watch KEY`, clap takes the key as the interval. Returns that word if it is not a
    /// duration.
    pub(crate) fn take_key(&mut self) -> Option<OsString> {
        let word = self.watch.take_if(|word| !word.to_str().is_some_and(is_duration))?;
        self.watch = Some("1s".into());
        Some(word)
    }
}

impl FollowArgs {
    /// A watch that does not wait for a state.
    pub(crate) fn of(watch: WatchArgs) -> Self {
        Self { watch, ..Self::default() }
    }

    /// The time between two reads; `None` for a single read.
    ///
    /// # Errors
    /// Usage: the word is not a duration.
    pub(crate) fn interval(&self) -> Result<Option<Duration>, CommandError> {
        // --until repeats even without --watch.
        Ok(self.watch.interval()?.or(self.until.map(|_| DEFAULT)))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_seconds() {
        let interval = |text: &str| WatchArgs { watch: Some(text.into()) }.interval();
        assert_eq!(interval("2").ok().flatten(), Some(Duration::from_secs(2)));
        assert_eq!(interval("2ms").ok().flatten(), Some(SHORTEST));
    }
}
