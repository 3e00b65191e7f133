//! Accounting for changes: what goes is in the backup before it goes, and in the audit log after.

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::Result;

use super::trail::{Noted, Trail};
use crate::args::ChangeArgs;
use crate::context::Context;
use crate::exit::Stop;
use crate::store::backup::Backup;
use crate::store::{Action, Change, Outcome, StoreError, Writer, batches};

/// The backup and the audit log of one run of a command.
pub struct Journal {
    trail: Trail,
    backup: Option<Backup>,
}

impl Journal {
    /// Opens both before anything is changed. Only a removal needs a backup.
    ///
    /// # Errors
    /// When either cannot be written.
    pub fn open(context: &mut Context, args: &ChangeArgs, command: &'static str, removes: bool) -> Result<Self> {
        let trail = Trail::open(context, args, command)?;
        let file = if removes { args.backup_file(context, command)? } else { None };
        Ok(Self { trail, backup: file.map(|file| Backup::create(&file)).transpose()? })
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
        let (noted, what): (Vec<_>, _) = match applied {
            Ok(outcomes) => {
                let done = changes.iter().zip(outcomes).filter(|(_, outcome)| **outcome == Outcome::Done);
                (done.map(|(change, _)| change).collect(), what)
            }
            Err(StoreError::OutcomeUnknown { .. }) => (changes.iter().collect(), "outcome-unknown"),
            Err(_) => (Vec::new(), what),
        };
        let noted = noted.into_iter().map(|change| Noted {
            schema: &change.about.schema,
            key: &change.about.key,
            redis_key: change.redis_key(),
        });
        let backup = self.backup.as_ref().map(|backup| backup.path().display().to_string());
        self.trail.note(noted, what, &writer.name(), backup.as_deref(), now)
    }

    /// The backup, where it holds anything that was removed; else there is none any more.
    pub fn close(self) -> Option<PathBuf> {
        self.backup.and_then(Backup::close)
    }
}
