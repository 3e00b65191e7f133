//! What was found, as a table: how many, the oldest, and some keys.

use crate::domain::select::tally::{Group, Tally};
use crate::render::style::Palette;
use crate::render::{escape, table, words};

/// Orphans by finding.
pub fn orphans(tally: &Tally<&'static str>, palette: Palette, width: Option<usize>) -> String {
    let rows = tally.groups().map(|(code, group)| {
        let keys = group.sample.iter().map(|sample| format!("{} ({})", escape::text(&sample.key), sample.schema));
        row(&[code], group, keys.collect())
    });
    table::grid(palette, width, 0, &["FINDING", "COUNT", "OLDEST", "SAMPLE"], rows.collect())
}

/// Records by schema and state.
pub fn records(tally: &Tally<(String, &'static str)>, palette: Palette, width: Option<usize>) -> String {
    let rows = tally.groups().map(|((schema, state), group)| {
        row(&[schema, state], group, group.sample.iter().map(|sample| escape::text(&sample.key)).collect())
    });
    table::grid(palette, width, 0, &["SCHEMA", "STATE", "COUNT", "OLDEST", "SAMPLE"], rows.collect())
}

fn row(names: &[&str], group: &Group, mut sample: Vec<String>) -> Vec<String> {
    if group.count > sample.len() as u64 {
        sample.push("…".to_owned());
    }
    let mut row: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    row.push(group.count.to_string());
    row.push(group.oldest.map_or_else(|| "unknown".to_owned(), words::short_age));
    row.push(sample.join(", "));
    row
}
