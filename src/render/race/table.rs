//! One row per run: the verdict, its evidence, and the speed.

use anstyle::AnsiColor;
use comfy_table::Cell;

use crate::domain::race::{RaceRun, RaceVerdict, Strategy};
use crate::render::style::{Palette, View};
use crate::render::table::{Table, styled};
use crate::render::words::latency;

/// A column of numbers: its heading, and the number of a run.
type NumberColumn = (&'static str, fn(&RaceRun) -> String);

const COUNTS: [NumberColumn; 5] = [
    ("WINNERS", winners),
    ("MANY", |run| format!("{}/{}", run.rounds_with_many_winners, run.judged())),
    ("CONFLICTS", |run| run.conflicts.to_string()),
    ("REPLAYS", |run| run.replays.to_string()),
    ("WRONG", |run| run.wrong_replies.to_string()),
];

const SPEED: [NumberColumn; 5] = [
    ("OPS/S", |run| format!("{:.0}", run.steps_per_second())),
    ("P50", |run| latency(run.latencies.quantile(0.5))),
    ("P95", |run| latency(run.latencies.quantile(0.95))),
    ("P99", |run| latency(run.latencies.quantile(0.99))),
    ("MAX", |run| latency(run.latencies.max())),
];

/// The table of verdicts, and a second one with the speed of the runs if `with_speed` is true, so
/// that both fit on a narrow terminal.
pub(super) fn text(runs: &[RaceRun], view: View, with_speed: bool) -> String {
    let mut text = columns(runs, view, &COUNTS, true);
    if with_speed {
        text += "\n";
        text += &columns(runs, view, &SPEED, false);
    }
    text
}

/// One row per run. A run of a schema's own steps has the schema's name, and runs of other
/// strategies are indented below it.
fn columns(runs: &[RaceRun], view: View, numbers: &[NumberColumn], has_verdict: bool) -> String {
    let mut headings = vec!["SCHEMA"];
    if has_verdict {
        headings.insert(0, "VERDICT");
    }
    let beside = headings.len();
    headings.extend(numbers.iter().map(|(heading, _)| *heading));
    let mut table = Table::new(view.palette);
    table.heading(headings);
    let mut headed = "";
    for run in runs {
        let is_own = run.strategy == Strategy::Schema;
        // Without a run of the schema's own steps, the indented strategies need a row with its
        // name.
        if !is_own && run.schema != headed {
            let mut row = vec![""; beside];
            row[beside - 1] = &run.schema;
            table.row(row);
        }
        headed = &run.schema;
        let name = if is_own { run.schema.clone() } else { format!("  {}", run.strategy.as_str()) };
        let mut row = vec![Cell::new(name)];
        if has_verdict {
            row.insert(0, seen(run, view.palette));
        }
        for (_, number) in numbers {
            row.push(Cell::new(number(run)));
        }
        table.row(row);
    }
    for column in 0..numbers.len() {
        table.align_right(beside + column);
    }
    table.text(0)
}

fn seen(run: &RaceRun, palette: Palette) -> Cell {
    let verdict = run.verdict();
    let (text, color) = match verdict {
        RaceVerdict::NoneSeen => (format!("no violation in {}", run.begins), AnsiColor::Green),
        RaceVerdict::Void => (verdict.as_str().to_owned(), AnsiColor::Yellow),
        RaceVerdict::NotAtomic => (verdict.as_str().to_owned(), AnsiColor::Red),
    };
    styled(palette, text, color.on_default())
}

fn winners(run: &RaceRun) -> String {
    if run.winners_min == run.winners_max {
        return run.winners_max.to_string();
    }
    format!("{}–{}", run.winners_min, run.winners_max)
}
