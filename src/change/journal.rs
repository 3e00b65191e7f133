//! Notes the changes of a run: a value is in the backup before it is removed, and the change is in
//! the audit log afterwards, when its outcome is known.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::Result;

use super::audit_log::{AuditLog, Noted};
use crate::args::ChangeArgs;
use crate::domain::history::{LEFT_ALONE, OUTCOME_UNKNOWN};
use crate::domain::record::age::millis;
use crate::domain::record::{KeyIdentity, Observation};
use crate::exit::{self, CommandError};
use crate::session::Session;
use crate::store::backup::{Backup, RecordLabel};
use crate::store::{Change, KeyAction, Outcome, StoreError, Writer};

/// The backup and the audit log of a run.
pub struct Journal {
    audit_log: AuditLog,
    backup: Option<Backup>,
    /// A Redis key of the entry that the last [`Journal::back_up`] wrote, if it wrote one.
    last_entry: Option<Vec<u8>>,
    /// Why a master of a cluster was left out; the changes on the other masters were made.
    unreachable: Option<StoreError>,
}

impl Journal {
    /// Opens the backup and the audit log before anything is changed. Only a change that may lose a
    /// value needs a backup (`backs_up`).
    pub fn open(
        session: &mut Session,
        args: &ChangeArgs,
        command: &'static str,
        backs_up: bool,
    ) -> Result<Self> {
        let audit_log = AuditLog::open_or_do_without(session, args, command)?;
        let file = if backs_up { args.backup_file(session, command)? } else { None };
        let backup = match file {
            Some(file) => Some(Backup::create(&file)?.by(audit_log.maker())),
            None => None,
        };
        session.ui.begin_changes();
        Ok(Self { audit_log, backup, last_entry: None, unreachable: None })
    }

    /// The audit log.
    pub fn audit_log(&mut self) -> &mut AuditLog {
        &mut self.audit_log
    }

    /// Makes changes, each only if the record is exactly what was seen, and notes that `what` was
    /// done at `now`. Gives the outcomes in the order of the changes, and the error that stopped
    /// them: no change without an outcome was made. A master of a cluster that does not answer
    /// stops nothing; [`Journal::close`] reports it.
    ///
    /// The error is the error of [`Writer::apply`], or `Exit::Partial` if earlier changes could not
    /// be noted.
    pub async fn apply(
        &mut self,
        writer: &Writer,
        changes: &[Change],
        action: KeyAction,
        what: &'static str,
        now: SystemTime,
    ) -> (Vec<Outcome>, Result<()>) {
        if changes.is_empty() {
            return (Vec::new(), Ok(()));
        }
        // The log has a line before the first change: a run that is killed is found by it.
        if let Err(error) = self.expect(writer, changes, action, what, now).await {
            return (Vec::new(), Err(error));
        }
        let (outcomes, ended) = writer.apply(changes, action, self.backup.as_mut()).await;
        let mut done = Vec::new();
        let mut unknown = Vec::new();
        for (change, outcome) in changes.iter().zip(&outcomes) {
            if outcome.is_done() {
                add_log_lines(&mut done, change, action, *outcome);
            } else if *outcome == Outcome::Unknown {
                add_log_lines(&mut unknown, change, action, *outcome);
            }
        }
        let mut noted = self.note(writer, done.into_iter(), what, now).await;
        if !unknown.is_empty() {
            let of_unknown = self.note(writer, unknown.into_iter(), OUTCOME_UNKNOWN, now).await;
            noted = noted.and(of_unknown);
        }
        let ended = match ended {
            Err(error)
                if outcomes.len() == changes.len() && writer.can_change_others_after(&error) =>
            {
                self.unreachable = StoreError::prefer_unknown_outcome_or_first(
                    self.unreachable.take(),
                    Some(error),
                );
                Ok(())
            }
            ended => ended,
        };
        (outcomes, both(ended.map_err(anyhow::Error::from), noted))
    }

