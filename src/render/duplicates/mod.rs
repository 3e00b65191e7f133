//! Groups of duplicates: for people, as rows, and as JSON.

pub(crate) mod duplicate_rows;
mod duplicates_report;
pub(crate) mod json;
pub(crate) mod text;

pub(crate) use duplicates_report::DuplicatesReport;
