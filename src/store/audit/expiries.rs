//! The expiries that operators gave to locks. They have a small file of their own, so that a
//! command that only reads does not read the details of all operations.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::append::{append, push_line, retain};
use super::log::{self, AuditLines};
use crate::domain::history::{AuditEntry, gives_expiry};
use crate::domain::record::{KeyIdentity, Left};
use crate::files;
use crate::store::backup::writer::{file_error, sync_folder};
use crate::store::error::StoreError;

/// Lines as in the details. Those of `reconcile` are written before its change; the other commands
/// write one line before, with about the new expiry, and one after it.
const EXPIRIES: &str = "expiries.jsonl";

/// How long a line is kept after its lock has expired, because clocks differ.
const KEPT: Duration = Duration::from_secs(86_400);

/// The state in which each Redis key was left whose lock got its expiry from an operator: by an
/// extension, or by `sweep --action expire`.
///
/// # Errors
/// The file exists but cannot be read.
pub fn extended(folder: &Path) -> io::Result<Left> {
    let mut left = Left::new();
    for entry in read(folder)? {
        left.entry(entry.redis_key_bytes()).or_default().extend(entry.after);
    }
    Ok(left)
}

/// All expiries, the oldest first. If the file is missing, it is written again from the details.
///
/// # Errors
/// The file exists but cannot be read.
pub fn read(folder: &Path) -> io::Result<Vec<AuditEntry<'static>>> {
    let path = folder.join(EXPIRIES);
    let mut expiries = Vec::new();
    if let Some(mut lines) = AuditLines::open(&path)? {
        while let Some(entry) = lines.next()? {
            expiries.push(entry);
        }
        return Ok(expiries);
    }
    let mut lines = Vec::new();
    for operation in log::read(folder)?.0.all() {
        log::each_change(folder, operation, |entry| {
            if gives_expiry(&entry.what) {
                push_line(&mut lines, &entry);
                expiries.push(entry);
            }
        })?;
    }
    // If it cannot be written, the next command reads the details, too.
    let _ = files::write(&path, &lines, false).and_then(|()| sync_folder(&path));
    Ok(expiries)
}

/// Makes sure that the file exists.
pub fn prepare(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(EXPIRIES);
    if !path.exists() {
        read(folder).map_err(|error| file_error(&path, &error))?;
    }
    Ok(())
}

/// Adds lines, and waits until they are on the disk.
pub fn add(folder: &Path, lines: Vec<u8>) -> Result<(), StoreError> {
    prepare(folder)?;
    append(&folder.join(EXPIRIES), lines)
}

/// Drops the locks that have expired.
///
/// # Errors
/// The file cannot be read or replaced.
pub fn drop_expired(folder: &Path, now: SystemTime) -> io::Result<()> {
    let Ok(now) = now.duration_since(SystemTime::UNIX_EPOCH) else { return Ok(()) };
    let is_past = |entry: &AuditEntry<'_>| {
        let after = entry.after.as_ref().and_then(KeyIdentity::expires_at_ms);
        after.is_some_and(|at| Duration::from_millis(at) + KEPT < now)
    };
    let mut live = HashSet::new();
    for entry in read(folder)? {
        if !is_past(&entry) {
            live.insert(entry.redis_key_bytes());
        }
    }
    // An earlier extension of a lock has the deadline before all of them.
    retain(&folder.join(EXPIRIES), |line| match serde_json::from_slice::<AuditEntry<'_>>(line) {
        Ok(entry) => !is_past(&entry) || live.contains(&entry.redis_key_bytes()),
        Err(_) => true,
    })
}
