//! A service's own step, done to one record: backed up, guarded by what was seen, noted, and read back.

use std::path::PathBuf;

use anyhow::Result;

use super::journal::Journal;
use crate::args::StepArgs;
use crate::context::Context;
use crate::domain::record::Record;
use crate::domain::record::age;
use crate::domain::record::identity::Identity;
use crate::domain::record::locate;
use crate::domain::record::observation::Observation;
use crate::domain::schema::{Meaning, Step};
use crate::domain::step::reply;
use crate::domain::step::reply::StepReply;
use crate::domain::step::request::Request;
use crate::exit::{Exit, Stop};
use crate::render::escape;
use crate::store::backup::About;
use crate::store::{Guard, Hold, StoreError, Writer};

/// What is done, to which record.
pub struct Play<'a> {
    /// The command, also the step's name.
    pub command: &'static str,
    /// What the audit log calls it.
    pub what: &'static str,
    /// The step.
    pub step: &'a Step,
    /// The record as it was shown.
    pub record: &'a Record,
    /// What the step's placeholders stand for.
    pub request: Request<'a>,
    /// The value of a lock that is taken for it, in the same moment.
    pub hold: Option<Vec<u8>>,
    /// The slot whose Redis key the audit log names.
    pub slot: usize,
}

/// What became of it.
#[derive(Debug)]
pub struct Played {
    /// What the service's reply means; `None` where its schema does not know the reply.
    pub means: Option<Meaning>,
    /// The reply; `None` when it was lost, and reading back told.
    pub reply: Option<StepReply>,
    /// The record right after.
    pub now: Record,
    /// The backup, where there is one.
    pub backup: Option<PathBuf>,
}

impl Played {
    /// True when the step did what it is for.
    pub fn is_done(&self) -> bool {
        matches!(self.means, Some(Meaning::Acquired | Meaning::Stored | Meaning::Released))
    }
}

/// Does a step. `told` says what became of it, from the record as it is after the reply was lost.
///
/// # Errors
/// Changed: the record is no longer as it was shown, and nothing was done. Outcome unknown, partial, and whatever the
/// server says.
pub async fn play(
    context: &mut Context,
    args: &StepArgs,
    writer: &Writer,
    play: &Play<'_>,
    told: impl Fn(&Record) -> Option<Meaning>,
) -> Result<Played> {
    let (record, seen) = (play.record, &play.record.seen);
    let about = About { schema: record.schema.name.clone(), key: record.key.clone(), state: record.state.as_str() };
    let mut journal = Journal::open(context, &args.change, play.command, !seen.is_absent())?;
    let now = context.now();
    let played = match journal.back_up(writer, seen, &about).await {
        Ok(()) => play.calls(writer, told).await,
        Err(error) => return journal.close(Err(error)).await.1,
    };
    let what = match &played {
        Ok(played) if played.is_done() => Some(play.what),
        // A service may do something about a lock that it does not take, such as give it a TTL.
        Ok(played) if Identity::of(seen).differs(&played.now.seen) => Some("changed"),
        Err(error) if is_unknown(error) => Some("outcome-unknown"),
        Err(error) if is_partial(error) => Some("partial"),
        _ => None,
    };
    let noted = match what {
        Some(what) => journal.note_step(writer, (&about, &seen.slots[play.slot].redis_key), what, now).await,
        None => {
            journal.nothing_changed(seen);
            Ok(())
        }
    };
    let (backup, played) = journal.close(played.and_then(|played| noted.map(|()| played))).await;
    Ok(Played { backup, ..played? })
}

fn is_unknown(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(StoreError::OutcomeUnknown { .. }))
}

fn is_partial(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Stop { exit: Exit::Partial, .. }))
}

impl Play<'_> {
    /// Makes the step's calls, each guarded by what was there right before it.
    async fn calls(&self, writer: &Writer, told: impl Fn(&Record) -> Option<Meaning>) -> Result<Played> {
        let mut seen = self.record.seen.clone();
        let mut before_hold = None;
        for (index, call) in self.step.calls.iter().enumerate() {
            let hold = self.hold().filter(|_| index == 0);
            let guard = writer.call(&seen, hold.as_ref(), self.request.words(call)).await;
            let (reply, before, after) = match guard.map_err(|error| self.in_between(error.into(), index, &seen))? {
                Guard::Made { reply, before, after } => (reply, before, after),
                Guard::Changed => return Err(self.in_between(changed().into(), index, &seen)),
                Guard::Lost { now, why } => return self.read_back(writer, now, &why, told),
            };
            before_hold = hold.map(|_| before).or(before_hold);
            let known = reply.as_ref().ok().and_then(|reply| reply::recognise(call, reply));
            let means = known.map(|known| known.means);
            let mut now = after;
            if let (Some(before), false) = (&before_hold, matches!(means, Some(Meaning::Stored | Meaning::Next))) {
                self.give_back(writer, before, &now).await?;
                now.clone_from(before);
            }
            let reply = reply.map_err(|error| self.in_between(error.into(), index, &now))?;
            if means != Some(Meaning::Next) {
                return Ok(Played { means, reply: Some(reply), now: self.record_of(now), backup: None });
            }
            seen = now;
        }
        Err(self.in_between(Stop::new(Exit::No, "no reply of the step decided").into(), self.step.calls.len(), &seen))
    }

    fn hold(&self) -> Option<Hold> {
        let schema = &self.record.schema;
        let ttl_ms = age::millis(schema.lock_ttl).max(1);
        Some(Hold { slot: schema.lock_slot(), value: self.hold.clone()?, ttl_ms })
    }

    /// The lock that was taken for a step that did not store goes again.
    async fn give_back(&self, writer: &Writer, before: &Observation, after: &Observation) -> Result<()> {
        match writer.put_back(before, after).await {
            Ok(true) => Ok(()),
            left => {
                let why = left.err().map_or_else(|| "it changed meanwhile".to_owned(), |error| error.to_string());
                Err(Stop::new(
                    Exit::Partial,
                    format!("the step did not store, and the lock taken for it is left: {why}"),
                )
                .hint("inspect the key; it goes with its TTL, and what stood there is in the backup")
                .into())
            }
        }
    }

    /// An error between two calls of a step says so, where the calls before it changed something.
    fn in_between(&self, error: anyhow::Error, made: usize, seen: &Observation) -> anyhow::Error {
        if !Identity::of(&self.record.seen).differs(seen) {
            return error;
        }
        let all = self.step.calls.len();
        Stop::new(Exit::Partial, format!("{error:#}; {made} of the step's {all} calls were made"))
            .hint("inspect the key: what it is now tells")
            .into()
    }

    fn read_back(
        &self,
        writer: &Writer,
        now: Option<Observation>,
        why: &StoreError,
        told: impl Fn(&Record) -> Option<Meaning>,
    ) -> Result<Played> {
        let now = now.map(|now| self.record_of(now));
        if let Some(now) = now
            && let Some(means) = told(&now)
        {
            return Ok(Played { means: Some(means), reply: None, now, backup: None });
        }
        let what = format!("the {} step for {}", self.command, escape::text(&self.record.key));
        Err(StoreError::OutcomeUnknown { target: writer.name(), what, why: why.to_string() }.into())
    }

    fn record_of(&self, seen: Observation) -> Record {
        locate::read_as(&self.record.schema, &self.record.key, seen)
    }
}

fn changed() -> Stop {
    Stop::new(Exit::Changed, "the record changed since it was shown; nothing was done")
        .hint("inspect it again: its worker may be at it")
}
