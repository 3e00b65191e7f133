//! The records that a run selects, from a scan of the keyspace or from the keys of a file, and what is counted of them before
//! anybody is asked.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use anyhow::Result;

use super::place::SelectedRecord;
use super::recheck::{is_too_large, refresh};
use super::rule::{BulkRule, Planned};
use crate::context::key_file::KeyFile;
use crate::domain::record::Record;
use crate::domain::select::{Coverage, Selected, Tally};
use crate::exit::CommandError;
use crate::interrupt::Interrupt;
use crate::scan::{Lengths, RecordFilter, Scan, ScanEnd, ScanPage, ScanPlan};
use crate::store::read::records::{Lookup, LookupResult};
use crate::store::{MOST_WHOLE, ReadLimit, RecordReader, StoreError};
use crate::terminal::frame::ProgressLine;

/// Keys of a file that are looked up in one round trip.
const PAGE: usize = 200;

/// If at least one record in this many is selected, the next pages bring whole values: rechecking the selected records would
/// cost more than the bytes of the others.
const SELECTED_IN: usize = 4;

/// Records that are kept between showing and changing. If more are selected, a second scan finds them, so that memory stays
/// flat.
pub(super) const CHUNK: usize = 10_000;

/// Where the records of a run come from.
pub struct RecordSource<'a> {
    from: SourceKind<'a>,
    interrupt: Interrupt,
}

enum SourceKind<'a> {
    Scan(Box<Scan<'a>>),
    Keys(Box<NamedRecords<'a>>),
}

/// A rule as the filter of a scan.
struct ByRule<'a, R>(&'a R);

impl<R: BulkRule> RecordFilter for ByRule<'_, R> {
    type Plan = Planned<R::Group>;

    fn passes_key(&self, key: &[u8]) -> bool {
        self.0.may_choose(key)
    }

    fn is_about(&self, record: &Record) -> bool {
        self.0.is_about(record)
    }

    fn select(&self, record: &Record) -> Selected<Self::Plan> {
        self.0.select(record)
    }
}

/// What a source read and left out.
pub struct SourceReport {
    /// Redis keys, or keys of the file, that were read.
    pub keys: u64,
    pub coverage: Coverage,
    /// A warning that records were left out that the user may not read.
    pub forbidden: Option<String>,
    /// Why nodes of a cluster were left out, if any were.
    pub missed: Option<StoreError>,
}

impl<'a> RecordSource<'a> {
    /// Starts at the beginning of the keyspace, or of the file if there is one.
    pub async fn open(
        rule: &'a impl BulkRule,
        reader: RecordReader,
        file: Option<&'a mut KeyFile>,
        interrupt: &Interrupt,
        progress: ProgressLine,
    ) -> Result<Self> {
        let from = match file {
            None => {
                let scope = rule.scope();
                let plan = ScanPlan {
                    catalog: &scope.catalog,
                    thresholds: scope.thresholds.clone(),
                    head: ReadLimit::Bytes(scope.least),
                    lengths: if scope.lengths { Lengths::All } else { Lengths::None },
                };
                SourceKind::Scan(Box::new(Scan::start(reader, plan, interrupt, progress).await?))
            }
            Some(file) => {
                file.rewind()?;
                SourceKind::Keys(Box::new(NamedRecords::new(file, reader, progress)))
            }
        };
        Ok(Self { from, interrupt: interrupt.clone() })
    }

    /// Redis keys, or keys of the file, that were read so far.
    pub fn keys(&self) -> u64 {
        match &self.from {
            SourceKind::Scan(scan) => scan.keys(),
            SourceKind::Keys(named) => named.keys,
        }
    }

    /// True if the keyspace is scanned.
    pub fn is_scan(&self) -> bool {
        matches!(self.from, SourceKind::Scan(_))
    }

    /// About how many keys the servers went through so far.
    pub fn keys_passed(&self) -> u64 {
        match &self.from {
            SourceKind::Scan(scan) => scan.keys_passed(),
            SourceKind::Keys(named) => named.keys,
        }
    }

    /// The next page, which may be empty; `None` at the end. Nodes of a cluster that do not answer are left out: the report
    /// has them.
    ///
    /// # Errors
    /// When the server could not be asked; Ctrl-C.
    pub async fn next<R: BulkRule>(
        &mut self,
        rule: &R,
    ) -> Result<Option<ScanPage<Planned<R::Group>>>> {
        match &mut self.from {
            SourceKind::Scan(scan) => {
                let page = scan.next_page(&ByRule(rule)).await;
                if page.is_none() {
                    scan.require_end()?;
                }
                Ok(page)
            }
            SourceKind::Keys(named) => {
                let page = self.interrupt.unless_raised(named.next(rule)).await;
                page.unwrap_or_else(|| Err(CommandError::interrupted("interrupted").into()))
            }
        }
    }

