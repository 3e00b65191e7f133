//! The audit log as a table.

use super::style::View;
use super::{escape, table};

/// The columns: the time (RFC 3339 in UTC), the user, the server, the command, the kind of change,
/// the schema, the idempotency key, and the reason.
const HEADING: [&str; 8] = ["TIME", "WHO", "SERVER", "COMMAND", "WHAT", "SCHEMA", "KEY", "REASON"];

/// The table, with times to the second. The log already escapes bytes that are not UTF-8.
pub fn table<'a>(view: View, rows: impl Iterator<Item = [&'a str; HEADING.len()]>) -> String {
    let rows = rows.map(|row| {
        let mut cells = row.map(escape::again).to_vec();
        if let Some((seconds, _)) = row[0].split_once('.') {
            cells[0] = escape::again(seconds) + "Z";
        }
        cells
    });
    table::grid(view, 0, &HEADING, rows)
}
