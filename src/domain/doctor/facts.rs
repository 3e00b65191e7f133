//! The facts that `doctor` judges: replies of the servers, as far as they gave any.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::counterexample::FaultOutcome;
use super::info::InfoFields;
use super::lock_count::LockCount;
use super::lock_watch::WatchedLock;
use super::refusal::{FactResult, missing};
use super::sample::RecordSample;
use crate::domain::schema::Schema;

/// Everything that the checks judge.
#[derive(Debug)]
pub(crate) struct DeploymentFacts {
    /// The server, or each master of a cluster.
    pub(crate) nodes: Vec<NodeFacts>,
    pub(crate) is_cluster: bool,
    /// The Sentinels that the target names; empty without Sentinels.
    pub(crate) sentinels: Vec<SentinelFacts>,
    /// The schemas in use here.
    pub(crate) schemas: Vec<Arc<Schema>>,
    /// What `explore` finds in each of these schemas with its default faults, under all
    /// assumptions; empty if nothing was explored.
    pub(crate) explorations: Vec<(String, FaultOutcome)>,
    /// The records in a sample of the keys.
    pub(crate) sample: FactResult<RecordSample>,
    /// The locks that never expire, or outlast their TTL.
    pub(crate) locks: FactResult<LockCount>,
    /// How long the requests of a schema may come again, by schema; only those that are stated.
    pub(crate) retry_windows: BTreeMap<String, Duration>,
    /// What was seen during `--observe`; `None` without it.
    pub(crate) observed: Option<FactResult<ObservedRun>>,
    /// `--longest-run`, in milliseconds.
    pub(crate) longest_run_ms: Option<u64>,
}

/// What was seen during `--observe`.
#[derive(Debug)]
pub(crate) struct ObservedRun {
    /// The time from the first look to the last one, in milliseconds.
    pub(crate) lasted_ms: u64,
    /// The locks that were seen.
    pub(crate) locks: Vec<WatchedLock>,
}

/// The replies of one server.
#[derive(Debug, Clone)]
pub(crate) struct NodeFacts {
    /// The server's name in messages.
    pub(crate) name: String,
    pub(crate) info: FactResult<InfoFields>,
    /// The reply to CONFIG GET, by parameter.
    pub(crate) config: BTreeMap<&'static str, FactResult<String>>,
    pub(crate) clock: FactResult<ClockReading>,
    /// Those of the commands that steps and idemctl send that the server does not have.
    pub(crate) missing_commands: FactResult<Vec<String>>,
    /// CLUSTER INFO; only asked of cluster nodes.
    pub(crate) cluster_info: Option<FactResult<InfoFields>>,
    /// This node's line of CLUSTER NODES; only asked of cluster nodes.
    pub(crate) cluster_line: Option<FactResult<String>>,
    /// The rights of the Redis user of this run. Each node of a cluster has ACL rules of its own.
    pub(crate) user: FactResult<UserRights>,
    /// The rights of the services' user; `None` if the operator names none.
    pub(crate) service_user: Option<FactResult<UserRights>>,
}

/// The server's clock, between two readings of the local clock. All in milliseconds since the
/// epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockReading {
    pub(crate) before_ms: u64,
    pub(crate) server_ms: u64,
    pub(crate) after_ms: u64,
}

/// The replies of one Sentinel about the service.
#[derive(Debug, Clone)]
pub(crate) struct SentinelFacts {
    /// The Sentinel's name in messages.
    pub(crate) name: String,
    /// The fields of SENTINEL MASTER.
    pub(crate) master: FactResult<BTreeMap<String, String>>,
    /// SENTINEL CKQUORUM: the inner error is the Sentinel's reason why no failover is possible.
    pub(crate) quorum: FactResult<Result<String, String>>,
}

/// What a user may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserRights {
    pub(crate) user: String,
    /// The commands that the Redis user may not send.
    pub(crate) denied: Vec<DeniedCommand>,
    /// The fields of ACL GETUSER, of which `flags` has words and `keys` has patterns; `None` if it
    /// was not asked.
    pub(crate) account: Option<FactResult<BTreeMap<String, Vec<String>>>>,
}

/// A command that a Redis user may not send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeniedCommand {
    /// The schema whose step sends it; `None` for a command of idemctl.
    pub(crate) schema: Option<String>,
    /// The step, or the commands of idemctl, that send it.
    pub(crate) needed_by: String,
    pub(crate) command: String,
    /// The reason, as the server gave it.
    pub(crate) why: String,
}

impl DeniedCommand {
    /// True if the Redis user may send the command, but not with this Redis key. Redis then replies
    /// that the user "has no permissions to access the 'x' key".
    pub(crate) fn is_about_key(&self) -> bool {
        self.why.contains("to access")
    }
}

impl DeploymentFacts {
    pub(super) fn sample(&self) -> FactResult<&RecordSample> {
        self.sample.as_ref().map_err(Clone::clone)
    }

    pub(super) fn locks(&self) -> FactResult<&LockCount> {
        self.locks.as_ref().map_err(Clone::clone)
    }

    pub(super) fn observed(&self) -> FactResult<Option<&ObservedRun>> {
        let observed = self.observed.as_ref();
        observed.map(|observed| observed.as_ref().map_err(Clone::clone)).transpose()
    }

    /// The names of the schemas in use for which this holds.
    pub(super) fn schemas_that(&self, is_one: impl Fn(&Schema) -> bool) -> Vec<String> {
        let of_them = self.schemas.iter().filter(|schema| is_one(schema));
        of_them.map(|schema| schema.name.clone()).collect()
    }

    /// Passes if some schema is known to be in use.
    ///
    /// # Errors
    /// Why none is.
    pub(super) fn check_schemas(&self) -> FactResult<()> {
        if !self.schemas.is_empty() {
            return Ok(());
        }
        let sample = self.sample()?;
        sample.check_read()?;
        Err(sample.without_schema())
    }
}

impl NodeFacts {
    /// A field of INFO.
    ///
    /// # Errors
    /// The server refused INFO, or the field is missing or empty, as on some managed services.
    pub(crate) fn info(&self, field: &str) -> FactResult<&str> {
        self.info.as_ref().map_err(Clone::clone)?.field(field)
    }

    /// A number of INFO.
    ///
    /// # Errors
    /// The errors of [`NodeFacts::info`], or the field is not a number.
    pub(crate) fn number(&self, field: &str) -> FactResult<u64> {
        self.info(field)?.parse().map_err(|_| missing("INFO", field))
    }

    /// A parameter of CONFIG GET.
    ///
    /// # Errors
    /// The server refused it, or does not know the parameter.
    pub(crate) fn config(&self, parameter: &str) -> FactResult<&str> {
        match self.config.get(parameter) {
            Some(value) => value.as_deref().map_err(Clone::clone),
            None => Err(missing("CONFIG GET", parameter)),
        }
    }

    /// The number of connected replicas.
    ///
    /// # Errors
    /// The errors of [`NodeFacts::number`].
    pub(crate) fn replicas(&self) -> FactResult<u64> {
        self.number("connected_slaves")
    }
}

impl SentinelFacts {
    /// A number of SENTINEL MASTER.
    ///
    /// # Errors
    /// The Sentinel refused the command, or the field is missing.
    pub(crate) fn number(&self, field: &str) -> FactResult<u64> {
        let fields = self.master.as_ref().map_err(Clone::clone)?;
        let number = fields.get(field).and_then(|text| text.parse().ok());
        number.ok_or_else(|| missing("SENTINEL MASTER", field))
    }
}
