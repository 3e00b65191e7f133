//! Differences between two snapshots, as lines for people and as JSON.

use serde_json::{Map, Value, json};
use unicode_width::UnicodeWidthStr;

use super::document::Streamed;
use super::escape;
use super::style::View;
use super::table::{GAP, Table};
use crate::domain::snapshot::{
    DifferenceCounts, DifferenceKind, HowRecordEnded, ListedRecord, Summary,
};

/// The difference of one record.
pub struct DifferenceRow<'a> {
    pub(crate) what: DifferenceKind,
    /// How the record ended, if that is known.
    pub(crate) how: Option<HowRecordEnded>,
    /// Its state in the first snapshot; `None` if it did not exist then.
    pub(crate) before: Option<&'a str>,
    /// Its state in the second snapshot.
    pub(crate) after: Option<&'a str>,
    /// The record in the second snapshot, or in the first one if it has ended.
    pub(crate) of: &'a ListedRecord,
}

/// A row for people.
#[derive(Debug, Clone)]
pub struct DifferenceLine {
    what: &'static str,
    /// The state, or `before -> after` if it changed.
    state: String,
    schema: String,
    key: String,
}

impl DifferenceLine {
    pub fn of(row: &DifferenceRow<'_>) -> Self {
        let state = match (row.before, row.after) {
            (Some(before), Some(after)) if before != after => format!("{before}{ARROW}{after}"),
            (before, after) => after.or(before).unwrap_or_default().to_owned(),
        };
        let what = match &row.how {
            Some(how) => how.as_str(),
            None => row.what.as_str(),
        };
        Self {
            what,
            state: escape::again(&state),
            schema: escape::again(&row.of.schema),
            // Lists already escape keys that are not UTF-8.
            key: escape::again(&row.of.key),
        }
    }

    fn cells(&self) -> [&str; 4] {
        [self.what, &self.state, &self.schema, &self.key]
    }
}

/// The separator between two states. It has the same width in ASCII, so columns are aligned in
/// every locale.
const ARROW: &str = " -> ";

const HEADING: [&str; 4] = ["WHAT", "STATE", "SCHEMA", "KEY"];

/// The least columns for a key that is folded into several lines.
const MIN_KEY_COLUMNS: usize = 18;

/// The widths of the columns.
#[derive(Debug, Clone)]
pub struct DifferenceLayout {
    widths: [usize; 4],
    /// True if the terminal is too narrow for one line per row. A changed state then takes two
    /// lines, and a long key several.
    folds: bool,
}

impl DifferenceLayout {
    /// The layout for rows that begin with these, or that are complete if `more_follow` is false.
    pub fn fit(lines: &[DifferenceLine], more_follow: bool, width: Option<usize>) -> Self {
        let whole = widths(lines, |state| state.width(), more_follow);
        let gaps = (whole.len() - 1) * GAP;
        let needed = whole.iter().sum::<usize>() + gaps;
        let Some(width) = width.filter(|width| needed > *width) else {
            return Self { widths: whole, folds: false };
        };
        let mut widths = widths(lines, width_in_two_lines, more_follow);
        let others = widths[..3].iter().sum::<usize>() + gaps;
        // The key gives way, because the words in the other columns are short.
        widths[3] = widths[3].min(width.saturating_sub(others)).max(MIN_KEY_COLUMNS);
        Self { widths, folds: true }
    }

    /// These rows, after the heading if they are the first.
    pub fn rows(&self, lines: &[DifferenceLine], view: View, are_first: bool) -> String {
        if self.folds {
            let mut table = Table::new(view.palette);
            if are_first {
                table.heading(HEADING);
            }
            for line in lines {
                let [what, state, schema, key] = line.cells().map(str::to_owned);
                table.row([what, two_lines(&state), schema, key]);
            }
            for (column, width) in self.widths.into_iter().enumerate() {
                let is_last = column + 1 == self.widths.len();
                table.fix_width(column, if is_last { width } else { width + GAP });
            }
            return table.text(0);
        }
        let mut text = String::new();
        if are_first {
            text.push_str(&self.line(HEADING));
        }
        for line in lines {
            text.push_str(&self.line(line.cells()));
        }
        text
    }

    fn line(&self, cells: [&str; 4]) -> String {
        let mut line = String::new();
        for (cell, width) in cells.into_iter().zip(self.widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width()) + GAP));
        }
        // Trailing spaces would wrap on narrow terminals and pollute copied text.
        line.truncate(line.trim_end().len());
        line + "\n"
    }
}

/// A change of state with the new state below the old one.
fn two_lines(state: &str) -> String {
    state.replacen(ARROW, "\n-> ", 1)
}

fn width_in_two_lines(state: &str) -> usize {
    two_lines(state).lines().map(str::width).max().unwrap_or(0)
}

