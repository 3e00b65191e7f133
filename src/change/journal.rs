//! Accounting for changes: what goes is in the backup before it goes, and in the audit log after.

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::Result;

use crate::args::ChangeArgs;
use crate::context::Context;
use crate::exit::{Exit, Stop};
use crate::render::escape;
use crate::store::audit::{self, Entry};
use crate::store::backup::Backup;
use crate::store::{Action, Change, Outcome, StoreError, Writer, batches};

/// The backup and the audit log of one run of a command.
pub struct Journal {
    log: PathBuf,
    who: String,
    host: String,
    command: &'static str,
    reason: Option<String>,
    backup: Option<Backup>,
}

impl Journal {
    /// Opens both before anything is changed. Only a removal needs a backup.
    ///
    /// # Errors
    /// When either cannot be written.
    pub fn open(context: &mut Context, args: &ChangeArgs, command: &'static str, removes: bool) -> Result<Self> {
        let log = context.settings.state_dir()?.join("audit.jsonl");
        audit::prepare(&log)?;
        let file = if removes { args.backup_file(context, command)? } else { None };
        Ok(Self {
            log,
            who: context.settings.environment().user(),
            host: context.host(),
            command,
            reason: args.reason.clone(),
            backup: file.map(|file| Backup::create(&file)).transpose()?,
        })
    }

    /// Makes changes, each against exactly what was seen, and notes `what` was done at `now`. Gives one outcome a
    /// change, in order, and the error that came in between: the changes before it were made.
    ///
    /// The error is that of [`Writer::apply`], or partial when changes were made but could not be noted.
    pub async fn apply(
        &mut self,
        writer: &Writer,
        changes: &[Change],
        (action, what): (Action, &'static str),
        now: SystemTime,
    ) -> (Vec<Outcome>, Result<()>) {
        let mut outcomes = Vec::with_capacity(changes.len());
        // One by one, for an error concerns one batch.
        for batch in batches(changes) {
            let applied = writer.apply(batch, action, self.backup.as_mut()).await;
            let noted = self.note(writer, batch, &applied, what, now);
            let applied = applied.map(|applied| outcomes.extend(applied));
            if let Err(error) = applied.map_err(anyhow::Error::from).and(noted.map_err(anyhow::Error::from)) {
                return (outcomes, Err(error));
            }
        }
        (outcomes, Ok(()))
    }

    fn note(
        &self,
        writer: &Writer,
        changes: &[Change],
        applied: &Result<Vec<Outcome>, StoreError>,
        what: &'static str,
        now: SystemTime,
    ) -> Result<(), Stop> {
        let entries: Vec<_> = match applied {
            Ok(outcomes) => {
                let done = changes.iter().zip(outcomes).filter(|(_, outcome)| **outcome == Outcome::Done);
                done.map(|(change, _)| self.entry(writer, change, what, now)).collect()
            }
            Err(StoreError::OutcomeUnknown { .. }) => {
                changes.iter().map(|change| self.entry(writer, change, "outcome-unknown", now)).collect()
            }
            Err(_) => Vec::new(),
        };
        entries.iter().try_for_each(|entry| audit::append(&self.log, entry)).map_err(not_noted)
    }

    /// The backup, where it holds anything that was removed; else there is none any more.
    pub fn close(self) -> Option<PathBuf> {
        self.backup.and_then(Backup::close)
    }

    fn entry(&self, writer: &Writer, change: &Change, what: &'static str, now: SystemTime) -> Entry {
        Entry {
            at: humantime::format_rfc3339_millis(now).to_string(),
            who: self.who.clone(),
            host: self.host.clone(),
            server: writer.name(),
            command: self.command,
            schema: change.about.schema.clone(),
            key: escape::text(&change.about.key),
            redis_key: escape::text(&change.seen.slots[change.slot].redis_key),
            what,
            reason: self.reason.clone(),
            backup: self.backup.as_ref().map(|backup| backup.path().display().to_string()),
        }
    }
}

fn not_noted(error: StoreError) -> Stop {
    Stop::new(Exit::Partial, format!("changes were made that the audit log does not show: {error}"))
        .hint("check the folder's rights and free space, then run the same command again to go on")
}
