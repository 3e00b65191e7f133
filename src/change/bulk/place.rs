//! A record that was chosen, on its way to the change.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::record::{Candidate, Claim, Identity, Record, SeenKey};

/// How long a look counts as the one right before the change.
const FRESH: Duration = Duration::from_secs(1);

/// Where a record is, and what it was when it was chosen.
pub struct SelectedRecord {
    pub at: Instant,
    pub kept: KeptState,
}

pub enum KeptState {
    Record(Box<Record>),
    /// Enough to tell whether the record changed, whatever its size.
    Identity(Candidate, Identity),
}

impl SelectedRecord {
    pub fn of(record: Record) -> Self {
        Self { at: Instant::now(), kept: KeptState::Record(Box::new(record)) }
    }

    /// The same, kept as small as can be.
    pub fn small(self) -> Self {
        Self { kept: self.kept.small(), ..self }
    }

    /// True when the look is the one that a change may be compared with, right now.
    pub fn is_fresh(&self) -> bool {
        let is_told = |record: &Record| {
            record.claim != Claim::SoFar && record.seen.keys.iter().all(SeenKey::is_comparable)
        };
        matches!(&self.kept, KeptState::Record(record) if is_told(record))
            && self.at.elapsed() < FRESH
    }
}

impl KeptState {
    /// The same, kept as small as can be.
    fn small(self) -> Self {
        let (candidate, identity) = self.into_identity();
        Self::Identity(candidate, identity)
    }

    /// Where the record is, and what it was.
    pub fn into_identity(self) -> (Candidate, Identity) {
        match self {
            Self::Identity(candidate, identity) => (candidate, identity),
            Self::Record(record) => {
                let identity = Identity::of(&record.seen);
                (Candidate::from(*record), identity)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Expiry;
    use crate::domain::samples::{CHI_LOCK, chi};

    /// Rule: a record is looked at again before a change where the end of its value, which was not read, tells whose the
    /// record is.
    #[test]
    fn a_look_that_leaves_the_claim_open_is_not_the_last_one() {
        let mut record = chi(CHI_LOCK, Expiry::Never);
        assert!(SelectedRecord::of(record.clone()).is_fresh());
        record.claim = Claim::SoFar;
        assert!(!SelectedRecord::of(record).is_fresh());
    }
}
