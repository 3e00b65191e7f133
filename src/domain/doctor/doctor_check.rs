//! A check: what it is about, and how it judges.

use strum::IntoStaticStr;

use super::facts::{DeploymentFacts, NodeFacts};
use super::judgement::{CheckJudgement, Judgements};
use super::refusal::FactResult;
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
    /// The keys that clients chose.
    Keys,
}

as_str!(CheckGroup);

/// Which keys are read for a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SampleNeed {
    /// No key is read for it.
    Nothing,
    /// The schemas in use, which doctor finds in the sample unless the operator names them.
    Schemas,
    Records,
    /// The expiries of all keys, besides the sample.
    AllKeys,
}

/// One check of `doctor`. `docs/doctor.md` and `idemctl-checks(7)` also say what it reads, its rule
/// and where the rule comes from.
#[derive(Debug)]
pub(crate) struct DoctorCheck {
    /// The stable code.
    pub(crate) code: &'static str,
    pub(crate) group: CheckGroup,
    /// What it needs of the keys, which are only read if a chosen check needs them.
    pub(crate) needs: SampleNeed,
    /// The question that the check answers, as a phrase.
    pub(crate) title: &'static str,
    /// What can happen, unless a judgement says it more exactly.
    pub(crate) consequence: &'static str,
    /// What to do, unless a judgement says it more exactly.
    pub(crate) remedy: &'static str,
    pub(super) judge: CheckJudge,
}

/// How a check judges the facts. A fact that is missing ends it, and is then unknown.
#[derive(Debug)]
pub(super) enum CheckJudge {
    /// Each server by itself.
    EachNode(fn(&NodeFacts, &DeploymentFacts) -> FactResult<CheckJudgement>),
    /// The deployment; empty if the check does not apply to it.
    Whole(fn(&DeploymentFacts) -> Judgements),
}
