//! The context's program that gets the beginning and the end of each operation, e.g. for a log that
//! the operator cannot change.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::ask_program::AskProgram;
use crate::exit::{CommandError, Exit};
use crate::session::Session;

/// The time limit for each line. A change waits for it.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct AuditCommand {
    program: AskProgram,
    is_required: bool,
    /// Why an operation goes on without it, for a warning.
    not_audited: Arc<OnceLock<String>>,
}

impl AuditCommand {
    /// The program of the session's context, if there is one.
    pub(super) fn of(session: &Session) -> Option<Self> {
        let (command, is_required) = session.settings.audit_command()?;
        let command = command.into();
        let program = AskProgram { option: "audit_command", command, patience: PATIENCE };
        Some(Self { program, is_required, not_audited: Arc::clone(&session.not_audited) })
    }

    /// Passes on the line that an operation begins, before its first change.
    ///
    /// # Errors
    /// Usage: the program failed and is required, so nothing may be changed.
    pub(super) async fn begin(&self, line: &[u8]) -> Result<(), CommandError> {
        let Err(why) = self.program.output(line).await else { return Ok(()) };
        if !self.is_required {
            let _ = self.not_audited.set(why);
            return Ok(());
        }
        Err(CommandError::usage(format!("the audit command failed: {why}"))
            .changed_nothing()
            .hint("audit_command and audit_required of the context"))
    }

    /// Passes on the line that the operation has ended, unless it did not get the first one.
    ///
    /// # Errors
    /// Partial: the program failed.
    pub(super) async fn end(&self, line: &[u8]) -> Result<(), CommandError> {
        if self.not_audited.get().is_some() {
            return Ok(());
        }
        let Err(why) = self.program.output(line).await else { return Ok(()) };
        let message = format!("the change is not audited, because the audit command failed: {why}");
        Err(CommandError::new(Exit::Partial, message)
            .hint("the local audit log has the operation (`idemctl log`)"))
    }
}