/// The widths of the columns that fit every cell of these rows. `of_state` measures a state.
fn widths(
    lines: &[DifferenceLine],
    of_state: impl Fn(&str) -> usize,
    more_follow: bool,
) -> [usize; 4] {
    let mut widths = HEADING.map(str::width);
    // Later rows are unknown, so there is room for the longest words that they may contain.
    if more_follow {
        widths[0] = "renewed".len();
        widths[1] = of_state("in-progress -> completed");
    }
    for line in lines {
        let [what, state, schema, key] = line.cells();
        let of_line = [what.width(), of_state(state), schema.width(), key.width()];
        for (width, of_cell) in widths.iter_mut().zip(of_line) {
            *width = of_cell.max(*width);
        }
    }
    widths
}

/// Prints the elements of a document as they are found.
pub struct DifferenceRows {
    document: Streamed,
}

impl DifferenceRows {
    /// Before the first row.
    pub fn new() -> Self {
        Self { document: Streamed::new("differences") }
    }

    /// One element of the JSON document.
    pub fn element(&mut self, row: &DifferenceRow<'_>) -> String {
        self.document.before_value() + &json(row)
    }

    /// The end of the document. `complete` is true if both snapshots contain all records, and
    /// `None` if that is unknown.
    pub(crate) fn end(
        &mut self,
        counts: &DifferenceCounts,
        summary: &Summary,
        complete: Option<bool>,
    ) -> String {
        let counts = [
            ("came", &counts.came),
            ("went", &counts.went),
            ("expired", &counts.expired),
            ("removed", &counts.removed),
            ("state", &counts.state),
            ("retaken", &counts.retaken),
            ("renewed", &counts.renewed),
            ("same", &counts.same),
            ("partial", &counts.partial),
        ];
        let mut of_all = Map::new();
        for (name, count) in counts {
            of_all.insert(name.to_owned(), Value::from(*count));
        }
        let mut kinds = Vec::new();
        for (by, schema, name, [before, after]) in summary.rows() {
            kinds.push(json!({
                "by": by.as_str(),
                "schema": schema,
                "name": name,
                "before": before,
                "after": after,
            }));
        }
        of_all.insert("summary".to_owned(), kinds.into());
        of_all.insert("complete".to_owned(), complete.into());
        self.document.end(&of_all)
    }
}

/// The number of records of each kind in both snapshots.
pub(crate) fn summary_table(summary: &Summary, view: View) -> String {
    let mut table = Table::new(view.palette);
    table.heading(["SCHEMA", "BY", "RECORDS", "BEFORE", "AFTER", "CHANGE"]);
    let mut is_empty = true;
    for (by, schema, name, [before, after]) in summary.rows() {
        let change = match after.cmp(&before) {
            std::cmp::Ordering::Equal => "-".to_owned(),
            std::cmp::Ordering::Less => format!("-{}", before - after),
            std::cmp::Ordering::Greater => format!("+{}", after - before),
        };
        table.row([
            escape::again(schema),
            by.as_str().to_owned(),
            escape::again(name),
            before.to_string(),
            after.to_string(),
            change,
        ]);
        is_empty = false;
    }
    if is_empty {
        return String::new();
    }
    for column in 3..6 {
        table.align_right(column);
    }
    table.text(0)
}

/// One difference as a JSON object.
pub fn json(row: &DifferenceRow<'_>) -> String {
    let DifferenceRow { what, how, before, after, of } = row;
    let mut expires_at_ms = Vec::new();
    for print in &of.identity {
        expires_at_ms.push(print.as_ref().and_then(|print| print.expires_at_ms));
    }
    let mut value = json!({
        "what": what.as_str(),
        "how": how.as_ref().map(HowRecordEnded::as_str),
        "schema": of.schema,
        "key": of.key,
        "redis_keys": of.redis_keys,
        "before": before,
        "after": after,
        "owner": of.owner,
        "expires_at_ms": expires_at_ms,
    });
    if let Some(base64) = &of.key_base64 {
        value["key_base64"] = base64.as_str().into();
    }
    escape::json(value.to_string())
}

/// How many records of each moment a filter by age left out; `None` if there are none.
pub(crate) fn unproven([before, after]: [u64; 2]) -> Option<String> {
    if before + after == 0 {
        return None;
    }
    let records = if before == 1 { "record" } else { "records" };
    Some(format!(
        "Skipped {before} {records} before and {after} after, because their age is only estimated \
        or unknown. To get known ages, list with the TTLs of your deployment (--lock-ttl, \
        --result-ttl, or the context)."
    ))
}

/// The counts as a sentence.
pub(crate) fn summary(counts: &DifferenceCounts) -> String {
    let DifferenceCounts { came, went, expired, removed, state, retaken, renewed, same, partial } =
        counts;
    let how = match (expired, removed) {
        (0, 0) => String::new(),
        _ => format!(" ({expired} expired, {removed} before their expiry)"),
    };
    // Two values that are equal as far as they were read may differ behind that.
    let unknown = match partial {
        0 => String::new(),
        _ => format!(", {partial} not compared to the end (list with --full)"),
    };
    format!(
        "{came} added, {went} gone{how}, {state} with another state, {retaken} with another value, \
        {renewed} with another expiry, {same} unchanged{unknown}."
    )
}
