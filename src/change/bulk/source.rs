//! Where the records of a run come from: a scan of the keyspace, keys that are named one by one, or
//! a plan.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use anyhow::{Context as _, Result};

use super::recheck::note_unread;
use super::rule::{BulkRule, Planned, Scope};
use crate::change::removal_plan::{Plan, PlannedRecord, UNUSABLE};
use crate::domain::change::purgeable;
use crate::domain::change::removal::{self, RemovalCommand};
use crate::domain::record::{Candidate, FieldSet, GivenKey, Record, RecordName, TimeLeft, locate};
use crate::domain::schema::catalog::LOCK_BYTES;
use crate::domain::schema::{Catalog, State};
use crate::domain::select::{Coverage, Selected};
use crate::exit::CommandError;
use crate::interrupt::Interrupt;
use crate::scan::{Lengths, Scan, ScanEnd, ScanQuery, ScanReport, SelectedPage};
use crate::session::key_list::KeyList;
use crate::store::read::lookup::{Lookup, LookupResult};
use crate::store::{MAX_WHOLE, ReadLimit, RecordReader, StoreError};
use crate::terminal::frame::ProgressLine;

/// Named keys that are looked up in one round trip: so few that other clients do not wait.
const PAGE: usize = 200;

/// If more than one record in this many is selected, the next pages bring whole values: rechecking
/// the selected records would cost more than the bytes of the others.
const SELECTED_IN: usize = 4;

/// What names the records of a run one by one.
pub enum Named {
    Keys(KeyList),
    Plan(Box<Plan>),
}

/// Where the records of a run come from.
pub(super) enum RecordSource<'a> {
    Scan(Box<Scan<'a>>),
    Named(Box<NamedRecords<'a>>),
}

impl<'a> RecordSource<'a> {
    /// Starts at the beginning of the keyspace, or of the named keys if there are any.
    ///
    /// # Errors
    /// No node can be reached, or the keys cannot be read again; Ctrl-C.
    pub(super) async fn open(
        rule: &'a impl BulkRule,
        reader: RecordReader,
        named: Option<&'a mut Named>,
        interrupt: &Interrupt,
        progress: ProgressLine,
    ) -> Result<Self> {
        if let Some(named) = named {
            match named {
                Named::Keys(keys) => keys.rewind()?,
                Named::Plan(plan) => plan.rewind()?,
            }
            let named = NamedRecords::new(named, reader, interrupt.clone(), progress);
            return Ok(Self::Named(Box::new(named)));
        }
        let scope = rule.scope();
        let query = ScanQuery {
            catalog: &scope.catalog,
            thresholds: scope.thresholds.clone(),
            first_read: ReadLimit::Bytes(scope.min_bytes),
            needed: scope.needed_fields,
            lengths: if scope.reads_lengths { Lengths::All } else { Lengths::None },
        };
        let mut scan = Scan::start(reader, query, interrupt, progress).await?;
        if rule.reads_deadlines_first() {
            scan = scan.deadlines_first();
        }
        // Without such filters, a value of another program is no part of the selection.
        let fields = scope.needed_fields.intersection(FieldSet::ALL);
        let selects_by_value = !fields.is_empty() || scope.min_bytes > LOCK_BYTES;
        if selects_by_value {
            scan = scan.with_deviating();
        }
        Ok(Self::Scan(Box::new(scan)))
    }

    /// Redis keys, or named keys, that were read so far.
    pub(super) fn keys(&self) -> u64 {
        match self {
            Self::Scan(scan) => scan.keys(),
            Self::Named(named) => named.keys,
        }
    }

    /// The approximate number of Redis keys that the servers iterated over so far, including those
    /// with other names.
    pub(super) fn keys_iterated(&self) -> u64 {
        match self {
            Self::Scan(scan) => scan.keys_iterated(),
            Self::Named(named) => named.keys,
        }
    }

    /// The next page, which may be empty; `None` at the end. Nodes of a cluster that do not answer
    /// are left out: the report has them.
    ///
    /// # Errors
    /// The server could not be asked; Ctrl-C.
    pub(super) async fn next_page<R: BulkRule>(
        &mut self,
        rule: &R,
    ) -> Result<Option<SelectedPage<Planned<R::Group>>>> {
        match self {
            Self::Scan(scan) => {
                let page = if rule.reads_deadlines_first() {
                    let has_to_be_read = |candidate: &Candidate, expiries: &[Option<TimeLeft>]| {
                        rule.has_to_be_read(candidate, expiries)
                    };
                    scan.next_page_by_deadline(rule, has_to_be_read).await
                } else {
                    scan.next_page(rule).await
                };
                if page.is_none() {
                    scan.require_end()?;
                }
                Ok(page)
            }
            Self::Named(named) => named.next_page(rule).await,
        }
    }

    /// The next page of a run that changes the selected records. If many are selected, later pages
    /// bring whole values.
    ///
    /// # Errors
    /// As [`RecordSource::next_page`].
    pub(super) async fn next_page_to_change<R: BulkRule>(
        &mut self,
        rule: &R,
    ) -> Result<Option<SelectedPage<Planned<R::Group>>>> {
        let page = self.next_page(rule).await?;
        if let Self::Scan(scan) = self
            && let Some(page) = &page
            && page.selected.len() * SELECTED_IN > page.records
        {
            scan.read_whole_to_change();
        }
        Ok(page)
    }

    /// What was read. A source that has not reached its end stops here.
    pub(super) fn finish(self) -> ScanReport {
        match self {
            Self::Scan(scan) => scan.finish(),
            Self::Named(named) => named.finish(),
        }
    }
}

/// The records of keys that are named one by one, or of a plan.
pub(super) struct NamedRecords<'a> {
    named: &'a mut Named,
    reader: RecordReader,
    interrupt: Interrupt,
    progress: ProgressLine,
    /// Named keys, or planned records, that were read.
    keys: u64,
    /// Two hashes of the first Redis key of each record so far, because a list may name a record
    /// again in other words. They take 16 bytes per record, and two Redis keys share both with a
    /// chance of one in 2^128.
    seen: HashSet<[u64; 2]>,
    hashers: [RandomState; 2],
    coverage: Coverage,
    /// Why a node of a cluster could not be asked, if one could not.
    unreachable: Option<StoreError>,
}

