//! Accounting for changes: a value is in the backup before it is removed, and the change is in the audit log afterwards.

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::Result;

use super::audit_trail::{AuditTrail, Noted};
use crate::args::ChangeArgs;
use crate::context::Context;
use crate::domain::record::{Content, Observation};
use crate::exit::{self, Stop};
use crate::store::backup::{About, Backup};
use crate::store::{Action, Change, Outcome, StoreError, Writer};

pub struct Journal {
    trail: AuditTrail,
    backup: Option<Backup>,
    /// Why a master of a cluster was left out; the changes on the other masters were made.
    silence: Option<StoreError>,
}

impl Journal {
    /// Opens the backup and the audit log before anything is changed. Only a removal needs a backup.
    pub fn open(context: &mut Context, args: &ChangeArgs, command: &'static str, removes: bool) -> Result<Self> {
        let trail = AuditTrail::open_or_do_without(context, args, command)?;
        let file = if removes { args.backup_file(context, command)? } else { None };
        Ok(Self { trail, backup: file.map(|file| Backup::create(&file)).transpose()?, silence: None })
    }

    /// Makes changes, each only where the record is exactly what was seen, and notes that `what` was done at `now`. Gives the
    /// outcomes in the order of the changes, and the error that stopped them: no change without an outcome was made. A master
    /// of a cluster that does not answer stops nothing; [`Journal::close`] tells of it.
    ///
    /// The error is the error of [`Writer::apply`], or partial where earlier changes could not be noted.
    pub async fn apply(
        &mut self,
        writer: &Writer,
        changes: &[Change],
        action: Action,
        what: &'static str,
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

    /// Backs up every Redis key of a record before a step that may change them.
    ///
    /// # Errors
    /// The Redis keys cannot be read, or the backup cannot be written; then the step must not be made.
    pub async fn back_up(&mut self, writer: &Writer, seen: &Observation, about: &About) -> Result<()> {
        match &mut self.backup {
            Some(backup) => Ok(writer.back_up_record(seen, about, backup).await?),
            None => Ok(()),
        }
    }

    /// Notes that `what` was done to one Redis key of a record.
    ///
    /// # Errors
    /// Partial: the change was made and could not be noted.
    pub async fn note_step(
        &mut self,
        writer: &Writer,
        about: &About,
        redis_key: &[u8],
        what: &'static str,
        now: SystemTime,
    ) -> Result<()> {
        let backup = self.backup.as_ref().map(|backup| backup.path().display().to_string());
        let noted = Noted { schema: &about.schema, key: &about.key, redis_key };
        Ok(self.trail.note(std::iter::once(noted), what, &writer.name(), backup.as_deref(), now).await?)
    }

    /// Removes a record from the backup, for the step changed nothing.
    pub fn nothing_changed(&mut self, seen: &Observation) {
        let there = seen.slots.iter().filter(|slot| slot.content != Content::Absent);
        if let Some(backup) = &mut self.backup {
            backup.take_back(&there.map(|slot| slot.redis_key.as_slice()).collect::<Vec<_>>());
        }
    }

    /// The backup's file, where the backup holds anything that was removed, else the file is deleted; and how the run `ended`.
    ///
    /// The error is the run's own, or partial where the last changes could not be noted.
    pub async fn close<T>(mut self, ended: Result<T>) -> (Option<PathBuf>, Result<T>) {
        let noted = self.trail.settle().await;
        let ended = match (ended, self.silence) {
            // An unknown outcome weighs more than the reason for the end.
            (Err(why), Some(unknown @ StoreError::OutcomeUnknown { .. })) => both(Err(unknown.into()), Err(why)),
            (Ok(_), Some(silence)) => Err(silence.into()),
            (ended, _) => ended,
        };
        (self.backup.and_then(Backup::close), both(ended, noted.map_err(anyhow::Error::from)))
    }
}

/// How a run ended, with what went wrong besides: both messages are kept, and the run's own error gives the exit code.
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
