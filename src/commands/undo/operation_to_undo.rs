//! Which operation `undo` undoes.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::changed_records::ChangedRecords;
use crate::args::ReturnArgs;
use crate::domain::change::provenance::Provenance;
use crate::domain::history::{Operation, OperationState, Operations};
use crate::domain::record::Only;
use crate::exit::{CommandError, Exit};
use crate::render::escape;
use crate::render::invocation::word;
use crate::session::Session;
use crate::session::operations::named;
pub(super) use crate::session::operations::unreadable;
use crate::store::backup::folder::is_being_written;

/// The operations from which `undo` selects one, and the server on which it runs.
pub(super) struct UndoCandidates<'a> {
    /// The audit folder.
    pub(super) log: &'a Path,
    pub(super) operations: &'a Operations,
    pub(super) args: &'a ReturnArgs,
    pub(super) here: &'a Provenance,
    /// The name of this server, which identifies it if the log does not record the place of a
    /// change.
    pub(super) server: &'a str,
}

impl<'a> UndoCandidates<'a> {
    /// The operation whose name begins with `op`, or without a name the last one.
    ///
    /// # Errors
    /// No: there is none. Usage: several names begin with it, or it cannot be undone.
    pub(super) fn choose(
        &self,
        session: &mut Session,
        op: Option<&str>,
    ) -> Result<&'a Operation, CommandError> {
        let operation = match op {
            Some(op) => named(self.operations, op)?,
            None => self.last(session)?,
        };
        self.can_be_undone(operation)?;
        Ok(operation)
    }

    /// The last operation on this server, or the one that an interrupted undo did not undo
    /// completely.
    fn last(&self, session: &mut Session) -> Result<&'a Operation, CommandError> {
        // An operation on another server cannot be undone here, unless --elsewhere allows it.
        let mut newest_first = self.operations.all().rev();
        let last = newest_first
            .find(|operation| self.args.elsewhere || operation.was_on(self.here, self.server));
        let none = CommandError::new(Exit::No, "the audit log has no operation on this server");
        let mut chosen = last.ok_or_else(|| {
            none.hint(
                "`idemctl log` lists the operations; to undo one, connect to its server and run \
                `idemctl undo OP`",
            )
        })?;
        while let Some(undone) = self.undone_by(chosen) {
            // Undoing an interrupted undo would remove the records that it has restored.
            if chosen.state != OperationState::Ended {
                self.has_ended(chosen)?;
                self.goes_on(session, chosen, undone)?;
                return Ok(undone);
            }
            // An operator who restores records one by one with --only does not mean the undo of the
            // record before.
            if self.args.keys.is_empty() {
                break;
            }
            if self.changed_any(chosen).map_err(|error| unreadable(self.log, &error))? {
                break;
            }
            chosen = undone;
        }
        Ok(chosen)
    }

    /// The operation that an undo undoes.
    fn undone_by(&self, undo: &Operation) -> Option<&'a Operation> {
        let undoes = undo.undoes.as_ref()?;
        self.operations.all().find(|operation| operation.op == *undoes)
    }

    /// Prints that an interrupted undo continues.
    ///
    /// # Errors
    /// Usage: that undo was partial, and --only does not name its records.
    fn goes_on(
        &self,
        session: &mut Session,
        undo: &Operation,
        undone: &Operation,
    ) -> Result<(), CommandError> {
        let all = escape::again(&undone.op);
        let back = escape::again(&undo.op);
        if undo.is_partial && self.args.keys.is_empty() {
            let message = format!(
                "the last operation, {}, is a partial undo of {} that did not finish",
                undo.name(),
                undone.name()
            );
            let hint = format!(
                "pass the same --only again to continue; `idemctl undo {all}` undoes the whole \
                operation, and `idemctl undo {back}` reverts the partial undo"
            );
            return Err(CommandError::usage(message).hint(hint));
        }
        session.ui.status(&format!(
            "Continuing the undo of {}, because {} did not finish.",
            undone.name(),
            undo.name()
        ));
        Ok(())
    }

    /// True if the operation changed one of the records that `--only` names.
    fn changed_any(&self, operation: &Operation) -> io::Result<bool> {
        let mut only = Only::of(self.args.keys.iter().map(|key| key.as_bytes()));
        let mut records = ChangedRecords::open(self.log, &operation.op)?;
        while let Some(record) = records.next()? {
            record.note_in(&mut only);
        }
        Ok(!only.is_all_unknown())
    }

    /// # Errors
    /// Usage: the operation is still running.
    fn has_ended(&self, operation: &Operation) -> Result<(), CommandError> {
        // A running operation holds a file lock on its backup.
        let is_running = match &operation.begun_backup {
            Some(file) => is_being_written(Path::new(file)),
            None => false,
        };
        if !is_running {
            return Ok(());
        }
        Err(CommandError::usage(format!(
            "{} has not ended yet, because its backup is still being written",
            operation.name()
        ))
        .hint("nothing was changed; wait until it ends, or stop it with Ctrl-C"))
    }

    /// # Errors
    /// Usage: the operation is still running, or it is unknown what it changed.
    fn can_be_undone(&self, operation: &Operation) -> Result<(), CommandError> {
        self.has_ended(operation)?;
        // After a crash, the log may lack the last changes, but the backup was synced before them.
        let totals = &operation.totals;
        if totals.says_what_was_left || !totals.is_told && backup_of_unended(operation).is_some() {
            return Ok(());
        }
        let backup = totals.backup.as_deref().filter(|file| Path::new(file).is_file());
        let hint = backup
            .map(|file| format!("to restore its backup, run `idemctl restore {}`", word(file)));
        let message = format!(
            "cannot undo {}, because the audit log does not record the values after its changes",
            operation.name()
        );
        Err(CommandError { hint, ..CommandError::usage(message) })
    }
}

/// The backup of an operation that did not end. It may contain removed records that the log does
/// not have.
pub(super) fn backup_of_unended(operation: &Operation) -> Option<&Path> {
    if operation.state != OperationState::Unended {
        return None;
    }
    let file = Path::new(operation.begun_backup.as_deref()?);
    if file.is_file() { Some(file) } else { None }
}
