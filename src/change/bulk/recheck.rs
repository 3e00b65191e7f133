//! The recheck right before a change. Every selected record is selected once more. It is also read
//! once more on its node, unless it was read exactly enough within the last second ([`FRESH`]).
//!
//! The script compares too, so why read twice? The script only compares with the last read. The
//! recheck notices that a lock was renewed during the grace. It also reads the rest of a value if
//! its beginning leaves open whether the schema recognises it, or whether the rule selects it. And
//! a record that waited is kept as its identity alone, while the script needs the bytes.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::rule::{BulkRule, Planned};
use crate::domain::change::outcome_counts::OutcomeCounts;
use crate::domain::record::{
    Author, Candidate, Comparison, FieldSet, Identity, KeyState, Observation, Record, locate,
};
use crate::domain::schema::State;
use crate::domain::select::{Missing, Selected};
use crate::store::{MAX_FURTHER, ReadResult, RecordReader, StoreError};

/// A read this recent replaces the recheck's own read, which saves a round trip for each batch. The
/// script notices any later change.
const FRESH: Duration = Duration::from_secs(1);

/// Bytes of values that are read whole at a time: as many as are read of a single value
/// ([`MAX_FURTHER`]), so that memory stays flat.
const MAX_RECHECK_BYTES: u64 = 16 << 20;

/// A record that was selected, on its way to the change.
pub enum SelectedRecord {
    /// All that was read of the record.
    Whole { record: Box<Record>, read_at: Instant },
    /// Its Redis keys and its identity, which are small whatever the size of the values.
    Compact { candidate: Candidate, identity: Identity, read_at: Instant },
}

impl SelectedRecord {
    /// A record that was read just now.
    pub(super) fn new(record: Record) -> Self {
        Self::Whole { record: Box::new(record), read_at: Instant::now() }
    }

    /// The compact form, which a record has while it waits.
    pub(super) fn compact(self) -> Self {
        let read_at = self.read_at();
        let (candidate, identity) = self.into_identity();
        Self::Compact { candidate, identity, read_at }
    }

    /// When the record was read.
    pub(super) fn read_at(&self) -> Instant {
        match self {
            Self::Whole { read_at, .. } | Self::Compact { read_at, .. } => *read_at,
        }
    }

    /// Its Redis keys and its identity.
    fn into_identity(self) -> (Candidate, Identity) {
        match self {
            Self::Compact { candidate, identity, .. } => (candidate, identity),
            Self::Whole { record, .. } => {
                let identity = Identity::of(&record.seen);
                (Candidate::from(*record), identity)
            }
        }
    }

    /// True if the record was read just now, well enough for a change to compare with, and has the
    /// fields that are needed to select it.
    fn is_fresh(&self, needed: FieldSet) -> bool {
        let Self::Whole { record, read_at } = self else { return false };
        let is_decided = record.author != Author::Provisional && !record.lacks(needed);
        is_decided && is_comparable(record) && read_at.elapsed() < FRESH
    }
}

/// What a recheck found.
pub(super) struct Rechecked<G> {
    /// The records that did not change since they were selected, each with its plan.
    pub(super) same: Vec<(Record, Planned<G>)>,
    /// The outcomes so far, and those of the records that changed. An interrupted recheck returns
    /// none, so that it has counted nothing.
    pub(super) outcomes: OutcomeCounts,
    /// Why some records could not be read, and were left alone: a node of a cluster could not be
    /// asked, or the Redis user may not read them.
    pub(super) unread: Option<StoreError>,
}

/// Rechecks records, unless they were read just now.
///
/// # Errors
/// The server could not be asked.
pub(super) async fn recheck<R: BulkRule>(
    reader: &mut RecordReader,
    rule: &R,
    selected: Vec<SelectedRecord>,
    outcomes: OutcomeCounts,
) -> Result<Rechecked<R::Group>> {
    let mut rechecked =
        Rechecked { same: Vec::with_capacity(selected.len()), outcomes, unread: None };
    let needed = rule.scope().needed_fields;
    let mut stale = Vec::new();
    for selected in selected {
        if selected.is_fresh(needed)
            && let SelectedRecord::Whole { record, .. } = selected
        {
            rechecked.select_again(rule, Some(*record));
        } else {
            stale.push(selected.into_identity());
        }
    }
    let now = read_again(reader, &stale).await?;
    let mut undecided = Vec::new();
    for ((candidate, identity), now) in stale.into_iter().zip(now) {
        let Some(now) = rechecked.if_same(reader, &identity, now)? else { continue };
        match decode(rule, candidate, now) {
            Some(record) if record.author == Author::Provisional || record.lacks(needed) => {
                undecided.push(record);
            }
            record => rechecked.select_again(rule, record),
        }
    }
    rechecked.read_to_the_end(reader, rule, undecided).await?;
    Ok(rechecked)
}

