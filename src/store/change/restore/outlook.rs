//! What can be said of a restore before anything is sent: whose time is over by the server's clock, and what stands in
//! the way.

use redis::Value;

use super::restore_outcome::{RestoreOutcome, RestoreResult, Return};
use crate::domain::hash_slot;
use crate::store::change::Writer;
use crate::store::cluster::client::Client;
use crate::store::connection::reply;
use crate::store::error::StoreError;

impl Client {
    /// What [`Writer::restore`] would do.
    pub async fn would_restore(&self, backup: &[Return<'_>]) -> Result<Vec<RestoreResult>, StoreError> {
        let left = self.left(backup).await?;
        let foreseen = self.foresee(backup, &left, |_| true).await?;
        let outcome = |(foreseen, left): (Option<RestoreResult>, Left)| {
            foreseen.unwrap_or(Ok(RestoreOutcome::Restored(left.millis())))
        };
        Ok(foreseen.into_iter().zip(left).map(outcome).collect())
    }

    /// True when a cluster keeps the Redis key and what bars it apart, so that no script sees both.
    pub fn looks_ahead(&self, wanted: &Return<'_>) -> bool {
        let redis_keys = [Some(wanted.saved.redis_key.as_slice()), wanted.barred_by];
        self.is_cluster() && !hash_slot::is_one(redis_keys.into_iter().flatten())
    }

    /// What becomes of those that do not come back, as far as that is known already: their time is over, or something
    /// stands in the way of one that `looks` says is to be looked at.
    pub(super) async fn foresee(
        &self,
        backup: &[Return<'_>],
        left: &[Left],
        looks: impl Fn(&Return<'_>) -> bool,
    ) -> Result<Vec<Option<RestoreResult>>, StoreError> {
        let mut outcomes: Vec<_> =
            left.iter().map(|left| (*left == Left::Over).then_some(Ok(RestoreOutcome::Expired))).collect();
        let looked_at = |index: &usize| left[*index] != Left::Over && looks(&backup[*index]);
        let looked_at: Vec<_> = (0..backup.len()).filter(looked_at).collect();
        if looked_at.is_empty() {
            return Ok(outcomes);
        }
        let mut pipeline = redis::pipe();
        for wanted in looked_at.iter().map(|index| &backup[*index]) {
            pipeline.cmd("EXISTS").arg(&wanted.saved.redis_key);
            pipeline.cmd("EXISTS").arg(wanted.bar());
        }
        let mut replies = self.ask_all(&pipeline).await?.into_iter();
        let mut is_there = || {
            let there = replies.next().ok_or_else(|| self.unexpected("EXISTS"))??;
            reply::integer(&there).map(|there| there != 0).ok_or_else(|| self.unexpected("EXISTS"))
        };
        for index in looked_at {
            outcomes[index] = match (is_there(), is_there()) {
                (Err(error), _) | (_, Err(error)) => Some(Err(error)),
                (Ok(true), _) => Some(Ok(RestoreOutcome::Present)),
                (Ok(false), Ok(true)) => Some(Ok(RestoreOutcome::Barred)),
                (Ok(false), Ok(false)) => None,
            };
        }
        Ok(outcomes)
    }

    /// How long each has to live, by the server's clock.
    pub(super) async fn left(&self, backup: &[Return<'_>]) -> Result<Vec<Left>, StoreError> {
        let time = self.ask(&redis::cmd("TIME")).await?;
        let now = reply::millis(time).ok_or_else(|| self.unexpected("TIME"))?;
        let left = backup.iter().map(|wanted| match wanted.saved.expires_at_ms {
            None => Left::ForEver,
            Some(at) if at <= now => Left::Over,
            Some(at) => Left::Millis(at - now),
        });
        Ok(left.collect())
    }

    /// What the script says became of a Redis key that had so long to live.
    pub(super) fn outcome(&self, reply: Value, left: Left) -> RestoreResult {
        match reply::word(reply).as_deref() {
            Some("RESTORED") => Ok(RestoreOutcome::Restored(left.millis())),
            Some("PRESENT") => Ok(RestoreOutcome::Present),
            Some("BARRED") => Ok(RestoreOutcome::Barred),
            Some("EXPIRED") => Ok(RestoreOutcome::Expired),
            _ => Err(self.unexpected("EVAL")),
        }
    }
}

impl Writer {
    /// As [`Client::looks_ahead`].
    pub fn looks_ahead(&self, wanted: &Return<'_>) -> bool {
        self.client().looks_ahead(wanted)
    }
}

/// How long a Redis key has to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Over,
    ForEver,
    Millis(u64),
}

impl Left {
    /// The milliseconds; `None` for ever.
    pub(super) fn millis(self) -> Option<u64> {
        match self {
            Self::Over => Some(0),
            Self::ForEver => None,
            Self::Millis(left) => Some(left),
        }
    }
}
