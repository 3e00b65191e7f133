//! A sample of the records, and the schemas that a deployment uses.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use tokio::time::{Instant, timeout};

use crate::domain::change::orphan;
use crate::domain::diagnosis::{FindingCode, Thresholds};
use crate::domain::doctor::{FactResult, LockCount, RecordSample};
use crate::domain::record::age::millis;
use crate::domain::record::locate::{self, Candidate, for_redis_key};
use crate::domain::record::{FieldSet, Record};
use crate::domain::schema::catalog::LOCK_BYTES;
use crate::domain::schema::{Catalog, Schema};
use crate::domain::select::contradiction::may_outlast;
use crate::domain::select::{Missing, Selection};
use crate::exit::CommandError;
use crate::interrupt::Interrupt;
use crate::scan::{Lengths, Scan, ScanEnd, ScanQuery};
use crate::session::Session;
use crate::store::doctor::{is_fatal, refused_sample};
use crate::store::{Client, ReadLimit, RecordReader, Sampler, StoreError};

/// The most Redis keys that are sampled. Each is read twice at most. On a server with a million
/// keys, a run takes 0.1 s.
const SAMPLE: usize = 500;

/// The records that are read at a time, so few that other clients do not wait.
pub(super) const PAGE: usize = 100;

/// The bytes of a value by which most formats are recognised.
pub(super) const HEAD: ReadLimit = ReadLimit::Bytes(512);

/// Samples the records, unless the user may not read them.
///
/// # Errors
/// The server does not answer.
pub(super) async fn read(
    client: &Client,
    catalog: &Catalog,
) -> Result<FactResult<RecordSample>, StoreError> {
    match sample(client, catalog).await {
        Ok(sample) => Ok(Ok(sample)),
        // The other checks need no keys.
        Err(error) if is_fatal(&error) => Err(error),
        Err(error) => Ok(Err(refused_sample(&error))),
    }
}

/// The schemas that the operator or the context names, or else those with records in the sample.
pub(super) fn schemas_in_use(
    catalog: &Catalog,
    sample: &FactResult<RecordSample>,
) -> Vec<Arc<Schema>> {
    if catalog.names_schemas() {
        return catalog.chosen().to_vec();
    }
    let Ok(sample) = sample else { return Vec::new() };
    sample.schemas.iter().map(|of| Arc::clone(&of.schema)).collect()
}

/// The records at some of the sampled Redis keys.
pub(super) struct DrawnRecord {
    pub(super) candidate: Candidate,
    /// How many of its Redis keys were sampled.
    drawn: u64,
    /// One for each schema that reads the value; `None` if the user may not read it.
    pub(super) found: Option<Vec<Record>>,
    /// When it was read, in milliseconds since the run began.
    pub(super) at_ms: u64,
}

/// A sample of the Redis keys, and the records at them.
pub(super) struct Draw {
    keys: u64,
    /// How many keys there are; `None` if the user may not ask.
    there: Option<u64>,
    /// True if the sampler left out keys or nodes.
    has_gaps: bool,
    pub(super) records: Vec<DrawnRecord>,
}

/// Samples the Redis keys and reads the records at them. A record of several Redis keys is read
/// once, however many of them are in the sample.
pub(super) async fn draw(
    reader: &mut RecordReader,
    catalog: &Catalog,
    started: Instant,
) -> Result<Draw, StoreError> {
    let mut sampler = Sampler::start(reader.clone(), SAMPLE, Rng::new(), None).await?;
    let mut keys = 0;
    let mut found: Vec<(Candidate, u64)> = Vec::new();
    let mut positions = HashMap::new();
    while let Some(page) = sampler.next().await? {
        for key in page {
            keys += 1;
            let Some((candidate, _)) = for_redis_key(catalog, &key.redis_key) else { continue };
            let position = *positions.entry(candidate.redis_keys.clone()).or_insert(found.len());
            match found.get_mut(position) {
                Some((_, drawn)) => *drawn += 1,
                None => found.push((candidate, 1)),
            }
        }
    }
    let mut records = Vec::with_capacity(found.len());
    for page in found.chunks(PAGE) {
        let redis_keys: Vec<_> =
            page.iter().map(|(candidate, _)| candidate.redis_keys.clone()).collect();
        // A record of which a key is on a node that does not answer is unread, as in a list.
        let read = reader.read_each(&redis_keys, HEAD).await?;
        let at_ms = millis(started.elapsed());
        for ((candidate, drawn), seen) in page.iter().zip(read) {
            let found = match seen {
                Ok(seen) => Some(locate::records(catalog, candidate, seen, &Thresholds::default())),
                Err(_) => None,
            };
            records.push(DrawnRecord { candidate: candidate.clone(), drawn: *drawn, found, at_ms });
        }
    }
    Ok(Draw {
        keys,
        there: sampler.there,
        // The sampler leaves out keys that the Redis user may not read, and nodes that do not
        // answer.
        has_gaps: sampler.forbidden().is_some() || sampler.missed().is_some(),
        records,
    })
}

