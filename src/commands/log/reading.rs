//! Reads the audit log, and reports which part of it is shown.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;

use crate::args::{Output, parse_duration};
use crate::domain::history::{AuditEntry, Operation, Operations};
use crate::exit::CommandError;
use crate::render::{escape, history};
use crate::session::Session;
use crate::session::operations::unreadable;
use crate::store::audit::log;

/// The part of the log to show, and its format.
#[derive(Debug, Args)]
pub(super) struct LogFilter {
    /// Only changes to this idempotency key or Redis key
    #[arg(long, value_name = "KEY")]
    pub(super) only: Option<OsString>,

    /// Only changes made within this time, e.g. 1d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) since: Option<Duration>,

    /// Show at most this many, the newest ones
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(super) limit: u32,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: Output,
}

impl LogFilter {
    pub(super) fn limit(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }

    pub(super) fn is_of(&self, entry: &AuditEntry<'_>) -> bool {
        let Some(key) = &self.only else { return true };
        // The log has keys in the escaped form that idemctl shows.
        let key = escape::text(key.as_bytes());
        entry.key == key || entry.redis_key == key
    }

    pub(super) fn is_recent(&self, at: &str, now: SystemTime) -> bool {
        // A time before the clock's beginning includes every entry.
        let Some(since) = self.since.and_then(|since| now.checked_sub(since)) else { return true };
        humantime::parse_rfc3339(at).is_ok_and(|at| at >= since)
    }
}

/// Shows these operations.
pub(super) fn show(
    session: &mut Session,
    output: Output,
    operations: &[Operation],
) -> io::Result<()> {
    let contexts = session.settings.context_places();
    let mut shown = Vec::with_capacity(operations.len());
    for operation in operations {
        shown.push(
            history::ShownOperation::of(operation, is_there(operation)).in_context(&contexts),
        );
    }
    session.show(output, "operations", &shown, |view| history::table(view, &shown))
}

/// Whether an operation's backup still exists; `None` if the operation has none.
pub(super) fn is_there(operation: &Operation) -> Option<bool> {
    let file = operation.totals.backup.as_ref()?;
    Some(Path::new(file).is_file())
}

/// The audit folder and its operations. Warns about what is not shown.
pub(super) fn read(session: &mut Session) -> Result<(PathBuf, Operations), CommandError> {
    let (folder, operations, unread) = session.operations()?;
    for warning in unread {
        session.ui.warning(&warning);
    }
    Ok((folder, operations))
}

/// Passes each change of an operation to `take`. Warns if some may be missing.
pub(super) fn each_change(
    session: &mut Session,
    folder: &Path,
    operation: &Operation,
    take: impl FnMut(AuditEntry<'static>),
) -> Result<(), CommandError> {
    let is_whole = log::each_change(folder, operation, take);
    if !is_whole.map_err(|error| unreadable(folder, &error))? {
        session.ui.warning(&history::damaged_details(operation));
    }
    Ok(())
}

pub(super) fn say_count(session: &mut Session, what: &str, shown: usize, all: u64) {
    if shown == 0 {
        session.ui.status(&format!("No {what} was found in the audit log."));
    } else if all > shown as u64 {
        session.ui.status(&format!("{shown} of {all} shown; --limit shows more."));
    }
}
