//! One cell as a sequence of events: the actor, the step, the reply of Redis, and the reply to the
//! client.

use crate::domain::simulation::{Cell, ClientAnswer, History};
use crate::render::fold::lines;
use crate::render::simulation::matrix::{style_of, words};
use crate::render::style::View;
use crate::render::{escape, table};

/// A cell's verdict with its reason, and the sequence of each variant.
pub(super) fn text(cell: &Cell, view: View) -> String {
    let View { palette, width } = view;
    let verdict = palette.paint(style_of(cell), &words(cell));
    let schema = escape::text(cell.schema.as_bytes());
    let mut text = format!("{}  {schema}: {verdict}\n", palette.bold(&cell.scenario.name));
    text.push_str(&lines(&escape::text(cell.judgement.why.as_bytes()), 0, width));
    for take in &cell.takes {
        text.push('\n');
        if !take.take.is_empty() {
            text.push_str(&format!("  {}\n", palette.dim(&escape::text(take.take.as_bytes()))));
        }
        text.push_str(&sequence(take, view));
    }
    text
}

fn escaped(text: Option<&str>) -> String {
    escape::text(text.unwrap_or_default().as_bytes())
}

fn sequence(take: &History, view: View) -> String {
    let rows = take.events.iter().map(|event| {
        vec![
            format!("{}.{}", event.at_us / 1_000, event.at_us % 1_000 / 100),
            escape::text(event.actor.as_bytes()),
            escape::text(event.step.as_bytes()),
            escaped(event.reply.as_deref()),
            escaped(event.client.as_deref()),
        ]
    });
    let heading = ["MS", "WHO", "DOES", "REDIS", "CLIENT SEES"];
    let mut text = table::grid(view, 2, &heading, rows);
    let mut effects = Vec::new();
    for (operation, times) in take.effects() {
        effects.push(format!("{operation}: {times}"));
    }
    let mut errors = 0;
    for answered in &take.answers {
        if matches!(answered.answer, ClientAnswer::Error(_)) {
            errors += 1;
        }
    }
    let made = if effects.is_empty() { "nothing".to_owned() } else { effects.join(", ") };
    let failed =
        if errors == 0 { String::new() } else { format!("; requests with an error: {errors}") };
    text.push_str(&format!("  {}\n", view.palette.dim(&format!("executed: {made}{failed}"))));
    text
}
