//! An exploration as JSON.

use serde_json::{Map, Value, json};

use super::met_steps::{coverage_json, unreached_json};
use crate::domain::exploration::{
    AssumedSearch, Exploration, Fault, FaultBudget, FrontierDifference, ReplayedSchedule,
    TraceLine, Violation,
};
use strum::VariantArray as _;

/// The exploration of one schema, or of two that share Redis keys.
pub(crate) fn exploration(exploration: &Exploration) -> Value {
    let covered = exploration.covered;
    let mut hashes = Map::new();
    for (schema, hash) in exploration.schemas.iter().zip(&exploration.hashes) {
        hashes.insert(schema.clone(), hash.as_str().into());
    }
    json!({
        "schema": exploration.schemas.first(),
        "beside": exploration.schemas.get(1),
        "hashes": hashes,
        "workers": exploration.workers,
        "payloads": exploration.payloads(),
        "faults": every(exploration.most),
        "assume": exploration.assumptions.names(),
        "complete": covered.complete,
        "states": covered.states,
        "transitions": covered.transitions,
        "schedules": covered.schedules,
        "depth": covered.depth,
        "server_calls": covered.server_calls,
        "bytes_a_state": covered.bytes_a_state,
        "search_us": covered.search_us,
        "wall_ms": exploration.wall_ms,
        "assumed": exploration.assumed.map(assumed),
        "not_asked": exploration.not_asked,
        "replay": exploration.replay.as_ref().map(replay),
        "coverage": exploration.steps.as_ref().map(coverage_json),
        "unreached": exploration.unreached().iter().map(unreached_json).collect::<Vec<_>>(),
        "harms": exploration.violations.iter().map(violation).collect::<Vec<_>>(),
    })
}

/// The search under the assumptions, beside the one without.
fn assumed(assumed: AssumedSearch) -> Value {
    let covered = assumed.covered;
    json!({
        "assume": assumed.assumptions.names(),
        "complete": covered.complete,
        "states": covered.states,
        "transitions": covered.transitions,
        "schedules": covered.schedules,
        "depth": covered.depth,
        "server_calls": covered.server_calls,
    })
}

fn every(budget: FaultBudget) -> Map<String, Value> {
    let mut counts = Map::new();
    for fault in Fault::VARIANTS {
        counts.insert(fault.as_str().to_owned(), budget.of(*fault).into());
    }
    counts
}

/// The faults of a schedule with their counts, in the order of all lists of faults.
pub(super) fn minimal_faults(budget: FaultBudget) -> Map<String, Value> {
    budget.faults().map(|(fault, count)| (fault.as_str().to_owned(), count.into())).collect()
}

fn replay(replay: &ReplayedSchedule) -> Value {
    json!({
        "steps": replay.token.acts.len(),
        "trace": replay.lines.iter().map(line).collect::<Vec<_>>(),
        "token": replay.token.to_string(),
        "deviates": replay.deviates,
    })
}

fn violation(violation: &Violation) -> Value {
    json!({
        "invariant": violation.invariant.name,
        "sentence": violation.invariant.sentence,
        "remedy": violation.remedy,
        "minimal_faults": minimal_faults(violation.faults),
        "is_minimal": violation.is_minimal,
        "cause": violation.cause.map(|cause| cause.as_str()),
        "counts": violation.counts,
        "steps": violation.token.acts.len(),
        "trace": violation.lines.iter().map(line).collect::<Vec<_>>(),
        "token": violation.token.to_string(),
        "played_as_explored": violation.deviates.is_none(),
        "deviates": violation.deviates,
    })
}

/// One step of a schedule.
pub(super) fn line(line: &TraceLine) -> Value {
    json!({
        "actor": line.actor,
        "step": line.step,
        "fault": line.act.fault().map(|fault| fault.as_str()),
        "reply": line.reply,
        "sees": line.sees,
        "holds": line.holds,
    })
}

/// A difference from the accepted frontiers.
pub(crate) fn difference(difference: &FrontierDifference) -> Value {
    json!({
        "schema": difference.schema,
        "invariant": difference.violation.invariant,
        "faults": difference.faults_in_words(),
        "minimal_faults": difference.violation.faults,
        "cause": difference.violation.cause,
        "change": if difference.is_new { "new" } else { "gone" },
    })
}
