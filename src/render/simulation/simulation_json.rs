//! A simulation as JSON.

use serde_json::{Value, json};

use crate::domain::simulation::{Cell, History, HistoryEvent, MatrixDifference, Scenario};

/// A cell with its verdict and the events of all its variants.
pub fn cell(cell: &Cell) -> Value {
    let mut timeline = Vec::new();
    for take in &cell.takes {
        for of_take in &take.events {
            timeline.push(event(take, of_take));
        }
    }
    // A cell that ended well needs no change of the service.
    let mut remedy = None;
    if cell.judgement.verdict.is_bad() {
        remedy = Some(&cell.scenario.remedy);
    }
    json!({
        "schema": cell.schema,
        "scenario": cell.scenario.name,
        "verdict": cell.judgement.verdict.as_str(),
        "excuse": cell.judgement.excuse.map(|excuse| excuse.as_str()),
        "blocked_ms": cell.judgement.blocked_ms,
        "effects": cell.judgement.effects,
        "why": cell.judgement.why,
        "remedy": remedy,
        "worst_take": cell.worst_take().map(|take| &take.take),
        "timeline": timeline,
    })
}

/// A scenario of the list.
pub fn scenario(scenario: &Scenario) -> Value {
    json!({
        "scenario": scenario.name,
        "summary": scenario.summary,
        "remedy": scenario.remedy,
    })
}

fn event(take: &History, event: &HistoryEvent) -> Value {
    json!({
        "take": take.take,
        "at_us": event.at_us,
        "actor": event.actor,
        "step": event.step,
        "reply": event.reply,
        "client": event.client,
    })
}

/// A cell that differs from the accepted one.
pub fn difference(difference: &MatrixDifference) -> Value {
    json!({
        "schema": difference.schema,
        "scenario": difference.scenario,
        "accepted": difference.accepted.map(|verdict| verdict.as_str()),
        "now": difference.now.as_str(),
        "change": difference.change.as_str(),
    })
}
