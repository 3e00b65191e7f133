//! A schedule as swim lanes: time runs down, each worker has a column, Redis is in the middle, and
//! faults have a mark.

use crate::domain::exploration::{Act, TraceLine};
use crate::render::style::View;
use crate::render::{escape, table};

/// The mark of a fault.
const FAULT: &str = "✗ ";

/// The name of the lane of Redis.
const REDIS: &str = "Redis";

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

/// The schedule as a table: a lane for each worker that acts, with Redis in their middle.
pub(super) fn text(lines: &[TraceLine], view: View) -> String {
    let mut names: Vec<&str> = Vec::new();
    for line in lines {
        if is_acting(line.act) && !names.contains(&line.actor.as_str()) {
            names.push(&line.actor);
        }
    }
    // Redis between the workers keeps all arrows short. The column of the numbers has no name.
    names.insert(names.len().div_ceil(2), REDIS);
    names.insert(0, "");
    let lane = |name: &str| names.iter().position(|known| *known == name).unwrap_or(0);
    let mut rows = Vec::new();
    let mut before = "nothing";
    for (number, line) in lines.iter().enumerate() {
        let mark = if line.act.fault().is_some() { FAULT } else { "" };
        let mut does = format!("{mark}{}", escape::text(line.step.as_bytes()));
        // Redis shows its state only if it has changed.
        let mut holds = String::new();
        if line.holds != before {
            holds = escape::text(line.holds.as_bytes());
        }
        before = &line.holds;
        let mut row = vec![String::new(); names.len()];
        row[0] = (number + 1).to_string();
        if is_acting(line.act) {
            if let Some(reply) = &line.reply {
                does += &format!(": {}", escape::text(meaning(reply).as_bytes()));
            }
            row[lane(&line.actor)] = does;
        } else {
            // Faults such as an expiry happen in Redis, and have no lane of their own.
            holds = if holds.is_empty() { does } else { format!("{does}: {holds}") };
        }
        row[lane(REDIS)] = holds;
        rows.push(row);
    }
    table::grid(view, 2, &names, rows.into_iter())
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
