//! Bringing Redis keys back from a backup: only where nothing is, until the moment that the backup says.

use redis::Value;

use super::backup::Saved;
use super::error::StoreError;
use super::link::Link;
use super::reply;
use super::save::server_millis;
use super::scripts;
use super::write::Writer;

/// What the script runs that brings a Redis key back.
const RIGHTS: &str = "+restore +exists";

/// Milliseconds by which the moment when a Redis key expires may be read wrong: its TTL and the time are read one after
/// the other, with a pipeline between.
const READ_WITHIN: u64 = 100;

/// What became of a Redis key, or why it did not come back.
pub type Became = Result<Fate, StoreError>;

/// What becomes of a Redis key of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is back, or would be, with these milliseconds left; `None` without expiry.
    Restored(Option<u64>),
    /// It is back: the reply was lost, and reading back tells.
    FoundBack(Option<u64>),
    /// Something is there, which stays.
    Present,
    /// Its time is over.
    Expired,
}

impl Writer {
    /// Brings Redis keys back in one round trip after the question for the time. Nothing that is there is touched, so
    /// that it can be done again.
    ///
    /// Gives what became of each, with an own error for each Redis key that is refused, and
    /// [`StoreError::OutcomeUnknown`] for each whose reply was lost and of which reading back could not tell; and the
    /// error that came in between. Where the server could not be asked at all nothing became of any.
    pub async fn restore(&self, backup: &[&Saved]) -> (Vec<Became>, Result<(), StoreError>) {
        // Which nodes there are is known before anything is sent.
        if let Err(error) = self.link().masters().await {
            return (Vec::new(), Err(error));
        }
        let before = self.link().slot_map();
        let there = match self.restore_here(backup).await {
            Ok(there) => there,
            Err(error) => return (Vec::new(), Err(error)),
        };
        match self.follow(before.as_deref()).await {
            Ok(None) => {
                let replicated = self.replicated(&brought_back(backup, &there)).await;
                (there, replicated)
            }
            Err(why) if !brought_back(backup, &there).is_empty() => {
                let why = StoreError::MasterUnknown { target: self.name(), why: why.to_string() };
                (there, Err(why))
            }
            Err(error) => (there, Err(error)),
            // What came back on the old master may be lost.
            Ok(Some(_)) => match self.restore_here(backup).await {
                Ok(here) => (there.into_iter().zip(here).map(|(there, here)| either(there, here)).collect(), Ok(())),
                Err(error) => (there, Err(error)),
            },
        }
    }

    async fn restore_here(&self, backup: &[&Saved]) -> Result<Vec<Became>, StoreError> {
        let left = self.link().left(backup).await?;
        let mut pipeline = redis::pipe();
        for (saved, left) in backup.iter().zip(&left) {
            if *left == Left::Over {
                continue;
            }
            pipeline.cmd("EVAL").arg(scripts::RESTORE_IF_ABSENT).arg(1).arg(&saved.redis_key);
            pipeline.arg(&saved.dump).arg(saved.expires_at_ms.unwrap_or(0));
        }
        let replies = self.link().ask_each(&pipeline).await;
        let replies = replies.into_iter().map(|reply| reply.map_err(|error| error.naming(RIGHTS))).collect();
        let mut fates = self.link().fates(&left, replies, |value, ttl| match reply::word(value).as_deref() {
            Some("RESTORED") => Some(Fate::Restored(ttl)),
            Some("PRESENT") => Some(Fate::Present),
            Some("EXPIRED") => Some(Fate::Expired),
            _ => None,
        });
        let is_lost = |fate: &Became| fate.as_ref().is_err_and(StoreError::lost_the_reply);
        let lost: Vec<_> = (0..fates.len()).filter(|index| is_lost(&fates[*index])).collect();
        if let Some(Err(why)) = lost.first().map(|first| fates[*first].clone()) {
            let some: Vec<_> = lost.iter().map(|index| (backup[*index], left[*index])).collect();
            for (index, fate) in lost.iter().zip(self.found_back(&some, &why).await) {
                fates[*index] = fate;
            }
        }
        Ok(fates)
    }

    /// On a new connection, for the old one may be what was lost. A Redis key that holds what the backup holds is back;
    /// one that holds something else is left to whoever wrote it. One that is not there may come yet: that is unknown.
    async fn found_back(&self, lost: &[(&Saved, Left)], why: &StoreError) -> Vec<Became> {
        let redis_keys: Vec<_> = lost.iter().map(|(saved, _)| saved.redis_key.as_slice()).collect();
        let mut now = vec![None; lost.len()];
        if let Ok(link) = self.link().anew().await {
            for indexes in link.by_master(&redis_keys) {
                let some: Vec<_> = indexes.iter().map(|index| redis_keys[*index]).collect();
                for (index, saved) in indexes.iter().zip(link.save(&some).await.unwrap_or_default()) {
                    now[*index] = saved;
                }
            }
        }
        let fate = |((saved, left), now): (&(&Saved, Left), Option<Saved>)| match (left.millis(), now) {
            (None, _) => Some(Fate::Expired),
            (Some(ttl), Some(now)) if is_back(saved, &now) => Some(Fate::FoundBack(ttl)),
            (_, Some(_)) => Some(Fate::Present),
            (_, None) => None,
        };
        let fates: Vec<_> = lost.iter().zip(now).map(fate).collect();
        let unknown = fates.iter().filter(|fate| fate.is_none()).count();
        let what = format!("the return of {unknown} of {} Redis keys", lost.len());
        let unknown = StoreError::OutcomeUnknown { target: self.link().name(), what, why: why.to_string() };
        fates.into_iter().map(|fate| fate.ok_or_else(|| unknown.clone())).collect()
    }
}

