//! Backups, as a table and as JSON.

use serde::Serialize;

use super::style::View;
use super::{escape, table, words};
use crate::domain::change::provenance::Provenance;

const HEADING: [&str; 8] = ["WRITTEN", "OP", "COMMAND", "KEYS", "SIZE", "FROM", "STATE", "FILE"];

/// One backup; nothing stands in place of what an older idemctl did not write.
#[derive(Serialize)]
pub struct Line<'a> {
    /// Escaped.
    pub file: String,
    /// When its last line was written, RFC 3339 in UTC.
    pub written_at: String,
    pub op: Option<&'a str>,
    pub command: Option<&'a str>,
    pub redis_keys: u64,
    pub bytes: u64,
    pub from: Option<&'a Provenance>,
    /// `complete`, `damaged` or `being-written`.
    pub state: &'static str,
    /// What is damaged.
    pub why: Option<&'a str>,
}

/// The table, files by their names alone.
pub fn table(view: View, lines: &[Line<'_>]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let or_dash = |text: Option<&str>| text.map_or_else(|| "-".to_owned(), escape::again);
    let rows = lines.iter().map(|line| {
        let written = line.written_at.split_once('.').map_or(line.written_at.as_str(), |(seconds, _)| seconds);
        let from = line.from.map(|from| format!("{}/{}", from.address, from.db));
        let state =
            line.why.map_or_else(|| line.state.to_owned(), |why| format!("{}: {}", line.state, escape::again(why)));
        let file = line.file.rsplit('/').next().unwrap_or(&line.file).to_owned();
        vec![
            format!("{written}Z"),
            or_dash(line.op),
            or_dash(line.command),
            line.redis_keys.to_string(),
            words::bytes(line.bytes),
            or_dash(from.as_deref()),
            state,
            file,
        ]
    });
    table::grid(view, 0, &HEADING, rows)
}
