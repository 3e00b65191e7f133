//! One row per run: the verdict, its evidence, and the speed.

use anstyle::{AnsiColor, Style};

use crate::domain::race::{RaceRun, RaceVerdict, Strategy};
use crate::render::style::View;
use crate::render::table::{Column, of_columns};
use crate::render::words::latency;

/// The table of the runs. `with_speed` adds a table of operations per second and latencies.
pub(super) fn text(runs: &[&RaceRun], view: View, with_speed: bool) -> String {
    let results = [
        Column::text("VERDICT", 0, verdict).painted(color),
        Column::text("SCHEMA", 0, name),
        Column::number("WINNERS", 0, winners),
        Column::number("MANY", 0, |run| {
            format!("{}/{}", run.rounds_with_many_winners, run.judged())
        }),
        Column::number("CONFLICTS", 1, |run| run.conflicts.to_string()),
        Column::number("REPLAYS", 2, |run| run.replays.to_string()),
        Column::number("WRONG", 0, |run| run.wrong_replies.to_string()),
    ];
    let mut text = of_columns(view, &results, runs);
    if with_speed {
        let speed = [
            Column::text("SCHEMA", 0, name),
            Column::number("OPS/S", 0, |run| format!("{:.0}", run.steps_per_second())),
            Column::number("P50", 1, |run| latency(run.latencies.quantile(0.5))),
            Column::number("P95", 2, |run| latency(run.latencies.quantile(0.95))),
            Column::number("P99", 0, |run| latency(run.latencies.quantile(0.99))),
            Column::number("MAX", 1, |run| latency(run.latencies.max())),
        ];
        text += "\n";
        text += &of_columns(view, &speed, runs);
    }
    text
}

/// The schema, and the strategy that stands in for its own steps.
fn name(run: &&RaceRun) -> String {
    match run.strategy {
        Strategy::Schema => run.schema.clone(),
        strategy => format!("{} {}", run.schema, strategy.as_str()),
    }
}

/// A violation is certain, and its absence only holds for what was tried.
fn verdict(run: &&RaceRun) -> String {
    match run.verdict() {
        RaceVerdict::NoneSeen => format!("no violation in {}", run.begins),
        verdict => verdict.as_str().to_owned(),
    }
}

fn color(run: &&RaceRun) -> Style {
    let color = match run.verdict() {
        RaceVerdict::NoneSeen => AnsiColor::Green,
        RaceVerdict::Void => AnsiColor::Yellow,
        RaceVerdict::NotAtomic => AnsiColor::Red,
    };
    color.on_default()
}

fn winners(run: &&RaceRun) -> String {
    if run.winners_min == run.winners_max {
        return run.winners_max.to_string();
    }
    format!("{}–{}", run.winners_min, run.winners_max)
}
