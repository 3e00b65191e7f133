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
    ("OLDEST", |row| row.oldest.map_or_else(|| "-".to_owned(), words::short_age)),
    ("MEMORY", |row| {
        let mark = if row.is_weighed_whole() { "" } else { "~" };
        row.memory_bytes()
            .map_or_else(|| "-".to_owned(), |bytes| format!("{mark}{}", words::bytes(bytes)))
    }),
    ("NO EXPIRY", |row| row.no_expiry.to_string()),
];

/// The table with as many columns as fit.
fn rows(stats: &Stats, view: View) -> String {
    let fits = |text: &String| {
        view.width.is_none_or(|width| text.lines().all(|line| line.width() <= width))
    };
    let plain = Palette::new(false);
    let count =
        (1..=FIGURES.len()).rev().find(|count| fits(&table(stats, plain, *count))).unwrap_or(1);
    table(stats, view.palette, count)
}

fn table(stats: &Stats, palette: Palette, count: usize) -> String {
    let mut table = Table::new(palette);
    let figures = &FIGURES[..count];
    let by = stats.by().as_str().to_uppercase();
    table.heading(["SCHEMA", &by].into_iter().chain(figures.iter().map(|(name, _)| *name)));
    let cells = |schema: &str, group: String, row: &StatsRow| {
        let figures: Vec<_> = figures.iter().map(|(_, figure)| figure(row)).collect();
        [vec![schema.to_owned(), group], figures].concat()
    };
    for (schema, group, row) in stats.rows() {
        table.row(cells(schema, name(group), row));
    }
    if stats.rows().count() > 1 && stats.by() != StatsDimension::Finding {
        table.row(cells("all", String::new(), &stats.total()));
    }
    (2..2 + count).for_each(|column| table.align_right(column));
    table.text(0)
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
    let bounds = BOUNDS.iter().map(|(_, name)| format!("≤ {name:>3}"));
    let beyond = BOUNDS.last().map(|(_, name)| format!("> {name:>3}"));
    let counted = bounds.chain(beyond).zip(histogram.counts());
    let more = more.iter().map(|(name, count)| ((*name).to_owned(), *count));
    let rows: Vec<_> = counted.chain(more).collect();
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or_default();
    let Some(last) = rows.iter().rposition(|(_, count)| *count > 0) else { return String::new() };
    let first = rows.iter().position(|(_, count)| *count > 0).unwrap_or_default();
    let longest =
        view.width.map_or(LONGEST, |width| width.saturating_sub(BESIDE).clamp(8, LONGEST));
    let lines = rows[first..=last].iter().map(|(range, count)| {
        let bar = bar(*count, most, longest);
        format!("  {range:<9}  {bar}{}{count}\n", if bar.is_empty() { "" } else { " " })
    });
    format!("\n{title}\n{}", lines.collect::<String>())
}
