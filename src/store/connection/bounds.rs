//! The maximum size of a reply, and of the time that it may take. A reply whose header announces
//! more is rejected before its bytes arrive.

use std::time::Duration;

use crate::store::connection::resp::{self, Token, Unreadable};

/// The most bytes of a reply. Redis accepts values of up to 512 MiB (`proto-max-bulk-len`), and DUMP
/// or a script adds some bytes.
pub(super) const MOST: usize = 600 << 20;

/// The progress of a reply that is read token by token.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    /// The number of elements still to read.
    missing: usize,
    /// The bytes read.
    read: usize,
}

impl Bounds {
    /// How many bytes the reply may still have.
    pub(super) fn left(&self) -> usize {
        MOST.saturating_sub(self.read)
    }

    /// Records a token of this many bytes.
    ///
    /// # Errors
    /// The reply has no room for the elements of an array. [`resp::token`] checks each array alone
    /// and cannot see nested ones together.
    pub(super) fn take(&mut self, token: &Token, bytes: usize) -> Result<(), Unreadable> {
        let elements = if let Token::Array(count) = token { *count } else { 0 };
        let missing = self.missing.saturating_sub(1).saturating_add(elements);
        if missing > self.left() / resp::SHORTEST {
            return Err(Unreadable::TooLarge);
        }
        self.missing = missing;
        self.read = if missing == 0 { 0 } else { self.read.saturating_add(bytes) };
        Ok(())
    }
}

/// The slowest accepted rate of a long reply, in bytes per second. Over a slower link, large values
/// need a longer `--timeout`.
const SLOWEST: u64 = 64 * 1024;

/// How long idemctl has waited for the replies to one write, and how many bytes have arrived.
///
/// `--timeout` covers all replies to one write, not each piece of them. Otherwise a server that
/// sends one byte now and then could delay idemctl without limit. Long replies get the additional
/// time that their bytes need at [`SLOWEST`]. Only waiting counts, so a caller may process a page
/// slowly.
#[derive(Debug, Default)]
pub(super) struct Patience {
    pub(super) waited: Duration,
    pub(super) received: u64,
}

impl Patience {
    /// How long to wait for the next piece. It is never longer than the timeout, even if many bytes
    /// arrived at once before.
    pub(super) fn left(&self, timeout: Duration) -> Duration {
        let for_bytes = Duration::from_millis(self.received.saturating_mul(1_000) / SLOWEST);
        timeout.saturating_add(for_bytes).saturating_sub(self.waited).min(timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_arrays_are_bounded_together() {
        let mut bounds = Bounds::default();
        let half = MOST / resp::SHORTEST / 2;
        assert_eq!(bounds.take(&Token::Array(2), 4), Ok(()));
        assert_eq!(bounds.left(), MOST - 4);
        assert_eq!(bounds.take(&Token::Array(half), 9), Ok(()));
        assert_eq!(bounds.take(&Token::Array(half + 9), 9), Err(Unreadable::TooLarge));
        let mut bounds = Bounds::default();
        for token in [Token::Array(1), Token::Integer(1)] {
            assert_eq!(bounds.take(&token, 4), Ok(()));
        }
        assert_eq!(bounds.left(), MOST, "the next reply");
    }

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