impl<'a> NamedRecords<'a> {
    fn new(
        named: &'a mut Named,
        reader: RecordReader,
        interrupt: Interrupt,
        progress: ProgressLine,
    ) -> Self {
        Self {
            named,
            reader,
            interrupt,
            progress,
            keys: 0,
            seen: HashSet::new(),
            hashers: [RandomState::new(), RandomState::new()],
            coverage: Coverage::default(),
            unreachable: None,
        }
    }

    async fn next_page<R: BulkRule>(
        &mut self,
        rule: &R,
    ) -> Result<Option<SelectedPage<Planned<R::Group>>>> {
        let interrupt = self.interrupt.clone();
        let Some(read) = interrupt.unless_raised(self.read_page(rule)).await else {
            return Err(CommandError::interrupted("interrupted").into());
        };
        let Some(records) = read? else { return Ok(None) };
        let count = records.len();
        let mut selected = Vec::new();
        for record in records {
            if rule.is_about(&record) {
                self.coverage.contradictions.note(&record);
            }
            let selection = rule.select(&record);
            // The operator named this key, so the report says why its record stays.
            if matches!(selection, Selected::No) {
                self.note_left(rule, &record);
            }
            if let Some(planned) = self.coverage.plan_or_count(&record, selection) {
                selected.push((record, planned));
            }
        }
        Ok(Some(SelectedPage { records: count, selected }))
    }

    /// Notes why a record of a named key stays, and whether `force-unlock` removes its lock.
    fn note_left(&mut self, rule: &impl BulkRule, record: &Record) {
        let named = &mut self.coverage.named;
        if let Some(why) = rule.refused_because(record) {
            named.add_refused(record, why);
            return;
        }
        let why = rule.left_out_because(record);
        if record.state != State::InProgress {
            named.add_not_chosen(record, why, false);
            return;
        }
        match removal::of(record) {
            Ok(RemovalCommand::Unlock(_)) => named.add_not_chosen(record, why, true),
            Ok(RemovalCommand::Purge(_)) => named.add_not_chosen(record, why, false),
            Err(refused) => {
                let why = format!("{why}; `force-unlock` does not remove it: {refused}");
                named.add_not_chosen(record, why, false);
            }
        }
    }

