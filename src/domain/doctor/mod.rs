//! The checks of `doctor`: what a deployment is, judged by pure functions.

mod acceptance;
mod checks;
mod client_keys;
mod counterexample;
mod doctor_check;
mod facts;
mod info;
mod judgement;
mod lock_count;
mod lock_watch;
mod refusal;
mod sample;
pub(crate) mod sent_commands;
mod statement;
#[cfg(test)]
mod tests;

pub(crate) use self::acceptance::{accept, parse_acceptances};
pub(crate) use self::checks::registry::{CHECKS, explores_schemas, judge};
pub(crate) use self::counterexample::{Counterexample, FaultOutcome};
pub(crate) use self::doctor_check::{DoctorCheck, SampleNeed};
pub(crate) use self::facts::{
    ClockReading, DeniedCommand, DeploymentFacts, NodeFacts, ObservedRun, SentinelFacts, UserRights,
};
pub(crate) use self::info::InfoFields;
pub(crate) use self::judgement::{CheckSeverity, ExploredFaults, FactEvidence, ModelledFault};
pub(crate) use self::lock_count::LockCount;
pub(crate) use self::lock_watch::WatchedLock;
pub(crate) use self::refusal::{FactResult, RefusedFact};
pub(crate) use self::sample::RecordSample;
pub(crate) use self::sent_commands::SentCommand;
pub(crate) use self::statement::{Acceptance, Statement, UnexploredSchema, covered, keep_worst};
