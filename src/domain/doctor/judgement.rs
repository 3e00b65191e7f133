//! What a check says of a deployment.

use strum::IntoStaticStr;

use super::counterexample::Counterexample;
use super::facts::{DeploymentFacts, NodeFacts};
use super::refusal::{FactResult, RefusedFact};
use crate::domain::as_str::as_str;
use crate::domain::exploration::{Fault, FaultBudget};

/// How serious a judgement is, in the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum CheckSeverity {
    Error,
    Warning,
    /// The check could not be made: neither OK nor an alarm.
    Unknown,
    Note,
    Ok,
}

as_str!(CheckSeverity);

/// How a fact is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum FactEvidence {
    /// A server reported it in this run.
    Measured,
    /// The context, an option or a schema's file states it.
    Configured,
    /// idemctl derived it from a sample, or from a schema's defaults.
    Estimated,
    /// Nobody reported it.
    Unknown,
}

as_str!(FactEvidence);

/// A fault of the deployment that `explore` can inject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ModelledFault {
    /// Redis evicts a key.
    Eviction,
    /// The last writes are lost in a failover, or in a crash.
    LostWrites,
    /// Redis restarts without its data.
    Restart,
    /// A TTL ends while a worker is running.
    Expiry,
    /// A lock loses its TTL, and its worker dies.
    LostTtl,
}

impl ModelledFault {
    /// The fault that the history must contain.
    pub(crate) fn fault(self) -> Fault {
        match self {
            Self::Eviction => Fault::Evict,
            Self::LostWrites => Fault::Failover,
            Self::Restart => Fault::Restart,
            Self::Expiry => Fault::Expiry,
            Self::LostTtl => Fault::Persist,
        }
    }

    /// Once this fault, and no other one. A lock without a TTL harms only if its worker dies.
    pub(crate) fn budget(self) -> FaultBudget {
        let mut faults = vec![self.fault()];
        if self == Self::LostTtl {
            faults.push(Fault::Crash);
        }
        faults.into_iter().fold(FaultBudget::default(), |budget, fault| {
            budget.with(fault, FaultBudget::ANY).unwrap_or(budget)
        })
    }

    /// True if the fault has already happened to a record, so that the finding stays without a
    /// history.
    pub(crate) fn has_happened(self) -> bool {
        self == Self::LostTtl
    }
}

/// The faults that an exploration for `doctor` may inject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExploredFaults {
    /// One fault of the deployment, and no other one.
    Alone(ModelledFault),
    /// The default faults of `explore`, under all assumptions. What goes wrong then, the schema
    /// causes.
    Usual,
}

/// What one check says of one part of the deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckJudgement {
    pub(crate) severity: CheckSeverity,
    pub(crate) evidence: FactEvidence,
    /// The servers that it concerns; empty if it concerns the deployment as a whole.
    pub(crate) nodes: Vec<String>,
    /// The schemas that it concerns; empty if it concerns all of them.
    pub(crate) schemas: Vec<String>,
    pub(crate) fact: String,
    /// Why the fact is unknown.
    pub(crate) refusal: Option<RefusedFact>,
    /// The fault with which `explore` shows the consequence.
    pub(crate) fault: Option<ModelledFault>,
    /// A history that shows the consequence, if the fact itself comes from an exploration.
    pub(crate) counterexample: Option<Counterexample>,
}

impl CheckJudgement {
    fn new(severity: CheckSeverity, fact: impl Into<String>) -> Self {
        Self {
            severity,
            evidence: FactEvidence::Measured,
            nodes: Vec::new(),
            schemas: Vec::new(),
            fact: fact.into(),
            refusal: None,
            fault: None,
            counterexample: None,
        }
    }

    pub(crate) fn ok(fact: impl Into<String>) -> Self {
        Self::new(CheckSeverity::Ok, fact)
    }

    /// In order, with nothing to say about it.
    pub(crate) fn fine() -> Self {
        Self::ok("no problem found")
    }

    pub(crate) fn note(fact: impl Into<String>) -> Self {
        Self::new(CheckSeverity::Note, fact)
    }

    pub(crate) fn warning(fact: impl Into<String>) -> Self {
        Self::new(CheckSeverity::Warning, fact)
    }

    pub(crate) fn error(fact: impl Into<String>) -> Self {
        Self::new(CheckSeverity::Error, fact)
    }

    /// The fact is unknown, because this command got no answer.
    pub(crate) fn unknown(refusal: RefusedFact) -> Self {
        let fact = match &refusal.instead {
            Some(_) => refusal.why.clone(),
            None => format!("no answer to {}: {}", refusal.command, refusal.why),
        };
        Self {
            evidence: FactEvidence::Unknown,
            refusal: Some(refusal),
            ..Self::new(CheckSeverity::Unknown, fact)
        }
    }

    #[must_use]
    pub(crate) fn with_evidence(self, evidence: FactEvidence) -> Self {
        Self { evidence, ..self }
    }

    #[must_use]
    pub(crate) fn with_fault(self, fault: ModelledFault) -> Self {
        Self { fault: Some(fault), ..self }
    }

    #[must_use]
    pub(crate) fn shown_by(self, counterexample: Counterexample) -> Self {
        Self { counterexample: Some(counterexample), ..self }
    }

    #[must_use]
    pub(crate) fn for_schemas(self, schemas: Vec<String>) -> Self {
        Self { schemas, ..self }
    }
}

/// What a check says of a deployment, or why it is unknown.
pub(super) type Judgements = FactResult<Vec<CheckJudgement>>;

/// Judges each server. Servers of which the check says the same share one judgement.
pub(super) fn of_each_node(
    facts: &DeploymentFacts,
    judge: impl Fn(&NodeFacts) -> FactResult<CheckJudgement>,
) -> Vec<CheckJudgement> {
    let mut judgements: Vec<CheckJudgement> = Vec::new();
    for node in &facts.nodes {
        let judgement = judge(node).unwrap_or_else(CheckJudgement::unknown);
        let is_same = |known: &&mut CheckJudgement| {
            **known == CheckJudgement { nodes: known.nodes.clone(), ..judgement.clone() }
        };
        match judgements.iter_mut().find(is_same) {
            Some(known) => known.nodes.push(node.name.clone()),
            None => {
                judgements.push(CheckJudgement { nodes: vec![node.name.clone()], ..judgement });
            }
        }
    }
    judgements
}
