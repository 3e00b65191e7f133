//! How a change is confirmed, explained and backed up.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::args::display::Output;
use crate::args::schemas::SchemaArgs;
use crate::domain::duration::parse_duration;

/// How a change is confirmed and explained.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Change")]
pub struct ConfirmArgs {
    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    pub(crate) yes: bool,

    /// Name of the protected context, or of purge's server, instead of typing it; for scripts
    #[arg(long, value_name = "NAME")]
    pub(crate) confirm: Option<String>,

    /// Show what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Reason to record in the audit log
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// Who planned the change, if a plan is applied.
    #[arg(skip)]
    pub(crate) planner: Option<String>,

    /// Wait until this many replicas have each batch of changes; exit status 3 if they do not
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) wait_replicas: Option<u32>,

    /// Timeout of --wait-replicas [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl, requires = "wait_replicas")]
    pub(crate) wait_timeout: Option<Duration>,
}

/// How a change that removes something is confirmed, explained and backed up.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Change")]
pub struct ChangeArgs {
    /// How it is confirmed and explained.
    #[command(flatten)]
    pub(crate) confirm_args: ConfirmArgs,

    /// Backup file for removed records [default: a new file in $XDG_STATE_HOME/idemctl/backups]
    #[arg(long, value_name = "FILE", conflicts_with = "no_backup")]
    pub(crate) backup: Option<PathBuf>,

    /// Remove without a backup
    #[arg(long)]
    pub(crate) no_backup: bool,
}

/// The plan of a removal.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Change")]
pub struct PlanArgs {
    /// Write the removals to this new file, for `idemctl apply`, and change nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
}

/// The records to restore, and the server to restore them to.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ReturnArgs {
    /// Only this idempotency key, Redis key or name (`SCHEMA/KEY`); may be repeated
    #[arg(long = "only", value_name = "KEY")]
    pub(crate) keys: Vec<OsString>,

    /// Allow another server, service, cluster or database than the one that was backed up
    #[arg(long)]
    pub(crate) elsewhere: bool,

    /// Restore a result even next to a lock
    ///
    /// The lock stays, and requests get this result until the lock's holder overwrites it.
    #[arg(long)]
    pub(crate) replace_locked: bool,

    /// Also skip damaged lines in the middle of the backup
    ///
    /// Caution: such a line may withdraw a record that was not changed. It is then restored, too.
    #[arg(long)]
    pub(crate) skip_damaged: bool,
}

/// The target and the options of a step that an operator runs.
#[derive(Debug, Clone, Default, Args)]
pub struct StepArgs {
    /// Idempotency key, Redis key, or name (`SCHEMA/KEY`) from `list -o name`
    #[arg(value_name = "KEY")]
    pub(crate) key: OsString,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,

    /// How it is confirmed, explained and backed up.
    #[command(flatten)]
    pub(crate) change_args: ChangeArgs,

    /// Whose step it is.
    #[command(flatten)]
    pub(crate) schemas: SchemaArgs,
}

/// A duration longer than zero.
pub(crate) fn parse_ttl(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("a TTL must be longer than zero".to_owned()),
        ttl => Ok(ttl),
    }
}

/// An owner token or a hash of a payload: one line of text.
pub(crate) fn parse_token(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        Err("it has control characters".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// An owner token, which is never empty.
pub(crate) fn parse_owner(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("an owner is not empty".to_owned()) } else { parse_token(text) }
}
