//! The results of a race, in sentences.

use crate::domain::race::{RaceRun, RaceVerdict, Strategy};
use crate::render::fold::lines;
use crate::render::words::count;

/// The results of the schemas' own steps, then those of the strategies for comparison.
pub(super) fn text(runs: &[RaceRun], width: Option<usize>) -> String {
    let mut held: Vec<&RaceRun> = Vec::new();
    let mut sentences = Vec::new();
    // Failures come first, because they are what the reader must act on.
    for run in runs {
        if run.strategy != Strategy::Schema {
            continue;
        }
        if run.verdict() == RaceVerdict::NoneSeen {
            held.push(run);
        } else {
            sentences.push(not_held(run));
        }
    }
    if let Some(first) = held.first() {
        let who = match &held[..] {
            [run] => run.schema.clone(),
            _ => format!("{} schemas", held.len()),
        };
        sentences.push(format!(
            "At most one of {} simultaneous requests got the lock in each round of {who}. race \
            judges begin only, and would not detect a flaw rarer than 1 in {} lock attempts.",
            first.plan.concurrency,
            count(first.begins)
        ));
    }
    for strategy in [Strategy::CheckThenAct, Strategy::SetNx] {
        sentences.extend(compared(runs, strategy));
    }
    let mut text = String::new();
    for sentence in sentences {
        text.push_str(&lines(&sentence, 0, width));
    }
    text
}

/// A sentence about a schema with too many winners, or without a usable round.
fn not_held(run: &RaceRun) -> String {
    let schema = &run.schema;
    match run.rounds_with_many_winners {
        // A run without a usable round proves nothing, whatever its counts are.
        _ if run.verdict() == RaceVerdict::Void => {
            format!(
                "No result for {schema}, because a lock expired or vanished in {} of {} rounds.",
                run.void_rounds, run.rounds
            )
        }
        0 => format!("{schema} is not atomic: {} replies were wrong.", count(run.wrong_replies)),
        many => format!(
            "{schema} is not atomic: up to {} of {} simultaneous requests got the lock at once, in \
            {many} of {} rounds.",
            run.winners_max,
            run.plan.concurrency,
            run.judged()
        ),
    }
}

/// A sentence about a strategy of services without a script; `None` if no run has it.
fn compared(runs: &[RaceRun], strategy: Strategy) -> Option<String> {
    let of_strategy = runs.iter().filter(|run| run.strategy == strategy);
    let most = of_strategy.clone().map(|run| run.winners_max).max()?;
    let wrong: u64 = of_strategy.map(|run| run.wrong_replies).sum();
    let name = strategy.as_str();
    Some(if most > 1 {
        format!(
            "For comparison: with {name} instead of these scripts, up to {most} requests got the \
            lock at once."
        )
    } else if wrong > 0 {
        format!("For comparison: with {name}, {} replies were wrong.", count(wrong))
    } else {
        format!(
            "For comparison: with {name}, no violation was observed this time; --think-time widens \
            the window for one."
        )
    })
}
