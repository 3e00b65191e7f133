//! A schedule as swim lanes: time runs down, each worker has a column, Redis is in the middle, and
//! faults have a mark.

use crate::domain::exploration::{Act, TraceLine};
use crate::render::style::View;
use crate::render::{escape, table};

/// The mark of a fault.
const FAULT: &str = "✗";

/// The lanes: the workers that act, with Redis in their middle.
struct Lanes {
    names: Vec<String>,
    middle: usize,
}

/// The cells of one line: the lane that acts with its text, and the text in the lane of Redis.
struct Cells {
    lane: Option<usize>,
    does: String,
    holds: String,
}

impl Lanes {
    /// The lanes for these steps.
    fn of(lines: &[TraceLine]) -> Self {
        let mut names: Vec<String> = Vec::new();
        for line in lines {
            if is_acting(line.act) && !names.contains(&line.actor) {
                names.push(line.actor.clone());
            }
        }
        // Redis between the workers keeps all arrows short.
        let middle = names.len().div_ceil(2);
        names.insert(middle, "Redis".to_owned());
        Self { names, middle }
    }

    /// The cells of a line. Redis shows its state only if the state differs from `before`.
    fn cells(&self, line: &TraceLine, before: &str) -> Cells {
        let mark = if line.act.fault().is_some() { format!("{FAULT} ") } else { String::new() };
        let step = escape::text(line.step.as_bytes());
        // Faults such as an expiry happen in Redis, and have no lane of their own.
        if !is_acting(line.act) {
            let mut changed = String::new();
            if line.holds != before {
                changed = format!(": {}", escape::text(line.holds.as_bytes()));
            }
            return Cells {
                lane: None,
                does: String::new(),
                holds: format!("{mark}{step}{changed}"),
            };
        }
        let meaning = match &line.reply {
            Some(reply) => format!(": {}", meaning(reply)),
            None => String::new(),
        };
        let lane = self.names.iter().position(|name| *name == line.actor);
        let holds = if line.holds == before { String::new() } else { line.holds.clone() };
        let does = format!("{mark}{step}{}", escape::text(meaning.as_bytes()));
        Cells { lane, does, holds: escape::text(holds.as_bytes()) }
    }
}

/// True for an act of a worker or a client.
fn is_acting(act: Act) -> bool {
    act.worker().is_some() || matches!(act, Act::Next(_) | Act::Other(_))
}

/// The meaning of a reply, which is in brackets at its end; the reply itself if there is none.
fn meaning(reply: &str) -> &str {
    match reply.rsplit_once(" (") {
        Some((_, meaning)) => meaning.trim_end_matches(')'),
        None => reply,
    }
}

/// The schedule as a table.
pub(super) fn text(lines: &[TraceLine], view: View) -> String {
    let lanes = Lanes::of(lines);
    // The column of the numbers has no name.
    let mut heading = vec![""];
    heading.extend(lanes.names.iter().map(String::as_str));
    let mut before = "nothing".to_owned();
    let rows = lines.iter().enumerate().map(|(number, line)| {
        let cells = lanes.cells(line, &before);
        before.clone_from(&line.holds);
        let mut row = vec![String::new(); lanes.names.len() + 1];
        row[0] = (number + 1).to_string();
        row[lanes.middle + 1] = cells.holds;
        if let Some(lane) = cells.lane {
            row[lane + 1] = cells.does;
        }
        row
    });
    table::grid(view, 2, &heading, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        vec![
            line(
                Act::Call(0),
                "worker 1",
                "begins (take)",
                Some("\"OK\" (acquired)"),
                "lock of worker 1, 30s",
            ),
            line(Act::Expiry(0), "time", "the lock's TTL ends", None, "nothing"),
            line(
                Act::Call(1),
                "worker 2",
                "begins (take)",
                Some("\"OK\" (acquired)"),
                "lock of worker 2, 30s",
            ),
            line(Act::Effect(0), "worker 1", "makes <b> \u{1b}[31m", None, "lock of worker 2, 30s"),
        ]
    }

    #[test]
    fn each_has_a_lane_and_redis_shows_what_changed() {
        let expected = [
            "     worker 1                 Redis                           worker 2",
            "  1  begins (take): acquired  lock of worker 1, 30s",
            "  2                           ✗ the lock's TTL ends: nothing",
            "  3                           lock of worker 2, 30s           begins (take): acquired",
            "  4  makes <b> \\x1b[31m",
        ];
        let shown = text(&lines(), View { palette: Palette::new(false), width: None });
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
    }
}
