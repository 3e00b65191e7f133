//! The number of records of each kind in two snapshots.

use std::collections::BTreeMap;

use strum::IntoStaticStr;

use super::listed_record::ListedRecord;
use crate::domain::as_str::as_str;

/// The properties by which records are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum SummaryDimension {
    State,
    /// The class of the stored response's HTTP status.
    Status,
    Finding,
}

as_str!(SummaryDimension);

/// The number of records of each kind in the first and in the second snapshot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Summary(BTreeMap<(SummaryDimension, String, String), [u64; 2]>);

impl Summary {
    /// Counts a record of the first snapshot (0) or the second (1).
    pub(crate) fn add(&mut self, of: &ListedRecord, snapshot: usize) {
        self.count(SummaryDimension::State, &of.schema, &of.state, snapshot);
        if let Some(status) = of.status() {
            self.count(
                SummaryDimension::Status,
                &of.schema,
                &format!("{}xx", status / 100),
                snapshot,
            );
        }
        for finding in &of.findings {
            self.count(SummaryDimension::Finding, &of.schema, &finding.code, snapshot);
        }
    }

    fn count(&mut self, by: SummaryDimension, schema: &str, name: &str, snapshot: usize) {
        self.0.entry((by, schema.to_owned(), name.to_owned())).or_default()[snapshot] += 1;
    }

    /// The counts of each kind of records.
    pub(crate) fn rows(&self) -> Vec<SummaryRow<'_>> {
        let mut rows = Vec::with_capacity(self.0.len());
        for ((by, schema, name), [before, after]) in &self.0 {
            rows.push(SummaryRow { by: *by, schema, name, before: *before, after: *after });
        }
        rows
    }
}

/// How many records of one kind each of the two snapshots has.
pub(crate) struct SummaryRow<'a> {
    pub(crate) by: SummaryDimension,
    pub(crate) schema: &'a str,
    /// The state or the finding.
    pub(crate) name: &'a str,
    pub(crate) before: u64,
    pub(crate) after: u64,
}
