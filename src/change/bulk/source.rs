//! Where the records of a run come from: a walk over the keyspace, or the keys of a file.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use anyhow::Result;

use super::rule::{Planned, Rule};
use crate::context::key_file::KeyFile;
use crate::domain::record::Record;
use crate::domain::select::{Coverage, Selected};
use crate::store::read::records::{self, Lookup};
use crate::store::{MOST_WHOLE, ReadLimit, Reader, StoreError, Walk};

/// Keys of a file that are looked up in one round trip.
const PAGE: usize = 200;

/// Where at least one record in this many is chosen, the next pages bring whole values: a second look at the chosen records
/// would cost more than the bytes of the others.
const CHOSEN_IN: usize = 4;

/// The Redis keys of the records that a list named so far, in different words perhaps: 16 bytes for each. That two keys share
/// both hashes is as good as impossible.
#[derive(Default)]
struct Met {
    hashers: [RandomState; 2],
    hashes: HashSet<[u64; 2]>,
}

impl Met {
    fn hash(&self, redis_key: &[u8]) -> [u64; 2] {
        [self.hashers[0].hash_one(redis_key), self.hashers[1].hash_one(redis_key)]
    }

    /// True the first time that a Redis key is met.
    fn is_new(&mut self, redis_key: &[u8]) -> bool {
        let hash = self.hash(redis_key);
        self.hashes.insert(hash)
    }

    fn has(&self, redis_key: &[u8]) -> bool {
        self.hashes.contains(&self.hash(redis_key))
    }
}

pub struct Page<G> {
    /// Records of the schemas, chosen or not.
    pub records: usize,
    pub selected: Vec<(Record, Planned<G>)>,
}

pub struct Source<'a> {
    from: Origin<'a>,
    /// Why nodes of a cluster were left out.
    missed: Option<StoreError>,
    /// What was left out, and which default TTLs do not hold.
    coverage: Coverage,
}

enum Origin<'a> {
    Walk(Box<Walk>),
    Keys { file: &'a mut KeyFile, reader: Box<Reader>, looked_at: u64, met: Met },
}

impl<'a> Source<'a> {
    /// Starts at the beginning of the keyspace, or of the file where there is one.
    pub async fn open(rule: &impl Rule, reader: Reader, file: Option<&'a mut KeyFile>) -> Result<Self> {
        let from = match file {
            None => Origin::Walk(Box::new(walk(rule, reader).await?)),
            Some(file) => {
                file.rewind()?;
                Origin::Keys { file, reader: Box::new(reader), looked_at: 0, met: Met::default() }
            }
        };
        Ok(Self { from, missed: None, coverage: Coverage::default() })
    }

    /// Redis keys, or keys of the file, that were looked at so far.
    pub fn looked_at(&self) -> u64 {
        match &self.from {
            Origin::Walk(walk) => walk.looked_at(),
            Origin::Keys { looked_at, .. } => *looked_at,
        }
    }

    /// True if the keyspace is scanned.
    pub fn is_walk(&self) -> bool {
        matches!(self.from, Origin::Walk(_))
    }

    /// About how many keys the servers went through so far.
    pub fn scanned(&self) -> u64 {
        match &self.from {
            Origin::Walk(walk) => walk.scanned(),
            Origin::Keys { looked_at, .. } => *looked_at,
        }
    }

    /// Says that records were left out which the user may not read, where there were any.
    pub fn forbidden(&self) -> Option<String> {
        match &self.from {
            Origin::Walk(walk) => walk.forbidden(),
            Origin::Keys { .. } => None,
        }
    }

    /// What was left out so far, and which default TTLs do not hold.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Why nodes of a cluster were left out, where any were.
    pub fn missed(&mut self) -> Option<StoreError> {
        self.missed.take()
    }

