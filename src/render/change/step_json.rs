//! A service's own step that was done by hand, as JSON.

use std::path::Path;

use serde_json::{Value, json};

use crate::domain::record::Record;
use crate::domain::schema::Meaning;
use crate::domain::step::StepReply;
use crate::render::document::{fields, line, pretty, with};
use crate::render::{record_json, words};

/// A step before it is made: what was shown to the operator.
pub struct StepReport<'a> {
    /// The step's name: begin, complete or release.
    pub name: &'static str,
    /// The record as it was shown.
    pub record: &'a Record,
    /// What the service is predicted to answer.
    pub predicted: Meaning,
    /// In whose name the step is made, if the schema knows owners.
    pub owner: Option<&'a [u8]>,
    /// What the next request's begin answered on a temporary local Redis after this step; `None` if it was not tried.
    pub tried: Option<Meaning>,
}

/// What became of a step.
pub struct StepOutcome {
    /// What the reply means; `None` if the schema does not list the reply.
    pub means: Option<Meaning>,
    /// The reply; `None` if the reply was lost, and reading back told the outcome.
    pub reply: Option<StepReply>,
    /// The record after the step.
    pub now: Record,
}

impl StepReport<'_> {
    /// One document, `{"format":1,"records":[…],…}`, or in one line the record with the same fields behind its own. There is
    /// no outcome after a dry run.
    pub fn json(
        &self,
        done: Option<&StepOutcome>,
        backup: Option<&Path>,
        one_line: bool,
    ) -> String {
        let outcome = match done {
            None => "dry-run",
            Some(StepOutcome { means: None, .. }) => "unknown-reply",
            Some(StepOutcome { means: Some(means), .. }) => means.as_str(),
        };
        let step = json!({
            "name": self.name,
            "foretold": self.predicted.as_str(),
            "reply": done.and_then(|done| done.reply.as_ref()).map(words::reply),
            "owner": self.owner.map(String::from_utf8_lossy),
            "tried": self.tried.map(|means| means.as_str()),
        });
        let now = done.map(|done| record_json::value(&done.now));
        let more =
            fields(json!({ "outcome": outcome, "step": step, "now": now, "backup": backup }));
        let seen: Value = record_json::value(self.record);
        if one_line {
            line(&with(seen, more))
        } else {
            pretty(&with(json!({ "format": 1, "records": [seen] }), more))
        }
    }
}
