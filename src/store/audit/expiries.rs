//! The expiries that operators gave to locks. They have a small file of their own, so that a
//! command that only reads does not read the details of all operations.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::append::{Lines, append, retain};
use super::log::{self, AuditLines};
use crate::domain::history::{AuditEntry, EXTENDED};
use crate::domain::record::{KeyIdentity, Left};
use crate::files;
use crate::store::backup::writer::{file_error, sync_folder};
use crate::store::error::StoreError;

/// Lines as in the details. Those of `reconcile` are written before its change; the other commands
/// write one line before, with about the new expiry, and one after it.
const EXPIRIES: &str = "expiries.jsonl";

/// How long a line is kept after its lock has expired, because clocks differ.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// The state in which each Redis key was left whose lock got its expiry from an operator: by an
/// extension, or by `sweep --action expire`.
///
/// # Errors
/// The file exists but cannot be read.
pub fn extended(folder: &Path) -> io::Result<Left> {
    let mut left = Left::new();
    each(folder, |entry| {
        let redis_key = entry.redis_key_bytes();
        left.entry(redis_key).or_default().extend(entry.after);
    })?;
    Ok(left)
}

/// Passes each extension to `take`: the command, the Redis key, and its identity before and after.
///
/// # Errors
/// The file exists but cannot be read.
pub fn each_extension(
    folder: &Path,
    mut take: impl FnMut(&str, Vec<u8>, Option<KeyIdentity>, KeyIdentity),
) -> io::Result<()> {
    each(folder, |entry| {
        if entry.what == EXTENDED
            && let Some(after) = entry.after.clone()
        {
            take(&entry.command, entry.redis_key_bytes(), entry.before, after);
        }
    })
}

/// Passes each expiry to `take`. If the file is missing, it is written again from the details.
fn each(folder: &Path, mut take: impl FnMut(AuditEntry<'static>)) -> io::Result<()> {
    let path = folder.join(EXPIRIES);
    if let Some(mut expiries) = AuditLines::open(&path)? {
        while let Some(entry) = expiries.next()? {
            take(entry);
        }
        return Ok(());
    }
    let mut lines = Lines::default();
    for operation in log::read(folder)?.0.all() {
        log::each_change(folder, operation, |entry| {
            if entry.gives_expiry() {
                lines.push(&entry);
                take(entry);
            }
        })?;
    }
    // If it cannot be written, the next command reads the details, too.
    let _ = files::write(&path, lines.bytes(), false).and_then(|()| sync_folder(&path));
    Ok(())
}

/// Makes sure that the file exists.
pub(super) fn prepare(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(EXPIRIES);
    if path.exists() {
        return Ok(());
    }
    each(folder, |_| {}).map_err(|error| file_error(&path, &error))
}

/// Adds expiries, and waits until they are on the disk.
pub fn add(folder: &Path, lines: Lines) -> Result<(), StoreError> {
    prepare(folder)?;
    append(&folder.join(EXPIRIES), lines)
}

/// Drops the locks that have expired.
pub fn drop_expired(folder: &Path, now: SystemTime) -> io::Result<()> {
    let Ok(now) = now.duration_since(SystemTime::UNIX_EPOCH) else { return Ok(()) };
    let is_past = |entry: &AuditEntry<'_>| {
        let after = entry.after.as_ref().and_then(KeyIdentity::expires_at_ms);
        after.is_some_and(|at| Duration::from_millis(at) + KEPT < now)
    };
    let mut past = false;
    let mut live = HashSet::new();
    each(folder, |entry| {
        if is_past(&entry) {
            past = true;
        } else {
            live.insert(entry.redis_key_bytes());
        }
    })?;
    if !past {
        return Ok(());
    }
    // An earlier extension of a lock has the deadline before all of them.
    retain(&folder.join(EXPIRIES), |line| match serde_json::from_slice::<AuditEntry<'_>>(line) {
        Ok(entry) => !is_past(&entry) || live.contains(&entry.redis_key_bytes()),
        Err(_) => true,
    })
}
