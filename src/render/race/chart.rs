//! Latencies as bars.

use crate::domain::race::RaceRun;
use crate::render::bar::{bar, eighths};
use crate::render::words::latency;

/// The number of bars.
const ROWS: usize = 8;

/// The columns of a row beside its bar: the limit and the count.
const BESIDE: usize = 22;

/// The longest bar in columns, on a terminal of any width.
const LONGEST: usize = 60;

/// A character cell filled from below, in eighths.
const STANDING: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The distribution of latencies, one bar per row.
pub(super) fn text(run: &RaceRun, width: Option<usize>) -> String {
    let rows = run.latencies.rows(ROWS);
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or_default();
    let longest = match width {
        Some(width) => width.saturating_sub(BESIDE).clamp(8, LONGEST),
        None => LONGEST,
    };
    let mut text = format!("Latency of {}, {}\n", run.schema, run.strategy.as_str());
    for (limit, count) in &rows {
        text.push_str(&format!(
            "  ≤ {:>6}  {} {count}\n",
            latency(*limit),
            bar(*count, most, longest)
        ));
    }
    if rows.is_empty() { String::new() } else { text }
}

/// The distribution of latencies, one character per range.
pub(super) fn sparks(run: &RaceRun, length: usize) -> String {
    let rows = run.latencies.rows(length);
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or_default();
    let mut sparks = String::new();
    for (_, count) in rows {
        if count == 0 {
            sparks.push(' ');
        } else {
            // Any count above zero is visible, as in the bars.
            sparks.push(STANDING[eighths(count, most, 1).saturating_sub(1).min(7)]);
        }
    }
    sparks
}
