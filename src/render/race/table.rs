//! A row for each run: the verdict and what it rests on, and how fast it went.

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, TableStyle};

use super::chart;
use super::report::latency;
use crate::domain::race::{Run, Strategy, Verdict};
use crate::render::style::Palette;

/// From this width on both halves stand side by side.
const WIDE: usize = 120;

/// What is said of a race without offence, before the number of begins.
const NONE_IN: &str = "none in";

/// Characters of the little chart.
const SPARKS: usize = 12;

/// The table; in a narrow terminal two, one below the other.
pub(super) fn text(runs: &[Run], width: Option<usize>, palette: Palette) -> String {
    let is_wide = width.is_none_or(|width| width >= WIDE);
    let rows = rows(runs, is_wide);
    if is_wide {
        let heads: Vec<_> = NAME.iter().chain(&VERDICT[1..]).chain(&SPEED[1..]).copied().collect();
        let whole = |row: &Row| [&row.verdict[..], &row.speed[1..]].concat();
        return lay_out(&[&VERDICT[..1], &heads].concat(), rows.iter().map(whole).collect(), palette);
    }
    let verdicts = lay_out(
        &[&VERDICT[..1], &NAME, &VERDICT[1..]].concat(),
        rows.iter().map(|row| row.verdict.clone()).collect(),
        palette,
    );
    let speeds = lay_out(&SPEED, rows.iter().map(|row| row.speed.clone()).collect(), palette);
    format!("{verdicts}\n{speeds}")
}

const NAME: [&str; 1] = ["SCHEMA"];
const VERDICT: [&str; 6] = ["VERDICT", "WINNERS", "MANY", "CONFLICTS", "REPLAYS", "WRONG"];
const SPEED: [&str; 7] = ["SCHEMA", "OPS/S", "P50", "P95", "P99", "MAX", "LATENCIES"];

struct Row {
    verdict: Vec<String>,
    speed: Vec<String>,
}

/// A schema's own row bears its name; what is played beside it stands indented below.
fn rows(runs: &[Run], is_wide: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut headed = "";
    for run in runs {
        let own = run.strategy == Strategy::Schema;
        if !own && run.schema != headed {
            let verdict = [vec![String::new(), run.schema.clone()], vec![String::new(); VERDICT.len() - 1]].concat();
            let speed = [vec![run.schema.clone()], vec![String::new(); SPEED.len() - 1]].concat();
            rows.push(Row { verdict, speed });
        }
        headed = &run.schema;
        let name = if own { run.schema.clone() } else { format!("  {}", run.strategy.as_str()) };
        rows.push(Row { verdict: verdict(run, name.clone(), is_wide), speed: speed(run, name) });
    }
    rows
}

fn verdict(run: &Run, name: String, is_wide: bool) -> Vec<String> {
    let winners = match (run.winners_min, run.winners_max) {
        (min, max) if min == max => max.to_string(),
        (min, max) => format!("{min}–{max}"),
    };
    let seen = match run.verdict() {
        Verdict::NoneSeen if is_wide => format!("{NONE_IN} {} begins", run.begins),
        Verdict::NoneSeen => format!("{NONE_IN} {}", run.begins),
        verdict => verdict.as_str().to_owned(),
    };
    vec![
        seen,
        name,
        winners,
        format!("{}/{}", run.rounds_with_many_winners, run.judged()),
        run.conflicts.to_string(),
        run.replays.to_string(),
        run.wrong_replies.to_string(),
    ]
}

fn speed(run: &Run, name: String) -> Vec<String> {
    let quantile = |share| latency(run.latencies.quantile(share));
    vec![
        name,
        format!("{:.0}", run.steps_per_second()),
        quantile(0.5),
        quantile(0.95),
        quantile(0.99),
        latency(run.latencies.max()),
        chart::sparks(run, SPARKS),
    ]
}

fn lay_out(heads: &[&str], rows: Vec<Vec<String>>, palette: Palette) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Disabled);
    if palette.is_on() {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table.add_row(
        heads
            .iter()
            .map(|head| if palette.is_on() { Cell::new(head).add_attribute(Attribute::Bold) } else { Cell::new(head) }),
    );
    for row in rows {
        table.add_row(row.into_iter().map(|text| colored(text, palette)));
    }
    for (index, head) in heads.iter().enumerate() {
        if let Some(column) = table.column_mut(index) {
            column.set_padding((0, 2));
            if !["VERDICT", "SCHEMA", "LATENCIES"].contains(head) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn colored(text: String, palette: Palette) -> Cell {
    let color = match text.as_str() {
        clean if clean.starts_with(NONE_IN) => Some(Color::Green),
        "void" => Some(Color::Yellow),
        "not-atomic" => Some(Color::Red),
        _ => None,
    };
    let cell = Cell::new(text);
    match color.filter(|_| palette.is_on()) {
        Some(color) => cell.fg(color),
        None => cell,
    }
}
