//! The operation that is undone, and how each part of it can be undone.

use std::collections::HashSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::changed_records::{ChangedRecord, ChangedRecords};
use super::operation_to_undo::{UndoCandidates, backup_of_unended, unreadable};
use crate::args::ReturnArgs;
use crate::change::restore::may_go_to;
use crate::domain::change::provenance::Provenance;
use crate::domain::history::{Operation, OperationState, RECONCILE};
use crate::domain::record::Only;
use crate::exit::CommandError;
use crate::render::history;
use crate::session::Session;
use crate::store::backup::BackupReader;

/// The most records that are kept of those of which an operation changed no Redis key.
const MAX_UNTOUCHED: usize = 5;

/// The commands whose changes no backup of their own holds.
const RESTORES: [&str; 2] = ["restore", "undo"];

/// An operation, and what its undo has to do.
pub(super) struct UndoneOperation {
    /// The audit folder.
    pub(super) log: PathBuf,
    pub(super) operation: Operation,
    /// The backups from which removed records are restored.
    pub(super) backups: Vec<PathBuf>,
    /// Redis keys that are not restored from a backup, because they are reverted or stay as they
    /// are.
    pub(super) but: HashSet<Vec<u8>>,
    /// How many records are undone from the log alone.
    pub(super) records: u64,
    /// The first records of which it changed no Redis key, by schema and idempotency key. A step
    /// may have changed other Redis keys.
    pub(super) untouched: Vec<(String, Vec<u8>)>,
    /// Which records are to be undone.
    pub(super) only: Only,
}

impl UndoneOperation {
    /// Finds the operation whose name begins with `op`, or the last one on this server.
    ///
    /// # Errors
    /// No: the log has none, or it changed none of the keys in --only. Usage: several names begin
    /// with `op`, or it cannot be undone.
    pub(super) fn find(
        session: &mut Session,
        op: Option<&str>,
        args: &ReturnArgs,
        here: &Provenance,
        server: &str,
    ) -> Result<Self> {
        let (log, operations, _) = session.operations()?;
        let choice = UndoCandidates { log: &log, operations: &operations, args, here, server };
        let operation = choice.choose(session, op)?.clone();
        let only = Only::of(args.keys.iter().map(|key| key.as_bytes()));
        let mut found = Self {
            operation,
            backups: Vec::new(),
            but: HashSet::new(),
            records: 0,
            untouched: Vec::new(),
            only,
            log,
        };
        if !found.survey().map_err(|error| unreadable(&found.log, &error))? {
            session.ui.warning(&history::damaged_details(&found.operation));
        }
        if found.operation.state == OperationState::Unended {
            found.check_unended()?;
            let rest = if found.may_lack_changes() {
                ". It may have changed more Redis keys, which undo leaves as they are"
            } else {
                ""
            };
            session
                .ui
                .warning(&format!("{} did not end, because it was killed{rest}", found.name()));
        }
        Ok(found)
    }

    /// True if the operation was killed, and no backup holds the changes of its last batch, which
    /// its details may lack.
    pub(super) fn may_lack_changes(&self) -> bool {
        self.operation.state == OperationState::Unended
            && (self.backups.is_empty() || RESTORES.contains(&self.operation.command.as_str()))
    }

    /// # Errors
    /// Usage: a killed reconcile only extended locks.
    fn check_unended(&self) -> Result<(), CommandError> {
        let has_more = self.records > 0 || !self.backups.is_empty();
        if has_more || self.operation.command != RECONCILE {
            return Ok(());
        }
        let message = format!(
            "cannot undo {}: it was killed after it extended locks, and undo does not take this \
            time from them",
            self.name()
        );
        Err(CommandError::usage(message)
            .hint("nothing was changed; the same `reconcile` selects these locks again"))
    }

    /// Reads the details. False if they are not as the operation left them.
    fn survey(&mut self) -> io::Result<bool> {
        self.take_backup_of_unended();
        // An ambiguous key in --only is known only after all records, so the log is read twice.
        if !self.only.is_all() {
            let mut records = ChangedRecords::open(&self.log, &self.operation.op)?;
            while let Some(record) = records.next()? {
                record.note_in(&mut self.only);
            }
        }
        let mut records = ChangedRecords::open(&self.log, &self.operation.op)?;
        while let Some(record) = records.next()? {
            if record.changes.is_empty() {
                if self.untouched.len() < MAX_UNTOUCHED {
                    self.untouched.push((record.name.schema, record.name.key));
                }
            } else if record.is_removal() {
                self.take_backups(&record);
            } else {
                self.records += u64::from(record.is_of(&self.only));
                for change in record.changes {
                    self.but.insert(change.redis_key);
                }
            }
        }
        // The set is only compared with the keys of backups.
        if self.backups.is_empty() {
            self.but.clear();
        }
        Ok(records.details.are_details_of(&self.operation))
    }

    /// Takes the backup of an operation that did not end, which may contain more than the log.
    fn take_backup_of_unended(&mut self) {
        let Some(file) = backup_of_unended(&self.operation) else { return };
        let mut held = Vec::new();
        let read = BackupReader::open(file, |record| {
            for key in &record.keys {
                held.push((record.name.clone(), key.saved.redis_key.clone()));
            }
        });
        // If the log has the changes, an empty backup adds nothing to them. A backup that cannot be
        // opened is kept, so that its error is reported later.
        let is_blank = matches!(&read, Ok(reader) if reader.is_blank());
        let is_needed = !self.operation.totals.is_told || !is_blank;
        if is_needed {
            self.backups.push(file.to_owned());
        }
        for (name, redis_key) in &held {
            self.only.note(name, redis_key);
        }
    }

    fn take_backups(&mut self, record: &ChangedRecord) {
        for change in &record.changes {
            if let Some(file) = &change.backup
                && !self.backups.iter().any(|known| known == Path::new(file))
            {
                self.backups.push(PathBuf::from(file));
            }
        }
    }

    /// Passes if the records that are undone from the log were changed on this server, or if the
    /// operator allows another one.
    ///
    /// # Errors
    /// Refused for safety: they were changed on another server.
    pub(super) fn may_go_to(
        &self,
        session: &mut Session,
        here: &Provenance,
        elsewhere: bool,
    ) -> Result<(), CommandError> {
        let what = self.name();
        // Each backup checks its own origin.
        if self.records == 0 {
            return Ok(());
        }
        let places = &self.operation.totals.places;
        if places.is_empty() && !elsewhere {
            return Err(CommandError::usage(format!(
                "the audit log does not record on which server {} ran",
                self.name()
            ))
            .hint("nothing was changed; pass --elsewhere to undo it on this server"));
        }
        for from in places {
            let from = Provenance { taken_at: Some(self.operation.at.clone()), ..from.clone() };
            may_go_to(session, &what, &from, here, elsewhere)?;
        }
        Ok(())
    }

    /// The operation's name for people.
    pub(super) fn name(&self) -> String {
        self.operation.name()
    }
}
