//! Backups, as a table and as JSON.

use serde::Serialize;

use super::history::op_id;
use super::style::View;
use super::table::{Column, of_columns};
use super::words;
use crate::domain::change::provenance::Provenance;

/// One backup. Fields that an older idemctl did not write are empty.
#[derive(Serialize)]
pub struct BackupSummary<'a> {
    /// The path, escaped.
    pub file: String,
    /// The time of its last line, RFC 3339 in UTC.
    pub written_at: String,
    pub op: Option<&'a str>,
    pub command: Option<&'a str>,
    /// The number of Redis keys in it.
    pub redis_keys: u64,
    pub bytes: u64,
    /// The server and database that the values came from.
    pub from: Option<&'a Provenance>,
    /// `complete`, `damaged`, `being-written` or `unended`.
    pub state: &'static str,
    /// What is damaged, or why the file has no end.
    pub why: Option<&'a str>,
}

/// A row of the table. A terminal shows short IDs.
struct Row<'a> {
    backup: &'a BackupSummary<'a>,
    is_short: bool,
}

/// The table. A file is shown by its whole name, because the name contains the time and the
/// command.
pub fn table(view: View, backups: &[BackupSummary<'_>]) -> String {
    // The directory is left to JSON, because it would push the other columns out of view.
    let columns = [
        Column::text("OP", 0, |row: &Row<'_>| match row.backup.op {
            Some(op) => op_id(op, row.is_short),
            None => "-".to_owned(),
        }),
        Column::number("KEYS", 1, |row| row.backup.redis_keys.to_string()),
        Column::text("SIZE", 3, |row| words::bytes(row.backup.bytes)),
        Column::text("STATE", 0, |row| row.backup.state.to_owned()),
        Column::text("FILE", 0, |row| {
            let file = &row.backup.file;
            file.rsplit('/').next().unwrap_or(file).to_owned()
        }),
        Column::shortened("FROM", 2, |row| match row.backup.from {
            Some(from) => format!("{}/{}", from.address, from.db),
            None => "-".to_owned(),
        }),
    ];
    let is_short = view.width.is_some();
    let rows: Vec<_> = backups.iter().map(|backup| Row { backup, is_short }).collect();
    of_columns(view, &columns, &rows)
}