impl<G> Rechecked<G> {
    /// What was read now, if the record is the one that was selected. Every other is counted.
    ///
    /// # Errors
    /// The server could not be asked.
    fn if_same(
        &mut self,
        reader: &RecordReader,
        identity: &Identity,
        now: ReadResult,
    ) -> Result<Option<Observation>> {
        let now = match now {
            Ok(now) => now,
            Err(error) => {
                note_unread(reader, error, &mut self.unread)?;
                return Ok(None);
            }
        };
        match identity.compare(&now) {
            Comparison::Same => return Ok(Some(now)),
            Comparison::Renewed => self.outcomes.renewed += 1,
            Comparison::Changed if now.is_absent() => self.outcomes.gone += 1,
            Comparison::Changed => self.outcomes.changed_meanwhile += 1,
        }
        Ok(None)
    }

    /// Decides by the whole values whose records these are, and whether the rule selects them. Only
    /// the beginning was read: a field behind it may be one that the schema does not write, or one
    /// that the rule selects by. What was read stays, because a change compares with that.
    ///
    /// # Errors
    /// The server could not be asked.
    async fn read_to_the_end(
        &mut self,
        reader: &mut RecordReader,
        rule: &impl BulkRule<Group = G>,
        undecided: Vec<Record>,
    ) -> Result<()> {
        let mut undecided = undecided.into_iter().peekable();
        while let Some(first) = undecided.next() {
            let mut bytes = first.size_bytes().unwrap_or(u64::MAX);
            let mut some = vec![first];
            while let Some(next) = undecided.peek() {
                bytes = bytes.saturating_add(next.size_bytes().unwrap_or(u64::MAX));
                if bytes > MAX_RECHECK_BYTES {
                    break;
                }
                some.extend(undecided.next());
            }
            let mut wanted = Vec::with_capacity(some.len());
            for record in &some {
                wanted.push(record.redis_keys());
            }
            let whole = reader.read_further_for_change(&wanted).await?;
            for (record, whole) in some.into_iter().zip(whole) {
                let identity = Identity::of(&record.seen);
                let Some(whole) = self.if_same(reader, &identity, whole)? else { continue };
                let seen = record.seen.clone();
                match decode(rule, Candidate::from(record.clone()), whole) {
                    Some(whole) => self.select_again(rule, Some(Record { seen, ..whole })),
                    None => self.outcomes.add_unrecognised(&record),
                }
            }
        }
        Ok(())
    }

    /// Keeps a record that the rule still selects. Every other is counted. `None` is a record that
    /// no longer decodes.
    fn select_again(&mut self, rule: &impl BulkRule<Group = G>, record: Option<Record>) {
        let Some(mut record) = record else {
            self.outcomes.changed_meanwhile += 1;
            return;
        };
        if is_too_large(&record) {
            self.outcomes.too_large += 1;
            return;
        }
        let is_of_lock = record.author.is_of_lock();
        if (record.author.is_foreign() && !is_of_lock) || record.author == Author::Provisional {
            self.outcomes.add_unrecognised(&record);
            return;
        }
        match rule.select(&record) {
            Selected::Yes(planned) if is_of_lock && !planned.is_only_own_lock(&record) => {
                self.outcomes.add_unrecognised(&record);
            }
            Selected::Yes(planned) => {
                // The change needs only what was seen, and many records wait for it together.
                record.forget_responses();
                self.same.push((record, planned));
            }
            Selected::Unproven(Missing::Field(_) | Missing::Format) => self.outcomes.too_large += 1,
            // The value did not change. It was selected by its beginning, and the rest is damaged.
            Selected::No if record.state == State::Unreadable => {
                self.outcomes.add_unrecognised(&record);
            }
            Selected::Unproven(_) | Selected::No => self.outcomes.changed_meanwhile += 1,
        }
    }
}

/// Keeps why a record could not be read, if other records can be.
///
/// # Errors
/// The server could not be asked.
pub(super) fn note_unread(
    reader: &RecordReader,
    error: StoreError,
    unread: &mut Option<StoreError>,
) -> Result<(), StoreError> {
    let error = if reader.can_read_others_after(&error) {
        error.into_missed()
    } else if error.is_permission() || matches!(error, StoreError::Missed { .. }) {
        // A record that the Redis user may not read did not change because of that, and one that
        // cannot be compared is left.
        error
    } else {
        return Err(error);
    };
    *unread = StoreError::prefer_unknown_outcome_or_first(unread.take(), Some(error));
    Ok(())
}

/// True if so much was read of a record that a change can compare with it: values that were read
/// whole or with their checksum, and exact deadlines.
fn is_comparable(record: &Record) -> bool {
    record.seen.keys.iter().all(KeyState::is_comparable)
}

/// True if only the rest of a value could show whose record it is, and that rest is too large to
/// read.
pub(super) fn is_too_large(record: &Record) -> bool {
    if record.author != Author::Provisional {
        return false;
    }
    let mut sizes = record.seen.keys.iter().filter_map(|key| key.content.size());
    sizes.any(|size| size > MAX_FURTHER as u64)
}

