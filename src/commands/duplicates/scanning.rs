//! The records of a server: one scan, and a second read of those that may belong to groups.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;

use super::Args;
use super::collector::{Collected, Collector, KeptRecords, Nomination};
use crate::domain::duplicates::record_time::{decoded, encoded};
use crate::domain::duplicates::{
    CompareCounts, CompareRule, ComparedName, ComparedRecord, PointerTally, RecordTime,
    UnknownBecause,
};
use crate::domain::record::{Candidate, FieldSet, Record};
use crate::domain::schema::{Catalog, Schema};
use crate::domain::select::{Selected, Selection};
use crate::exit::CommandError;
use crate::interrupt::Interrupt;
use crate::scan::{Lengths, Scan, ScanEnd, ScanQuery, ScanReport};
use crate::session::Session;
use crate::store::{ReadLimit, RecordReader};

/// How much of each value a page reads, so that the reply for 500 records stays below 8 MiB. Most
/// responses are shorter.
const PAGE_HEAD: usize = 16 << 10;

/// How longer values are read: up to this many bytes, so many records at a time.
const LONGER_READS: [(usize, usize); 3] = [(64 << 10, 16), (1 << 20, 1), (16 << 20, 1)];

/// How many records are read a second time in one request. With [`PAGE_HEAD`] bytes of each, the
/// reply has about 1 MiB.
const REREAD_AT_A_TIME: usize = 64;

/// What was read of a server.
pub(super) struct ReadServer {
    /// The records that may belong to groups, as the second read found them.
    pub(super) records: Vec<ComparedRecord>,
    pub(super) counts: CompareCounts,
    pub(super) tally: PointerTally,
    pub(super) leaves_fingerprints_out: bool,
    pub(super) report: ScanReport,
}

pub(super) async fn read(
    session: &mut Session,
    args: &Args,
    rule: &CompareRule,
    catalog: &Catalog,
    reader: RecordReader,
) -> Result<ReadServer> {
    let selection = args.select.selection(session, catalog)?;
    let interrupt = Interrupt::listen()?;
    // The filter by body needs whole bodies.
    let head =
        if selection.reads_bodies() { ReadLimit::Whole } else { ReadLimit::Bytes(PAGE_HEAD) };
    let query = ScanQuery {
        catalog,
        thresholds: args.thresholds.thresholds(),
        first_read: head,
        // Owners, fingerprints, states and times decide, and are shown.
        needed: FieldSet::ALL,
        lengths: Lengths::None,
    };
    let progress = session.ui.progress("keys scanned");
    let scan = Scan::start(reader, query, &interrupt, progress).await?;
    let reading = ServerReading { scan, head, rule, selection: &selection, schemas: Vec::new() };
    reading.run(args.within_ms()).await
}

struct ServerReading<'a> {
    scan: Scan<'a>,
    /// How much of each value is read at least.
    head: ReadLimit,
    rule: &'a CompareRule,
    selection: &'a Selection,
    /// The schemas of the spooled records, by their index.
    schemas: Vec<Arc<Schema>>,
}

/// A record to read again: the index of its schema, its key, and why it was nominated.
struct WantedRecord {
    schema: usize,
    key: Vec<u8>,
    /// The time of the scan's read. A second read by plain commands does not have the server's
    /// time, from which an expiry counts.
    time: Option<RecordTime>,
    nomination: Nomination,
}

/// A record of which more has to be read. Its values are not kept, because they may be long.
struct CutRecord {
    candidate: Candidate,
    name: ComparedName,
    time: Option<RecordTime>,
    /// The index in [`LONGER_READS`].
    step: usize,
}

/// A record and its time.
type TimedRecord = (Record, Option<RecordTime>);