    /// The next page, perhaps without any record; `None` at the end, or where no other node of the cluster answers.
    pub async fn next<R: Rule>(&mut self, rule: &R) -> Result<Option<Page<R::Group>>> {
        let records = match self.records(rule).await {
            Ok(Some(records)) => records,
            Ok(None) => return Ok(None),
            Err(error) => return self.end_with(error).map(|()| None),
        };
        let count = records.len();
        let (coverage, is_named) = (&mut self.coverage, matches!(self.from, Origin::Keys { .. }));
        let mut selected = Vec::new();
        for record in records {
            if rule.is_about(&record) {
                coverage.contradictions.note(&record);
            }
            match rule.select(&record) {
                Selected::Yes(planned) => selected.push((record, planned)),
                Selected::No if is_named => coverage.named.add_passed(record.state),
                Selected::No => {}
                Selected::Unproven(missing) => coverage.unproven.add(&record, missing),
            }
        }
        Ok(Some(Page { records: count, selected }))
    }

    /// The next page of a run that changes what is chosen. Where many records are chosen, later pages bring whole values.
    pub async fn next_whole<R: Rule>(&mut self, rule: &R) -> Result<Option<Page<R::Group>>> {
        let page = self.next(rule).await?;
        page.iter().for_each(|page| self.bring_values(page));
        Ok(page)
    }

    /// Lets later pages bring whole values, where many records of this page are chosen.
    fn bring_values<G>(&mut self, page: &Page<G>) {
        if let Origin::Walk(walk) = &mut self.from
            && page.selected.len() * CHOSEN_IN > page.records
        {
            walk.bring_heads(ReadLimit::Bytes(MOST_WHOLE));
        }
    }

    /// Keeps the error of nodes that were left out, so that the run goes on with the other nodes.
    fn end_with(&mut self, error: anyhow::Error) -> Result<()> {
        match error.downcast() {
            Ok(missed @ StoreError::Missed { .. }) => {
                self.missed = Some(missed);
                Ok(())
            }
            Ok(error) => Err(error.into()),
            Err(error) => Err(error),
        }
    }

    async fn records(&mut self, rule: &impl Rule) -> Result<Option<Vec<Record>>> {
        let (scope, coverage) = (rule.scope(), &mut self.coverage);
        match &mut self.from {
            Origin::Walk(walk) => {
                let may_choose = |key: &[u8]| rule.may_choose(key);
                Ok(records::next_page(walk, &scope.catalog, &scope.thresholds, coverage, may_choose).await?)
            }
            Origin::Keys { file, reader, looked_at, met } => {
                let keys = file.next(PAGE)?;
                if keys.is_empty() {
                    return Ok(None);
                }
                *looked_at += keys.len() as u64;
                let lookup =
                    Lookup { head: ReadLimit::Bytes(MOST_WHOLE), thresholds: scope.thresholds.clone(), both: false };
                let found = lookup.find(reader, &scope.catalog, keys).await?;
                let silent = found.iter().find_map(|found| found.silent().cloned());
                self.missed = self.missed.take().or(silent);
                let scanned = scope.catalog.scanned();
                let mut records = Vec::new();
                for mut found in found {
                    if let Some(names) = found.several() {
                        coverage.named.add_ambiguous(&found.key, names);
                        continue;
                    }
                    for record in std::mem::take(&mut found.records) {
                        let is_scanned = scanned.iter().any(|schema| schema.name == record.schema.name);
                        if is_scanned || found.says_schema_of(&record) {
                            found.records.push(record);
                        }
                    }
                    // What another line named may be gone by now.
                    let was_met = found.looked_at.iter().any(|redis_key| met.has(redis_key));
                    if found.records.is_empty() && found.unread.is_none() && !was_met {
                        coverage.named.add_absent(&found.key);
                    }
                    for record in found.records {
                        if met.is_new(&record.seen.keys[0].redis_key) && coverage.claims(&record) {
                            records.push(record);
                        }
                    }
                }
                Ok(Some(records))
            }
        }
    }
}

async fn walk(rule: &impl Rule, reader: Reader) -> Result<Walk, StoreError> {
    let scope = rule.scope();
    let walk = Walk::start(reader, &scope.catalog, ReadLimit::Bytes(scope.least)).await?;
    Ok(if scope.lengths { walk } else { walk.without_lengths() })
}
