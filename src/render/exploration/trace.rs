//! A schedule as a table: one row per step, and what Redis holds when it has changed.

use crate::domain::exploration::TraceLine;
use crate::render::escape;
use crate::render::style::View;
use crate::render::table::{Column, of_columns};

/// The mark of a fault.
const FAULT: &str = "✗ ";

/// A step and its place.
struct Row<'a> {
    number: usize,
    line: &'a TraceLine,
    /// What Redis held before.
    before: &'a str,
}

/// The meaning of a reply, which is in brackets at its end; the reply itself if there is none.
fn meaning(reply: &str) -> &str {
    match reply.rsplit_once(" (") {
        Some((_, meaning)) => meaning.trim_end_matches(')'),
        None => reply,
    }
}

/// The schedule, one row per step.
pub(super) fn text(lines: &[TraceLine], view: View) -> String {
    let columns = [
        Column::number("    ", 0, |row: &Row<'_>| format!("  {:>2}", row.number)),
        Column::text("WHO", 0, |row| escape::text(row.line.actor.as_bytes())),
        Column::folded("STEP", 0, |row| {
            let mark = if row.line.act.fault().is_some() { FAULT } else { "" };
            let mut step = format!("{mark}{}", row.line.step);
            if let Some(reply) = &row.line.reply {
                step.push_str(&format!(": {}", meaning(reply)));
            }
            escape::text(step.as_bytes())
        }),
        Column::folded("REDIS THEN HOLDS", 0, |row| {
            if row.line.holds == row.before {
                return String::new();
            }
            escape::text(row.line.holds.as_bytes())
        }),
    ];
    let mut rows = Vec::with_capacity(lines.len());
    let mut before = "nothing";
    for (index, line) in lines.iter().enumerate() {
        rows.push(Row { number: index + 1, line, before });
        before = &line.holds;
    }
    of_columns(view, &columns, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::exploration::Act;
    use crate::render::style::Palette;

    fn lines() -> Vec<TraceLine> {
        let line =
            |act: Act, actor: &str, step: &str, reply: Option<&str>, holds: &str| TraceLine {
                act,
                actor: actor.to_owned(),
                step: step.to_owned(),
                reply: reply.map(str::to_owned),
                sees: None,
                holds: holds.to_owned(),
            };
        let (take, got) = ("begins (take)", Some("\"OK\" (acquired)"));
        vec![
            line(Act::Call(0), "worker 1", take, got, "lock of worker 1, 30s"),
            line(Act::Expiry(0), "time", "the lock's TTL ends", None, "nothing"),
            line(Act::Call(1), "worker 2", take, got, "lock of worker 2, 30s"),
            line(Act::Effect(0), "worker 1", "makes <b> \u{1b}[31m", None, "lock of worker 2, 30s"),
        ]
    }

    #[test]
    fn each_step_is_a_row_and_redis_shows_what_changed() {
        let expected = [
            "      WHO       STEP                     REDIS THEN HOLDS",
            "   1  worker 1  begins (take): acquired  lock of worker 1, 30s",
            "   2  time      ✗ the lock's TTL ends    nothing",
            "   3  worker 2  begins (take): acquired  lock of worker 2, 30s",
            "   4  worker 1  makes <b> \\x1b[31m",
        ];
        let shown = text(&lines(), View { palette: Palette::new(false), width: None });
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
    }
}
