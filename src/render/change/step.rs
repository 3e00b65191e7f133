//! A service's own step that was done by hand, as JSON: the documented, versioned contract. Fields are added, never
//! renamed.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::domain::record::Record;
use crate::domain::schema::Meaning;
use crate::domain::step::reply::StepReply;
use crate::render::{escape, json as records, words};

/// A step and what became of it.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The step's name.
    pub name: &'static str,
    /// The record as it was shown.
    pub record: &'a Record,
    /// What the step was foretold to answer.
    pub foretold: Meaning,
    /// In whose name it was done, where the schema knows owners.
    pub owner: Option<&'a str>,
    /// What came of it; `None` after a dry run.
    pub done: Option<Done<'a>>,
}

/// What came of a step.
#[derive(Debug, Clone, Copy)]
pub struct Done<'a> {
    /// What the reply means; `None` where the schema does not know it.
    pub means: Option<Meaning>,
    /// The reply; `None` when it was lost, and reading back told.
    pub reply: Option<&'a StepReply>,
    /// The record right after.
    pub now: &'a Record,
    /// The backup.
    pub backup: Option<&'a PathBuf>,
}

/// One document, `{"format":1,"records":[…],…}`, or one object a line: the record with the same fields behind it.
pub fn report(report: &Report<'_>, one_line: bool) -> String {
    let done = report.done;
    let outcome = done.map_or("dry-run", |done| done.means.map_or("unknown-reply", |meaning| meaning.as_str()));
    let step = json!({
        "name": report.name,
        "foretold": report.foretold.as_str(),
        "reply": done.and_then(|done| done.reply).map(words::reply),
        "owner": report.owner,
    });
    let now = done.map(|done| records::record(done.now, false));
    let backup = done.and_then(|done| done.backup);
    let seen = records::record(report.record, false);
    let fields = json!({ "outcome": outcome, "step": step, "now": now, "backup": backup });
    let (first, text): (Value, fn(&Value) -> String) = if one_line {
        (seen, Value::to_string)
    } else {
        (json!({ "format": 1, "records": [seen] }), |value| serde_json::to_string_pretty(value).unwrap_or_default())
    };
    let mut all = first;
    if let (Some(all), Value::Object(fields)) = (all.as_object_mut(), fields) {
        all.extend(fields);
    }
    format!("{}\n", escape::json(text(&all)))
}
