//! How a change is confirmed, explained and backed up.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::parsers::parse_ttl;

/// How a change is confirmed and explained.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Change")]
pub struct ConfirmArgs {
    /// Go ahead without asking
    #[arg(short = 'y', long)]
    pub(crate) yes: bool,

    /// Name of the protected context, or of a purge's server: for scripts, what a person would have to type
    #[arg(long, value_name = "NAME")]
    pub(crate) confirm: Option<String>,

    /// Show what would be done and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// After each batch of changes wait until this many replicas have it; exit status 3 when they have not
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) wait_replicas: Option<u32>,

    /// How long to wait for them [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl, requires = "wait_replicas")]
    pub(crate) wait_timeout: Option<Duration>,
}

/// How a change that removes something is confirmed, explained and backed up.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Change")]
pub struct ChangeArgs {
    /// How it is confirmed and explained.
    #[command(flatten)]
    pub(crate) confirmed: ConfirmArgs,

    /// Where to back up what is removed [default: a new file in $XDG_STATE_HOME/idemctl/backups]
    #[arg(long, value_name = "FILE", conflicts_with = "no_backup")]
    pub(crate) backup: Option<PathBuf>,

    /// Remove without a backup
    #[arg(long)]
    pub(crate) no_backup: bool,
}