impl ServerReading<'_> {
    async fn run(mut self, within_ms: Option<u64>) -> Result<ReadServer> {
        let mut collector = Collector::new(self.rule)?;
        while let Some(page) = self.scan.next_page(self.selection).await {
            let (complete, mut cut) = split(self.rule, page.into_records());
            for (record, time) in &complete {
                self.collect(&mut collector, record, *time)?;
            }
            while !cut.is_empty() {
                match self.read_longer(&mut cut).await {
                    Ok(longer) => {
                        for (record, time) in &longer {
                            self.collect(&mut collector, record, *time)?;
                        }
                    }
                    Err(unread) => {
                        for name in &unread {
                            collector.counts.records += 1;
                            collector.counts.add_unknown(UnknownBecause::NotReread, name);
                        }
                    }
                }
            }
        }
        let collected = collector.finish(within_ms)?;
        let wanted = wanted(&collected)?;
        let Collected { mut counts, tally, hasher, leaves_fingerprints_out, .. } = collected;
        let mut kept = KeptRecords::default();
        let mut missing = Vec::new();
        for some in wanted.chunks(REREAD_AT_A_TIME) {
            let Some(read) = self.read_again(some).await else {
                for one in some {
                    counts.add_unknown(UnknownBecause::NotReread, &self.name(one));
                }
                continue;
            };
            for (one, now) in some.iter().zip(read) {
                let Some((now, is_selected)) = now else {
                    missing.push(self.name(one));
                    continue;
                };
                if !is_selected || one.nomination.is_outdated(&now, &hasher) {
                    counts.add_unknown(UnknownBecause::Changed, &now.name);
                }
                if is_selected {
                    kept.add(now, leaves_fingerprints_out)?;
                }
            }
        }
        let report = self.scan.finish();
        // If a node did not answer, its records may still exist.
        let is_known = matches!(report.end, ScanEnd::Complete) && report.forbidden.is_none();
        let why = if is_known { UnknownBecause::Gone } else { UnknownBecause::NotReread };
        for name in &missing {
            counts.add_unknown(why, name);
        }
        // Some of the records may not have been read again.
        if matches!(report.end, ScanEnd::Interrupted) {
            kept = KeptRecords::default();
        }
        let records = kept.into_records();
        Ok(ReadServer { records, counts, tally, leaves_fingerprints_out, report })
    }

    /// Adds a record of the scan.
    fn collect(
        &mut self,
        collector: &mut Collector<'_>,
        record: &Record,
        time: Option<RecordTime>,
    ) -> Result<()> {
        let mut compared = self.rule.compare(record);
        compared.time = time;
        // What a second read needs: the schema's index, the time, and the key.
        let schema = u16::try_from(self.schema_index(&record.schema))?;
        let spooled = [&schema.to_le_bytes()[..], &encoded(time), &record.key].concat();
        if collector.tallies_pointers()
            && let Some(response) = record.stored()
            && response.whole
        {
            collector.tally.add(&record.key, &response.body());
        }
        collector.add(&compared, &spooled)?;
        Ok(())
    }

    /// The index of a schema. A schema may be there under several prefixes.
    fn schema_index(&mut self, schema: &Arc<Schema>) -> usize {
        let is_same = |known: &Arc<Schema>| {
            Arc::ptr_eq(known, schema)
                || known.name == schema.name && known.has_templates_of(schema)
        };
        match self.schemas.iter().position(is_same) {
            Some(index) => index,
            None => {
                self.schemas.push(Arc::clone(schema));
                self.schemas.len() - 1
            }
        }
    }

    fn name(&self, wanted: &WantedRecord) -> ComparedName {
        ComparedName { schema: self.schemas[wanted.schema].name.clone(), key: wanted.key.clone() }
    }

    /// Reads more of the last of these records, so many that the replies stay small. Returns those
    /// that are complete now, or are larger than is ever read; the others are put back.
    ///
    /// # Errors
    /// The names of these records, if they could not be read.
    async fn read_longer(
        &mut self,
        cut: &mut Vec<CutRecord>,
    ) -> Result<Vec<TimedRecord>, Vec<ComparedName>> {
        let Some(step) = cut.last().map(|last| last.step) else { return Ok(Vec::new()) };
        let (limit, at_a_time) = LONGER_READS[step];
        let mut names = Vec::with_capacity(at_a_time);
        let mut candidates = Vec::with_capacity(at_a_time);
        let mut times = HashMap::with_capacity(at_a_time);
        while names.len() < at_a_time
            && let Some(next) = cut.pop_if(|next| next.step == step)
        {
            times.insert(next.name.clone(), next.time);
            names.push(next.name);
            candidates.push(next.candidate);
        }
        self.scan.set_first_read(ReadLimit::Bytes(limit));
        let read = self.scan.read_records(candidates, |_| false).await;
        self.scan.set_first_read(self.head);
        let Some(read) = read else { return Err(names) };
        let mut complete = Vec::with_capacity(read.len());
        for record in read {
            let name = name_of(&record);
            let before = times.get(&name).copied().flatten();
            let time = RecordTime::of(&record).or(before);
            if is_cut(self.rule, &record) && step + 1 < LONGER_READS.len() {
                let candidate = Candidate::from(record);
                cut.push(CutRecord { candidate, name, time, step: step + 1 });
            } else {
                complete.push((record, time));
            }
        }
        Ok(complete)
    }

    /// Reads records again. Returns how each of them is compared now, and whether it is still
    /// selected; `None` for one that no longer exists. The outer `None` means that they could not
    /// be read.
    async fn read_again(
        &mut self,
        wanted: &[WantedRecord],
    ) -> Option<Vec<Option<(ComparedRecord, bool)>>> {
        let mut candidates = Vec::with_capacity(wanted.len());
        let mut places = HashMap::with_capacity(wanted.len());
        for (place, one) in wanted.iter().enumerate() {
            let schema = Arc::clone(&self.schemas[one.schema]);
            places.insert((one.schema, one.key.as_slice()), place);
            candidates.push(Candidate {
                key: one.key.clone(),
                redis_keys: schema.redis_keys(&one.key),
                schemas: Arc::from([schema]),
                is_most_specific: true,
            });
        }
        let read = self.scan.read_records(candidates, |_| false).await?;
        let (mut read, mut cut) = split(self.rule, read);
        let mut found = vec![None; wanted.len()];
        loop {
            for (record, _) in read {
                let schema = self.schema_index(&record.schema);
                let Some(place) = places.get(&(schema, record.key.as_slice())) else { continue };
                let mut now = self.rule.compare(&record);
                now.time = now.time.or(wanted[*place].time);
                let is_selected = self.selection.selects(&record) == Selected::Yes(());
                found[*place] = Some((now, is_selected));
            }
            if cut.is_empty() {
                return Some(found);
            }
            read = self.read_longer(&mut cut).await.ok()?;
        }
    }
}

