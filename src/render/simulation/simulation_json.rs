//! Simulations as JSON: the documented, versioned contract. Fields are added, never renamed.

use serde_json::{Value, json};

use crate::domain::simulation::{Cell, Change, Difference, Event, History};
use crate::render::escape;

/// A whole document: `{"format":1,"cells":[…]}`, with the differences where there was something to compare with.
pub fn document(cells: &[Cell], differences: Option<&[Difference]>) -> String {
    let mut document = json!({ "format": 1, "cells": cells.iter().map(cell).collect::<Vec<_>>() });
    if let (Some(differences), Some(fields)) = (differences, document.as_object_mut()) {
        fields.insert("differences".to_owned(), differences.iter().map(difference).collect());
    }
    format!("{}\n", escape::json(serde_json::to_string_pretty(&document).unwrap_or_default()))
}

/// A line for each cell.
pub fn lines(cells: &[Cell]) -> String {
    cells.iter().map(|of| format!("{}\n", escape::json(cell(of).to_string()))).collect()
}

fn cell(cell: &Cell) -> Value {
    let events = cell.takes.iter().flat_map(|take| take.events.iter().map(|of| event(take, of)));
    json!({
        "schema": cell.schema,
        "scenario": cell.scenario.name,
        "verdict": cell.judgement.verdict.as_str(),
        "blocked_ms": cell.judgement.blocked_ms,
        "effects": cell.judgement.effects,
        "why": cell.judgement.why,
        "remedy": cell.judgement.verdict.is_bad().then_some(cell.scenario.remedy),
        "worst_take": cell.worst_take().map(|take| &take.take),
        "timeline": events.collect::<Vec<_>>(),
    })
}

fn event(take: &History, event: &Event) -> Value {
    json!({
        "take": take.take,
        "at_us": event.at_us,
        "actor": event.actor,
        "step": event.step,
        "reply": event.reply,
        "client": event.client,
    })
}

fn difference(difference: &Difference) -> Value {
    json!({
        "schema": difference.schema,
        "scenario": difference.scenario,
        "accepted": difference.accepted.map(|verdict| verdict.as_str()),
        "now": difference.now.as_str(),
        "change": match difference.change() {
            Change::Worse => "worse",
            Change::Better => "better",
            Change::New => "new",
        },
    })
}