    /// The next page of a run that changes what is selected. If many records are, later pages bring whole values.
    pub async fn next_whole<R: BulkRule>(
        &mut self,
        rule: &R,
    ) -> Result<Option<ScanPage<Planned<R::Group>>>> {
        let page = self.next(rule).await?;
        if let SourceKind::Scan(scan) = &mut self.from
            && let Some(page) = &page
            && page.selected.len() * SELECTED_IN > page.records
        {
            scan.bring_heads(ReadLimit::Bytes(MOST_WHOLE));
        }
        Ok(page)
    }

    /// What was read. A source that has not come to its end stops here.
    pub fn finish(self) -> SourceReport {
        match self.from {
            SourceKind::Scan(scan) => {
                let report = scan.finish();
                let missed = match report.end {
                    ScanEnd::Incomplete(error) => Some(error),
                    ScanEnd::Complete | ScanEnd::Interrupted | ScanEnd::Failed(_) => None,
                };
                SourceReport {
                    keys: report.keys,
                    coverage: report.coverage,
                    forbidden: report.forbidden,
                    missed,
                }
            }
            SourceKind::Keys(named) => {
                named.progress.finish_and_clear();
                SourceReport {
                    keys: named.keys,
                    coverage: named.coverage,
                    forbidden: None,
                    missed: named.missed,
                }
            }
        }
    }
}

/// The records that the keys of a file name.
struct NamedRecords<'a> {
    file: &'a mut KeyFile,
    reader: RecordReader,
    progress: ProgressLine,
    keys: u64,
    seen: SeenKeys,
    coverage: Coverage,
    missed: Option<StoreError>,
}

impl<'a> NamedRecords<'a> {
    fn new(file: &'a mut KeyFile, reader: RecordReader, progress: ProgressLine) -> Self {
        let (seen, coverage) = (SeenKeys::default(), Coverage::default());
        Self { file, reader, progress, keys: 0, seen, coverage, missed: None }
    }

    async fn next<R: BulkRule>(&mut self, rule: &R) -> Result<Option<ScanPage<Planned<R::Group>>>> {
        let Some(records) = self.read(rule).await? else { return Ok(None) };
        let count = records.len();
        let mut selected = Vec::new();
        for record in records {
            if rule.is_about(&record) {
                self.coverage.contradictions.note(&record);
            }
            let choice = rule.select(&record);
            if matches!(choice, Selected::No) {
                self.coverage.named.add_not_chosen(&record);
            }
            if let Some(planned) = self.coverage.take(&record, choice) {
                selected.push((record, planned));
            }
        }
        Ok(Some(ScanPage { records: count, selected }))
    }

    /// The records of the next keys, each once however often the file names it; `None` at the end of the file.
    async fn read(&mut self, rule: &impl BulkRule) -> Result<Option<Vec<Record>>> {
        let scope = rule.scope();
        let keys = self.file.next(PAGE)?;
        if keys.is_empty() {
            return Ok(None);
        }
        self.keys += keys.len() as u64;
        let lookup = Lookup {
            head: ReadLimit::Bytes(MOST_WHOLE),
            thresholds: scope.thresholds.clone(),
            both: false,
        };
        let found = lookup.find(&mut self.reader, &scope.catalog, keys).await?;
        if self.missed.is_none() {
            self.missed = found.iter().find_map(|found| found.silent().cloned());
        }
        let scanned = scope.catalog.scanned();
        let mut records = Vec::new();
        for mut found in found {
            if let Some(names) = found.several() {
                self.coverage.named.add_ambiguous(&found.key, names);
                continue;
            }
            for record in std::mem::take(&mut found.records) {
                let is_scanned = scanned.iter().any(|schema| schema.name == record.schema.name);
                if is_scanned || found.says_schema_of(&record) {
                    found.records.push(record);
                }
            }
            self.add_new(found, &mut records);
        }
        self.progress.set_position(self.keys);
        Ok(Some(records))
    }

    fn add_new(&mut self, found: LookupResult, records: &mut Vec<Record>) {
        // A record that an earlier line named may be gone by now: it was found all the same.
        let was_seen = found.looked_at.iter().any(|redis_key| self.seen.has(redis_key));
        if found.records.is_empty() && found.unread.is_none() && !was_seen {
            self.coverage.named.add_absent(&found.key);
        }
        let has_own = found.records.iter().any(|record| !record.claim.is_foreign());
        for record in found.records {
            if !self.seen.is_new(&record.seen.keys[0].redis_key) {
                continue;
            }
            if self.coverage.claims(&record) {
                records.push(record);
            } else if !has_own {
                let why = record.claim.foreign_because().unwrap_or_default();
                let why = format!("not {}'s: {why}", record.schema.name);
                self.coverage.named.add_unrecognised(&record, why);
            }
        }
    }
}

