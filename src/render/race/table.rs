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
    let is_wide = !with_speed || view.width.is_none_or(|width| width >= WIDE);
    let rows = rows(runs, view.palette);
    let palette = view.palette;
    let judged =
        |row: &RaceRow| [vec![row.seen.clone(), Cell::new(&row.name)], cells(&row.counts)].concat();
    let judged_heads = [&["VERDICT", "SCHEMA"][..], &COUNTS].concat();
    if !with_speed {
        return lay_out(&judged_heads, rows.iter().map(judged), palette);
    }
    if is_wide {
        let whole = rows.iter().map(|row| [judged(row), cells(&row.speed)].concat());
        return lay_out(&[&judged_heads[..], &SPEED].concat(), whole, palette);
    }
    let verdicts = lay_out(&judged_heads, rows.iter().map(judged), palette);
    let speeds = rows.iter().map(|row| [vec![Cell::new(&row.name)], cells(&row.speed)].concat());
    format!("{verdicts}\n{}", lay_out(&[&["SCHEMA"][..], &SPEED].concat(), speeds, palette))
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
            let (counts, speed) = Default::default();
            rows.push(RaceRow { seen: Cell::new(""), name: run.schema.clone(), counts, speed });
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
    let quantile = |share| latency(run.latencies.quantile(share));
    let per_second = format!("{:.0}", run.steps_per_second());
    let max = latency(run.latencies.max());
    [per_second, quantile(0.5), quantile(0.95), quantile(0.99), max, chart::sparks(run, SPARKS)]
}

fn cells(texts: &[String]) -> Vec<Cell> {
    texts.iter().map(Cell::new).collect()
}

fn lay_out(heads: &[&str], rows: impl Iterator<Item = Vec<Cell>>, palette: Palette) -> String {
    let mut table = Table::new(palette);
    table.heading(heads.iter().copied());
    rows.for_each(|row| table.row(row));
    let numbers = heads.iter().enumerate().filter(|(_, head)| !LEFT.contains(head));
    numbers.for_each(|(column, _)| table.align_right(column));
    table.text(0)
}