    /// Notes that changes are about to be made, and the identities of Redis keys that are about to
    /// get another expiry.
    ///
    /// # Errors
    /// It cannot be written; then the changes must not be made.
    async fn expect(
        &mut self,
        writer: &Writer,
        changes: &[Change],
        action: KeyAction,
        what: &'static str,
        now: SystemTime,
    ) -> Result<()> {
        self.begin(writer, now).await?;
        let Some(ttl) = action.ttl() else { return Ok(()) };
        // Only the clock of the server decides when exactly.
        let at = now.duration_since(SystemTime::UNIX_EPOCH)? + Duration::from_millis(ttl);
        let mut expected = Vec::new();
        for change in changes {
            add_log_lines(&mut expected, change, action, Outcome::Expires(millis(at)));
        }
        self.audit_log.expect_expiries(expected.into_iter(), what, &writer.name(), now).await
    }

    /// Notes in the audit log that changes are about to be made, and where.
    ///
    /// # Errors
    /// The server or the log cannot be reached; then nothing must be changed.
    pub async fn begin(&mut self, writer: &Writer, now: SystemTime) -> Result<()> {
        self.audit_log.set_server(writer.provenance().await?);
        let backup = self.backup_file();
        Ok(self.audit_log.begin(&writer.name(), backup.as_deref(), now).await?)
    }

    /// The backup, as the audit log names it.
    fn backup_file(&self) -> Option<String> {
        self.backup.as_ref().map(|backup| backup.path().display().to_string())
    }

    async fn note<'a>(
        &mut self,
        writer: &Writer,
        noted: impl Iterator<Item = Noted<'a>>,
        what: &'static str,
        now: SystemTime,
    ) -> Result<()> {
        let backup = self.backup_file();
        Ok(self.audit_log.note(noted, what, &writer.name(), backup.as_deref(), now).await?)
    }

    /// Notes Redis keys, and waits until the lines are on the disk. For changes that must be found
    /// in the log even if the run is killed in the middle of them.
    ///
    /// # Errors
    /// The log cannot be written; then the changes must not be made.
    pub async fn note_first(
        &mut self,
        writer: &Writer,
        noted: Vec<Noted<'_>>,
        what: &'static str,
        now: SystemTime,
    ) -> Result<()> {
        if noted.is_empty() {
            return Ok(());
        }
        self.begin(writer, now).await?;
        self.note(writer, noted.into_iter(), what, now).await?;
        Ok(self.audit_log.settle().await?)
    }

    /// Backs up every Redis key of a record before a step that may change them.
    ///
    /// # Errors
    /// The Redis keys cannot be read, or the backup cannot be written; then the step must not be
    /// made.
    pub async fn back_up(
        &mut self,
        writer: &Writer,
        seen: &Observation,
        label: &RecordLabel,
        now: SystemTime,
    ) -> Result<()> {
        self.last_entry = None;
        self.begin(writer, now).await?;
        if let Some(backup) = &mut self.backup {
            self.last_entry = writer.back_up_record(seen, label, backup).await?;
        }
        self.audit_log.set_server(writer.provenance().await?);
        Ok(())
    }

    /// Notes that `what` was done to a record: a line for each Redis key that is another one
    /// `after`, or for each one if the record after the step is unknown.
    ///
    /// # Errors
    /// `Exit::Partial`: the change was made and could not be noted.
    pub async fn note_step(
        &mut self,
        writer: &Writer,
        step: JournalStep<'_>,
        what: &'static str,
        now: SystemTime,
    ) -> Result<()> {
        let JournalStep { label, before, after, key_index } = step;
        let mut changed = Vec::new();
        for index in 0..before.keys.len() {
            // If the record after the step is unknown, the step may have changed any of its keys.
            if after.is_none_or(|after| !before.keys[index].is_unchanged_in(&after.keys[index])) {
                changed.push(index);
            }
        }
        if changed.is_empty() {
            changed.push(key_index);
        }
        let lines = changed.into_iter().map(|index| Noted {
            name: label.name.clone(),
            redis_key: &before.keys[index].redis_key,
            before: KeyIdentity::of(&before.keys[index]).written(),
            after: after.and_then(|after| KeyIdentity::of(&after.keys[index]).written()),
        });
        self.note(writer, lines, what, now).await
    }

    /// Notes Redis keys that were left as they were although the rest of their record was changed.
    ///
    /// # Errors
    /// `Exit::Partial`: earlier changes could not be noted.
    pub async fn note_left(
        &mut self,
        writer: &Writer,
        change: &Change,
        now: SystemTime,
    ) -> Result<()> {
        let mut lines = Vec::new();
        add_log_lines(&mut lines, change, KeyAction::Remove, Outcome::ChangedMeanwhile);
        self.note(writer, lines.into_iter(), LEFT_ALONE, now).await
    }

    /// Withdraws the entry of the last [`Journal::back_up`], because the step changed nothing. There
    /// is no such entry if the record was deleted before it could be backed up.
    pub fn nothing_changed(&mut self) {
        if let (Some(backup), Some(redis_key)) = (&mut self.backup, self.last_entry.take()) {
            backup.withdraw(&[&redis_key]);
        }
    }

    /// Closes the backup and the audit log. Returns the backup's file, and how the run `ended`. A
    /// backup that contains nothing is deleted.
    ///
    /// The error is the run's own, or `Exit::Partial` if the last changes could not be noted.
    pub async fn close<T>(
        mut self,
        ended: Result<T>,
        now: SystemTime,
    ) -> (Option<PathBuf>, Result<T>) {
        match &ended {
            Err(error) => self.audit_log.stops_for(error),
            Ok(_) if self.unreachable.is_some() => self.audit_log.stops_early(),
            Ok(_) => {}
        }
        let noted = self.audit_log.end(now).await;
        let ended = match (ended, self.unreachable) {
            // An unknown outcome weighs more than the reason for the end.
            (Err(why), Some(unknown @ StoreError::OutcomeUnknown { .. })) => {
                both(Err(unknown.into()), Err(why))
            }
            (Ok(_), Some(error)) => Err(error.into()),
            (ended, _) => ended,
        };
        (self.backup.and_then(Backup::close), both(ended, noted.map_err(anyhow::Error::from)))
    }
}

