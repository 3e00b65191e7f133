//! Which records a list was to hold. Two lists can be compared only if both were to hold the same records.

use serde::{Deserialize, Serialize};

use crate::domain::change::provenance::{Likeness, Provenance};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListScope {
    /// Where the records were read, of several databases the first one; null if the server does not tell.
    pub(crate) from: Option<Provenance>,
    /// True if the records of all databases were read.
    pub(crate) all_dbs: bool,
    /// The schemas whose records were read.
    pub(crate) schemas: Vec<String>,
    /// The options that selected records; null if all were listed.
    pub(crate) filters: Option<String>,
    /// The most records that were listed; null if the list ended before.
    pub(crate) limit: Option<u64>,
}

impl ListScope {
    /// Why the records of another scope cannot be compared with these; `None` if they can.
    pub(crate) fn differs_from(&self, other: &Self) -> Option<String> {
        if let (Some(these), Some(those)) = (&self.from, &other.from)
            && these.likeness(those) == Likeness::Elsewhere
        {
            return Some(format!("one was read from {these}, the other from {those}"));
        }
        if self.all_dbs != other.all_dbs {
            return Some(
                "one holds the records of all databases, the other those of one".to_owned(),
            );
        }
        if self.filters != other.filters {
            let words = |filters: &Option<String>| {
                filters.clone().unwrap_or_else(|| "no filter".to_owned())
            };
            let (these, those) = (words(&self.filters), words(&other.filters));
            return Some(format!("one was listed with {these}, the other with {those}"));
        }
        let sorted = |schemas: &[String]| {
            let mut sorted = schemas.to_vec();
            sorted.sort();
            sorted
        };
        if sorted(&self.schemas) != sorted(&other.schemas) {
            let (these, those) = (self.schemas.join(","), other.schemas.join(","));
            return Some(format!("one holds the records of {these}, the other those of {those}"));
        }
        None
    }
}
