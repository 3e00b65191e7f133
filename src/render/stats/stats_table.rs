//! Statistics on records for people: a table, bars, and the owners with the most locks.

use unicode_width::UnicodeWidthStr as _;

use crate::domain::stats::{BOUNDS, Histogram, Stats, StatsDimension, StatsGroup, StatsRow};
use crate::render::bar::bar;
use crate::render::style::{Palette, View};
use crate::render::table::{Table, grid};
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

/// A value of a row, for people.
type FigureText = fn(&StatsRow) -> String;

/// The columns after the group's name; a narrow terminal drops the last ones first.
const FIGURES: [(&str, FigureText); 5] = [
    ("RECORDS", |row| row.records.to_string()),
    ("BYTES", |row| words::bytes(row.bytes)),
    ("OLDEST", |row| match row.oldest {
        Some(age) => words::short_age(age),
        None => "-".to_owned(),
    }),
    ("MEMORY", |row| {
        let Some(bytes) = row.memory_bytes() else { return "-".to_owned() };
        let mark = if row.is_weighed_whole() { "" } else { "~" };
        format!("{mark}{}", words::bytes(bytes))
    }),
    ("NO EXPIRY", |row| row.no_expiry.to_string()),
];

/// The table with as many columns as fit.
fn rows(stats: &Stats, view: View) -> String {
    let Some(width) = view.width else { return table(stats, view.palette, FIGURES.len()) };
    // Colours would count as characters of a line, so the table is measured without them.
    let plain = Palette::new(false);
    let mut count = FIGURES.len();
    while count > 1 && !table(stats, plain, count).lines().all(|line| line.width() <= width) {
        count -= 1;
    }
    table(stats, view.palette, count)
}

fn table(stats: &Stats, palette: Palette, count: usize) -> String {
    let mut table = Table::new(palette);
    let figures = &FIGURES[..count];
    let by = stats.by().as_str().to_uppercase();
    let mut heading = vec!["SCHEMA", &by];
    heading.extend(figures.iter().map(|(name, _)| *name));
    table.heading(heading);
    for (schema, group, row) in stats.rows() {
        table.row(cells(schema.to_owned(), name(group), row, figures));
    }
    // A record may have several findings, so the sum of the rows would count it several times.
    if stats.rows().count() > 1 && stats.by() != StatsDimension::Finding {
        table.row(cells("all".to_owned(), String::new(), &stats.total(), figures));
    }
    for column in 2..2 + count {
        table.align_right(column);
    }
    table.text(0)
}

fn cells(
    schema: String,
    group: String,
    row: &StatsRow,
    figures: &[(&str, FigureText)],
) -> Vec<String> {
    let mut cells = vec![schema, group];
    for (_, figure) in figures {
        cells.push(figure(row));
    }
    cells
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
