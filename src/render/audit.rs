//! The audit log as a table.

use super::style::View;
use super::{escape, table};

/// The columns: when (RFC 3339 in UTC), who, on which server, with which command, what, under which schema, which
/// idempotency key, and why.
const HEADING: [&str; 8] = ["TIME", "WHO", "SERVER", "COMMAND", "WHAT", "SCHEMA", "KEY", "REASON"];

/// The table; times to the second. The log has escaped what is not UTF-8 already.
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