/// Reads those records again that were not read exactly enough to recognise them later: a value was
/// cut, or a deadline was computed from PTTL and the time around the page. If a record changed in
/// between, its first read is kept, and the recheck finds the change.
///
/// # Errors
/// The server could not be asked.
pub(super) async fn refresh<'a>(
    reader: &mut RecordReader,
    rule: &impl BulkRule,
    records: impl Iterator<Item = &'a mut Record>,
) -> Result<()> {
    let mut approximate = Vec::new();
    let mut identities = Vec::new();
    for record in records {
        if !is_comparable(record) {
            identities.push((Candidate::from(record.clone()), Identity::of(&record.seen)));
            approximate.push(record);
        }
    }
    let now = read_again(reader, &identities).await?;
    for ((record, (candidate, identity)), now) in approximate.into_iter().zip(identities).zip(now) {
        if let Ok(now) = now
            && !identity.differs(&now)
            && let Some(now) = decode(rule, candidate, now)
        {
            *record = now;
        }
    }
    Ok(())
}

/// Reads those values to the end whose beginning fits the schema and whose rest may not, so that a
/// preview does not promise changes that the recheck refuses. Reads at most `most_bytes`, and
/// subtracts what it reads. What was read before stays, because the recheck compares with that.
///
/// # Errors
/// The server could not be asked.
pub(super) async fn read_rest<'a>(
    reader: &mut RecordReader,
    rule: &impl BulkRule,
    records: impl Iterator<Item = &'a mut Record>,
    most_bytes: &mut u64,
) -> Result<()> {
    let mut part: Vec<&mut Record> = Vec::new();
    let mut part_bytes = 0;
    for record in records {
        if record.author != Author::Provisional || is_too_large(record) {
            continue;
        }
        let bytes = record.size_bytes().unwrap_or(u64::MAX);
        if bytes > *most_bytes {
            continue;
        }
        *most_bytes -= bytes;
        if part_bytes + bytes > MAX_RECHECK_BYTES && !part.is_empty() {
            read_rest_of(reader, rule, std::mem::take(&mut part)).await?;
            part_bytes = 0;
        }
        part_bytes += bytes;
        part.push(record);
    }
    read_rest_of(reader, rule, part).await
}

async fn read_rest_of(
    reader: &mut RecordReader,
    rule: &impl BulkRule,
    records: Vec<&mut Record>,
) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let mut wanted = Vec::with_capacity(records.len());
    for record in &records {
        wanted.push(record.redis_keys());
    }
    let whole = reader.read_further_for_change(&wanted).await?;
    for (record, whole) in records.into_iter().zip(whole) {
        // The recheck finds and reports a record that changed or cannot be read.
        let Ok(whole) = whole else { continue };
        if Identity::of(&record.seen).differs(&whole) {
            continue;
        }
        let seen = record.seen.clone();
        match decode(rule, Candidate::from(record.clone()), whole) {
            Some(whole) => {
                *record = Record { seen, ..whole };
                record.forget_responses();
            }
            None => record.author = Author::Unrecognised("it fits no format".to_owned()),
        }
    }
    Ok(())
}

/// Reads as much of each value as was read before, and more if that does not tell what the record
/// is.
async fn read_again(
    reader: &mut RecordReader,
    records: &[(Candidate, Identity)],
) -> Result<Vec<ReadResult>> {
    let mut wanted = Vec::with_capacity(records.len());
    let mut least = 0;
    for (candidate, identity) in records {
        wanted.push(candidate.redis_keys.clone());
        least = least.max(identity.read_bytes());
    }
    let mut seen = reader.read_for_change(&wanted, least).await?;
    for ((candidate, _), seen) in records.iter().zip(&mut seen) {
        if seen.as_ref().is_ok_and(|seen| locate::is_undecided(candidate, seen)) {
            let longer =
                reader.read_further_for_change(std::slice::from_ref(&candidate.redis_keys)).await?;
            if let Some(longer) = longer.into_iter().next() {
                *seen = longer;
            }
        }
    }
    Ok(seen)
}

fn decode(rule: &impl BulkRule, candidate: Candidate, now: Observation) -> Option<Record> {
    let scope = rule.scope();
    locate::first_record(&scope.catalog, candidate, now, &scope.thresholds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, chi};

    /// Rule: a record is read again before a change if the end of its value, which was not read,
    /// tells whose the record is.
    #[test]
    fn a_read_that_leaves_the_claim_open_is_not_the_last_one() {
        let mut record = chi(CHI_LOCK, TimeLeft::NoExpiry);
        assert!(SelectedRecord::new(record.clone()).is_fresh(FieldSet::ALL));
        record.author = Author::Provisional;
        assert!(!SelectedRecord::new(record).is_fresh(FieldSet::NONE));
    }
}
