//! The settings of a context besides its connection.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{StatedTtl, parse_ttl};

/// The new settings of a context. An option that is not given leaves the context unchanged.
#[derive(Debug, Args)]
pub(crate) struct ContextArgs {
    /// Ask for the context's name before every change
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub(crate) protected: Option<bool>,

    /// Refuse every change (`--read-only=false`: no longer)
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub(crate) read_only: Option<bool>,

    /// Schemas that its commands use, replacing the list; see `idemctl schema list`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) schema: Vec<String>,

    /// Lock TTL of this deployment, e.g. express=90s (`none`: locks have no TTL); may be repeated
    #[arg(long, value_name = "SCHEMA=DURATION")]
    lock_ttl: Vec<StatedTtl>,

    /// Result TTL of this deployment, e.g. express=24h; may be repeated
    #[arg(long, value_name = "SCHEMA=DURATION")]
    result_ttl: Vec<StatedTtl>,

    /// How long clients or queues may send a request again, e.g. 3d; `doctor` compares results with
    /// it
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl)]
    pub(crate) retry_window: Option<Duration>,

    /// Folder with your own schemas
    #[arg(long, value_name = "DIR")]
    pub(crate) schema_dir: Option<PathBuf>,
}

impl ContextArgs {
    /// The TTLs, each with its field in the config file.
    pub(crate) fn ttls(&self) -> impl Iterator<Item = (&'static str, &StatedTtl)> {
        let locks = self.lock_ttl.iter().map(|ttl| ("lock_ttl", ttl));
        locks.chain(self.result_ttl.iter().map(|ttl| ("result_ttl", ttl)))
    }
}
