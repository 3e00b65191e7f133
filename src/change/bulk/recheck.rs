//! The look right before a change: whatever waited since a record was chosen, the change compares with what this look saw.

use anyhow::Result;

use super::place::{KeptState, SelectedRecord};
use super::rule::{BulkRule, Planned};
use crate::domain::change::outcome::Account;
use crate::domain::record::{
    Candidate, Claim, Comparison, Identity, Observation, Record, SeenKey, locate,
};
use crate::store::{MOST_FURTHER, RecordReader, Seen, StoreError};

/// Bytes of values that are read whole at a time: memory stays flat.
const MOST_AT_ONCE: u64 = 16 << 20;

pub(super) struct Looked<G> {
    /// The records that are still what was seen, judged anew.
    pub there: Vec<(Record, Planned<G>)>,
    /// The account with those that are not.
    pub account: Account,
    /// Why a node of a cluster could not be asked, or what the user may not read: these records are left alone.
    pub silence: Option<StoreError>,
}

/// Looks again at places, unless the look at one is fresh.
///
/// # Errors
/// When the server could not be asked.
pub(super) async fn recheck<R: BulkRule>(
    reader: &mut RecordReader,
    rule: &R,
    places: Vec<SelectedRecord>,
    account: &Account,
) -> Result<Looked<R::Group>> {
    let mut looked =
        Looked { there: Vec::with_capacity(places.len()), account: account.clone(), silence: None };
    let (fresh, stale): (Vec<_>, Vec<_>) = places.into_iter().partition(SelectedRecord::is_fresh);
    for place in fresh {
        if let KeptState::Record(record) = place.kept {
            looked.judge(rule, Some(*record));
        }
    }
    let stale: Vec<_> = stale.into_iter().map(|place| place.kept.into_identity()).collect();
    let now = look(reader, &stale).await?;
    let mut open = Vec::new();
    for ((candidate, identity), now) in stale.into_iter().zip(now) {
        let Some(now) = looked.enter(reader, &identity, now)? else { continue };
        match read(rule, candidate, now) {
            Some(record) if record.claim == Claim::SoFar => open.push(record),
            record => looked.judge(rule, record),
        }
    }
    looked.judge_whole(reader, rule, open).await?;
    Ok(looked)
}

