//! Writes the audit log: one JSON line per change, appended and never rewritten.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::domain::history::{AuditEntry, Mark};
use crate::store::backup::writer::{create_folder, file_error, private};
use crate::store::error::StoreError;

#[derive(Debug, Clone, Default)]
pub struct Lines(Vec<u8>);

impl Lines {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn push(&mut self, entry: &AuditEntry<'_>) {
        // Text written to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.0, entry);
        self.0.push(b'\n');
    }

    pub fn of_mark(mark: &Mark<'_>) -> Self {
        let mut bytes = Vec::new();
        // Text written to memory cannot fail.
        let _ = serde_json::to_writer(&mut bytes, mark);
        bytes.push(b'\n');
        Self(bytes)
    }
}

/// Appends lines in one write, and waits until they are on the disk.
pub fn append(path: &Path, Lines(mut lines): Lines) -> Result<(), StoreError> {
    let mut file = open(path)?;
    wait_for_turn(&file);
    if is_torn(&mut file).map_err(|error| file_error(path, &error))? {
        lines.insert(0, b'\n');
    }
    // One write, so that two operators' lines never mix.
    let mut written = file.write_all(&lines);
    // If this fails, closing the file releases the lock.
    let _ = file.unlock();
    // Synced after the unlock, so that no run waits for the sync of another.
    if written.is_ok() {
        written = file.sync_data();
    }
    written.map_err(|error| file_error(path, &error))
}

/// Waits until no other idemctl is writing, because its half-written line would look like a torn
/// one. It waits at most a second, because the other process may be stopped. On a file system
/// without locks it does not wait.
fn wait_for_turn(file: &File) {
    let since = Instant::now();
    while matches!(file.try_lock(), Err(TryLockError::WouldBlock))
        && since.elapsed() < Duration::from_secs(1)
    {
        thread::sleep(Duration::from_millis(2));
    }
}

/// True if the last line is incomplete, e.g. because the disk was full. The next line must then
/// begin on a line of its own, so that it is not lost too.
fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Checks before a change that the log can be written after it.
pub fn prepare(path: &Path) -> Result<(), StoreError> {
    open(path)?;
    Ok(())
}

fn open(path: &Path) -> Result<File, StoreError> {
    create_folder(path).map_err(|error| file_error(path, &error))?;
    let mut options = OpenOptions::new();
    // Read as well, because the end of the last line is checked.
    options.read(true).append(true).create(true);
    private(&mut options);
    options.open(path).map_err(|error| file_error(path, &error))
}
