//! Reads the operations of the audit log, and the details of each.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::domain::hex::hex;
use crate::domain::history::{AuditEntry, Mark, Operation, Operations};
use crate::files;

/// The file with two lines per operation.
pub(super) const LOG: &str = "log.jsonl";

/// The most bytes of a line. A key of one megabyte takes six megabytes if each byte is escaped.
const MAX_LINE: u64 = 16 << 20;

/// The lines of a file, the oldest first.
#[derive(Debug)]
pub struct AuditLines {
    lines: BufReader<File>,
    bytes: Vec<u8>,
    /// The number of other lines so far.
    damaged: u64,
    digest: Sha256,
}

impl AuditLines {
    /// Opens a file; `None` if it does not exist.
    ///
    /// # Errors
    /// The file exists but cannot be read.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        match files::open_regular(path) {
            Ok(file) => Ok(Some(Self {
                lines: BufReader::new(file),
                bytes: Vec::new(),
                damaged: 0,
                digest: Sha256::new(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The next line of this kind. Other lines are counted and skipped.
    ///
    /// # Errors
    /// The rest of the file cannot be read.
    pub fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        while files::read_line(&mut self.lines, b'\n', &mut self.bytes, MAX_LINE)? > 0 {
            self.digest.update(&self.bytes);
            if let Ok(line) = serde_json::from_slice(&self.bytes) {
                return Ok(Some(line));
            }
            self.damaged += 1;
        }
        Ok(None)
    }

    /// True if these are all lines of the details as the operation left them. Nothing is known of
    /// one that did not end.
    pub fn are_details_of(self, operation: &Operation) -> bool {
        let digest = hex(&self.digest.finalize());
        operation.sha256.as_ref().is_none_or(|sha256| *sha256 == digest)
    }
}

/// The operations of the log, and the number of its damaged lines. There are none if it does not
/// exist, because nothing was changed yet.
///
/// # Errors
/// The log exists but cannot be read.
pub fn read(folder: &Path) -> io::Result<(Operations, u64)> {
    let mut operations = Operations::default();
    let Some(mut log) = AuditLines::open(&folder.join(LOG))? else {
        return Ok((operations, 0));
    };
    while let Some(mark) = log.next()? {
        match mark {
            Mark::Begin(begin) => operations.begin(*begin),
            Mark::End(end) => {
                // If the line of the beginning is damaged, the details have it, too.
                if !operations.has_begun(&end.op)
                    && let Some(mut details) = details(folder, &end.op)?
                    && let Some(Mark::Begin(begin)) = details.next()?
                {
                    operations.begin(*begin);
                }
                operations.end(end);
            }
        }
    }
    for operation in operations.unended() {
        let mut totals = operation.totals.clone();
        each_change(folder, operation, |entry| totals.add(&entry))?;
        operation.totals = totals;
    }
    operations.note_undone();
    Ok((operations, log.damaged))
}

/// Passes each change of an operation to `take`. False if its details are not as it left them.
///
/// # Errors
/// The details exist but cannot be read.
pub fn each_change(
    folder: &Path,
    operation: &Operation,
    mut take: impl FnMut(AuditEntry<'static>),
) -> io::Result<bool> {
    let Some(mut details) = details(folder, &operation.op)? else {
        return Ok(operation.sha256.is_none());
    };
    while let Some(entry) = details.next()? {
        take(entry);
    }
    Ok(details.are_details_of(operation))
}

/// The details of an operation: its beginning, and its changes, the oldest first. `None` if they do
/// not exist.
///
/// # Errors
/// They exist but cannot be read.
pub fn details(folder: &Path, op: &str) -> io::Result<Option<AuditLines>> {
    AuditLines::open(&details_file(folder, op))
}

pub(super) fn details_file(folder: &Path, op: &str) -> PathBuf {
    folder.join(format!("{op}.jsonl"))
}
