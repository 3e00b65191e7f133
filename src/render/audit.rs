//! The audit log as a table.

use super::style::Palette;
use super::{escape, table};

const HEADING: [&str; 8] = ["TIME", "WHO", "SERVER", "COMMAND", "WHAT", "SCHEMA", "KEY", "REASON"];

/// What is shown of a change, as the log has it: bytes that are not UTF-8 are escaped already.
#[derive(Debug)]
pub struct Row<'a> {
    /// When, RFC 3339 in UTC.
    pub at: &'a str,
    /// The operator's user name.
    pub who: &'a str,
    /// The server.
    pub server: &'a str,
    /// The subcommand.
    pub command: &'a str,
    /// What was done.
    pub what: &'a str,
    /// The schema's name.
    pub schema: &'a str,
    /// The idempotency key.
    pub key: &'a str,
    /// Why.
    pub reason: Option<&'a str>,
}

/// The table; times to the second.
pub fn table(palette: Palette, width: Option<usize>, rows: Vec<Row<'_>>) -> String {
    let rows = rows.into_iter().map(|row| {
        let time = row.at.split('.').next().unwrap_or_default();
        let time = if time == row.at { time.to_owned() } else { format!("{time}Z") };
        let reason = row.reason.unwrap_or("-");
        let cells = [&time, row.who, row.server, row.command, row.what, row.schema, row.key, reason];
        cells.map(escape::again).to_vec()
    });
    table::grid(palette, width, 0, &HEADING, rows.collect())
}
