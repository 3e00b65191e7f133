//! Where races are run: the workers' connections, and one that cleans up behind them.

use futures_util::{StreamExt as _, stream};
use uuid::Uuid;

use super::worker::Worker;
use crate::domain::step::reply::StepReply;
use crate::store::{Link, Packed, StoreError, Wire, Writable, pack};

/// How many connections are opened at a time: servers queue a few hundred, some fewer.
const OPENED_AT_ONCE: usize = 32;

/// How many Redis keys are removed at once: enough to be quick, few enough to keep nobody waiting.
const REMOVED_AT_ONCE: usize = 100;

/// The workers' connections, and one that cleans up behind them.
pub struct Track {
    pub(in crate::sim) workers: Vec<Worker>,
    link: Link,
    pub(in crate::sim) target: Writable,
    /// Opened first, so that it is there even when the server has no room for all workers.
    broom: Wire,
}

/// Why there is no track.
#[derive(Debug, thiserror::Error)]
#[error("cannot open {wanted} connections, {open} are open: {error}")]
pub struct NoTrack {
    /// How many were opened.
    pub open: usize,
    /// How many were wanted.
    pub wanted: usize,
    /// What the next one ran into.
    #[source]
    pub error: StoreError,
}

impl Track {
    /// Connects that many workers, in a cluster all to one of its masters.
    ///
    /// # Errors
    /// As [`Wire::connect`].
    pub async fn open(link: &Link, server: &Writable, concurrency: usize) -> Result<Self, NoTrack> {
        let no_track = |open, error| NoTrack { open, wanted: concurrency, error };
        let target = &link.playground(server).await.map_err(|error| no_track(0, error))?;
        let broom = Wire::connect(target).await.map_err(|error| no_track(0, error))?;
        let mut wires = stream::iter((0..concurrency).map(|_| Wire::connect(target))).buffered(OPENED_AT_ONCE);
        let mut workers = Vec::with_capacity(concurrency);
        while let Some(wire) = wires.next().await {
            let wire = wire.map_err(|error| no_track(workers.len(), error))?;
            workers.push(Worker { id: workers.len() + 1, owner: Uuid::new_v4().to_string(), wire: Some(wire) });
        }
        Ok(Self { workers, link: link.clone(), target: target.clone(), broom })
    }

    /// True when the track's node serves all of these Redis keys.
    pub(in crate::sim) fn serves(&self, redis_keys: &[Vec<u8>]) -> bool {
        self.link.serves(&self.target, redis_keys)
    }

    /// The connection that is no worker's.
    pub(in crate::sim) fn broom(&mut self) -> &mut Wire {
        &mut self.broom
    }

    /// Gives workers whose connection broke a new one.
    pub(in crate::sim) async fn mend(&mut self) -> Result<(), StoreError> {
        for worker in self.workers.iter_mut().filter(|worker| worker.wire.is_none()) {
            worker.wire = Some(Wire::connect(&self.target).await?);
        }
        Ok(())
    }

    /// Removes Redis keys.
    pub(in crate::sim) async fn remove(&mut self, redis_keys: &[Vec<u8>]) -> Result<(), StoreError> {
        // The keys of several rounds are in several slots, which no command may name together.
        let at_once = if self.link.is_cluster() { 1 } else { REMOVED_AT_ONCE };
        for batch in redis_keys.chunks(at_once) {
            self.ask(&pack(std::iter::once(&b"UNLINK"[..]).chain(batch.iter().map(Vec::as_slice)))).await?;
        }
        Ok(())
    }

    /// Asks on the connection that is no worker's what may be asked twice: on a new one should the old one be broken.
    pub(in crate::sim) async fn ask(&mut self, request: &Packed) -> Result<StepReply, StoreError> {
        match self.broom.ask(request).await {
            Err(error) if error.lost_the_reply() => {
                self.broom = Wire::connect(&self.target).await?;
                self.broom.ask(request).await
            }
            answered => answered,
        }
    }
}
