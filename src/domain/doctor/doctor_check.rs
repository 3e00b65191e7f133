//! A check: what it reads, its rule, and how it judges.

use strum::IntoStaticStr;

use super::facts::DeploymentFacts;
use super::judgement::CheckJudgement;
use crate::domain::as_str::as_str;

/// The part of a deployment that a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum CheckGroup {
    Server,
    Cluster,
    Sentinel,
    Ttl,
    Capacity,
    Schema,
    /// What records and keys contain, which is read only if the operator asks for it.
    Data,
}

as_str!(CheckGroup);

/// What a check needs of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SampleNeed {
    /// No key is read for it.
    Nothing,
    /// The schemas in use, which doctor finds in the sample unless the operator names them.
    Schemas,
    Records,
}

/// One check of `doctor`. `docs/doctor.md` and `idemctl-checks(7)` describe each; a test compares
/// them.
#[derive(Debug)]
pub(crate) struct DoctorCheck {
    /// The stable code.
    pub(crate) code: &'static str,
    pub(crate) group: CheckGroup,
    /// The question that the check answers, as a phrase.
    pub(crate) title: &'static str,
    /// The commands and settings that it reads.
    pub(crate) reads: &'static str,
    /// When it reports something.
    pub(crate) rule: &'static str,
    /// Where the rule comes from: a URL, or a document of this project.
    pub(crate) source: &'static str,
    /// What can happen, unless a judgement says it more exactly.
    pub(crate) consequence: &'static str,
    /// What to do, unless a judgement says it more exactly.
    pub(crate) remedy: &'static str,
    /// Judges the facts; empty if the check does not apply to this deployment.
    pub(crate) judge: fn(&DeploymentFacts) -> Vec<CheckJudgement>,
}

impl DoctorCheck {
    /// True if it looks into values, or at the keys of clients.
    pub(crate) fn needs_data(&self) -> bool {
        self.group == CheckGroup::Data
    }

    /// True if it judges what the files of schemas state, and nothing that a server or a record
    /// shows.
    pub(crate) fn is_about_schemas(&self) -> bool {
        matches!(self.code, "schema-violations" | "keys-in-slots")
    }

    /// True if it judges the locks that a scan of all keys counts.
    pub(crate) fn counts_locks(&self) -> bool {
        matches!(self.code, "endless-locks" | "observed-ttls")
    }

    /// What it needs of the sample. Keys are only read if a chosen check needs them.
    pub(crate) fn needs(&self) -> SampleNeed {
        // It has a sample of its own.
        if self.needs_data() {
            return SampleNeed::Nothing;
        }
        match self.code {
            "writes" | "server-version" | "memory-headroom" | "evictions"
            | "persistence-status" | "replication" | "clock-nodes" | "migrating-slots"
            | "cluster-state" | "sentinels" => SampleNeed::Nothing,
            "eviction-policy"
            | "persistence"
            | "failover-loss"
            | "clock-local"
            | "commands"
            | "user-rights"
            | "service-rights"
            | "keys-in-slots"
            | "sentinel-down-after" => SampleNeed::Schemas,
            _ => SampleNeed::Records,
        }
    }
}
