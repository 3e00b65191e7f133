//! Reads the audit log, and reports which part of it is shown.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use clap::Args;

use crate::args::{Output, parse_duration};
use crate::domain::history::{AuditEntry, Operation, Operations};
use crate::exit::CommandError;
use crate::render::{escape, history};
use crate::session::Session;
use crate::store::audit::log::{self, Skipped};

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
        match humantime::parse_rfc3339(at) {
            Ok(at) => at >= since,
            Err(_) => false,
        }
    }
}

/// Whether an operation's backup still exists; `None` if the operation has none.
pub(super) fn is_there(operation: &Operation) -> Option<bool> {
    let file = operation.backup.as_ref()?;
    Some(Path::new(file).is_file())
}

pub(super) fn path(session: &Session) -> Result<PathBuf> {
    Ok(session.settings.audit_log()?)
}

pub(super) fn each(
    path: &Path,
    mut take: impl FnMut(AuditEntry<'static>, &Operation),
) -> Result<Option<(Operations, Skipped)>, CommandError> {
    // A change of an expiry is not backed up, whatever the run named as its backup.
    let read = log::each(path, |mut entry, operation| {
        if entry.changes_only_expiry() {
            entry.backup = None;
        }
        take(entry, operation);
    });
    let mut read = read.map_err(|error| {
        CommandError::usage(format!("cannot read the audit log {}: {error}", path.display()))
    })?;
    if let Some((operations, _)) = &mut read {
        operations.forget_backups(|file| !Path::new(file).exists());
    }
    Ok(read)
}

/// Warns about lines that idemctl does not show.
pub(super) fn warn_of_skipped(session: &mut Session, path: &Path, skipped: Skipped) {
    if let Some(first) = skipped.first {
        let path = escape::text(path.as_os_str().as_bytes());
        let count = skipped.damaged;
        session.ui.warning(&format!(
            "damaged lines in {path} that are not shown: {count}; the first is line {first}"
        ));
    }
    if let Some(warning) = history::older_lines(path, skipped.older) {
        session.ui.warning(&warning);
    }
}

pub(super) fn say_count(session: &mut Session, what: &str, shown: usize, all: u64) {
    if shown == 0 {
        session.ui.status(&format!("The audit log has no such {what}."));
    } else if all > shown as u64 {
        session.ui.status(&format!("The newest {shown} of {all}; --limit shows more."));
    }
}
