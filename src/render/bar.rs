//! Horizontal bars for counts.

/// A character cell filled from the left, in eighths.
const LYING: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// A bar with the length of `count / most` in `longest` columns. Any count above zero has a visible
/// bar.
pub(super) fn bar(count: u64, most: u64, longest: usize) -> String {
    // The length in eighths of a column, rounded up.
    let whole = longest as u128 * 8;
    let share = (u128::from(count) * whole).div_ceil(u128::from(most.max(1)));
    let eighths = usize::try_from(share.min(whole)).unwrap_or_default();
    let mut bar = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        bar.push(LYING[eighths % 8 - 1]);
    }
    bar
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
