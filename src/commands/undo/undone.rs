//! The operation that is taken back, and in which ways it can be.

use std::collections::HashSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::changed_records::{ChangedRecord, ChangedRecords};
use super::operation_to_undo::{UndoCandidates, backup_of_unended, unreadable};
use super::there::command_there;
use crate::args::ReturnArgs;
use crate::change::restore::may_go_to;
use crate::context::Context;
use crate::domain::change::provenance::Provenance;
use crate::domain::history::{Operation, OperationState};
use crate::domain::record::Only;
use crate::exit::{CommandError, Exit};
use crate::store::audit::log;
use crate::store::backup::BackupReader;

/// An operation, and what taking it back comes to.
pub(super) struct UndoneOperation {
    pub(super) log: PathBuf,
    pub(super) operation: Operation,
    /// The backups from which what was removed comes back.
    pub(super) backups: Vec<PathBuf>,
    /// Redis keys that do not come back from a backup: something else is to be done, or nothing can be.
    pub(super) but: HashSet<Vec<u8>>,
    /// How many records the log has to be asked for.
    pub(super) records: u64,
    /// Which records are to be taken back.
    pub(super) only: Only,
    places: Vec<Provenance>,
}

impl UndoneOperation {
    /// Finds the operation whose name begins so, or the last one on this server.
    ///
    /// # Errors
    /// No: the log has none, or it changed none of the keys asked for. Usage: several have such a name, or it cannot be
    /// taken back.
    pub(super) fn find(
        context: &mut Context,
        op: Option<&str>,
        args: &ReturnArgs,
        here: &Provenance,
        server: &str,
    ) -> Result<Self> {
        let path = context.settings.audit_log()?;
        let read = log::each(&path, |_, _| {}).map_err(|error| unreadable(&path, &error))?;
        let Some((operations, _)) = read else {
            return Err(CommandError::new(
                Exit::No,
                "this user has changed nothing on this machine yet, so there is no audit log",
            )
            .into());
        };
        let choice = UndoCandidates { log: &path, operations: &operations, args, here, server };
        let operation = choice.choose(context, op)?.clone();
        if operation.state == Some(OperationState::Unended) {
            let name = operation.name();
            context.ui.warning(&format!(
                "{name} did not end, because it was killed. The records in its backup are restored, \
                too"
            ));
        }
        let only = Only::of(args.keys.iter().map(|key| key.as_bytes()));
        let (backups, but, places) = (Vec::new(), HashSet::new(), Vec::new());
        let mut found = Self { operation, backups, but, records: 0, only, places, log: path };
        found.survey().map_err(|error| unreadable(&found.log, &error))?;
        if found.only.is_all_unknown() {
            return Err(CommandError::new(
                Exit::No,
                format!("{} changed none of these keys", found.name()),
            )
            .into());
        }
        Ok(found)
    }

    fn survey(&mut self) -> io::Result<()> {
        self.take_backup_of_unended();
        if !self.only.is_all() {
            let mut records = ChangedRecords::open(&self.log, &self.operation.op)?;
            while let Some(record) = records.next()? {
                record.note_in(&mut self.only);
            }
        }
        let mut records = ChangedRecords::open(&self.log, &self.operation.op)?;
        while let Some(record) = records.next()? {
            if record.is_removal() {
                self.take_backups(&record);
            } else {
                self.records += u64::from(record.is_of(&self.only));
                self.but.extend(record.changes.into_iter().map(|change| change.redis_key));
            }
        }
        if self.backups.is_empty() {
            self.but.clear();
        }
        self.places = records.places;
        Ok(())
    }

    /// Takes the backup of an operation without an end, which may hold more than the log names.
    fn take_backup_of_unended(&mut self) {
        let Some(file) = backup_of_unended(&self.operation) else { return };
        let mut held = Vec::new();
        let read = BackupReader::open(file, |record| {
            for key in &record.keys {
                held.push((record.schema.clone(), record.key.clone(), key.saved.redis_key.clone()));
            }
        });
        // Where the log names what was changed, a backup without a line has nothing to add.
        let is_needed =
            !self.operation.is_told || !matches!(&read, Ok(reader) if reader.is_blank());
        if is_needed {
            self.backups.push(file.to_owned());
        }
        for (schema, key, redis_key) in &held {
            self.only.note(schema, key, redis_key);
        }
    }

    fn take_backups(&mut self, record: &ChangedRecord) {
        for file in record.changes.iter().filter_map(|change| change.backup.as_ref()) {
            if !self.backups.iter().any(|known| known == Path::new(file)) {
                self.backups.push(PathBuf::from(file));
            }
        }
    }

    /// Passes where what the log alone tells of was changed here, or where the operator allows another place.
    ///
    /// # Errors
    /// Refused for safety: it was changed somewhere else.
    pub(super) fn may_go_to(
        &self,
        context: &mut Context,
        here: &Provenance,
        elsewhere: bool,
    ) -> Result<(), CommandError> {
        let what = self.name();
        if self.records == 0 {
            return Ok(());
        }
        if self.places.is_empty() && !elsewhere {
            return Err(CommandError::usage(format!(
                "the audit log does not record on which server {} ran",
                self.name()
            ))
            .hint("nothing was changed; pass --elsewhere to undo it on this server"));
        }
        for from in &self.places {
            let from = Provenance { taken_at: Some(self.operation.at.clone()), ..from.clone() };
            may_go_to(context, &what, &from, here, elsewhere)?;
        }
        Ok(())
    }

    /// The error with a hint that leads to the server of the operation, if that is known: An undo on another server is hardly ever
    /// intended.
    pub(super) fn lead_there(&self, context: &Context, stop: CommandError) -> CommandError {
        let line = self
            .operation
            .places
            .iter()
            .find_map(|place| command_there(context, place, &self.operation.op));
        match line {
            Some(line) => {
                let elsewhere = "or pass --elsewhere to undo it on this server";
                stop.hint(format!(
                    "nothing was changed; to undo it on its own server, run `{line}` ({elsewhere})"
                ))
            }
            None => stop,
        }
    }

    /// The operation's name for people.
    pub(super) fn name(&self) -> String {
        self.operation.name()
    }
}
