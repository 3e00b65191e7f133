//! Reading the audit log, a line at a time.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use memchr::memmem::Finder;

use crate::domain::history::{AuditEntry, Mark, Operation, Operations};
use crate::domain::record::{KeyIdentity, Left};
use crate::files;

/// The most bytes of a line: a key of a megabyte, each byte of which is escaped, takes six.
const MOST_LINE: u64 = 16 << 20;

/// How many bytes are searched for a name at a time.
const CHUNK: usize = 1 << 20;

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

/// A line of the log.
enum LogLine {
    Change(Box<AuditEntry<'static>>),
    Mark(Mark<'static>),
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
    pub fn next_entry(&mut self) -> io::Result<Option<AuditEntry<'static>>> {
        self.next_entry_with(b"")
    }

    /// The next change of an operation.
    ///
    /// # Errors
    /// When the log cannot be read on.
    pub fn next_entry_of(&mut self, op: &str) -> io::Result<Option<AuditEntry<'static>>> {
        while let Some(entry) = self.next_entry_with(op.as_bytes())? {
            if entry.op == op {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// The next change whose line holds these bytes.
    fn next_entry_with(&mut self, bytes: &[u8]) -> io::Result<Option<AuditEntry<'static>>> {
        while let Some(line) = self.next_line_with(bytes)? {
            if let LogLine::Change(entry) = line {
                return Ok(Some(*entry));
            }
        }
        Ok(None)
    }

    /// The next line that holds these bytes: others are not taken apart.
    fn next_line_with(&mut self, bytes: &[u8]) -> io::Result<Option<LogLine>> {
        let sought = Finder::new(bytes);
        while files::read_line(&mut self.lines, b'\n', &mut self.bytes, MOST_LINE)? > 0 {
            self.line += 1;
            if sought.find(&self.bytes).is_none() {
                continue;
            }
            if let Some(line) = parse(&self.bytes) {
                return Ok(Some(line));
            }
            self.damaged.lines += 1;
            self.damaged.first.get_or_insert(self.line);
        }
        Ok(None)
    }
}

/// True if this name stands anywhere in the log, whatever of: it is not for a new operation then.
///
/// # Errors
/// When the log is there and cannot be read.
pub fn mentions(path: &Path, op: &str) -> io::Result<bool> {
    let Some(mut log) = Log::open(path)? else { return Ok(false) };
    let sought = Finder::new(op.as_bytes());
    let mut chunk = Vec::with_capacity(CHUNK);
    loop {
        // What a name may begin with at the end of the last chunk is searched again.
        let overlap = chunk.len().min(op.len());
        chunk.drain(..chunk.len() - overlap);
        let more = u64::try_from(CHUNK - overlap).unwrap_or(u64::MAX);
        if log.lines.by_ref().take(more).read_to_end(&mut chunk)? == 0 {
            return Ok(false);
        }
        if sought.find(&chunk).is_some() {
            return Ok(true);
        }
    }
}

/// True if the log has an operation of this name.
///
/// # Errors
/// When the log is there and cannot be read.
pub fn has_operation(path: &Path, op: &str) -> io::Result<bool> {
    let Some(mut log) = Log::open(path)? else { return Ok(false) };
    while let Some(line) = log.next_line_with(op.as_bytes())? {
        let named = match &line {
            LogLine::Change(entry) => &entry.op,
            LogLine::Mark(Mark::Begin(begin)) => &begin.op,
            LogLine::Mark(Mark::End(end)) => &end.op,
        };
        if named == op {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The last operation of the log of which this file is the backup.
///
/// # Errors
/// When the log is there and cannot be read.
pub fn operation_of_backup(path: &Path, file: &str) -> io::Result<Option<String>> {
    let Some(mut log) = Log::open(path)? else { return Ok(None) };
    let mut last = None;
    while let Some(entry) = log.next_entry()? {
        let is_removal = entry.after.as_ref().is_some_and(KeyIdentity::is_absent);
        if is_removal && entry.backup.as_deref() == Some(file) {
            last = Some(entry.op.into_owned());
        }
    }
    Ok(last)
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

fn parse(line: &[u8]) -> Option<LogLine> {
    let entry: Result<AuditEntry<'static>, _> = serde_json::from_slice(line);
    let (line, at) = match entry {
        Ok(entry) => {
            let at = entry.at.to_string();
            (LogLine::Change(Box::new(entry)), at)
        }
        Err(_) => {
            let mark: Mark<'static> = serde_json::from_slice(line).ok()?;
            let at = match &mark {
                Mark::Begin(begin) => begin.at.to_string(),
                Mark::End(end) => end.at.to_string(),
            };
            (LogLine::Mark(mark), at)
        }
    };
    humantime::parse_rfc3339(&at).ok().map(|_| line)
}

/// Hands out each change of the log with the operation that it belongs to. `None` when there is no log.
///
/// # Errors
/// When the log is there and cannot be read.
pub fn each(
    path: &Path,
    mut take: impl FnMut(AuditEntry<'static>, &Operation),
) -> io::Result<Option<(Operations, Damaged)>> {
    let Some(mut log) = Log::open(path)? else { return Ok(None) };
    let mut operations = Operations::default();
    while let Some(line) = log.next_line_with(b"")? {
        match line {
            LogLine::Change(entry) => {
                let operation = operations.add(&entry);
                take(*entry, operation);
            }
            LogLine::Mark(mark) => operations.add_mark(&mark),
        }
    }
    Ok(Some((operations, log.damaged)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_wherever_it_stands() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        assert!(!mentions(&file, "0123456789abcdef").unwrap());
        for before in [0, 1, CHUNK - 16, CHUNK - 15, CHUNK - 1, CHUNK, 2 * CHUNK - 40] {
            let text = format!("{}0123456789abcdef\n", "x".repeat(before));
            std::fs::write(&file, &text).unwrap();
            assert!(mentions(&file, "0123456789abcdef").unwrap(), "{before}");
            assert!(!mentions(&file, "0123456789abcdee").unwrap(), "{before}");
        }
    }
}
