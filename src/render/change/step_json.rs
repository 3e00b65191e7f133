//! A service's own step that was done by hand, as JSON.

use std::path::Path;

use serde_json::{Value, json};

use crate::domain::record::Record;
use crate::domain::schema::Meaning;
use crate::domain::step::StepReply;
use crate::render::document::{fields, line, pretty, with};
use crate::render::{record_json, words};

pub struct StepReport<'a> {
    pub name: &'static str,
    /// The record as it was shown.
    pub record: &'a Record,
    pub predicted: Meaning,
    /// In whose name the step is done, where the schema knows owners.
    pub owner: Option<&'a [u8]>,
    /// What the next request's begin answered on a private server, after the step there; `None` where nobody tried.
    pub tried: Option<Meaning>,
}

pub struct StepOutcome<'a> {
    /// What the reply means; `None` where the schema does not know the reply.
    pub means: Option<Meaning>,
    /// The reply; `None` when the reply was lost, and reading back told the outcome.
    pub reply: Option<&'a StepReply>,
    pub now: &'a Record,
    pub backup: Option<&'a Path>,
}

impl StepReport<'_> {
    /// One document, `{"format":1,"records":[…],…}`, or in one line the record with the same fields behind its own. There is
    /// no outcome after a dry run.
    pub fn json(&self, done: Option<&StepOutcome<'_>>, one_line: bool) -> String {
        let outcome = done
            .map_or("dry-run", |done| done.means.map_or("unknown-reply", |means| means.as_str()));
        let step = json!({
            "name": self.name,
            "foretold": self.predicted.as_str(),
            "reply": done.and_then(|done| done.reply).map(words::reply),
            "owner": self.owner.map(String::from_utf8_lossy),
            "tried": self.tried.map(|means| means.as_str()),
        });
        let now = done.map(|done| record_json::value(done.now));
        let backup = done.and_then(|done| done.backup);
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
