//! The changes of the audit log as a table.

use super::escape::again;
use super::history::second;
use super::style::View;
use super::table::{Column, of_columns};
use crate::domain::history::AuditEntry;

/// One row per changed Redis key.
pub fn table(view: View, entries: &[AuditEntry<'_>]) -> String {
    let columns = [
        Column::text("TIME", 1, |entry: &AuditEntry<'_>| second(&entry.at)),
        Column::shortened("WHO", 6, |entry| again(&entry.who)),
        Column::shortened("SERVER", 5, |entry| again(&entry.server)),
        Column::text("COMMAND", 2, |entry| again(&entry.command)),
        Column::text("WHAT", 0, |entry| again(&entry.what)),
        Column::text("SCHEMA", 3, |entry| again(&entry.schema)),
        Column::shortened("KEY", 0, |entry| again(&entry.key)),
        Column::folded("REASON", 4, |entry| again(entry.reason.as_deref().unwrap_or("-"))),
    ];
    of_columns(view, &columns, entries)
}