/// The records to read again, each once. If a scan returned a record several times, its last
/// nomination counts.
fn wanted(collected: &Collected) -> Result<Vec<WantedRecord>, CommandError> {
    let mut wanted: Vec<WantedRecord> = Vec::with_capacity(collected.nominations.len());
    for nomination in &collected.nominations {
        let bytes = collected.spool.read(nomination.place)?;
        let Some((schema, rest)) = bytes.split_first_chunk() else { continue };
        let Some((time, key)) = rest.split_first_chunk() else { continue };
        wanted.push(WantedRecord {
            schema: usize::from(u16::from_le_bytes(*schema)),
            time: decoded(*time),
            key: key.to_vec(),
            nomination: *nomination,
        });
    }
    // Stable, so that nominations of one record stay in the order of the scan.
    wanted.sort_by(|one, other| (one.schema, &one.key).cmp(&(other.schema, &other.key)));
    wanted.reverse();
    wanted.dedup_by(|next, kept| (next.schema, &next.key) == (kept.schema, &kept.key));
    Ok(wanted)
}

/// True if a response or a field was read only in part, or the value, if pointers go into it.
fn is_cut(rule: &CompareRule, record: &Record) -> bool {
    if rule.reads_values() && record.seen.keys.iter().any(|key| !key.content.is_whole()) {
        return true;
    }
    !record.unread_fields().is_empty() || record.stored().is_some_and(|response| !response.whole)
}

fn name_of(record: &Record) -> ComparedName {
    ComparedName { schema: record.schema.name.clone(), key: record.key.clone() }
}

/// The records that were read completely, with their times, and those of which more has to be read.
fn split(rule: &CompareRule, records: Vec<Record>) -> (Vec<TimedRecord>, Vec<CutRecord>) {
    let mut complete = Vec::with_capacity(records.len());
    let mut cut = Vec::new();
    for record in records {
        let time = RecordTime::of(&record);
        if is_cut(rule, &record) {
            let name = name_of(&record);
            cut.push(CutRecord { candidate: Candidate::from(record), name, time, step: 0 });
        } else {
            complete.push((record, time));
        }
    }
    (complete, cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::duplicates::spool::Spool;

    /// Rule: a record that SCAN returned twice is read again once.
    #[test]
    fn a_record_that_was_nominated_twice_is_wanted_once() {
        let mut spool = Spool::create().unwrap();
        let mut nominations = Vec::new();
        for key in ["a", "b", "a"] {
            let spooled = [&0_u16.to_le_bytes()[..], &encoded(None), key.as_bytes()].concat();
            let place = spool.add(&spooled).unwrap();
            nominations.push(Nomination { place, values: Some(1), fingerprint: None });
        }
        let collected = Collected {
            nominations,
            spool: spool.finish().unwrap(),
            counts: CompareCounts::default(),
            tally: PointerTally::default(),
            hasher: std::hash::RandomState::new(),
            leaves_fingerprints_out: false,
        };
        let wanted = wanted(&collected).unwrap();
        let keys: Vec<_> = wanted.iter().map(|one| one.key.as_slice()).collect();
        assert_eq!(keys, [b"b", b"a"]);
        assert!(wanted[1].nomination.place > wanted[0].nomination.place, "the last one counts");
    }
}
