//! Checks of an HTTP service: which requests `probe` sends, and what their answers prove.
//!
//! Nothing here does any I/O. A check turns a [`ProbeTask`] into steps, `commands/probe/` makes
//! them, and the check judges what came back.

mod accepted_checks;
mod body;
mod checks;
mod message;
mod payload;
mod probe_check;
mod profile;
mod task;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use self::accepted_checks::{AcceptedChecks, ProbeDifference};
pub(crate) use self::body::ProbeBody;
pub(crate) use self::checks::registry::{CHECKS, parse_profile};
pub(crate) use self::message::{
    ProbeAnswer, ProbeExchange, ProbeOutcome, ProbeRequest, ServiceTrust, is_masked_header,
    is_masked_parameter,
};
pub(crate) use self::probe_check::{
    CheckedService, EffectsMade, ProbeAction, ProbeCheck, ProbeJudgement, ProbeStep,
    ProbeStepResult, ProbeVerdict, RecordFault, Steps, StoredRecord, StoredTime,
};
pub(crate) use self::profile::ProbeProfile;
pub(crate) use self::task::{Baseline, ProbeTask, UUID_PREFIX};
pub(crate) use self::template::{KEY_MARK, KeyForm, KeyPlace, RequestTemplate};
