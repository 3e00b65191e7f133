//! The scope of a list: which records it was to contain. Only lists with the same scope can be
//! compared.

use serde::{Deserialize, Serialize};

use crate::domain::change::provenance::{Likeness, Provenance};

/// The scope of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListScope {
    /// The server and database that was read, for several databases the first one; null if the
    /// server does not identify itself.
    pub(crate) from: Option<Provenance>,
    /// True if the records of all databases were read.
    pub(crate) all_dbs: bool,
    /// The schemas whose records were read.
    pub(crate) schemas: Vec<String>,
    /// The options that selected records; null if all were listed.
    pub(crate) filters: Option<String>,
    /// The limit that ended the list; null if the list is complete.
    pub(crate) limit: Option<u64>,
}

impl ListScope {
    /// The scope of the records of these schemas alone, if this list has all of them.
    pub(crate) fn restricted_to(&self, schemas: &[String]) -> Self {
        let mut scope = self.clone();
        if !schemas.is_empty() && schemas.iter().all(|name| self.schemas.contains(name)) {
            scope.schemas = schemas.to_vec();
        }
        scope
    }

    /// Why the records of another scope cannot be compared with these; `None` if they can be.
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
