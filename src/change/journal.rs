//! Accounting for changes: what goes is in the backup before it goes, and in the audit log after.

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::Result;

use super::audit_trail::{AuditTrail, Noted};
use crate::args::ChangeArgs;
use crate::context::Context;
use crate::domain::record::observation::{Content, Observation};
use crate::exit::{self, Stop};
use crate::store::backup::writer::{About, Backup};
use crate::store::{Action, Change, Outcome, StoreError, Writer};

/// The backup and the audit log of one run of a command.
pub struct Journal {
    trail: AuditTrail,
    backup: Option<Backup>,
    /// Why a master of a cluster was left out; the others' changes were made.
    silence: Option<StoreError>,
}

impl Journal {
    /// Opens both before anything is changed. Only a removal needs a backup.
    pub fn open(context: &mut Context, args: &ChangeArgs, command: &'static str, removes: bool) -> Result<Self> {
        let trail = AuditTrail::open(context, args, command)?;
        let file = if removes { args.backup_file(context, command)? } else { None };
        Ok(Self { trail, backup: file.map(|file| Backup::create(&file)).transpose()?, silence: None })
    }

    /// Makes changes, each against exactly what was seen, and notes `what` was done at `now`. Gives one outcome a
    /// change, in order, and the error that came in between: of the changes after these outcomes none was made. That a
    /// master of a cluster does not answer keeps nobody from going on, and is told by [`Journal::close`].
    ///
    /// The error is that of [`Writer::apply`], or partial when changes were made before that could not be noted.
    pub async fn apply(
        &mut self,
        writer: &Writer,
        changes: &[Change],
        (action, what): (Action, &'static str),
        now: SystemTime,
    ) -> (Vec<Outcome>, Result<()>) {
        let (outcomes, ended) = writer.apply(changes, action, self.backup.as_mut()).await;
        let of = |wanted: fn(Outcome) -> bool| {
            let chosen = changes.iter().zip(&outcomes).filter(move |(_, outcome)| wanted(**outcome));
            chosen.map(|(change, _)| change)
        };
        let mut noted = self.note(writer, of(Outcome::is_done), what, now).await;
        if outcomes.contains(&Outcome::Unknown) {
            let unknown = of(|outcome| outcome == Outcome::Unknown);
            noted = noted.and(self.note(writer, unknown, "outcome-unknown", now).await);
        }
        let ended = match ended {
            Err(error) if outcomes.len() == changes.len() && writer.goes_on_after(&error) => {
                self.silence = StoreError::worse(self.silence.take(), Some(error));
                Ok(())
            }
            ended => ended,
        };
        (outcomes, both(ended.map_err(anyhow::Error::from), noted))
    }

    async fn note<'a>(
        &mut self,
        writer: &Writer,
        changes: impl Iterator<Item = &'a Change>,
        what: &'static str,
        now: SystemTime,
    ) -> Result<()> {
        let noted = changes.map(|change| Noted {
            schema: &change.about.schema,
            key: &change.about.key,
            redis_key: change.redis_key(),
        });
        let backup = self.backup.as_ref().map(|backup| backup.path().display().to_string());
        Ok(self.trail.note(noted, what, &writer.name(), backup.as_deref(), now).await?)
    }

    /// Backs up every Redis key of a record that a step may change, before it does.
    ///
    /// # Errors
    /// When they cannot be read or written down; nothing is to be changed then.
    pub async fn back_up(&mut self, writer: &Writer, seen: &Observation, about: &About) -> Result<()> {
        match &mut self.backup {
            Some(backup) => Ok(writer.back_up_record(seen, about, backup).await?),
            None => Ok(()),
        }
    }

    /// Notes that `what` was done to one Redis key of a record.
    ///
    /// # Errors
    /// Partial: it was done and could not be noted.
    pub async fn note_step(
        &mut self,
        writer: &Writer,
        (about, redis_key): (&About, &[u8]),
        what: &'static str,
        now: SystemTime,
    ) -> Result<()> {
        let backup = self.backup.as_ref().map(|backup| backup.path().display().to_string());
        let noted = Noted { schema: &about.schema, key: &about.key, redis_key };
        Ok(self.trail.note(std::iter::once(noted), what, &writer.name(), backup.as_deref(), now).await?)
    }

    /// Takes a record's backup back, for the step changed nothing.
    pub fn nothing_changed(&mut self, seen: &Observation) {
        let there = seen.slots.iter().filter(|slot| slot.content != Content::Absent);
        if let Some(backup) = &mut self.backup {
            backup.take_back(&there.map(|slot| slot.redis_key.as_slice()).collect::<Vec<_>>());
        }
    }

    /// The backup, where it holds anything that was removed, else there is none any more; and how the run `ended`.
    ///
    /// The error is that of the run, or partial when its last changes could not be noted.
    pub async fn close<T>(mut self, ended: Result<T>) -> (Option<PathBuf>, Result<T>) {
        let noted = self.trail.settle().await;
        let ended = match (ended, self.silence) {
            // That an outcome is unknown weighs more than why it ended.
            (Err(why), Some(unknown @ StoreError::OutcomeUnknown { .. })) => both(Err(unknown.into()), Err(why)),
            (Ok(_), Some(silence)) => Err(silence.into()),
            (ended, _) => ended,
        };
        (self.backup.and_then(Backup::close), both(ended, noted.map_err(anyhow::Error::from)))
    }
}

/// How a run ended, and what went wrong besides, e.g. that its changes could not be noted: neither hides the other, and the
/// first says the exit code.
fn both<T>(ended: Result<T>, besides: Result<()>) -> Result<T> {
    match (ended, besides) {
        (Err(error), Err(besides)) => {
            let (exit, hint) = (exit::of(&error), exit::hint_of(&error));
            let message = format!("{error:#}; and {besides:#}");
            Err(Stop { exit, message, hint }.into())
        }
        (ended, besides) => ended.and_then(|done| besides.map(|()| done)),
    }
}
