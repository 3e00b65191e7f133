//! The time at which a Redis key expires, as far as a read can determine it.

/// The most milliseconds by which two measurements of the same expiry differ if they were computed
/// from TIME and PTTL. In 3,000 measurements in a script, on an idle and on a busy server, they
/// differed by 0 to 1 ms.
pub(crate) const SLACK_MS: u64 = 2;

/// Later expiries than this are not distinguished from each other, in milliseconds since the epoch:
/// in the year 287396. The scripts compare expiries too, and Lua's numbers are exact up to this
/// value. The limit applies only to comparisons: a restored key gets its exact expiry from the
/// backup.
pub(crate) const FARTHEST_MS: u64 = 1 << 53;

/// The time at which a Redis key expires, in milliseconds since the epoch by its server's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deadline {
    Never,
    /// At this time, as PEXPIRETIME replies (from Redis 7.0 on).
    At(u64),
    /// Between these two times: the time left by PTTL, added to the server's time before and after
    /// it.
    Between(u64, u64),
    /// The Redis user may not ask for it, or idemctl did not.
    Unknown,
}

impl Deadline {
    /// Reads the reply of PEXPIRETIME; an absent key has no deadline.
    pub(crate) fn from_pexpiretime(at: i64) -> Self {
        match u64::try_from(at) {
            Ok(at) => Self::At(at),
            Err(_) => Self::Never,
        }
    }

    /// Combines the reply of PTTL with the server's time before and after it.
    pub(crate) fn from_pttl(pttl: i64, before: Option<u64>, after: Option<u64>) -> Self {
        let Ok(left) = u64::try_from(pttl) else { return Self::Never };
        let (Some(before), Some(after)) = (before, after) else { return Self::Unknown };
        // The server computed the time left at some time between the two.
        Self::Between(before.saturating_add(left), after.saturating_add(left))
    }

    /// Measures an expiry as `deadline.lua` does, by PTTL between two readings of the clock. Unknown
    /// if more than 1 ms went by between these.
    pub(crate) fn measured(pttl: i64, before: Option<u64>, after: Option<u64>) -> Self {
        let before = before.unwrap_or_default();
        let now = after.filter(|after| after.saturating_sub(before) <= 1);
        Self::from_pttl(pttl, now, now)
    }

    /// True if both measurements can be of the same expiry. An unknown deadline equals no other
    /// one. All times beyond 2^53 ms are equal.
    pub(crate) fn is_same(self, other: Self) -> bool {
        let Some((earliest, latest)) = self.bounds() else {
            return self == Self::Never && other == Self::Never;
        };
        let Some((other_earliest, other_latest)) = other.bounds() else { return false };
        // PEXPIRETIME does not move. A computed expiry differs a little from one read to the next.
        let slack = if self.is_exact() && other.is_exact() { 0 } else { SLACK_MS };
        let latest = latest.min(FARTHEST_MS).saturating_add(slack);
        let other_latest = other_latest.min(FARTHEST_MS).saturating_add(slack);
        earliest.min(FARTHEST_MS) <= other_latest && other_earliest.min(FARTHEST_MS) <= latest
    }

    /// True if it is certainly later than `earlier`, by more than this many milliseconds.
    pub(crate) fn is_later_by(self, earlier: Self, tolerance_ms: u64) -> bool {
        let (Some((soonest, _)), Some((_, latest))) = (self.bounds(), earlier.bounds()) else {
            return false;
        };
        soonest.min(FARTHEST_MS) > latest.min(FARTHEST_MS).saturating_add(tolerance_ms)
    }

    /// True if this is the expiry that idemctl printed earlier for this server.
    pub(crate) fn is_at(self, at: u64) -> bool {
        let printed = if self.is_exact() { Self::At(at) } else { Self::Between(at, at) };
        self.is_same(printed)
    }

    /// True if a change can be made conditional on it: it is known to within the slack of a
    /// measurement.
    pub(crate) fn is_comparable(self) -> bool {
        match self {
            Self::Never | Self::At(_) => true,
            Self::Between(earliest, latest) => latest.saturating_sub(earliest) <= SLACK_MS,
            Self::Unknown => false,
        }
    }

