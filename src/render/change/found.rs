//! The records that a change of many records found, as a table: how many, the oldest, and some
//! keys.

use crate::domain::select::Tally;
use crate::domain::select::tally::TallyGroup;
use crate::render::fold::{columns_of, fold};
use crate::render::style::View;
use crate::render::{escape, table, words};

/// The least columns for the age and a sample of keys beside the other columns.
const SAMPLE_COLUMNS: usize = 42;

const INDENT: &str = "  ";

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
    with_samples(view, &["FINDING", "COUNT", "OLDEST"], rows)
}

/// The table of a purge: one row per schema and state.
pub fn record_table(tally: &Tally<(String, &'static str)>, view: View) -> String {
    let mut rows = Vec::new();
    for ((schema, state), group) in tally.groups() {
        let keys = group.sample.iter().map(|sample| escape::key(&sample.key)).collect();
        rows.push(row(&[schema, state], group, keys));
    }
    with_samples(view, &["SCHEMA", "STATE", "COUNT", "OLDEST"], rows)
}

/// Lays out rows with a sample of keys. The sample has its own column, or lines below each row if
/// the terminal is narrow.
fn with_samples(view: View, heading: &[&str], rows: Vec<(Vec<String>, String)>) -> String {
    // The table is laid out without a limit first, to see whether a sample fits beside it.
    let plain = View { width: None, ..view };
    // The age moves below the row as well, together with the sample.
    let last = heading.len() - 1;
    let narrow_rows = rows.iter().map(|(cells, _)| cells[..last].to_vec());
    let narrow = table::grid(plain, 0, &heading[..last], narrow_rows);
    let widest = narrow.lines().map(columns_of).max().unwrap_or_default();
    let Some(width) = view.width.filter(|width| *width < widest + SAMPLE_COLUMNS) else {
        let heading = [heading, &["SAMPLE"]].concat();
        let rows = rows.into_iter().map(|(mut cells, sample)| {
            cells.push(sample);
            cells
        });
        return table::grid(view, 0, &heading, rows);
    };
    let mut lines = narrow.lines();
    let mut text = String::new();
    if let Some(heading) = lines.next() {
        text += &format!("{heading}\n");
    }
    for (line, (cells, sample)) in lines.zip(&rows) {
        text += &format!("{line}\n");
        let below = format!("oldest {}: {sample}", cells[last]);
        for line in fold(&below, Some(width.saturating_sub(INDENT.len()))) {
            text += &format!("{INDENT}{line}\n");
        }
    }
    text
}

/// The table of a change of named keys: one row per key, with the planned change.
pub fn named_key_table(
    heading: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    view: View,
) -> String {
    table::grid(view, 0, heading, rows)
}

fn row(names: &[&str], group: &TallyGroup, mut sample: Vec<String>) -> (Vec<String>, String) {
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
    (cells, sample.join(", "))
}
