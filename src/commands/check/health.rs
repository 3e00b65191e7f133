//! One walk for what a check tells: deadlines first, the values that have to be read, and a sample of all.

use std::collections::BTreeMap;

use anyhow::Result;
use fastrand::Rng;

use super::alarms::Sought;
use crate::domain::change::orphan;
use crate::domain::diagnosis::health::Health;
use crate::domain::diagnosis::{FindingCode, Thresholds};
use crate::domain::record::{Candidate, Expiry};
use crate::domain::schema::Catalog;
use crate::domain::schema::catalog::LONG_HEAD_BYTES;
use crate::domain::select::{Coverage, Reservoir, Selected, Selection};
use crate::store::read::records;
use crate::store::{ReadLimit, Reader, StoreError, Walk};

/// Bytes of each value that are read: a lock fits.
const HEAD_BYTES: usize = 128;

/// The most records that are read to tell the schemas' own from foreign ones.
const SAMPLE: usize = 1_000;

/// How many of these are read at a time: few enough that other clients do not wait.
const AT_A_TIME: usize = 100;

/// Walks over all records. An error that ends the walk is kept as a gap, and what was counted until then counts. What was left
/// out comes beside it.
pub(super) async fn examine(
    catalog: &Catalog,
    reader: Reader,
    selection: &Selection,
    sought: &Sought,
) -> Result<(Health, Coverage)> {
    let head = if sought.codes.contains(&FindingCode::Unreadable) { LONG_HEAD_BYTES } else { HEAD_BYTES };
    let walk = Walk::start(reader, catalog, ReadLimit::Bytes(head)).await?.without_lengths().deadlines_first();
    let (found, met, undecided) = (Health::default(), Coverage::default(), 0);
    let mut look = Look { catalog, selection, sought, walk, found, met, undecided };
    let mut places = Reservoir::new(SAMPLE);
    let ended = look.walk(&mut places).await;
    look.found.gap = ended.err().map(|error| error.to_string());
    look.met.foreign.clear();
    look.met.spared.clear();
    if let Err(error) = look.recognise(places).await {
        look.found.gap.get_or_insert(error.to_string());
    }
    Ok(look.end())
}

struct Look<'a> {
    catalog: &'a Catalog,
    selection: &'a Selection,
    sought: &'a Sought,
    walk: Walk,
    found: Health,
    met: Coverage,
    /// Locks of which nothing proves whether they have what is sought.
    undecided: u64,
}

impl Look<'_> {
    /// Asks for all deadlines, and reads the values of which they do not tell enough.
    async fn walk(&mut self, places: &mut Reservoir<Candidate>) -> Result<(), StoreError> {
        let mut random = Rng::new();
        while let Some(page) = self.walk.next_deadlines(self.catalog).await? {
            let mut doubtful = Vec::new();
            for (place, expiries) in page {
                if self.has_to_be_read(&place, &expiries) {
                    doubtful.push(place.clone());
                }
                places.offer(place, |bound| random.u64(..bound));
            }
            if !doubtful.is_empty() {
                self.judge(doubtful).await?;
            }
        }
        Ok(())
    }

    fn has_to_be_read(&self, place: &Candidate, expiries: &[Option<Expiry>]) -> bool {
        let Sought { codes, thresholds, .. } = self.sought;
        self.selection.passes_key(&place.key) && orphan::may_be(&place.schemas, expiries, codes, thresholds)
    }

    /// Reads records, and counts the locks that the operator wants to hear of. One of which nothing proves that is counted as
    /// left out.
    async fn judge(&mut self, places: Vec<Candidate>) -> Result<(), StoreError> {
        let Self { walk, catalog, met, sought, .. } = self;
        let records = records::at_places(walk, catalog, &sought.thresholds, met, places).await?;
        for record in &records {
            match orphan::chosen(record, &sought.codes, self.selection) {
                Selected::Yes(orphan) => self.found.add(orphan.code, record),
                Selected::Unproven(missing) => {
                    self.met.unproven.add(record, missing);
                    self.undecided += 1;
                }
                Selected::No => {}
            }
        }
        Ok(())
    }

    /// Reads the sample, and counts which of its records are the schemas' own.
    async fn recognise(&mut self, places: Reservoir<Candidate>) -> Result<(), StoreError> {
        let came = places.came();
        let mut places = places.into_values();
        let sampled = places.len() as u64;
        let mut coverage = Coverage::default();
        let mut own: BTreeMap<String, u64> = BTreeMap::new();
        let thresholds = Thresholds::default();
        while !places.is_empty() {
            let rest = places.split_off(places.len().min(AT_A_TIME));
            let some = std::mem::replace(&mut places, rest);
            let records = records::at_places(&mut self.walk, self.catalog, &thresholds, &mut coverage, some).await?;
            for record in records {
                *own.entry(record.schema.name.clone()).or_default() += 1;
            }
        }
        let scale = Scale { came, sampled };
        scale.all(&mut own);
        if came > sampled {
            self.found.sample = Some(sampled);
            scale.all(&mut coverage.foreign);
        } else {
            // Estimates are no counts of what was left out.
            self.met.foreign = coverage.foreign.clone();
            self.met.spared = coverage.spared;
        }
        self.found.records = own.values().sum();
        self.found.foreign = coverage.foreign.values().sum();
        self.found.outnumbered = outnumbered(self.catalog, &coverage.foreign, &own);
        Ok(())
    }

    fn end(mut self) -> (Health, Coverage) {
        self.found.keys = self.walk.looked_at();
        // What could not be read after the end of the walk, and what the user may not read.
        if self.found.gap.is_none() {
            self.found.gap = self.walk.gap().map(|gap| gap.to_string()).or_else(|| self.walk.forbidden());
        }
        let compares_ages = self.sought.codes.contains(&FindingCode::Overdue);
        if self.found.gap.is_none() && compares_ages && self.undecided > 0 {
            let locks =
                if self.undecided == 1 { "1 lock is".to_owned() } else { format!("{} locks are", self.undecided) };
            self.found.gap = Some(format!(
                "nothing tells whether {locks} overdue: state the lock TTL of their schemas in the context, or with --schema NAME --lock-ttl DURATION"
            ));
        }
        (self.found, self.met)
    }
}

/// From a sample to all.
struct Scale {
    came: u64,
    sampled: u64,
}

impl Scale {
    /// Makes estimates for all records of the counts of a sample.
    fn all(&self, counts: &mut BTreeMap<String, u64>) {
        for count in counts.values_mut() {
            let all = u128::from(*count) * u128::from(self.came) / u128::from(self.sampled.max(1));
            *count = u64::try_from(all).unwrap_or(u64::MAX);
        }
    }
}

/// The schemas under whose prefix more foreign records are than records of the schema or of its other releases.
fn outnumbered(
    catalog: &Catalog,
    foreign: &BTreeMap<String, u64>,
    own: &BTreeMap<String, u64>,
) -> Vec<(String, u64, u64)> {
    let mut outnumbered = Vec::new();
    for (name, foreign) in foreign {
        let Some(schema) = catalog.all().iter().find(|schema| schema.name == *name) else { continue };
        let alike = catalog.all().iter().filter(|other| other.has_templates_of(schema));
        let own: u64 = alike.filter_map(|alike| own.get(&alike.name)).sum();
        if *foreign > own {
            outnumbered.push((name.clone(), own, *foreign));
        }
    }
    outnumbered
}
