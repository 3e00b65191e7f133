//! Which schemas, and how the deployment differs from their defaults.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::domain::schema::TtlOf;
use crate::domain::schema::ttl::parse_ttl_or_none;

/// The schemas, and how the deployment differs from their defaults.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Schemas")]
pub struct SchemaArgs {
    /// Schemas to use; see `idemctl schema list` [default: all, or the context's]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) schema: Vec<String>,

    /// Where the operator's own schemas are.
    #[command(flatten)]
    pub(crate) folder: SchemaFolderArgs,

    /// Prefix of this deployment's keys, with exactly one --schema; `idemctl schema show NAME`
    /// shows where it stands
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,

    /// Lock TTL of this deployment, or `none`; needs exactly one --schema
    ///
    /// Changes can select records by a TTL that you state here, but not by a schema's default.
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl_or_none)]
    pub(crate) lock_ttl: Option<Duration>,

    /// Result TTL of this deployment, or `none`; needs exactly one --schema
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl_or_none)]
    pub(crate) result_ttl: Option<Duration>,
}

impl SchemaArgs {
    /// The given option, if any, that applies to a single schema.
    pub(crate) fn of_one_schema(&self) -> Option<&'static str> {
        if self.prefix.is_some() {
            Some("--prefix")
        } else if self.lock_ttl.is_some() {
            Some(TtlOf::Lock.option())
        } else if self.result_ttl.is_some() {
            Some(TtlOf::Result.option())
        } else {
            None
        }
    }
}

/// Where an operator's own schemas are.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SchemaFolderArgs {
    /// Folder of your schemas [env: IDEMCTL_SCHEMA_DIR] [default:
    /// ~/.config/idemctl/schemas]
    #[arg(long, value_name = "DIR")]
    pub(crate) schema_dir: Option<PathBuf>,
}
