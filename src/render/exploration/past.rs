//! The schedules that lead to the state of a record, for people and programs.

use serde_json::{Value, json};

use super::{exploration_json, trace};
use crate::domain::exploration::{FaultBudget, PastSchedule, RecordPast};
use crate::domain::record::Record;
use crate::render::fold::lines;
use crate::render::style::View;
use crate::render::words::counted;

/// The schedules that lead to a record, as text.
pub(crate) fn past(record: &Record, past: &RecordPast, view: View) -> String {
    let heading = view.palette.bold("Possible causes");
    let within = format!("{} workers with at most {}", past.workers, past.most);
    if past.schedules.is_empty() {
        let none = format!(
            "no schedule of {within} produces this record with these scripts; an older release, \
            another program, or a person wrote it"
        );
        return format!("\n{heading}\n{}", lines(&none, 2, view.width));
    }
    let mut text = format!("\n{heading}\n");
    for schedule in &past.schedules {
        text.push_str(&lines(&sentence(record, schedule), 2, view.width));
    }
    // The first schedule needs the fewest faults.
    text.push_str(&trace::text(&past.schedules[0].lines, view));
    text.push_str(&lines(
        &view.palette.dim(&format!("found among all schedules of {within}")),
        2,
        view.width,
    ));
    text
}

fn sentence(record: &Record, schedule: &PastSchedule) -> String {
    let by = match schedule.faults == FaultBudget::default() {
        true => "without a fault".to_owned(),
        false => format!("after {}", schedule.faults),
    };
    let then = match (record.lock().is_some(), schedule.holder_lives) {
        (true, true) => "; the worker that took the lock is still running",
        (true, false) => "; no running worker holds this lock",
        (false, _) => "",
    };
    let steps = counted(schedule.token.acts.len() as u64, "step");
    format!("{by}, in {steps}{then}")
}

/// The schedules that lead to a record, as JSON.
pub(crate) fn past_json(record: &Record, past: &RecordPast) -> Value {
    let mut schedules = Vec::new();
    for schedule in &past.schedules {
        // Only a lock has a holder.
        let mut holder_at_work = None;
        if record.lock().is_some() {
            holder_at_work = Some(schedule.holder_lives);
        }
        schedules.push(json!({
            "minimal_faults": exploration_json::minimal_faults(schedule.faults),
            "holder_at_work": holder_at_work,
            "steps": schedule.token.acts.len(),
            "trace": schedule.lines.iter().map(exploration_json::line).collect::<Vec<_>>(),
            "token": schedule.token.to_string(),
        }));
    }
    json!({
        "schema": record.schema.name,
        "key": String::from_utf8_lossy(&record.key),
        "workers": past.workers,
        "reachable": !past.schedules.is_empty(),
        "ways": schedules,
    })
}
