//! One row per run: the verdict, its evidence, and the speed.

use anstyle::AnsiColor;
use comfy_table::Cell;

use super::chart;
use crate::domain::race::{RaceRun, RaceVerdict, Strategy};
use crate::render::style::{Palette, View};
use crate::render::table::{Table, styled};
use crate::render::words::latency;

/// The smallest width at which both halves of the table fit side by side.
const WIDE: usize = 120;

/// The width of the latency chart in a cell.
const SPARKS: usize = 12;

const COUNTS: [&str; 5] = ["WINNERS", "MANY", "CONFLICTS", "REPLAYS", "WRONG"];
const SPEED: [&str; 6] = ["OPS/S", "P50", "P95", "P99", "MAX", "LATENCIES"];

/// Left-aligned columns; all others are numbers.
const LEFT: [&str; 3] = ["VERDICT", "SCHEMA", "LATENCIES"];

/// The table, with the speed of the runs if `with_speed` is true. On a narrow terminal the speed is
/// a second table.
pub(super) fn text(runs: &[RaceRun], view: View, with_speed: bool) -> String {
    let palette = view.palette;
    let mut verdicts = Vec::new();
    let mut speeds = Vec::new();
    let mut both = Vec::new();
    for row in rows(runs, palette) {
        let name = Cell::new(&row.name);
        let verdict = [vec![row.seen, name.clone()], cells(&row.counts)].concat();
        let speed = cells(&row.speed);
        both.push([&verdict[..], &speed].concat());
        speeds.push([vec![name], speed].concat());
        verdicts.push(verdict);
    }
    let verdict_heading = [&["VERDICT", "SCHEMA"][..], &COUNTS].concat();
    if !with_speed {
        return lay_out(&verdict_heading, verdicts, palette);
    }
    if view.width.unwrap_or(usize::MAX) >= WIDE {
        return lay_out(&[&verdict_heading[..], &SPEED].concat(), both, palette);
    }
    let verdicts = lay_out(&verdict_heading, verdicts, palette);
    let speeds = lay_out(&[&["SCHEMA"][..], &SPEED].concat(), speeds, palette);
    format!("{verdicts}\n{speeds}")
}

struct RaceRow {
    seen: Cell,
    name: String,
    counts: [String; COUNTS.len()],
    speed: [String; SPEED.len()],
}

/// One row per run. A run of a schema's own steps has the schema's name, and runs of other
/// strategies are indented below it.
fn rows(runs: &[RaceRun], palette: Palette) -> Vec<RaceRow> {
    let mut rows = Vec::new();
    let mut headed = "";
    for run in runs {
        let is_own = run.strategy == Strategy::Schema;
        // Without a run of the schema's own steps, the indented strategies need a row with its
        // name.
        if !is_own && run.schema != headed {
            rows.push(RaceRow {
                seen: Cell::new(""),
                name: run.schema.clone(),
                counts: Default::default(),
                speed: Default::default(),
            });
        }
        headed = &run.schema;
        let name = if is_own { run.schema.clone() } else { format!("  {}", run.strategy.as_str()) };
        rows.push(RaceRow {
            seen: seen(run, palette),
            name,
            counts: counts(run),
            speed: speed(run),
        });
    }
    rows
}

fn seen(run: &RaceRun, palette: Palette) -> Cell {
    let verdict = run.verdict();
    let text = match verdict {
        RaceVerdict::NoneSeen => format!("no violation in {}", run.begins),
        _ => verdict.as_str().to_owned(),
    };
    let color = match verdict {
        RaceVerdict::NoneSeen => AnsiColor::Green,
        RaceVerdict::Void => AnsiColor::Yellow,
        RaceVerdict::NotAtomic => AnsiColor::Red,
    };
    styled(palette, text, color.on_default())
}

fn counts(run: &RaceRun) -> [String; COUNTS.len()] {
    let winners = match (run.winners_min, run.winners_max) {
        (min, max) if min == max => max.to_string(),
        (min, max) => format!("{min}–{max}"),
    };
    let many = format!("{}/{}", run.rounds_with_many_winners, run.judged());
    [
        winners,
        many,
        run.conflicts.to_string(),
        run.replays.to_string(),
        run.wrong_replies.to_string(),
    ]
}

fn speed(run: &RaceRun) -> [String; SPEED.len()] {
    [
        format!("{:.0}", run.steps_per_second()),
        latency(run.latencies.quantile(0.5)),
        latency(run.latencies.quantile(0.95)),
        latency(run.latencies.quantile(0.99)),
        latency(run.latencies.max()),
        chart::sparks(run, SPARKS),
    ]
}

fn cells(texts: &[String]) -> Vec<Cell> {
    texts.iter().map(Cell::new).collect()
}

fn lay_out(heads: &[&str], rows: Vec<Vec<Cell>>, palette: Palette) -> String {
    let mut table = Table::new(palette);
    table.heading(heads.iter().copied());
    for row in rows {
        table.row(row);
    }
    for (column, head) in heads.iter().enumerate() {
        if !LEFT.contains(head) {
            table.align_right(column);
        }
    }
    table.text(0)
}
