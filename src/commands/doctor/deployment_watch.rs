//! `--observe`: later looks at the same locks, and at new samples of the keys.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, sleep_until};

use super::record_sample::{HEAD, PAGE, draw};
use crate::domain::diagnosis::Thresholds;
use crate::domain::doctor::{FactResult, ObservedRun, RefusedFact, WatchedLock};
use crate::domain::record::age::millis;
use crate::domain::record::locate;
use crate::domain::schema::Catalog;
use crate::session::interruptible;
use crate::store::{Client, RecordReader, StoreError};

/// The time between two looks. How a lock ended is only known if it was seen within this time of
/// its deadline; more looks would load the server.
const INTERVAL: Duration = Duration::from_millis(500);

/// The most locks that are looked at again. Each look reads all of them that have not ended. Short
/// locks end and make no more work.
const MAX_LOCKS: usize = 2_000;

/// Looks at locks for this time. A server that fails meanwhile makes the facts unknown.
///
/// # Errors
/// Interrupted.
pub(super) async fn observe(
    client: &Client,
    catalog: &Catalog,
    lasting: Duration,
) -> Result<FactResult<ObservedRun>> {
    interruptible(async {
        let run = look_until_end(client, catalog, lasting).await;
        Ok(run.map_err(|error| {
            let instead = "Run it again when the servers stay the same.";
            RefusedFact::unknown("--observe", error.to_string(), instead)
        }))
    })
    .await
}

async fn look_until_end(
    client: &Client,
    catalog: &Catalog,
    lasting: Duration,
) -> Result<ObservedRun, StoreError> {
    let started = Instant::now();
    let mut reader = client.reader();
    let mut locks = Vec::new();
    let mut known = HashSet::new();
    let mut next = started;
    loop {
        look_again(&mut reader, catalog, &mut locks, started).await?;
        for drawn in draw(&mut reader, catalog, started).await?.records {
            if !known.insert(drawn.candidate.redis_keys.clone()) {
                continue;
            }
            let mut found = drawn.found.unwrap_or_default();
            found.retain(|record| !record.author.is_foreign());
            if let [record] = &found[..]
                && let Some(lock) = WatchedLock::new(record, drawn.at_ms)
                && locks.len() < MAX_LOCKS
            {
                locks.push((drawn.candidate, lock));
            }
        }
        if next >= started + lasting {
            break;
        }
        next = (next + INTERVAL).min(started + lasting);
        sleep_until(next).await;
    }
    let locks = locks.into_iter().map(|(_, lock)| lock).collect();
    Ok(ObservedRun { lasted_ms: millis(started.elapsed()), locks })
}

/// Reads the locks that are still open.
async fn look_again(
    reader: &mut RecordReader,
    catalog: &Catalog,
    locks: &mut [(locate::Candidate, WatchedLock)],
    started: Instant,
) -> Result<(), StoreError> {
    let mut open: Vec<_> = locks.iter_mut().filter(|(_, lock)| lock.is_open()).collect();
    for page in open.chunks_mut(PAGE) {
        let redis_keys: Vec<_> =
            page.iter().map(|(candidate, _)| candidate.redis_keys.clone()).collect();
        let at_ms = millis(started.elapsed());
        let read = reader.read_or_fail(&redis_keys, HEAD).await?;
        for ((candidate, lock), seen) in page.iter_mut().zip(read) {
            // The user no longer may read it, so that nothing more is known of it.
            let Ok(seen) = seen else { continue };
            let found = locate::records(catalog, candidate, seen.clone(), &Thresholds::default());
            let record = found.iter().find(|record| record.schema.name == lock.schema.name);
            lock.look(record, &seen, at_ms);
        }
    }
    Ok(())
}
