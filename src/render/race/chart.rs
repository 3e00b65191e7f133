//! Latencies as bars.

use crate::domain::race::Run;
use crate::render::words::latency;

const ROWS: usize = 8;

/// The longest bar, however wide the terminal.
const LONGEST: usize = 60;

/// A character filled from the left, by eighths.
const LYING: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// A character filled from below, by eighths.
const STANDING: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How many steps took how long, a bar a row.
pub(super) fn text(run: &Run, width: Option<usize>) -> String {
    let rows = run.latencies.rows(ROWS);
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or_default();
    let longest = width.map_or(LONGEST, |width| width.saturating_sub(22).clamp(8, LONGEST));
    let mut text = format!("Latency of {}, {}\n", run.schema, run.strategy.as_str());
    for (limit, count) in &rows {
        text.push_str(&format!("  ≤ {:>6}  {} {count}\n", latency(*limit), bar(*count, most, longest)));
    }
    if rows.is_empty() { String::new() } else { text }
}

/// How many steps took how long, a character a row.
pub(super) fn sparks(run: &Run, length: usize) -> String {
    let rows = run.latencies.rows(length);
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or_default();
    let spark = |count: u64| if count == 0 { ' ' } else { STANDING[eighths(count, most, 1).saturating_sub(1).min(7)] };
    rows.iter().map(|(_, count)| spark(*count)).collect()
}

fn bar(count: u64, most: u64, longest: usize) -> String {
    let eighths = eighths(count, most, longest);
    let rest = eighths % 8;
    let mut bar = "█".repeat(eighths / 8);
    if rest > 0 {
        bar.push(LYING[rest - 1]);
    }
    bar
}

/// A share of a length, in eighths, rounded up.
fn eighths(count: u64, most: u64, longest: usize) -> usize {
    let whole = longest as u128 * 8;
    let share = (u128::from(count) * whole).div_ceil(u128::from(most.max(1)));
    usize::try_from(share.min(whole)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share_and_never_invisible() {
        assert_eq!(bar(10, 10, 4), "████");
        assert_eq!(bar(5, 10, 4), "██");
        assert_eq!(bar(1, 1_000_000, 4), "▏");
        assert_eq!(bar(0, 10, 4), "");
    }
}
