//! A step of a service that is done by hand.

use std::ffi::OsString;

use clap::Args;

use super::change::ChangeArgs;
use super::output::Output;
use super::schemas::SchemaArgs;

/// What a step of a service is done to by hand, and how.
#[derive(Debug, Clone, Default, Args)]
pub struct StepArgs {
    /// Idempotency key, full Redis key, or name (`SCHEMA/KEY`) as `list -o name` prints it
    #[arg(value_name = "KEY")]
    pub(crate) key: OsString,

    /// How to show the record and what was done
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,

    /// How it is confirmed, explained and backed up.
    #[command(flatten)]
    pub(crate) change: ChangeArgs,

    /// Whose step it is.
    #[command(flatten)]
    pub(crate) schemas: SchemaArgs,
}
