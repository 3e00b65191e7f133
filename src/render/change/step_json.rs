//! A service's step that an operator executed, as JSON.

use serde_json::{Value, json};

use crate::domain::record::Record;
use crate::domain::schema::Meaning;
use crate::domain::step::{StepKind, StepReply};
use crate::render::document::{fields, with};
use crate::render::{record_json, words};

/// A step as the operator saw it before its execution.
pub struct StepReport<'a> {
    /// Begin, complete or release.
    pub kind: StepKind,
    /// The record before the step.
    pub record: &'a Record,
    /// The predicted answer of the service; `None` if the schema has no condition that holds in
    /// this state.
    pub predicted: Option<Meaning>,
    /// The owner for which the step is executed, if the schema has owners.
    pub owner: Option<&'a [u8]>,
    /// The meaning of the next request's begin after this step, as tried on a temporary local
    /// Redis; `None` if it was not tried.
    pub rehearsed_next: Option<Meaning>,
}

/// The outcome of a step.
pub struct StepOutcome {
    /// The meaning of the reply; `None` if the schema does not list it, or it is unclear.
    pub means: Option<Meaning>,
    /// Why the meaning of a value that the step read is unknown, although the schema lists it.
    pub unclear: Option<String>,
    /// The reply; `None` if it was lost, and the record that was read back showed the outcome.
    pub reply: Option<StepReply>,
    /// The record after the step.
    pub now: Record,
    /// The number of calls that were made.
    pub calls: usize,
}

impl StepReport<'_> {
    /// The step as one document, `{"format":1,"records":[…],…}`. With `one_line`, it is the record
    /// with the step's fields at its end. A dry run has no outcome.
    pub fn json(&self, done: Option<&StepOutcome>, backup: Option<&str>, one_line: bool) -> Value {
        let outcome = match done {
            None => "dry-run",
            Some(StepOutcome { means: None, .. }) => "unknown-reply",
            Some(StepOutcome { means: Some(means), .. }) => means.as_str(),
        };
        let mut reply = None;
        let mut now = None;
        if let Some(done) = done {
            reply = done.reply.as_ref().map(words::reply);
            now = Some(record_json::value(&done.now));
        }
        let step = json!({
            "name": self.kind.as_str(),
            "foretold": self.predicted.map(|means| means.as_str()),
            "reply": reply,
            "owner": self.owner.map(String::from_utf8_lossy),
            "tried": self.rehearsed_next.map(|means| means.as_str()),
        });
        let more =
            fields(json!({ "outcome": outcome, "step": step, "now": now, "backup": backup }));
        let seen = record_json::value(self.record);
        let first = if one_line { seen } else { json!({ "format": 1, "records": [seen] }) };
        with(first, more)
    }
}
