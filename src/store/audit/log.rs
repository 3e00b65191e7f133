//! Reading the audit log, a line at a time.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use crate::domain::history::{Entry, Operation, Operations};
use crate::domain::record::Left;
use crate::files;

/// The most bytes of a line: a key of a megabyte, each byte of which is escaped, takes six.
const MOST_LINE: u64 = 16 << 20;

/// What stands in each line of `extend`.
const EXTENDED: &[u8] = b"\"extend\"";

/// The changes of the log, the oldest first.
#[derive(Debug)]
pub struct Log {
    lines: BufReader<File>,
    bytes: Vec<u8>,
    line: u64,
    pub damaged: Damaged,
}

/// What a pass over the log left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Damaged {
    pub lines: u64,
    /// The number of the first, from 1.
    pub first: Option<u64>,
}

impl Log {
    /// Opens the log; `None` when there is none, for nothing was changed yet.
    ///
    /// # Errors
    /// When the log is there and cannot be read.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        match files::open_regular(path) {
            Ok(file) => {
                let (lines, bytes) = (BufReader::new(file), Vec::new());
                Ok(Some(Self { lines, bytes, line: 0, damaged: Damaged::default() }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The next change; what is damaged is counted and passed over.
    ///
    /// # Errors
    /// When the log cannot be read on.
    pub fn next_entry(&mut self) -> io::Result<Option<Entry<'static>>> {
        self.next_entry_with(b"")
    }

    /// The next change of an operation.
    ///
    /// # Errors
    /// When the log cannot be read on.
    pub fn next_entry_of(&mut self, op: &str) -> io::Result<Option<Entry<'static>>> {
        while let Some(entry) = self.next_entry_with(op.as_bytes())? {
            if entry.op.as_deref() == Some(op) {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// The next change whose line holds these bytes: others are not taken apart.
    fn next_entry_with(&mut self, bytes: &[u8]) -> io::Result<Option<Entry<'static>>> {
        while files::read_line(&mut self.lines, b'\n', &mut self.bytes, MOST_LINE)? > 0 {
            self.line += 1;
            if memchr::memmem::find(&self.bytes, bytes).is_none() {
                continue;
            }
            if let Some(entry) = entry(&self.bytes) {
                return Ok(Some(entry));
            }
            self.damaged.lines += 1;
            self.damaged.first.get_or_insert(self.line);
        }
        Ok(None)
    }
}

/// True if the log has an operation of this name.
///
/// # Errors
/// When the log is there and cannot be read.
pub fn has_operation(path: &Path, op: &str) -> io::Result<bool> {
    let Some(mut log) = Log::open(path)? else { return Ok(false) };
    Ok(log.next_entry_of(op)?.is_some())
}

/// What `extend` left at each Redis key.
///
/// # Errors
/// When the log is there and cannot be read.
pub fn extended(path: &Path) -> io::Result<Left> {
    let (Some(mut log), mut left) = (Log::open(path)?, Left::new()) else { return Ok(Left::new()) };
    while let Some(entry) = log.next_entry_with(EXTENDED)? {
        if entry.command == "extend" {
            left.entry(entry.redis_key_bytes()).or_default().extend(entry.after);
        }
    }
    Ok(left)
}

fn entry(line: &[u8]) -> Option<Entry<'static>> {
    let entry: Entry<'static> = serde_json::from_slice(line).ok()?;
    humantime::parse_rfc3339(&entry.at).ok().map(|_| entry)
}

/// Hands out each change of the log with the operation that it belongs to. `None` when there is no log.
///
/// # Errors
/// When the log is there and cannot be read.
pub fn each(
    path: &Path,
    mut take: impl FnMut(Entry<'static>, &Operation),
) -> io::Result<Option<(Operations, Damaged)>> {
    let Some(mut log) = Log::open(path)? else { return Ok(None) };
    let mut operations = Operations::default();
    while let Some(entry) = log.next_entry()? {
        let operation = operations.add(&entry);
        take(entry, operation);
    }
    Ok(Some((operations, log.damaged)))
}
