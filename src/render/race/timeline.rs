//! The timeline of the first round that violates atomicity.

use std::collections::BTreeSet;

use anstyle::AnsiColor;

use crate::domain::race::{Offending, RaceEvent, RaceRun, Strategy};
use crate::render::escape;
use crate::render::style::View;

/// The most events that are shown.
const SHOWN: usize = 12;

/// The timeline of a run's first offending round, with the offending pair marked.
pub(super) fn text(run: &RaceRun, view: View) -> Option<String> {
    let offending = run.offending.as_ref()?;
    // Some rules are violated by one event alone.
    let pair = [Some(offending.offence.event), offending.offence.against];
    let name = match run.strategy {
        Strategy::Schema => run.schema.clone(),
        strategy => format!("{} (keys of {})", strategy.as_str(), run.schema),
    };
    let title = format!("Round {} shows that {name} is not atomic:", offending.round);
    let mut text = format!(
        "{}\n{}\n\n",
        view.palette.bold(&title),
        offending.offence.rule.sentence(offending.winners)
    );
    text.push_str("   START µs    END µs  WORKER  STEP      REPLY\n");
    let mut next = 0;
    for index in excerpt(offending) {
        if index > next {
            text.push_str(&skipped(index - next));
        }
        next = index + 1;
        let marked = pair.contains(&Some(index));
        let line = line(&offending.events[index], marked);
        text.push_str(&if marked {
            view.palette.paint(AnsiColor::Red.on_default(), &line)
        } else {
            line
        });
        text.push('\n');
    }
    if next < offending.events.len() {
        text.push_str(&skipped(offending.events.len() - next));
    }
    Some(text)
}

/// The indexes of the events to show, in order: the offending pair, other events of the same
/// workers, and events near the pair.
pub(super) fn excerpt(offending: &Offending) -> BTreeSet<usize> {
    let mut pair = vec![offending.offence.event];
    pair.extend(offending.offence.against);
    let workers: Vec<usize> = pair.iter().map(|index| offending.events[*index].worker).collect();
    let mut order: Vec<usize> = (0..offending.events.len()).collect();
    // The order of importance: the pair itself, its workers, then the distance.
    order.sort_by_cached_key(|index| {
        let is_of_others = !workers.contains(&offending.events[*index].worker);
        let distance = pair.iter().map(|marked| index.abs_diff(*marked)).min();
        (!pair.contains(index), is_of_others, distance)
    });
    order.into_iter().take(SHOWN).collect()
}

fn line(event: &RaceEvent, marked: bool) -> String {
    let detail = match event.answer.detail() {
        Some(detail) => format!(": {}", escape::text(detail.as_bytes())),
        None => String::new(),
    };
    format!(
        "{} {:>9}  {:>8}  {:>6}  {:<8}  {}{}",
        if marked { '▶' } else { ' ' },
        micros(event.start),
        micros(event.end),
        event.worker,
        event.act.as_str(),
        event.answer.as_str(),
        detail,
    )
}

fn skipped(events: usize) -> String {
    format!("          … {events} more\n")
}

fn micros(nanos: u64) -> String {
    format!("{}.{}", nanos / 1000, nanos % 1000 / 100)
}
