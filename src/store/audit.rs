//! The audit log: one JSON line a change, appended and never rewritten.

mod log;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use serde::Serialize;

use super::backup::{create_folder, file_error, private};
use super::error::StoreError;

pub use log::{Log, Logged};

/// One change: who, where, when, what and why.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// When, RFC 3339 in UTC.
    pub at: String,
    /// The operator's user name.
    pub who: String,
    /// The operator's host.
    pub host: String,
    /// The server.
    pub server: String,
    /// The subcommand.
    pub command: &'static str,
    /// The schema's name.
    pub schema: String,
    /// The idempotency key; bytes that are not UTF-8 escaped.
    pub key: String,
    /// The Redis key that changed; bytes that are not UTF-8 escaped.
    pub redis_key: String,
    /// What was done to it.
    pub what: &'static str,
    /// Why, in the operator's words.
    pub reason: Option<String>,
    /// The backup that holds what was removed.
    pub backup: Option<String>,
}

/// Appends a line and waits until it is on the disk.
///
/// # Errors
/// When the file cannot be written.
pub fn append(path: &Path, entry: &Entry) -> Result<(), StoreError> {
    append_many(path, std::slice::from_ref(entry))
}

/// Appends the lines of a batch in one write and waits until they are on the disk.
///
/// # Errors
/// When the file cannot be written.
pub fn append_many(path: &Path, entries: &[Entry]) -> Result<(), StoreError> {
    if entries.is_empty() {
        return Ok(());
    }
    let wrong = |error: io::Error| file_error(path, &error);
    let mut file = open(path)?;
    let mut lines = Vec::new();
    if is_torn(&mut file).map_err(wrong)? {
        lines.push(b'\n');
    }
    for entry in entries {
        serde_json::to_writer(&mut lines, entry).map_err(|error| wrong(error.into()))?;
        lines.push(b'\n');
    }
    // One write, so that two operators' lines never mix.
    file.write_all(&lines).and_then(|()| file.sync_data()).map_err(wrong)
}

/// True when the last line has no end, for a disk was full: the next one must not be lost with it.
fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Makes sure, before a change, that the log can be written after it.
///
/// # Errors
/// When the file cannot be opened for appending.
pub fn prepare(path: &Path) -> Result<(), StoreError> {
    open(path).map(drop)
}

fn open(path: &Path) -> Result<File, StoreError> {
    let wrong = |error: io::Error| file_error(path, &error);
    create_folder(path).map_err(wrong)?;
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    private(&mut options);
    options.open(path).map_err(wrong)
}