async fn sample(client: &Client, catalog: &Catalog) -> Result<RecordSample, StoreError> {
    let mut reader = client.reader();
    let draw = draw(&mut reader, catalog, Instant::now()).await?;
    let mut sample = RecordSample { keys: draw.keys, db: reader.db(), ..RecordSample::default() };
    for DrawnRecord { drawn, found, .. } in draw.records {
        let Some(mut found) = found else {
            sample.unread += 1;
            continue;
        };
        found.retain(|record| !record.author.is_foreign());
        for (index, record) in found.iter().enumerate() {
            // Its memory counts once, for the first schema that reads it.
            sample.add(record, if index == 0 { drawn } else { 0 });
        }
    }
    if draw.has_gaps {
        sample.unread += 1;
    }
    sample.is_all = sample.unread == 0 && draw.there.is_some_and(|there| there <= draw.keys);
    sample.schemas.sort_by(|one, other| one.schema.name.cmp(&other.schema.name));
    Ok(sample)
}

/// The longest time of the scan. Keys that it does not reach in this time are unknown.
const MOST_TIME: Duration = Duration::from_secs(10);

/// In this part of the time, values with long TTLs are read. Many are results, and locks without
/// expiry have to be found all the same.
const TIME_FOR_LONG: Duration = Duration::from_secs(5);

/// Counts the locks.
///
/// # Errors
/// Interrupted.
pub(super) async fn count_locks(
    session: &Session,
    client: &Client,
    catalog: &Catalog,
) -> Result<FactResult<LockCount>> {
    let thresholds = Thresholds::default();
    let query = ScanQuery {
        catalog,
        thresholds: thresholds.clone(),
        first_read: ReadLimit::Bytes(LOCK_BYTES),
        needed: FieldSet::default(),
        lengths: Lengths::None,
    };
    let interrupt = Interrupt::listen()?;
    let progress = session.ui.progress("keys scanned");
    let mut scan =
        Scan::start(client.reader(), query, &interrupt, progress).await?.deadlines_first();
    let selection = Selection::default();
    let mut count = LockCount::default();
    let started = Instant::now();
    let reading = async {
        while let Some(page) = scan.next_deadlines().await {
            let mut doubtful = Vec::new();
            for (candidate, expiries) in page {
                count.covered.read += 1;
                let may_be = |code| {
                    let codes = [code];
                    orphan::has_to_be_read(
                        catalog,
                        &selection,
                        &candidate,
                        &expiries,
                        &codes,
                        &thresholds,
                    )
                };
                let is_long =
                    may_be(FindingCode::ExcessTtl) || may_outlast(&candidate.schemas, &expiries);
                if may_be(FindingCode::NoExpiry) || is_long && started.elapsed() < TIME_FOR_LONG {
                    doubtful.push(candidate);
                } else if is_long {
                    count.unread_long += 1;
                }
            }
            if doubtful.is_empty() {
                continue;
            }
            for record in scan.read_records(doubtful, |_| false).await.unwrap_or_default() {
                count.add(&record);
            }
        }
    };
    let is_late = timeout(MOST_TIME, reading).await.is_err();
    let report = scan.finish();
    count.close(report.coverage.unproven.count_without_expiry(Missing::Format));
    let covered = &mut count.covered;
    if is_late {
        covered.leave_out("other keys", format!("not reached in {MOST_TIME:?}"));
    }
    match report.end {
        ScanEnd::Complete => {}
        ScanEnd::Interrupted => return Err(CommandError::interrupted("interrupted").into()),
        ScanEnd::Failed(error) if error.is_permission() => return Ok(Err(refused_sample(&error))),
        ScanEnd::Incomplete(error) | ScanEnd::Failed(error) => {
            covered.leave_out("other keys", error.to_string());
        }
    }
    if let Some(forbidden) = report.forbidden {
        covered.leave_out("other keys", forbidden);
    }
    for name in &catalog.unreadable {
        covered.leave_out(format!("schema {name}"), "unreadable files");
    }
    for schema in catalog.skipped() {
        covered.leave_out(format!("schema {}", schema.name), "no fixed prefix");
    }
    Ok(Ok(count))
}
