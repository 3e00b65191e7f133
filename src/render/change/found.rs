//! The records that a change of many records found, as a table: how many, the oldest, and some
//! keys.

use crate::domain::select::Tally;
use crate::domain::select::tally::TallyGroup;
use crate::render::style::View;
use crate::render::table::{Column, of_columns, shortened};
use crate::render::{escape, table, words};

/// The columns of a key in a sample.
const SAMPLE_COLUMNS: usize = 24;

/// The table of a sweep: one row per finding.
pub fn orphan_table(tally: &Tally<&'static str>, view: View) -> String {
    let mut rows = Vec::new();
    for (code, group) in tally.groups() {
        let mut sample = Vec::new();
        for of in &group.sample {
            sample.push(format!("{} ({})", sample_key(&of.key, view), of.schema));
        }
        rows.push(FoundRow { name: ["", *code], group, sample });
    }
    of_columns(view, &columns("FINDING")[1..], &rows)
}

/// The table of a purge: one row per schema and state.
pub fn record_table(tally: &Tally<(String, &'static str)>, view: View) -> String {
    let mut rows = Vec::new();
    for ((schema, state), group) in tally.groups() {
        let sample = group.sample.iter().map(|of| sample_key(&of.key, view)).collect();
        rows.push(FoundRow { name: [schema, *state], group, sample });
    }
    of_columns(view, &columns("STATE"), &rows)
}

/// A terminal shows both ends of a long key.
fn sample_key(key: &[u8], view: View) -> String {
    let key = escape::key(key);
    if view.width.is_some() { shortened(&key, SAMPLE_COLUMNS) } else { key }
}

struct FoundRow<'a> {
    name: [&'a str; 2],
    group: &'a TallyGroup,
    sample: Vec<String>,
}

fn columns<'a>(what: &'static str) -> [Column<FoundRow<'a>>; 5] {
    [
        Column::text("SCHEMA", 0, |row: &FoundRow<'_>| row.name[0].to_owned()),
        Column::text(what, 0, |row| row.name[1].to_owned()),
        Column::number("COUNT", 0, |row| row.group.count.to_string()),
        Column::text("OLDEST", 0, |row| match row.group.oldest.map(words::short_age) {
            None => "unknown".to_owned(),
            Some(age) if row.group.without_age > 0 => format!("{age} or more"),
            Some(age) => age,
        }),
        Column::folded("SAMPLE", 1, |row| {
            // The sample is shorter than the group, so the list is not complete.
            let more = if row.group.count > row.sample.len() as u64 { ", …" } else { "" };
            row.sample.join(", ") + more
        }),
    ]
}

/// The table of a change of named keys: one row per key, with the planned change.
pub fn named_key_table(
    heading: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    view: View,
) -> String {
    table::grid(view, 0, heading, rows)
}
