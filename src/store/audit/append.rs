//! Writes the files of the audit folder. They are only appended to, and replaced as a whole if lines
//! are removed.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use tempfile::NamedTempFile;

use super::log::{LOG, details_file};
use crate::domain::history::Mark;
use crate::files;
use crate::store::backup::writer::{create_folder, create_private, file_error, sync_folder};
use crate::store::error::StoreError;

/// Adds a line to those that are written next.
pub fn push_line(lines: &mut Vec<u8>, line: &impl Serialize) {
    // Text written to memory cannot fail.
    let _ = serde_json::to_writer(&mut *lines, line);
    lines.push(b'\n');
}

/// Creates the file for the details of an operation, and writes to it and to the log that the
/// operation begins.
///
/// # Errors
/// A file cannot be written, or the details exist already: two runs never have the same name.
pub fn begin(folder: &Path, op: &str, line: Vec<u8>) -> Result<(), StoreError> {
    let details = details_file(folder, op);
    create_private(&details).map_err(|error| file_error(&details, &error))?;
    append(&details, line.clone())?;
    end(folder, line)
}

/// Adds a line to the log.
pub fn end(folder: &Path, line: Vec<u8>) -> Result<(), StoreError> {
    append(&folder.join(LOG), line)
}

/// Adds lines to the details of an operation.
pub fn add_changes(folder: &Path, op: &str, lines: Vec<u8>) -> Result<(), StoreError> {
    append(&details_file(folder, op), lines)
}

/// Deletes operations. Their details go first, so that a run which is killed leaves no file that the
/// log does not name.
///
/// # Errors
/// The log cannot be replaced.
pub fn delete(folder: &Path, ops: &HashSet<String>) -> Result<(), StoreError> {
    for op in ops {
        // Another run may have deleted it.
        let _ = fs::remove_file(details_file(folder, op));
    }
    let log = folder.join(LOG);
    let kept = retain(&log, |line| match serde_json::from_slice(line) {
        Ok(Mark::Begin(begin)) => !ops.contains(&begin.op),
        Ok(Mark::End(end)) => !ops.contains(&end.op),
        Err(_) => true,
    });
    kept.map_err(|error| file_error(&log, &error))
}

/// Appends lines in one write, and waits until they are on the disk.
pub(super) fn append(path: &Path, mut lines: Vec<u8>) -> Result<(), StoreError> {
    let written = open_in_turn(path).and_then(|mut file| {
        if is_torn(&mut file)? {
            lines.insert(0, b'\n');
        }
        // One write, so that two operators' lines never mix.
        let written = file.write_all(&lines);
        // If this fails, closing the file releases the lock.
        let _ = file.unlock();
        // Synced after the unlock, so that no run waits for the sync of another.
        written.and_then(|()| file.sync_data())
    });
    written.map_err(|error| file_error(path, &error))
}

/// Replaces a file by one that has only the lines which `keep` accepts.
pub(super) fn retain(path: &Path, keep: impl Fn(&[u8]) -> bool) -> io::Result<()> {
    let mut file = open_in_turn(path)?;
    loop {
        let mut text = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut text)?;
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        let kept: Vec<_> = lines.filter(|line| keep(line)).collect();
        let mut new = NamedTempFile::new_in(files::folder_of(path))?;
        new.write_all(&kept.concat())?;
        new.as_file().sync_all()?;
        // Another run may have appended a line without the lock, after it waited for a second.
        if file.metadata()?.len() == text.len() as u64 {
            new.persist(path)?;
            return sync_folder(path);
        }
    }
}

/// Opens a file when no other idemctl is writing to it. If the file was replaced in the meantime,
/// opens the new one.
fn open_in_turn(path: &Path) -> io::Result<File> {
    loop {
        let file = open(path)?;
        wait_for_turn(&file);
        if path.metadata()?.ino() == file.metadata()?.ino() {
            return Ok(file);
        }
    }
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
///
/// # Errors
/// It cannot be opened.
pub fn prepare(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(LOG);
    open(&path).map(drop).map_err(|error| file_error(&path, &error))
}

fn open(path: &Path) -> io::Result<File> {
    create_folder(path)?;
    // Read as well, because the end of the last line is checked.
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}
