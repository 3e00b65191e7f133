//! How many records there were of each kind at two moments.

use std::collections::BTreeMap;

use strum::IntoStaticStr;

use super::sighting::Sighting;
use crate::domain::as_str::as_str;

/// What records are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum By {
    State,
    /// The class of the stored response's HTTP status.
    Status,
    Finding,
}

as_str!(By);

/// How many records of a kind each moment has: the first, the second.
#[derive(Debug, Clone, Default)]
pub(crate) struct Summary(BTreeMap<(By, String, String), [u64; 2]>);

impl Summary {
    /// Counts a record of the first moment (0), or of the second (1).
    pub(crate) fn add(&mut self, of: &Sighting, moment: usize) {
        self.count(By::State, &of.schema, &of.state, moment);
        if let Some(status) = of.status() {
            self.count(By::Status, &of.schema, &format!("{}xx", status / 100), moment);
        }
        for finding in &of.findings {
            self.count(By::Finding, &of.schema, &finding.code, moment);
        }
    }

    fn count(&mut self, by: By, schema: &str, name: &str, moment: usize) {
        self.0.entry((by, schema.to_owned(), name.to_owned())).or_default()[moment] += 1;
    }

    /// Each kind: what it is counted by, its schema, its name, and the two counts.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (By, &str, &str, [u64; 2])> {
        self.0.iter().map(|((by, schema, name), counts)| (*by, schema.as_str(), name.as_str(), *counts))
    }
}
