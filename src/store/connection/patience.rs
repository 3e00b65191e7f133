//! How long replies are waited for.

use std::time::Duration;

/// The fewest bytes a second at which long replies come.
const SLOWEST: u64 = 64 * 1024;

/// How long was waited for the replies to what was sent, and how much has come.
///
/// The replies to one write take `--timeout` as a whole, not each of their pieces: a server that sends a byte now and then
/// would be waited for without end. Long replies get the time more that their bytes need at [`SLOWEST`]. Only waiting
/// counts: whoever reads a page may do so slowly.
#[derive(Debug, Default)]
pub(super) struct Patience {
    pub(super) waited: Duration,
    pub(super) received: u64,
}

impl Patience {
    /// How long to wait for the next piece: never longer than the timeout, however much came at once before.
    pub(super) fn left(&self, timeout: Duration) -> Duration {
        let for_bytes = Duration::from_millis(self.received.saturating_mul(1_000) / SLOWEST);
        timeout.saturating_add(for_bytes).saturating_sub(self.waited).min(timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_given_by_the_bytes_that_came() {
        let left = |waited, received| Patience { waited, received }.left(Duration::from_secs(1));
        let seconds = Duration::from_secs;
        assert_eq!((left(seconds(0), 0), left(seconds(1), 0)), (seconds(1), seconds(0)));
        assert_eq!(
            (left(seconds(2), 2 * SLOWEST), left(seconds(9), SLOWEST)),
            (seconds(1), seconds(0))
        );
        assert_eq!(
            (left(seconds(0), u64::MAX), left(seconds(9), 9 * SLOWEST)),
            (seconds(1), seconds(1))
        );
    }
}
