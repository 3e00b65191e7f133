//! The report of a race for people.

use super::{sentences, table, timeline};
use crate::domain::duration;
use crate::domain::race::{RacePlan, RaceRun, Strategy};
use crate::domain::record::age::millis;
use crate::render::style::View;
use crate::render::words::counted;

/// The verdict, its evidence, and the first round that violates atomicity. `is_verbose` adds the
/// speed, and the rows of the strategies that are there for comparison.
pub fn text(runs: &[RaceRun], view: View, is_verbose: bool) -> String {
    let is_own = |run: &&RaceRun| run.strategy == Strategy::Schema;
    let mut shown: Vec<_> = runs.iter().filter(is_own).collect();
    if shown.is_empty() || is_verbose {
        shown = runs.iter().collect();
    }
    let mut parts = vec![
        sentences::text(runs, view.width),
        heading(runs) + &table::text(&shown, view, is_verbose),
    ];
    // A failure of the schema's own steps matters more than one of a strategy for comparison.
    let offenders = shown.iter().filter(|run| run.offending.is_some());
    if let Some(run) = offenders.min_by_key(|run| !is_own(run)) {
        parts.extend(timeline::text(run, view));
    }
    parts.join("\n")
}

fn heading(runs: &[RaceRun]) -> String {
    let Some(RaceRun { plan, rounds, .. }) = runs.first() else { return String::new() };
    let workers = counted(plan.concurrency as u64, "worker");
    let rounds = counted(*rounds as u64, "round");
    let mut lines = format!("{workers}, {rounds}, each on one fresh key\n");
    for run in runs {
        // Strategies may have options of their own, and several schemas have the same.
        for option in options(&run.plan) {
            let line = format!("{}: {option}\n", run.strategy.as_str());
            if !lines.contains(&line) {
                lines.push_str(&line);
            }
        }
    }
    let lost: u64 = runs.iter().map(|run| run.lost_replies).sum();
    if lost > 0 {
        lines.push_str(&format!(
            "lost replies: {lost}; each of these steps may or may not have been executed\n"
        ));
    }
    for run in runs {
        if run.void_rounds == 0 {
            continue;
        }
        let void = counted(run.void_rounds as u64, "round");
        let name = run.strategy.as_str();
        lines.push_str(&format!(
            "{}, {name}: {void} void, because a lock expired or vanished during the round\n",
            run.schema
        ));
    }
    lines
}

fn options(plan: &RacePlan) -> Vec<String> {
    let mut options = Vec::new();
    if plan.overlap {
        options.push("winners complete at once, while others still begin".to_owned());
    }
    if plan.fail_every > 0 {
        options.push(format!("the handler fails in 1 of every {} rounds", plan.fail_every));
    }
    if !plan.think_time.is_zero() {
        let pause = duration::short(millis(plan.think_time));
        options.push(format!("up to {pause} between the calls of a step"));
    }
    options
}
