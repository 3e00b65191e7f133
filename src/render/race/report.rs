//! The report of a race for people.

use std::collections::HashSet;

use super::{chart, sentences, table, timeline};
use crate::domain::duration;
use crate::domain::race::{RacePlan, RaceRun, Strategy};
use crate::domain::record::age::millis;
use crate::render::style::View;

/// The verdict, its evidence, and the first round that violates atomicity. `is_verbose` adds
/// latencies.
pub fn text(runs: &[RaceRun], view: View, is_verbose: bool) -> String {
    let mut parts = vec![
        sentences::text(runs, view.width),
        heading(runs) + &table::text(runs, view, is_verbose),
    ];
    // Charts of several schemas would hide the verdicts; the table shows their latencies.
    if is_verbose && runs.iter().all(|run| run.schema == runs[0].schema) {
        for run in runs {
            parts.push(chart::text(run, view.width));
        }
    }
    let mut offender = None;
    let mut offender_of_schema = None;
    for run in runs {
        if run.offending.is_none() {
            continue;
        }
        offender = offender.or(Some(run));
        if run.strategy == Strategy::Schema {
            offender_of_schema = offender_of_schema.or(Some(run));
        }
    }
    // A failure of the schema's own steps matters more than one of a strategy for comparison.
    if let Some(run) = offender_of_schema.or(offender) {
        parts.extend(timeline::text(run, view));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn heading(runs: &[RaceRun]) -> String {
    let Some(RaceRun { plan, rounds, .. }) = runs.first() else { return String::new() };
    let workers = count(plan.concurrency, "worker");
    let mut lines = format!("{workers}, {}, each on one fresh key\n", count(*rounds, "round"));
    let mut all = Vec::new();
    for run in runs {
        all.push((run.strategy.as_str(), options(&run.plan)));
    }
    let mut said = HashSet::new();
    for (strategy, options) in &all {
        for option in options {
            // Strategies may have options of their own.
            let shared = all.iter().all(|(_, options)| options.contains(option));
            let line =
                if shared { format!("{option}\n") } else { format!("{strategy}: {option}\n") };
            // Several schemas may have the same options.
            if said.insert(line.clone()) {
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
        let void = count(run.void_rounds, "round");
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
        options
            .push(format!("the handler fails in 1 of every {}", count(plan.fail_every, "round")));
    }
    if !plan.think_time.is_zero() {
        options.push(format!(
            "up to {} between the calls of a step",
            duration::short(millis(plan.think_time))
        ));
    }
    options
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
