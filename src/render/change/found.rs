//! What a change of many records found, as a table: how many, the oldest, and some keys.

use crate::domain::select::Tally;
use crate::domain::select::tally::Group;
use crate::render::style::View;
use crate::render::{escape, table, words};

pub fn orphans(tally: &Tally<&'static str>, view: View) -> String {
    let rows = tally.groups().map(|(code, group)| {
        let keys = group.sample.iter().map(|sample| format!("{} ({})", escape::text(&sample.key), sample.schema));
        row(&[code], group, keys.collect())
    });
    table::grid(view, 0, &["FINDING", "COUNT", "OLDEST", "SAMPLE"], rows)
}

pub fn records(tally: &Tally<(String, &'static str)>, view: View) -> String {
    let rows = tally.groups().map(|((schema, state), group)| {
        row(&[schema, state], group, group.sample.iter().map(|sample| escape::text(&sample.key)).collect())
    });
    table::grid(view, 0, &["SCHEMA", "STATE", "COUNT", "OLDEST", "SAMPLE"], rows)
}

/// What becomes of each key that was named.
pub fn named(heading: &[&str], rows: impl Iterator<Item = Vec<String>>, view: View) -> String {
    table::grid(view, 0, heading, rows)
}

fn row(names: &[&str], group: &Group, mut sample: Vec<String>) -> Vec<String> {
    if group.count > sample.len() as u64 {
        sample.push("…".to_owned());
    }
    let oldest = group.oldest.map_or_else(|| "unknown".to_owned(), words::short_age);
    let names = names.iter().map(|name| (*name).to_owned());
    names.chain([group.count.to_string(), oldest, sample.join(", ")]).collect()
}
