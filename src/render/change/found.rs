//! What a change of many records found, as a table: how many, the oldest, and some keys.

use crate::domain::select::Tally;
use crate::domain::select::tally::TallyGroup;
use crate::render::fold::{columns_of, fold};
use crate::render::style::View;
use crate::render::{escape, table, words};

/// Columns that the oldest and a sample of keys have at least, beside the others.
const SAMPLE_COLUMNS: usize = 42;

const INDENT: &str = "  ";

pub fn orphans(tally: &Tally<&'static str>, view: View) -> String {
    let rows = tally.groups().map(|(code, group)| {
        let keys = group
            .sample
            .iter()
            .map(|sample| format!("{} ({})", escape::text(&sample.key), sample.schema));
        row(&[code], group, keys.collect())
    });
    with_samples(view, &["FINDING", "COUNT", "OLDEST"], rows.collect())
}

pub fn records(tally: &Tally<(String, &'static str)>, view: View) -> String {
    let rows = tally.groups().map(|((schema, state), group)| {
        row(
            &[schema, state],
            group,
            group.sample.iter().map(|sample| escape::text(&sample.key)).collect(),
        )
    });
    with_samples(view, &["SCHEMA", "STATE", "COUNT", "OLDEST"], rows.collect())
}

/// Rows with a sample of keys: a column of its own, or lines below each row where there is no room for one.
fn with_samples(view: View, heading: &[&str], rows: Vec<(Vec<String>, String)>) -> String {
    let plain = View { width: None, ..view };
    // Beside the oldest, which stands below, too.
    let last = heading.len() - 1;
    let alone = table::grid(
        plain,
        0,
        &heading[..last],
        rows.iter().map(|(cells, _)| cells[..last].to_vec()),
    );
    let widest = alone.lines().map(columns_of).max().unwrap_or_default();
    match view.width.filter(|width| *width < widest + SAMPLE_COLUMNS) {
        None => {
            let heading = [heading, &["SAMPLE"]].concat();
            table::grid(
                view,
                0,
                &heading,
                rows.into_iter().map(|(cells, sample)| [cells, vec![sample]].concat()),
            )
        }
        Some(width) => {
            let sample = |(cells, sample): &(Vec<String>, String)| {
                format!("oldest {}: {sample}", cells[last])
            };
            let samples =
                rows.iter().map(|row| fold(&sample(row), Some(width.saturating_sub(INDENT.len()))));
            let below = samples.map(|lines| {
                lines.iter().map(|line| format!("{INDENT}{line}\n")).collect::<String>()
            });
            let below = [String::new()].into_iter().chain(below);
            alone.lines().zip(below).map(|(line, below)| format!("{line}\n{below}")).collect()
        }
    }
}

/// What becomes of each key that was named.
pub fn named(heading: &[&str], rows: impl Iterator<Item = Vec<String>>, view: View) -> String {
    table::grid(view, 0, heading, rows)
}

fn row(names: &[&str], group: &TallyGroup, mut sample: Vec<String>) -> (Vec<String>, String) {
    if group.count > sample.len() as u64 {
        sample.push("…".to_owned());
    }
    let oldest = group.oldest.map_or_else(|| "unknown".to_owned(), words::short_age);
    let names = names.iter().map(|name| (*name).to_owned());
    (names.chain([group.count.to_string(), oldest]).collect(), sample.join(", "))
}