    /// The records of the next keys, each once however often the list names it; `None` at the end
    /// of the list.
    async fn read_page(&mut self, rule: &impl BulkRule) -> Result<Option<Vec<Record>>> {
        let scope = rule.scope();
        let keys = match self.named {
            Named::Keys(list) => list.next(PAGE)?,
            Named::Plan(plan) => {
                let page = plan.next(PAGE).context(UNUSABLE)?;
                return self.read_planned(scope, page).await;
            }
        };
        if keys.is_empty() {
            return Ok(None);
        }
        self.keys += keys.len() as u64;
        let lookup = Lookup {
            first_read: ReadLimit::Bytes(MAX_WHOLE),
            thresholds: scope.thresholds.clone(),
            includes_less_specific_results: false,
            keeps_unrecognised: true,
        };
        let found = lookup.find(&mut self.reader, &scope.catalog, keys).await?;
        let scanned = scope.catalog.scanned();
        let mut records = Vec::new();
        for mut found in found {
            if self.unreachable.is_none() {
                self.unreachable = found.unreachable().cloned();
            }
            if let Some(names) = found.several() {
                self.coverage.named.add_ambiguous(&found.given, names);
                continue;
            }
            if let Some(unread) = found.may_name_another(&scope.catalog) {
                for record in &found.records {
                    self.coverage.named.add_refused(record, format!("unknown: {unread}"));
                }
                continue;
            }
            for record in std::mem::take(&mut found.records) {
                let is_scanned = scanned.iter().any(|schema| schema.name == record.schema.name);
                if is_scanned || found.says_schema_of(&record) {
                    found.records.push(record);
                }
            }
            self.add_new(&scope.catalog, found, &mut records);
        }
        self.progress.set_position(self.keys);
        Ok(Some(records))
    }

    /// The records of a page of a plan that are still as planned; `None` after the last page.
    async fn read_planned(
        &mut self,
        scope: &Scope,
        page: Vec<PlannedRecord>,
    ) -> Result<Option<Vec<Record>>> {
        if page.is_empty() {
            return Ok(None);
        }
        self.keys += page.len() as u64;
        self.progress.set_position(self.keys);
        let mut found = Vec::new();
        let mut wanted = Vec::new();
        for planned in page {
            if let Some(name) = RecordName::parse(planned.name.as_bytes())
                && let Some(candidate) = locate::for_name(&scope.catalog, &name)
            {
                wanted.push(candidate.redis_keys.clone());
                found.push((planned, name, candidate));
            } else {
                self.coverage.named.add_absent(planned.name.as_bytes(), None);
            }
        }
        let read = self.reader.read_for_change(&wanted, 0).await?;
        let mut records = Vec::new();
        for ((planned, name, candidate), now) in found.into_iter().zip(read) {
            let now = match now {
                Ok(now) => now,
                Err(error) => {
                    note_unread(&self.reader, error, &mut self.unreachable)?;
                    continue;
                }
            };
            let is_still = planned.is_still(&now);
            match locate::first_record(&scope.catalog, candidate, now, &scope.thresholds) {
                Some(record) if is_still => records.push(record),
                _ => self.coverage.named.add_left(name, "it is not as planned".to_owned()),
            }
        }
        Ok(Some(records))
    }

    /// Adds the records of a key that no earlier key named, and counts what else the key names.
    fn add_new(&mut self, catalog: &Catalog, found: LookupResult, records: &mut Vec<Record>) {
        let mut was_seen = false;
        for redis_key in &found.checked {
            was_seen |= self.seen.contains(&self.hash(redis_key));
        }
        // A record that an earlier line named may be gone by now: it was found all the same.
        if found.records.is_empty() && found.why_unread.is_none() && !was_seen {
            let excluded = GivenKey::word(&found.given[..]).excluded_because(catalog);
            self.coverage.named.add_absent(&found.given, excluded);
        }
        let has_own = found.records.iter().any(|record| !record.author.is_foreign());
        for record in found.records {
            let hash = self.hash(&record.seen.keys[0].redis_key);
            if !self.seen.insert(hash) {
                continue;
            }
            if self.coverage.keeps(&record) {
                records.push(record);
            } else if !has_own {
                let why = record.author.unrecognised_because().unwrap_or_default();
                let why = purgeable::other_schema(&record, &why);
                self.coverage.named.add_refused(&record, why);
            }
        }
    }

    fn hash(&self, redis_key: &[u8]) -> [u64; 2] {
        [self.hashers[0].hash_one(redis_key), self.hashers[1].hash_one(redis_key)]
    }

    fn finish(self) -> ScanReport {
        self.progress.finish_and_clear();
        ScanReport {
            end: self.unreachable.map_or(ScanEnd::Complete, ScanEnd::Incomplete),
            coverage: self.coverage,
            keys: self.keys,
            iterated: self.keys,
            forbidden: None,
            keys_of_other_schemas: BTreeMap::new(),
        }
    }
}
