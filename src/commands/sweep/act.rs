//! The second look, and what is done to the locks that stood both.

use std::time::Duration;

use anyhow::Result;

use super::owners::Owners;
use super::seek::{Place, Seeker};
use crate::change::{BATCH, Journal};
use crate::context::Context;
use crate::domain::age;
use crate::domain::bulk::Swept;
use crate::domain::orphan;
use crate::domain::second_look::Verdict;
use crate::interrupt::Interrupt;
use crate::store::backup::About;
use crate::store::{Action, Change, Head, Outcome, Reader, Writer};

/// Bytes of each value that are read: a lock fits. What is larger is no lock of any service, and told by its beginning,
/// its length, and the checksum of what is backed up.
const HEAD: Head = Head::Bytes(16 * 1024);

/// What is done to a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Unlock,
    Expire,
}

/// What acting takes.
pub(super) struct Actor<'a> {
    pub(super) seeker: &'a Seeker,
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) journal: &'a mut Journal,
    pub(super) owners: Option<Owners>,
    pub(super) deed: Deed,
    pub(super) grace: Duration,
    pub(super) interrupt: &'a Interrupt,
}

/// A lock that stood both looks.
struct Stuck {
    change: Change,
    action: Action,
    owner: Option<Vec<u8>>,
}

impl Actor<'_> {
    /// Waits, looks again, and acts on what nobody touched, batch by batch. False when Ctrl-C came in between.
    ///
    /// # Errors
    /// As every change; what was done before is in `swept`.
    pub(super) async fn act(&mut self, context: &Context, places: &[Place], swept: &mut Swept) -> Result<bool> {
        // From the beginning, so that somebody who waits sees that it is waited.
        let progress = context.ui.progress("locks looked at again");
        if self.interrupt.unless_raised(tokio::time::sleep(self.grace)).await.is_none() {
            return Ok(false);
        }
        if let Some(owners) = &mut self.owners {
            owners.forget();
        }
        for places in places.chunks(BATCH) {
            let Some(stuck) = self.interrupt.clone().unless_raised(self.look_again(places, swept)).await else {
                return Ok(false);
            };
            // From here on the batch is in hand.
            for stuck in stuck?.chunk_by(|one, next| one.action == next.action) {
                self.change(context, stuck, swept).await?;
            }
            progress.inc(places.len() as u64);
        }
        progress.finish_and_clear();
        Ok(true)
    }

    /// Those nobody touched, whose owners are not alive, sorted by what is done to them.
    async fn look_again(&mut self, places: &[Place], swept: &mut Swept) -> Result<Vec<Stuck>> {
        let wanted: Vec<_> = places.iter().map(|place| place.candidate.redis_keys.clone()).collect();
        let seen = self.reader.observe(&wanted, HEAD).await?;
        let mut counted = swept.clone();
        let mut stuck = Vec::with_capacity(places.len());
        for (place, seen) in places.iter().zip(seen) {
            let verdict = seen.as_ref().map_or(Verdict::Changed, |now| place.first.compare(now));
            match (verdict, seen.ok().and_then(|now| self.seeker.orphan_at(place.candidate.clone(), now))) {
                (Verdict::Renewed, _) => counted.renewed += 1,
                (Verdict::Changed, _) | (_, None) => counted.changed += 1,
                (Verdict::Same, Some((record, orphan))) => {
                    if self.deed == Deed::Expire && orphan::expires_anyway(&record, orphan.slot) {
                        counted.left_to_expire += 1;
                        continue;
                    }
                    let action = match self.deed {
                        Deed::Unlock => Action::Remove,
                        Deed::Expire => Action::ExpireIn(age::millis(record.schema.lock_ttl)),
                    };
                    let owner = record.owner().map(<[u8]>::to_vec);
                    let about =
                        About { schema: record.schema.name.clone(), key: record.key, state: record.state.word() };
                    stuck.push(Stuck { change: Change { slot: orphan.slot, seen: record.seen, about }, action, owner });
                }
            }
        }
        counted.skipped_alive += self.drop_the_living(&mut stuck).await?;
        stuck.sort_by_key(|stuck| match stuck.action {
            Action::Remove => 0,
            Action::ExpireIn(ttl) => ttl,
        });
        // Only now, for whoever interrupts the above has not counted these.
        *swept = counted;
        Ok(stuck)
    }

    async fn drop_the_living(&mut self, stuck: &mut Vec<Stuck>) -> Result<u64> {
        let Some(owners) = &mut self.owners else { return Ok(0) };
        owners.ask(stuck.iter().filter_map(|stuck| stuck.owner.as_deref())).await?;
        let before = stuck.len();
        stuck.retain(|stuck| !stuck.owner.as_ref().is_some_and(|owner| owners.is_alive(owner)));
        Ok((before - stuck.len()) as u64)
    }

    async fn change(&mut self, context: &Context, stuck: &[Stuck], swept: &mut Swept) -> Result<()> {
        let Some(first) = stuck.first() else { return Ok(()) };
        let what = if self.deed == Deed::Unlock { "swept" } else { "expired" };
        let changes: Vec<_> = stuck.iter().map(|stuck| stuck.change.clone()).collect();
        let (outcomes, ended) = self.journal.apply(&self.writer, &changes, (first.action, what), context.now()).await;
        for outcome in outcomes {
            swept.done += u64::from(outcome.is_done());
            match outcome {
                Outcome::FoundDone => swept.read_back += 1,
                Outcome::Unknown => swept.unknown += 1,
                Outcome::Changed | Outcome::Absent => swept.changed += 1,
                Outcome::Done | Outcome::Refused => {}
            }
        }
        ended
    }
}
