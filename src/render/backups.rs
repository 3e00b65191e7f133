//! Backups, as a table and as JSON.

use serde::Serialize;

use super::style::View;
use super::table::{Column, of_columns};
use super::{escape, words};
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

/// The table. A file is shown by its whole name, because the name contains the time and the
/// command.
pub fn table(view: View, backups: &[BackupSummary<'_>]) -> String {
    // The directory is left to JSON, because it would push the other columns out of view.
    let columns = [
        Column::shortened("OP", 0, |backup: &BackupSummary<'_>| {
            backup.op.map_or_else(none, escape::again)
        }),
        Column::number("KEYS", 1, |backup| backup.redis_keys.to_string()),
        Column::text("SIZE", 3, |backup| words::bytes(backup.bytes)),
        Column::text("STATE", 0, |backup| backup.state.to_owned()),
        Column::text("FILE", 0, |backup| {
            backup.file.rsplit('/').next().unwrap_or(&backup.file).to_owned()
        }),
        Column::shortened("FROM", 2, |backup| match backup.from {
            Some(from) => format!("{}/{}", from.address, from.db),
            None => none(),
        }),
    ];
    of_columns(view, &columns, backups)
}

fn none() -> String {
    "-".to_owned()
}
