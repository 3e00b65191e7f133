//! Which schemas, and how the deployment differs from their defaults.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::domain::schema::TtlOf;
use crate::domain::schema::ttl::parse_ttl_or_none;

/// Which schemas, and how the deployment differs from their defaults.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Schemas")]
pub struct SchemaArgs {
    /// Schemas to work on; `idemctl schema list` names them [default: all, or the context's]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) schema: Vec<String>,

    /// Where the operator's own schemas are.
    #[command(flatten)]
    pub(crate) folder: SchemaFolderArgs,

    /// Prefix of this deployment's keys, of the one schema that is named; `idemctl schema show NAME` says where it stands
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,

    /// Lock TTL of this deployment for the one schema that is named, `none` where its locks get none: what is stated may select
    /// for a change
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl_or_none)]
    pub(crate) lock_ttl: Option<Duration>,

    /// Result TTL of this deployment for the one schema that is named, `none` where its results get none
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl_or_none)]
    pub(crate) result_ttl: Option<Duration>,
}

impl SchemaArgs {
    /// An option that says something of a single schema's deployment, where one is given.
    pub(crate) fn of_one_schema(&self) -> Option<&'static str> {
        let prefix = self.prefix.as_ref().map(|_| "--prefix");
        let ttl = |ttl: Option<Duration>, of: TtlOf| ttl.map(|_| of.option());
        prefix
            .or_else(|| ttl(self.lock_ttl, TtlOf::Lock))
            .or_else(|| ttl(self.result_ttl, TtlOf::Result))
    }
}

/// Where an operator's own schemas are.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SchemaFolderArgs {
    /// Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]
    #[arg(long, value_name = "DIR")]
    pub(crate) schema_dir: Option<PathBuf>,
}
