//! The records that a change of many records found, as a table: how many, the oldest, and some
//! keys.

use crate::domain::select::Tally;
use crate::domain::select::tally::TallyGroup;
use crate::render::style::View;
use crate::render::{escape, table, words};

/// The table of a sweep: one row per finding.
pub fn orphan_table(tally: &Tally<&'static str>, view: View) -> String {
    let mut rows = Vec::new();
    for (code, group) in tally.groups() {
        let mut keys = Vec::new();
        for sample in &group.sample {
            keys.push(format!("{} ({})", escape::key(&sample.key), sample.schema));
        }
        rows.push(row(&[code], group, keys));
    }
    table::grid_folding(view, &["FINDING", "COUNT", "OLDEST", "SAMPLE"], rows, &["SAMPLE"])
}

/// The table of a purge: one row per schema and state.
pub fn record_table(tally: &Tally<(String, &'static str)>, view: View) -> String {
    let mut rows = Vec::new();
    for ((schema, state), group) in tally.groups() {
        let keys = group.sample.iter().map(|sample| escape::key(&sample.key)).collect();
        rows.push(row(&[schema, state], group, keys));
    }
    let heading = ["SCHEMA", "STATE", "COUNT", "OLDEST", "SAMPLE"];
    table::grid_folding(view, &heading, rows, &["SAMPLE"])
}

/// The table of a change of named keys: one row per key, with the planned change.
pub fn named_key_table(
    heading: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    view: View,
) -> String {
    table::grid(view, 0, heading, rows)
}

fn row(names: &[&str], group: &TallyGroup, mut sample: Vec<String>) -> Vec<String> {
    if group.count > sample.len() as u64 {
        // The sample is shorter than the group, so the list is not complete.
        sample.push("…".to_owned());
    }
    let oldest = match group.oldest.map(words::short_age) {
        None => "unknown".to_owned(),
        Some(age) if group.without_age > 0 => format!("{age} or more"),
        Some(age) => age,
    };
    let mut cells: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    cells.push(group.count.to_string());
    cells.push(oldest);
    cells.push(sample.join(", "));
    cells
}