/// The Redis keys of the records that a list named so far, which it may name again in other words. Each takes 16 bytes. Two
/// keys share both hashes with a chance of one in 2^128.
#[derive(Default)]
struct SeenKeys {
    hashers: [RandomState; 2],
    hashes: HashSet<[u64; 2]>,
}

impl SeenKeys {
    fn hash(&self, redis_key: &[u8]) -> [u64; 2] {
        [self.hashers[0].hash_one(redis_key), self.hashers[1].hash_one(redis_key)]
    }

    /// True the first time that a Redis key is named.
    fn is_new(&mut self, redis_key: &[u8]) -> bool {
        let hash = self.hash(redis_key);
        self.hashes.insert(hash)
    }

    fn has(&self, redis_key: &[u8]) -> bool {
        self.hashes.contains(&self.hash(redis_key))
    }
}

/// What a run is about, counted before anybody is asked.
pub struct Preview<G> {
    pub tally: Tally<G>,
    /// Redis keys, or keys of a file, that were read.
    pub keys: u64,
    /// Records of the schemas that were read, selected or not.
    pub records: u64,
    /// Selected records that end by themselves.
    pub ending: u64,
    /// Selected records that no change touches, because a value is too large to tell what the record is. If more are selected
    /// than are kept, they are not counted before the change.
    pub too_large: u64,
    /// The selected records; `None` if there are more than [`CHUNK`].
    pub places: Option<Vec<SelectedRecord>>,
    /// A warning that records were left out that the user may not read.
    pub forbidden: Option<String>,
    /// Why nodes of a cluster were left out, if any were.
    pub missed: Option<StoreError>,
    /// What was left out, and which default TTLs the records contradict.
    pub coverage: Coverage,
}

impl<G: Ord> Default for Preview<G> {
    fn default() -> Self {
        Self {
            tally: Tally::default(),
            keys: 0,
            records: 0,
            ending: 0,
            too_large: 0,
            places: Some(Vec::new()),
            forbidden: None,
            missed: None,
            coverage: Coverage::default(),
        }
    }
}

impl<G: Ord + Clone> Preview<G> {
    /// Counts what a source selects. Records that end by themselves are kept only if `keeps_ending`.
    ///
    /// # Errors
    /// When the server could not be asked; Ctrl-C. Nothing was changed.
    pub async fn take<R: BulkRule<Group = G>>(
        rule: &R,
        mut source: RecordSource<'_>,
        reader: &mut RecordReader,
        keeps_ending: bool,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let mut preview = Self::default();
        loop {
            let page = source.next(rule).await;
            if interrupt.is_raised() {
                let message =
                    format!("interrupted: {} keys so far; nothing was changed", source.keys());
                return Err(CommandError::interrupted(message).into());
            }
            let Some(page) = page? else { break };
            preview.add(&page, source.keys());
            let mut kept = Vec::with_capacity(page.selected.len());
            for (record, planned) in page.selected {
                if keeps_ending || !planned.ends_by_itself {
                    kept.push(record);
                }
            }
            preview.keep(reader, rule, kept).await?;
        }
        preview.close(source.finish());
        Ok(preview)
    }

    /// Takes over what a source reports at its end.
    pub(super) fn close(&mut self, report: SourceReport) {
        self.keys = report.keys;
        self.forbidden = report.forbidden;
        self.coverage = report.coverage;
        self.missed = report.missed;
    }

    pub(super) fn add(&mut self, page: &ScanPage<Planned<G>>, keys: u64) {
        self.records += page.records as u64;
        for (record, planned) in &page.selected {
            self.ending += u64::from(planned.ends_by_itself);
            self.tally.add(planned.group.clone(), record, planned.age);
        }
        self.keys = keys;
    }

    async fn keep(
        &mut self,
        reader: &mut RecordReader,
        rule: &impl BulkRule,
        mut records: Vec<Record>,
    ) -> Result<()> {
        let Some(places) =
            self.places.as_mut().filter(|places| places.len() + records.len() <= CHUNK)
        else {
            self.places = None;
            return Ok(());
        };
        refresh(reader, rule, records.iter_mut()).await?;
        self.too_large += records.iter().filter(|record| is_too_large(record)).count() as u64;
        places.extend(records.into_iter().map(|record| SelectedRecord::of(record).small()));
        Ok(())
    }
}