/// What a step did to a record.
pub struct JournalStep<'a> {
    /// Whose record it is.
    pub label: &'a RecordLabel,
    /// The record before the step.
    pub before: &'a Observation,
    /// The record after the step; `None` if it is unknown.
    pub after: Option<&'a Observation>,
    /// The Redis key that the log names if none changed, by its index in the record.
    pub key_index: usize,
}

/// The log's lines of a change: for each Redis key, what the change left, as far as it is known.
fn add_log_lines<'a>(
    lines: &mut Vec<Noted<'a>>,
    change: &'a Change,
    action: KeyAction,
    outcome: Outcome,
) {
    for key in change.changed_keys() {
        let seen = || KeyIdentity::of(key).written();
        let (before, after) = match outcome {
            Outcome::Expires(at) => (seen(), seen().map(|seen| seen.expiring_about(at))),
            outcome if outcome.is_done() && action == KeyAction::Remove => {
                (None, Some(KeyIdentity::ABSENT))
            }
            _ => (None, None),
        };
        lines.push(Noted {
            name: change.label.name.clone(),
            redis_key: &key.redis_key,
            before,
            after,
        });
    }
}

/// The end of a run together with a second error: both messages are kept, and the run's own error
/// decides the exit code.
fn both<T>(ended: Result<T>, besides: Result<()>) -> Result<T> {
    match (ended, besides) {
        (Err(error), Err(besides)) => {
            let (exit, hint) = (exit::of(&error), exit::hint_of(&error));
            let message = format!("{error:#}; and {besides:#}");
            Err(CommandError { hint, ..CommandError::new(exit, message) }.into())
        }
        (ended, besides) => ended.and_then(|done| besides.map(|()| done)),
    }
}
