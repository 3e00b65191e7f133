//! Statistics on records for people: a table, bars, and the owners with the most locks.

use crate::domain::stats::{BOUNDS, Histogram, Stats, StatsDimension, StatsGroup, StatsRow};
use crate::render::bar::bar;
use crate::render::style::View;
use crate::render::table::{Column, grid, of_columns};
use crate::render::{escape, words};

/// The longest bar in columns, on a terminal of any width.
const LONGEST: usize = 40;

/// The columns of a chart beside its bars: the range and the count.
const BESIDE: usize = 24;

/// The table, the bars, and at most this many owners.
pub fn text(stats: &Stats, view: View, owners: usize) -> String {
    let mut text = rows(stats, view);
    let total = stats.total();
    text.push_str(&chart("Time left", &total.ttl, &[("no expiry", total.no_expiry)], view));
    text.push_str(&chart("Age", &total.age, &[("unknown", total.ageless)], view));
    let top = stats.top_owners(owners);
    // If no owner holds more than one lock, the list of owners is not informative.
    if top.first().is_some_and(|(_, locks)| *locks > 1) && stats.by() != StatsDimension::Owner {
        text.push_str("\nOwners with the most locks\n");
        let rows = top.iter().map(|(owner, locks)| vec![escape::text(owner), locks.to_string()]);
        text.push_str(&grid(view, 2, &[], rows));
    }
    text
}

/// A row of the table: the figures of one group of a schema.
struct GroupRow<'a> {
    schema: &'a str,
    group: String,
    figures: &'a StatsRow,
}

fn rows(stats: &Stats, view: View) -> String {
    let columns = [
        Column::text("SCHEMA", 0, |row: &GroupRow<'_>| row.schema.to_owned()),
        Column::text(stats.by().as_str().to_uppercase(), 0, |row| row.group.clone()),
        Column::number("RECORDS", 0, |row| row.figures.records.to_string()),
        Column::number("BYTES", 2, |row| words::bytes(row.figures.bytes)),
        Column::number("OLDEST", 1, |row| match row.figures.oldest {
            Some(age) => words::short_age(age),
            None => "-".to_owned(),
        }),
        Column::number("MEMORY", 3, |row| {
            let Some(bytes) = row.figures.memory_bytes() else { return "-".to_owned() };
            let mark = if row.figures.is_weighed_whole() { "" } else { "~" };
            format!("{mark}{}", words::bytes(bytes))
        }),
        Column::number("NO EXPIRY", 0, |row| row.figures.no_expiry.to_string()),
    ];
    let mut rows = Vec::new();
    for (schema, group, figures) in stats.rows() {
        rows.push(GroupRow { schema, group: name(group), figures });
    }
    let total = stats.total();
    // A record may have several findings, so the sum of the rows would count it several times.
    if rows.len() > 1 && stats.by() != StatsDimension::Finding {
        rows.push(GroupRow { schema: "all", group: String::new(), figures: &total });
    }
    of_columns(view, &columns, &rows)
}

fn name(group: &StatsGroup) -> String {
    match group {
        StatsGroup::Of(value) => escape::text(value),
        StatsGroup::None => "-".to_owned(),
        StatsGroup::Others => "(others)".to_owned(),
    }
}

/// Ranges and bars; empty if nothing was counted.
fn chart(title: &str, histogram: &Histogram, more: &[(&str, u64)], view: View) -> String {
    let mut ranges: Vec<_> = BOUNDS.iter().map(|(_, name)| format!("≤ {name:>3}")).collect();
    if let Some((_, name)) = BOUNDS.last() {
        ranges.push(format!("> {name:>3}"));
    }
    let mut rows: Vec<_> = ranges.into_iter().zip(histogram.counts()).collect();
    for (name, count) in more {
        rows.push(((*name).to_owned(), *count));
    }
    let mut most = 0;
    for (_, count) in &rows {
        most = most.max(*count);
    }
    // Empty ranges at both ends are left out; those in the middle show the shape.
    let Some(last) = rows.iter().rposition(|(_, count)| *count > 0) else { return String::new() };
    let first = rows.iter().position(|(_, count)| *count > 0).unwrap_or_default();
    let longest = match view.width {
        Some(width) => width.saturating_sub(BESIDE).clamp(8, LONGEST),
        None => LONGEST,
    };
    let mut text = format!("\n{title}\n");
    for (range, count) in &rows[first..=last] {
        let bar = bar(*count, most, longest);
        let gap = if bar.is_empty() { "" } else { " " };
        text += &format!("  {range:<9}  {bar}{gap}{count}\n");
    }
    text
}
