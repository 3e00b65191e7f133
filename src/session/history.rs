//! The operations of the audit log.

use std::io;
use std::path::{Path, PathBuf};

use super::Session;
use crate::domain::history::Operations;
use crate::exit::CommandError;
use crate::store::audit::log::{self, Skipped};

impl Session {
    /// The audit folder, the operations of its log, and the lines of the log that are damaged.
    ///
    /// # Errors
    /// Usage: there is no folder for it, or the log cannot be read.
    pub(crate) fn operations(&self) -> Result<(PathBuf, Operations, Skipped), CommandError> {
        let folder = self.settings.audit_dir()?;
        let (operations, skipped) =
            log::read(&folder).map_err(|error| unreadable(&folder, &error))?;
        Ok((folder, operations, skipped))
    }
}

/// The error of an audit folder that cannot be read.
pub(crate) fn unreadable(folder: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(format!("cannot read the audit log {}: {error}", folder.display()))
}