/// True when what is there is what was sent: many locks hold the same bytes, and end at another moment.
fn is_back(saved: &Saved, now: &Saved) -> bool {
    let expires_alike = match (saved.expires_at_ms, now.expires_at_ms) {
        (Some(sent), Some(now)) => sent.abs_diff(now) <= READ_WITHIN,
        (sent, now) => sent == now,
    };
    saved.dump == now.dump && expires_alike
}

/// The Redis keys that are back.
fn brought_back<'a>(backup: &[&'a Saved], became: &[Became]) -> Vec<&'a [u8]> {
    let is_back = |became: &Became| matches!(became, Ok(Fate::Restored(_) | Fate::FoundBack(_)));
    let back = backup.iter().zip(became).filter(|(_, became)| is_back(became));
    back.map(|(saved, _)| saved.redis_key.as_slice()).collect()
}

/// What became of a Redis key that was brought back on one master and then on another.
fn either(there: Became, here: Became) -> Became {
    match (there, here) {
        (Ok(back @ (Fate::Restored(_) | Fate::FoundBack(_))), Ok(Fate::Present) | Err(_)) => Ok(back),
        (_, here) => here,
    }
}

impl Link {
    /// What [`Writer::restore`] would do.
    ///
    /// # Errors
    /// As every read.
    pub async fn would_restore(&self, backup: &[&Saved]) -> Result<Vec<Became>, StoreError> {
        let left = self.left(backup).await?;
        let mut pipeline = redis::pipe();
        for (saved, _) in backup.iter().zip(&left).filter(|(_, left)| **left != Left::Over) {
            pipeline.cmd("EXISTS").arg(&saved.redis_key);
        }
        let replies = self.ask_all(&pipeline).await?;
        let fate = |there, ttl| if there == 0 { Fate::Restored(ttl) } else { Fate::Present };
        Ok(self.fates(&left, replies, |value, ttl| reply::integer(&value).map(|there| fate(there, ttl))))
    }

    async fn left(&self, backup: &[&Saved]) -> Result<Vec<Left>, StoreError> {
        let time = self.ask(&redis::cmd("TIME")).await?;
        let now = server_millis(time).ok_or_else(|| self.unexpected("TIME"))?;
        let left = backup.iter().map(|saved| match saved.expires_at_ms {
            None => Left::ForEver,
            Some(at) if at <= now => Left::Over,
            Some(at) => Left::Millis(at - now),
        });
        Ok(left.collect())
    }

    /// What became of each, where there is a reply for each that is not over; `read` reads one.
    fn fates(
        &self,
        left: &[Left],
        replies: Vec<Result<Value, StoreError>>,
        read: impl Fn(Value, Option<u64>) -> Option<Fate>,
    ) -> Vec<Became> {
        let mut replies = replies.into_iter();
        let mut fate = |left: Left| {
            let Some(ttl) = left.millis() else { return Ok(Fate::Expired) };
            let value = replies.next().ok_or_else(|| self.unexpected("EVAL"))??;
            read(value, ttl).ok_or_else(|| self.unexpected("EVAL"))
        };
        left.iter().copied().map(&mut fate).collect()
    }
}

/// How long a Redis key has to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Over,
    ForEver,
    Millis(u64),
}

impl Left {
    /// The milliseconds, `None` inside for ever; `None` when it is over.
    fn millis(self) -> Option<Option<u64>> {
        match self {
            Self::Over => None,
            Self::ForEver => Some(None),
            Self::Millis(left) => Some(Some(left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_taken_anew_with_the_same_bytes_is_not_what_came_back() {
        let of = |dump: &str, expires_at_ms| Saved {
            redis_key: b"a".to_vec(),
            dump: dump.as_bytes().to_vec(),
            ttl_ms: None,
            expires_at_ms,
        };
        let sent = of("1", Some(50_000));
        assert!(is_back(&sent, &of("1", Some(50_055))) && is_back(&sent, &of("1", Some(49_998))));
        for other in [of("1", Some(51_000)), of("1", None), of("2", Some(50_000))] {
            assert!(!is_back(&sent, &other), "{other:?}");
        }
        assert!(is_back(&of("1", None), &of("1", None)));
    }
}
