//! Which schemas, and how the deployment differs from their defaults.

use std::path::PathBuf;
use std::str::FromStr;
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

    /// Lock TTL of this deployment, e.g. 90s or express=90s (`none`: locks have no TTL)
    ///
    /// Changes can select records by a TTL that you state here, but not by a schema's default.
    #[arg(long, value_name = "[SCHEMA=]DURATION")]
    pub(crate) lock_ttl: Option<StatedTtl>,

    /// Result TTL of this deployment, e.g. 24h or express=24h
    #[arg(long, value_name = "[SCHEMA=]DURATION")]
    pub(crate) result_ttl: Option<StatedTtl>,
}

/// A TTL of a deployment: of a schema, or of the only one that the command uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatedTtl {
    pub(crate) schema: Option<String>,
    pub(crate) ttl: Duration,
}

impl StatedTtl {
    /// The TTL, if it is that of this schema.
    pub(crate) fn of(&self, schema: &str) -> Option<Duration> {
        let is_its = self.schema.as_deref().is_none_or(|named| named == schema);
        is_its.then_some(self.ttl)
    }
}

impl FromStr for StatedTtl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (schema, ttl) = match text.split_once('=') {
            Some((schema, ttl)) => (Some(schema.to_owned()), ttl),
            None => (None, text),
        };
        Ok(Self { schema, ttl: parse_ttl_or_none(ttl)? })
    }
}

impl SchemaArgs {
    /// The given options that apply to a single schema, each with the schema that it names.
    pub(crate) fn of_one_schema(&self) -> Vec<(&'static str, Option<&str>)> {
        let mut options = Vec::new();
        if self.prefix.is_some() {
            options.push(("--prefix", None));
        }
        for (of, stated) in [(TtlOf::Lock, &self.lock_ttl), (TtlOf::Result, &self.result_ttl)] {
            if let Some(stated) = stated {
                options.push((of.option(), stated.schema.as_deref()));
            }
        }
        options
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
