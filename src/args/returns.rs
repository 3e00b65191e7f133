//! What comes back from a backup, and where to.

use std::ffi::OsString;

use clap::Args;

/// What comes back from a backup, and where to.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ReturnArgs {
    /// Only this idempotency key, Redis key or name (`SCHEMA/KEY`); can be given more than once
    #[arg(long = "only", value_name = "KEY")]
    pub(crate) keys: Vec<OsString>,

    /// Go to another server, service, cluster or database than what comes back was taken from
    #[arg(long)]
    pub(crate) elsewhere: bool,

    /// Restore a result although a lock stands beside it: the lock stays, and requests get this result until the lock's
    /// holder overwrites it
    #[arg(long)]
    pub(crate) replace_locked: bool,

    /// Leave out damaged lines that have whole ones behind them, too: what a damaged line may have taken back comes back
    #[arg(long)]
    pub(crate) skip_damaged: bool,
}
