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
pub fn orphans(tally: &Tally<&'static str>, view: View) -> String {
    let rows = tally.groups().map(|(code, group)| {
        let keys = group
            .sample
            .iter()
            .map(|sample| format!("{} ({})", escape::key(&sample.key), sample.schema));
        row(&[code], group, keys.collect())
    });
    with_samples(view, &["FINDING", "COUNT", "OLDEST"], rows.collect())
}

/// The table of a purge: one row per schema and state.
pub fn records(tally: &Tally<(String, &'static str)>, view: View) -> String {
    let rows = tally.groups().map(|((schema, state), group)| {
        row(
            &[schema, state],
            group,
            group.sample.iter().map(|sample| escape::key(&sample.key)).collect(),
        )
    });
    with_samples(view, &["SCHEMA", "STATE", "COUNT", "OLDEST"], rows.collect())
}

/// Lays out rows with a sample of keys. The sample has its own column, or lines below each row if
/// the terminal is narrow.
fn with_samples(view: View, heading: &[&str], rows: Vec<(Vec<String>, String)>) -> String {
    // The table is laid out without a limit first, to see whether a sample fits beside it.
    let plain = View { width: None, ..view };
    // The age moves below the row as well, together with the sample.
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

/// The table of a change of named keys: one row per key, with the planned change.
pub fn named(heading: &[&str], rows: impl Iterator<Item = Vec<String>>, view: View) -> String {
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
    let names = names.iter().map(|name| (*name).to_owned());
    (names.chain([group.count.to_string(), oldest]).collect(), sample.join(", "))
}
