//! Writes the files of the audit folder. They are only appended to, and replaced as a whole if lines
//! are removed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use tempfile::NamedTempFile;

use super::expiries;
use super::log::{LOG, MAX_LINE, details_file};
use crate::domain::history::Mark;
use crate::files;
use crate::store::backup::writer::{
    create_folder, create_private, file_error, private, sync_folder,
};
use crate::store::error::StoreError;

#[derive(Debug, Clone, Default)]
pub struct Lines(Vec<u8>);

impl Lines {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn push(&mut self, line: &impl Serialize) {
        // Text written to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.0, line);
        self.0.push(b'\n');
    }
}

/// Creates the file for the details of an operation, and writes that the operation begins.
pub fn begin(folder: &Path, op: &str, mark: &Mark<'_>) -> Result<(), StoreError> {
    let details = details_file(folder, op);
    // If two runs ever have the same name, the second one does not begin.
    create_private(&details).map_err(|error| file_error(&details, &error))?;
    add_mark(folder, mark)
}

/// Adds a line to the log.
pub fn add_mark(folder: &Path, mark: &Mark<'_>) -> Result<(), StoreError> {
    let mut lines = Lines::default();
    lines.push(mark);
    append(&folder.join(LOG), lines)
}

/// Adds lines to the details of an operation. If its changes give locks an expiry, the lines are
/// kept with the other expiries first.
pub fn add_changes(
    folder: &Path,
    op: &str,
    lines: Lines,
    gives_expiry: bool,
) -> Result<(), StoreError> {
    if gives_expiry {
        expiries::add(folder, lines.clone())?;
    }
    append(&details_file(folder, op), lines)
}

/// Appends lines in one write, and waits until they are on the disk.
pub(super) fn append(path: &Path, Lines(mut lines): Lines) -> Result<(), StoreError> {
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

/// Replaces a file by one without the lines that `keep` refuses.
pub(super) fn retain(path: &Path, mut keep: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    let mut file = open_in_turn(path)?;
    loop {
        let new = NamedTempFile::new_in(files::folder_of(path))?;
        let mut to = BufWriter::new(new.as_file());
        file.seek(SeekFrom::Start(0))?;
        let mut lines = BufReader::new(&file);
        let mut line = Vec::new();
        let mut read = 0;
        while files::read_line(&mut lines, b'\n', &mut line, MAX_LINE)? > 0 {
            read += line.len() as u64;
            if keep(&line) {
                to.write_all(&line)?;
            }
        }
        to.flush()?;
        drop(to);
        new.as_file().sync_all()?;
        // Another run may have appended a line without the lock, after it waited for a second.
        if file.metadata()?.len() == read {
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
pub fn prepare(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(LOG);
    open(&path).map_err(|error| file_error(&path, &error))?;
    expiries::prepare(folder)
}

fn open(path: &Path) -> io::Result<File> {
    create_folder(path)?;
    let mut options = OpenOptions::new();
    // Read as well, because the end of the last line is checked.
    options.read(true).append(true).create(true);
    private(&mut options);
    options.open(path)
}
