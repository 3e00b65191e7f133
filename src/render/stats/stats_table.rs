//! Figures on records for people: a table, bars, and the owners with the most locks.

use crate::domain::record::age::Age;
use crate::domain::stats::{BOUNDS, By, Group, Histogram, Row, Stats};
use crate::render::bar::bar;
use crate::render::style::View;
use crate::render::table::{Table, grid};
use crate::render::{escape, words};

/// The longest bar, however wide the terminal.
const LONGEST: usize = 40;

/// Columns of a chart beside its bars: the range, and the count.
const BESIDE: usize = 24;

/// The table, the bars, and so many owners.
pub fn text(stats: &Stats, view: View, owners: usize) -> String {
    let mut text = rows(stats, view);
    let total = stats.total();
    text.push_str(&chart("Time left", &total.ttl, &[("no expiry", total.no_expiry)], view));
    text.push_str(&chart("Age", &total.age, &[("unknown", total.ageless)], view));
    let top = stats.top_owners(owners);
    // Where each owner holds one lock, no owner tells anything.
    if top.first().is_some_and(|(_, locks)| *locks > 1) && stats.by() != By::Owner {
        text.push_str("\nOwners with most locks\n");
        let rows = top.iter().map(|(owner, locks)| vec![escape::text(owner), locks.to_string()]);
        text.push_str(&grid(view, 2, &[], rows));
    }
    text
}

fn rows(stats: &Stats, view: View) -> String {
    let mut table = Table::new(view.palette);
    let by = stats.by().as_str().to_uppercase();
    table.heading(["SCHEMA", &by, "RECORDS", "BYTES", "MEMORY", "OLDEST", "NO EXPIRY"]);
    for (schema, group, row) in stats.rows() {
        table.row(cells(schema, &name(group), row));
    }
    if stats.rows().count() > 1 && stats.by() != By::Finding {
        table.row(cells("all", "", &stats.total()));
    }
    (2..7).for_each(|column| table.align_right(column));
    table.text(0)
}

fn cells(schema: &str, group: &str, row: &Row) -> [String; 7] {
    let mark = if row.is_weighed_whole() { "" } else { "~" };
    let memory = row.memory_bytes().map_or_else(|| "-".to_owned(), |bytes| format!("{mark}{}", words::bytes(bytes)));
    let oldest = |age: Option<Age>| age.map_or_else(|| "-".to_owned(), words::short_age);
    [
        schema.to_owned(),
        group.to_owned(),
        row.records.to_string(),
        words::bytes(row.bytes),
        memory,
        oldest(row.oldest),
        row.no_expiry.to_string(),
    ]
}

fn name(group: &Group) -> String {
    match group {
        Group::Of(value) => escape::text(value),
        Group::None => "-".to_owned(),
        Group::Others => "(others)".to_owned(),
    }
}

/// Ranges and bars; nothing where nothing was counted.
fn chart(title: &str, histogram: &Histogram, more: &[(&str, u64)], view: View) -> String {
    let bounds = BOUNDS.iter().map(|(_, name)| format!("≤ {name:>3}"));
    let beyond = BOUNDS.last().map(|(_, name)| format!("> {name:>3}"));
    let counted = bounds.chain(beyond).zip(histogram.counts());
    let more = more.iter().map(|(name, count)| ((*name).to_owned(), *count));
    let rows: Vec<_> = counted.chain(more).collect();
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or_default();
    let Some(last) = rows.iter().rposition(|(_, count)| *count > 0) else { return String::new() };
    let first = rows.iter().position(|(_, count)| *count > 0).unwrap_or_default();
    let longest = view.width.map_or(LONGEST, |width| width.saturating_sub(BESIDE).clamp(8, LONGEST));
    let lines = rows[first..=last].iter().map(|(range, count)| {
        let bar = bar(*count, most, longest);
        format!("  {range:<9}  {bar}{}{count}\n", if bar.is_empty() { "" } else { " " })
    });
    format!("\n{title}\n{}", lines.collect::<String>())
}
