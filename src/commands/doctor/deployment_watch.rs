//! `--observe`: later looks at the same locks, and at new samples of the keys.

use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, sleep_until};

use super::record_sample::{FirstLook, HEAD, PAGE, draw};
use crate::domain::diagnosis::Thresholds;
use crate::domain::doctor::{FactResult, LookTime, ObservedRun, WatchedLock, hold_ms, interrupted};
use crate::domain::record::age::millis;
use crate::domain::record::locate;
use crate::domain::schema::Catalog;
use crate::session::{Session, interruptible};
use crate::store::doctor::read_infos;
use crate::store::{Client, StoreError};

/// How many looks a short run has. The time at which a lock ended is known only to within the time
/// between two looks.
const LOOKS: u32 = 10;

/// The shortest and the longest time between two looks. Each look reads the open locks and a new
/// sample, so more looks would load the server. With fewer, more locks would be taken and released
/// between two looks, and idemctl would not see them.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(1);

/// The most locks that are looked at again. Each look reads all of them that have not ended. Short
/// locks end and make no more work.
const MAX_LOCKS: usize = 2_000;

/// A run with `--observe`.
pub(super) struct DeploymentWatch<'a> {
    pub(super) client: &'a Client,
    pub(super) catalog: &'a Catalog,
    /// False if no chosen check needs the keys.
    pub(super) reads_keys: bool,
    /// When the first look began.
    pub(super) started: Instant,
    pub(super) lasting: Duration,
}

impl DeploymentWatch<'_> {
    /// Looks until the time is over. A server that fails meanwhile makes the facts unknown.
    ///
    /// # Errors
    /// Interrupted.
    pub(super) async fn run(
        &self,
        session: &Session,
        first: FirstLook,
    ) -> Result<FactResult<ObservedRun>> {
        let interval = (self.lasting / LOOKS).clamp(SHORTEST, LONGEST);
        let looks = self.lasting.as_millis() / interval.as_millis();
        let progress = session.ui.progress_of("looked", u64::try_from(looks).ok());
        let looking = async {
            let run = self.look_until_end(session, first, interval, &|| progress.inc(1)).await;
            Ok(run.map_err(|error| interrupted(error.to_string())))
        };
        let run = interruptible(looking).await;
        progress.finish_and_clear();
        run
    }

    async fn look_until_end(
        &self,
        session: &Session,
        first: FirstLook,
        interval: Duration,
        looked: &dyn Fn(),
    ) -> Result<ObservedRun, StoreError> {
        let FirstLook { mut locks, mut known, counts } = first;
        let mut run = ObservedRun { looks: counts, ..ObservedRun::default() };
        let mut reader = self.client.reader();
        let end = Instant::now() + self.lasting;
        let mut next = Instant::now();
        while next < end {
            next = end.min(next + interval);
            sleep_until(next).await;
            looked();
            if !self.reads_keys {
                continue;
            }
            self.look_again(&mut locks).await?;
            let sample = draw(&mut reader, self.catalog, self.started).await?;
            run.looks.push(sample.count());
            for drawn in sample.records {
                if !known.insert(drawn.candidate.redis_keys.clone()) {
                    continue;
                }
                let mut found = drawn.found.unwrap_or_default();
                found.retain(|record| !record.author.is_foreign());
                let [record] = &found[..] else { continue };
                if let Some(hold) = hold_ms(record) {
                    run.holds_ms.push((record.schema.name.clone(), hold));
                }
                if let Some(lock) = WatchedLock::new(record, drawn.at)
                    && locks.len() < MAX_LOCKS
                {
                    locks.push((drawn.candidate, lock));
                }
            }
        }
        run.infos = read_infos(self.client).await?;
        run.lasted_ms = millis(self.started.elapsed());
        // Operators may have extended locks meanwhile, so the audit log is read anew.
        let extended = session.extended();
        for (_, lock) in &mut locks {
            lock.settle(&|lock| extended.has(lock));
        }
        run.locks = locks.into_iter().map(|(_, lock)| lock).collect();
        Ok(run)
    }

    /// Reads the locks that are still open.
    async fn look_again(
        &self,
        locks: &mut [(locate::Candidate, WatchedLock)],
    ) -> Result<(), StoreError> {
        let mut open: Vec<_> = locks.iter_mut().filter(|(_, lock)| lock.is_open()).collect();
        let mut reader = self.client.reader();
        for page in open.chunks_mut(PAGE) {
            let redis_keys: Vec<_> =
                page.iter().map(|(candidate, _)| candidate.redis_keys.clone()).collect();
            let before = self.started.elapsed();
            let read = reader.read_or_fail(&redis_keys, HEAD).await?;
            let at =
                LookTime { before_ms: millis(before), after_ms: millis(self.started.elapsed()) };
            for ((candidate, lock), seen) in page.iter_mut().zip(read) {
                // The user no longer may read it, so that nothing more is known of it.
                let Ok(seen) = seen else { continue };
                let found =
                    locate::records_of_copy(self.catalog, candidate, &seen, &Thresholds::default());
                let record = found.iter().find(|record| record.schema.name == lock.schema.name);
                lock.look(record, &seen, at);
            }
        }
        Ok(())
    }
}
