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
use crate::store::{Action, Change, Outcome, StoreError, Writer};

/// The backup and the audit log of one run of a command.
pub struct Journal {
    log: PathBuf,
    who: String,
    host: String,
    command: &'static str,
    reason: Option<String>,
    backup: Option<Backup>,
    is_needed: bool,
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
            is_needed: false,
        })
    }

    /// Makes changes, each against exactly what was seen, and notes `what` was done at `now`. One outcome a change.
    ///
    /// # Errors
    /// As [`Writer::apply`]; partial when the changes were made but could not be noted.
    pub async fn apply(
        &mut self,
        writer: &Writer,
        changes: &[Change],
        action: Action,
        what: &'static str,
        now: SystemTime,
    ) -> Result<Vec<Outcome>> {
        let applied = writer.apply(changes, action, self.backup.as_mut()).await;
        let (noted, what): (Vec<_>, _) = match &applied {
            Ok(outcomes) => {
                let done = changes.iter().zip(outcomes).filter(|(_, outcome)| **outcome == Outcome::Done);
                (done.map(|(change, _)| change).collect(), what)
            }
            Err(StoreError::OutcomeUnknown { .. }) => (changes.iter().collect(), "outcome-unknown"),
            Err(_) => (Vec::new(), what),
        };
        self.is_needed |= applied.is_err() || !noted.is_empty();
        for change in noted {
            audit::append(&self.log, &self.entry(writer, change, what, now)).map_err(not_noted)?;
        }
        Ok(applied?)
    }

    /// The backup, where it holds anything that was removed; else there is none any more.
    pub fn close(self) -> Option<PathBuf> {
        let backup = self.backup?;
        if self.is_needed {
            return Some(backup.path().to_owned());
        }
        backup.discard();
        None
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
