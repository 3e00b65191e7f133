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
        // A server that does not identify itself may be any server, so only two known ones differ.
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
            let these = self.filters.as_deref().unwrap_or("no filter");
            let those = other.filters.as_deref().unwrap_or("no filter");
            return Some(format!("one was listed with {these}, the other with {those}"));
        }
        // The order in which schemas were named does not change which records were read.
        let mut schemas = self.schemas.clone();
        let mut other_schemas = other.schemas.clone();
        schemas.sort();
        other_schemas.sort();
        if schemas != other_schemas {
            let these = self.schemas.join(",");
            let those = other.schemas.join(",");
            return Some(format!("one holds the records of {these}, the other those of {those}"));
        }
        None
    }
}
