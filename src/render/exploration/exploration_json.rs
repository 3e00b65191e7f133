//! An exploration as JSON.

use serde_json::{Map, Value, json};

use crate::domain::exploration::{Budget, Difference, Exploration, Fault, Harm, Line, Replay};
use strum::VariantArray as _;

pub(crate) fn exploration(exploration: &Exploration) -> Value {
    let covered = exploration.covered;
    json!({
        "schema": exploration.schemas.first(),
        "beside": exploration.schemas.get(1),
        "workers": exploration.workers,
        "faults": every(exploration.most),
        "assume": exploration.assumptions.all().map(|assumption| assumption.as_str()).collect::<Vec<_>>(),
        "complete": covered.complete,
        "states": covered.states,
        "transitions": covered.transitions,
        "schedules": covered.schedules,
        "depth": covered.depth,
        "server_calls": covered.server_calls,
        "bytes_a_state": covered.bytes_a_state,
        "search_us": covered.search_us,
        "wall_ms": exploration.wall_ms,
        "not_asked": exploration.not_asked,
        "replay": exploration.replay.as_ref().map(replay),
        "harms": exploration.harms.iter().map(harm).collect::<Vec<_>>(),
    })
}

fn every(budget: Budget) -> Map<String, Value> {
    Fault::VARIANTS.iter().map(|fault| (fault.as_str().to_owned(), budget.of(*fault).into())).collect()
}

fn replay(replay: &Replay) -> Value {
    json!({
        "steps": replay.token.acts.len(),
        "trace": replay.lines.iter().map(line).collect::<Vec<_>>(),
        "token": replay.token.to_string(),
        "deviates": replay.deviates,
    })
}

fn harm(harm: &Harm) -> Value {
    let faults: Map<_, _> =
        harm.faults.faults().map(|(fault, count)| (fault.as_str().to_owned(), count.into())).collect();
    json!({
        "invariant": harm.invariant.name,
        "sentence": harm.invariant.sentence,
        "remedy": harm.remedy,
        "minimal_faults": faults,
        "steps": harm.token.acts.len(),
        "trace": harm.lines.iter().map(line).collect::<Vec<_>>(),
        "token": harm.token.to_string(),
        "played_as_explored": harm.deviates.is_none(),
        "deviates": harm.deviates,
    })
}

pub(super) fn line(line: &Line) -> Value {
    json!({
        "actor": line.actor,
        "step": line.step,
        "fault": line.act.fault().map(|fault| fault.as_str()),
        "reply": line.reply,
        "sees": line.sees,
        "holds": line.holds,
    })
}

pub(crate) fn difference(difference: &Difference) -> Value {
    json!({
        "schema": difference.schema,
        "invariant": difference.invariant,
        "faults": difference.faults,
        "change": if difference.is_new { "new" } else { "gone" },
    })
}
