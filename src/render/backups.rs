//! Backups, as a table and as JSON.

use serde::Serialize;

use super::style::View;
use super::{escape, table, words};
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
pub fn table(view: View, lines: &[BackupSummary<'_>]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut rows = Vec::new();
    for line in lines {
        // The directory is left to JSON, because it would push the other columns out of view.
        let file = line.file.rsplit('/').next().unwrap_or(&line.file).to_owned();
        let op = match line.op {
            Some(op) => escape::again(op),
            None => "-".to_owned(),
        };
        let from = match line.from {
            Some(from) => format!("{}/{}", from.address, from.db),
            None => "-".to_owned(),
        };
        rows.push(vec![
            op,
            line.redis_keys.to_string(),
            words::bytes(line.bytes),
            line.state.to_owned(),
            file,
            from,
        ]);
    }
    let heading = ["OP", "KEYS", "SIZE", "STATE", "FILE", "FROM"];
    table::grid_folding(view, &heading, rows, &["FROM"])
}