    /// True if PEXPIRETIME reported it, or if the key never expires.
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, Self::Never | Self::At(_))
    }

    /// The time, or the middle of the interval; `None` if the key never expires, or the time is
    /// unknown.
    pub(crate) fn millis(self) -> Option<u64> {
        let (earliest, latest) = self.bounds()?;
        // This is the middle without the sum of both, which could overflow.
        Some(earliest + latest.saturating_sub(earliest) / 2)
    }

    fn bounds(self) -> Option<(u64, u64)> {
        match self {
            Self::At(at) => Some((at, at)),
            Self::Between(earliest, latest) => Some((earliest, latest)),
            Self::Never | Self::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::record::deadline::Deadline::{At, Between, Never, Unknown};

    #[test]
    fn exact_moments_are_compared_exactly() {
        assert!(At(9).is_same(At(9)) && !At(9).is_same(At(10)) && !At(10).is_same(At(9)));
    }

    #[test]
    fn computed_moments_may_lie_as_far_apart_as_measurements_do() {
        for near in [Between(8, 8), Between(12, 12), Between(1, 8), Between(12, 99)] {
            assert!(At(10).is_same(near) && near.is_same(At(10)), "{near:?}");
        }
        for far in [Between(7, 7), Between(13, 13), Between(1, 7), Between(13, 99)] {
            assert!(!At(10).is_same(far) && !far.is_same(At(10)), "{far:?}");
        }
    }

    #[test]
    fn a_moved_expiry_is_later_by_more_than_the_tolerance() {
        assert!(
            At(2_001).is_later_by(At(1_000), 1_000) && !At(2_000).is_later_by(At(1_000), 1_000)
        );
        assert!(!Between(2_000, 9_000).is_later_by(Between(500, 1_000), 1_000));
        for other in [Never, Unknown] {
            assert!(!other.is_later_by(At(1), 0) && !At(9).is_later_by(other, 0), "{other:?}");
        }
    }

    #[test]
    fn an_expiry_that_came_or_went_is_another() {
        for some in [At(1), Between(1, 2), Unknown] {
            assert!(!Never.is_same(some) && !some.is_same(Never), "{some:?}");
        }
        assert!(Never.is_same(Never));
        assert!(!Unknown.is_same(Unknown) && !Unknown.is_same(At(1)));
    }

    #[test]
    fn a_change_is_compared_with_nothing_blurred() {
        assert!([Never, At(1), Between(1, 3)].into_iter().all(Deadline::is_comparable));
        assert!(![Between(1, 4), Unknown].into_iter().any(Deadline::is_comparable));
    }

    /// Rule: a moment that was measured by readings of the clock that lie apart is not known.
    #[test]
    fn a_slow_measurement_tells_no_moment() {
        let measured = |before, after| Deadline::measured(10, Some(before), Some(after));
        assert_eq!([measured(5, 5), measured(5, 6)], [Between(15, 15), Between(16, 16)]);
        assert_eq!([measured(5, 7), Deadline::measured(10, None, None)], [Unknown, Unknown]);
        assert_eq!(Deadline::measured(-1, Some(5), Some(9)), Never);
    }

    #[test]
    fn replies_are_read() {
        assert_eq!([-2, -1, 5].map(Deadline::from_pexpiretime), [Never, Never, At(5)]);
        assert_eq!(Deadline::from_pttl(-1, Some(1), Some(2)), Never);
        assert_eq!(Deadline::from_pttl(10, Some(1), Some(2)), Between(11, 12));
        assert_eq!(Deadline::from_pttl(10, None, Some(2)), Unknown);
        let far = u64::try_from(i64::MAX).unwrap();
        assert_eq!(Deadline::from_pexpiretime(i64::MAX), At(far));
        assert_eq!(Deadline::from_pttl(i64::MAX, Some(1), Some(2)), Between(far + 1, far + 2));
        // The scripts report later moments as 2^53 ms.
        assert!(At(far).is_same(At(1 << 53)) && !At(far).is_same(At((1 << 53) - 1)));
        assert_eq!(
            [Never.millis(), At(5).millis(), Between(4, 6).millis()],
            [None, Some(5), Some(5)]
        );
    }

    proptest! {
        #[test]
        fn two_measurements_of_one_moment_are_the_same(at in 1_000..u64::MAX / 2, blur in 0..60_u64, read in 0..60_u64) {
            let first = Between(at - blur.min(at), at + 1);
            prop_assert!(first.is_same(At(at)) && first.is_same(Between(at, at + read)));
        }

        #[test]
        fn comparing_knows_no_order(a in 0..50_u64, b in 0..9_u64, c in 0..50_u64, d in 0..9_u64) {
            let (one, other) = (Between(a, a + b), Between(c, c + d));
            prop_assert_eq!(one.is_same(other), other.is_same(one));
            prop_assert!(one.is_same(one));
        }
    }
}
