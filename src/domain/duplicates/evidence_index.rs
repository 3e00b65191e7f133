//! What is kept of each record during the scan: 32 bytes for each kind of evidence, whatever the
//! sizes of its key and its value are. Equal hashes only nominate records, which are then read
//! again and compared by their values.

/// One record with one kind of evidence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EvidenceEntry {
    /// The hash of what is compared.
    pub(crate) value: u64,
    /// The hash of the idempotency key.
    pub(crate) key: u64,
    /// The time of the record in milliseconds since the epoch, if it can separate records.
    pub(crate) at_ms: Option<MilliSeconds>,
    /// Where the name of the record is kept.
    pub(crate) place: u64,
}

/// A time that leaves a bit pattern for "none", so that an entry does not grow.
pub(crate) type MilliSeconds = std::num::NonZeroU64;

/// The times of two reads may differ by this many milliseconds, if they come from the time left.
const TOLERANCE_MS: u64 = 2_000;

/// More records than the memory limit permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyEntries;

/// The records with one kind of evidence.
#[derive(Debug)]
pub(crate) struct EvidenceIndex {
    entries: Vec<EvidenceEntry>,
    most: usize,
}

impl EvidenceIndex {
    /// An index of at most this many entries.
    pub(crate) fn new(most: usize) -> Self {
        Self { entries: Vec::new(), most }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// The index is full.
    pub(crate) fn add(&mut self, entry: EvidenceEntry) -> Result<(), TooManyEntries> {
        if self.entries.len() == self.most {
            return Err(TooManyEntries);
        }
        self.entries.push(entry);
        Ok(())
    }

    /// The entries of all records that may be in a group, because an entry with another key has the
    /// same hash, and the times permit it.
    ///
    /// # Errors
    /// There are more than `most` of them.
    pub(crate) fn candidates(
        mut self,
        within_ms: Option<u64>,
        most: usize,
    ) -> Result<Vec<EvidenceEntry>, TooManyEntries> {
        self.entries.sort_unstable_by_key(|entry| (entry.value, entry.at_ms, entry.place));
        let mut candidates = Vec::new();
        for run in self.entries.chunk_by(|one, next| one.value == next.value) {
            if !has_several_keys(run) {
                continue;
            }
            let Some(within_ms) = within_ms else {
                push(&mut candidates, run, most)?;
                continue;
            };
            // A record of unknown time is named if another one agrees, whatever the other's time
            // is. `None` sorts first.
            if run[0].at_ms.is_none() {
                push(&mut candidates, run, most)?;
                continue;
            }
            let limit = within_ms.saturating_add(TOLERANCE_MS);
            for part in run.chunk_by(|one, next| gap(one, next) <= limit) {
                if has_several_keys(part) {
                    push(&mut candidates, part, most)?;
                }
            }
        }
        Ok(candidates)
    }
}

/// Adds entries, if there are at most so many then.
fn push(
    candidates: &mut Vec<EvidenceEntry>,
    entries: &[EvidenceEntry],
    most: usize,
) -> Result<(), TooManyEntries> {
    if candidates.len() + entries.len() > most {
        return Err(TooManyEntries);
    }
    candidates.extend_from_slice(entries);
    Ok(())
}

/// The milliseconds between two entries that are sorted by time.
fn gap(one: &EvidenceEntry, next: &EvidenceEntry) -> u64 {
    match (one.at_ms, next.at_ms) {
        (Some(one), Some(next)) => next.get().saturating_sub(one.get()),
        _ => 0,
    }
}

fn has_several_keys(entries: &[EvidenceEntry]) -> bool {
    entries.iter().any(|entry| entry.key != entries[0].key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(entries: &[(u64, u64, u64)]) -> EvidenceIndex {
        let mut index = EvidenceIndex::new(100);
        for (place, (value, key, at_ms)) in entries.iter().enumerate() {
            let at_ms = MilliSeconds::new(*at_ms);
            let entry = EvidenceEntry { value: *value, key: *key, at_ms, place: place as u64 };
            index.add(entry).unwrap();
        }
        index
    }

    fn places(index: EvidenceIndex, within_ms: Option<u64>) -> Vec<u64> {
        let mut places: Vec<_> =
            index.candidates(within_ms, 10).unwrap().iter().map(|entry| entry.place).collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn an_entry_has_the_size_that_the_documents_state() {
        assert_eq!(size_of::<EvidenceEntry>(), 32);
    }

    #[test]
    fn candidates_have_equal_hashes_and_different_keys() {
        // The first value has one key twice, the second two keys, the third one entry.
        let entries = [(1, 7, 10), (1, 7, 20), (2, 8, 10), (2, 9, 900_000), (3, 7, 10)];
        assert_eq!(places(index(&entries), None), [2, 3]);
        assert_eq!(places(index(&entries), Some(800_000)), [] as [u64; 0]);
        assert_eq!(places(index(&entries), Some(900_000)), [2, 3]);
    }

    #[test]
    fn an_unknown_time_is_a_candidate_if_another_key_agrees() {
        let entries = [(1, 7, 0), (1, 8, 10), (2, 9, 0)];
        assert_eq!(places(index(&entries), Some(1_000)), [0, 1]);
    }

    #[test]
    fn an_index_refuses_more_than_its_limit() {
        let mut small = EvidenceIndex::new(1);
        let entry = EvidenceEntry { value: 1, key: 1, at_ms: None, place: 0 };
        assert_eq!(small.add(entry), Ok(()));
        assert_eq!(small.add(entry), Err(TooManyEntries));
        let entries = [(1, 7, 10), (1, 8, 10), (2, 7, 10), (2, 8, 10)];
        assert_eq!(index(&entries).candidates(None, 3).err(), Some(TooManyEntries));
        assert_eq!(index(&entries).candidates(None, 4).map(|found| found.len()), Ok(4));
    }
}