impl<G> Looked<G> {
    /// What a look shows, where it shows the record that was seen; the account has what it shows else.
    ///
    /// # Errors
    /// When the server could not be asked.
    fn enter(
        &mut self,
        reader: &RecordReader,
        identity: &Identity,
        now: Seen,
    ) -> Result<Option<Observation>> {
        match now.map(|now| (identity.compare(&now), now)) {
            Ok((Comparison::Same, now)) => return Ok(Some(now)),
            Ok((Comparison::Renewed, _)) => self.account.renewed += 1,
            Ok((Comparison::Changed, now)) if now.is_absent() => self.account.gone += 1,
            Ok((Comparison::Changed, _)) => self.account.changed += 1,
            Err(error) if reader.goes_on_after(&error) => {
                self.silence = StoreError::worse(self.silence.take(), Some(error.of_a_part()));
            }
            // What the user may not read did not change for that.
            Err(error) if error.is_permission() => {
                self.silence = StoreError::worse(self.silence.take(), Some(error))
            }
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }

    /// Judges records by all of their values, of which only the beginning was read: what stands behind it may be a field
    /// that the schema does not write. The records stay as they were read, for a change compares with that.
    ///
    /// # Errors
    /// When the server could not be asked.
    async fn judge_whole(
        &mut self,
        reader: &mut RecordReader,
        rule: &impl BulkRule<Group = G>,
        open: Vec<Record>,
    ) -> Result<()> {
        let mut open = open.into_iter().peekable();
        while let Some(first) = open.next() {
            let (mut bytes, mut some) = (first.size_bytes().unwrap_or(u64::MAX), vec![first]);
            while let Some(next) = open.next_if(|next| {
                bytes = bytes.saturating_add(next.size_bytes().unwrap_or(u64::MAX));
                bytes <= MOST_AT_ONCE
            }) {
                some.push(next);
            }
            let wanted: Vec<_> =
                some.iter().map(|record| Candidate::from(record.clone()).redis_keys).collect();
            let whole = reader.look_further(&wanted).await?;
            for (mut record, whole) in some.into_iter().zip(whole) {
                let Some(whole) = self.enter(reader, &Identity::of(&record.seen), whole)? else {
                    continue;
                };
                let whole = read(rule, Candidate::from(record.clone()), whole);
                record.claim = whole.map_or(Claim::SoFar, |whole| whole.claim);
                self.judge(rule, Some(record));
            }
        }
        Ok(())
    }

    fn judge(&mut self, rule: &impl BulkRule<Group = G>, record: Option<Record>) {
        if record.as_ref().is_some_and(is_too_large) {
            self.account.too_large += 1;
            return;
        }
        if record
            .as_ref()
            .is_some_and(|record| record.claim.is_foreign() || record.claim == Claim::SoFar)
        {
            self.account.foreign += 1;
            return;
        }
        match record.and_then(|record| rule.select(&record).yes().map(|planned| (record, planned)))
        {
            Some(there) => self.there.push(there),
            None => self.account.changed += 1,
        }
    }
}

/// True for a record that nobody can tell from another program's: the rest of a value would tell, which is never read.
pub(super) fn is_too_large(record: &Record) -> bool {
    let is_large =
        |key: &SeenKey| key.content.size().is_some_and(|size| size > MOST_FURTHER as u64);
    record.claim == Claim::SoFar && record.seen.keys.iter().any(is_large)
}

/// Looks at records that a page did not tell well enough to be known again: values that were cut, and deadlines that PTTL
/// and the time around a page told. A record that changed meanwhile stays as the page told it, and is known as changed later.
///
/// # Errors
/// When the server could not be asked.
pub(super) async fn refresh<'a>(
    reader: &mut RecordReader,
    rule: &impl BulkRule,
    records: impl Iterator<Item = &'a mut Record>,
) -> Result<()> {
    let is_approximate =
        |record: &&mut Record| !record.seen.keys.iter().all(SeenKey::is_comparable);
    let mut approximate: Vec<_> = records.filter(is_approximate).collect();
    let places: Vec<_> = approximate
        .iter()
        .map(|record| (Candidate::from((**record).clone()), Identity::of(&record.seen)))
        .collect();
    let now = look(reader, &places).await?;
    for ((record, (candidate, identity)), now) in approximate.iter_mut().zip(places).zip(now) {
        let same = now.ok().filter(|now| !identity.differs(now));
        if let Some(now) = same.and_then(|now| read(rule, candidate, now)) {
            **record = now;
        }
    }
    Ok(())
}

/// Reads as much of each value as the first look did, and more where that does not tell what the record is.
async fn look(reader: &mut RecordReader, places: &[(Candidate, Identity)]) -> Result<Vec<Seen>> {
    let keys = |index: &usize| places[*index].0.redis_keys.clone();
    let wanted: Vec<_> = (0..places.len()).map(|index| keys(&index)).collect();
    let least = places.iter().map(|(_, identity)| identity.read_bytes()).max().unwrap_or(0);
    let mut seen = reader.look(&wanted, least).await?;
    let is_open = |index: &usize| {
        seen[*index].as_ref().is_ok_and(|seen| locate::is_undecided(&places[*index].0, seen))
    };
    let open: Vec<_> = (0..places.len()).filter(is_open).collect();
    for index in open {
        let longer = reader.look_further(&[keys(&index)]).await?;
        longer.into_iter().for_each(|longer| seen[index] = longer);
    }
    Ok(seen)
}

fn read(rule: &impl BulkRule, candidate: Candidate, now: Observation) -> Option<Record> {
    let scope = rule.scope();
    locate::first_record(&scope.catalog, candidate, now, &scope.thresholds)
}
