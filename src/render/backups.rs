//! Backups, as a table and as JSON.

use serde::Serialize;

use super::style::View;
use super::{escape, table, words};
use crate::domain::change::provenance::Provenance;

/// Below so many columns it is left to JSON where the backups come from.
const WIDE: usize = 110;

/// One backup; nothing stands in place of what an older idemctl did not write.
#[derive(Serialize)]
pub struct BackupSummary<'a> {
    /// Escaped.
    pub file: String,
    /// When its last line was written, RFC 3339 in UTC.
    pub written_at: String,
    pub op: Option<&'a str>,
    pub command: Option<&'a str>,
    pub redis_keys: u64,
    pub bytes: u64,
    pub from: Option<&'a Provenance>,
    /// `complete`, `damaged`, `being-written` or `unended`.
    pub state: &'static str,
    /// What is damaged, or why it is unended.
    pub why: Option<&'a str>,
}

/// The table, files by their names alone, whole: a name tells when and by which command the file was written.
pub fn table(view: View, lines: &[BackupSummary<'_>]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let is_wide = view.width.is_none_or(|width| width >= WIDE);
    let rows = lines.iter().map(|line| {
        let file = line.file.rsplit('/').next().unwrap_or(&line.file).to_owned();
        let op = line.op.map_or_else(|| "-".to_owned(), escape::again);
        let mut row = vec![
            op,
            line.redis_keys.to_string(),
            words::bytes(line.bytes),
            line.state.to_owned(),
            file,
        ];
        if is_wide {
            row.push(
                line.from
                    .map_or_else(|| "-".to_owned(), |from| format!("{}/{}", from.address, from.db)),
            );
        }
        row
    });
    let mut heading = vec!["OP", "KEYS", "SIZE", "STATE", "FILE"];
    if is_wide {
        heading.push("FROM");
    }
    table::grid_folding(view, &heading, rows.collect(), &["FROM"])
}
