//! The results of a race, in sentences.

use crate::domain::race::{RaceRun, RaceVerdict, Strategy};
use crate::render::fold::fold;
use crate::render::words::count;

/// The results of the schemas' own steps, then those of the strategies for comparison.
pub(super) fn text(runs: &[RaceRun], width: Option<usize>) -> String {
    let mut held = Vec::new();
    let mut others = Vec::new();
    let mut sentences = Vec::new();
    // Failures come first, because they are what the reader must act on.
    for run in runs {
        if run.strategy != Strategy::Schema {
            others.push(run);
        } else if run.verdict() == RaceVerdict::NoneSeen {
            held.push(run);
        } else {
            sentences.push(not_held(run));
        }
    }
    sentences.extend(held_by(&held));
    sentences.extend(compared(&others));
    let mut text = String::new();
    for sentence in sentences {
        for line in fold(&sentence, width) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

/// A sentence about the schemas without a violation.
fn held_by(runs: &[&RaceRun]) -> Option<String> {
    let first = runs.first()?;
    let who = match runs {
        [run] => run.schema.clone(),
        _ => format!("{} schemas", runs.len()),
    };
    // A round without a winner is no violation, but then "exactly one" would be wrong.
    let one = if runs.iter().all(|run| run.winners_min == 1) {
        "Exactly one"
    } else {
        "Never more than one"
    };
    let workers = requests(first.plan.concurrency);
    let begins = count(first.begins);
    Some(format!(
        "{one} of {workers} got the lock in each round of {who}. race judges begin only, and would \
        not detect a flaw rarer than 1 in {begins} lock attempts."
    ))
}

/// A sentence about a schema with too many winners, or without a usable round.
fn not_held(run: &RaceRun) -> String {
    let schema = &run.schema;
    let judged = run.judged();
    let workers = requests(run.plan.concurrency);
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
            "{schema} is not atomic: up to {} of {workers} got the lock at once, in {many} of \
            {judged} rounds.",
            run.winners_max
        ),
    }
}

/// Sentences about the strategies of services without a script.
fn compared(runs: &[&RaceRun]) -> Vec<String> {
    let mut strategies: Vec<Strategy> = Vec::new();
    for run in runs {
        if !strategies.contains(&run.strategy) {
            strategies.push(run.strategy);
        }
    }
    let mut sentences = Vec::new();
    for strategy in strategies {
        let name = strategy.as_str();
        let mut most = 0;
        let mut wrong = 0;
        for run in runs {
            if run.strategy == strategy {
                most = most.max(run.winners_max);
                wrong += run.wrong_replies;
            }
        }
        if most > 1 {
            sentences.push(format!(
                "With {name}, up to {most} requests got the lock at once, so the operation runs \
                {most} times."
            ));
        } else if wrong > 0 {
            sentences.push(format!("With {name}, {} replies were wrong.", count(wrong)));
        } else {
            sentences.push(format!(
                "With {name}, no violation was observed this time; --think-time widens the window \
                for one."
            ));
        }
    }
    sentences
}

fn requests(concurrency: usize) -> String {
    format!("{concurrency} simultaneous request{}", if concurrency == 1 { "" } else { "s" })
}
