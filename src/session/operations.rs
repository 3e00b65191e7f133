//! The operations of the audit log.

use std::io;
use std::path::{Path, PathBuf};

use super::Session;
use crate::domain::history::{Operation, Operations};
use crate::exit::{CommandError, Exit};
use crate::render::history;
use crate::store::audit::log;

impl Session {
    /// The audit folder, the operations of its log, and what of the log is not read.
    ///
    /// # Errors
    /// Usage: there is no folder for it, or the log cannot be read.
    pub(crate) fn operations(&self) -> Result<(PathBuf, Operations, Vec<String>), CommandError> {
        let folder = self.settings.audit_dir()?;
        let (operations, damaged) =
            log::read(&folder).map_err(|error| unreadable(&folder, &error))?;
        let unread = history::unread(&folder, damaged);
        Ok((folder, operations, unread))
    }
}

/// The operation whose name begins with `op`.
///
/// # Errors
/// No: there is none. Usage: there are several.
pub(crate) fn named<'a>(
    operations: &'a Operations,
    op: &str,
) -> Result<&'a Operation, CommandError> {
    let named: Vec<_> = operations.all().filter(|one| one.op.starts_with(op)).collect();
    match named.as_slice() {
        [one] => Ok(one),
        [] => Err(CommandError::new(Exit::No, format!("the audit log has no operation {op}"))
            .hint("`idemctl log` lists the operations")),
        several => {
            let names: Vec<_> = several.iter().map(|operation| operation.op.as_str()).collect();
            Err(CommandError::usage(format!("several operations match: {}", names.join(", "))))
        }
    }
}

/// The error of an audit folder that cannot be read.
pub(crate) fn unreadable(folder: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(format!("cannot read the audit log {}: {error}", folder.display()))
}
