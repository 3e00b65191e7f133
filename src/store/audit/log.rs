//! Reads the audit log line by line.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use memchr::memmem::Finder;

use crate::domain::history::{AuditEntry, Mark, Operation, Operations};
use crate::domain::record::{KeyIdentity, Left};
use crate::files;

/// The most bytes of a line. A key of one megabyte takes six megabytes if each byte is escaped.
const MAX_LINE: u64 = 16 << 20;

/// How many bytes are searched at a time.
const CHUNK: usize = 1 << 20;

/// The word of the log for a lock that got more time, from `extend` or `reconcile`.
const EXTENDED: &str = "extended";

/// What `sweep --action expire` did to a lock.
const EXPIRED: &str = "expired";

/// What the line of either contains, as the log is written.
const EITHER: &[u8] = br#""what":"ex"#;

/// The changes in the log, the oldest first.
#[derive(Debug)]
pub struct Log {
    lines: BufReader<File>,
    bytes: Vec<u8>,
    line: u64,
    pub skipped: Skipped,
}

/// The lines that a pass over the log skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Skipped {
    pub damaged: u64,
    /// The number of the first damaged line, from 1.
    pub first: Option<u64>,
    /// Changes that idemctl 0.2 made, which are not damaged.
    pub older: u64,
}

/// A line of the log.
enum LogLine {
    Change(Box<AuditEntry<'static>>),
    Mark(Mark<'static>),
}

impl Log {
    /// Opens the log; `None` if it does not exist, because nothing was changed yet.
    ///
    /// # Errors
    /// The log exists but cannot be read.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        match files::open_regular(path) {
            Ok(file) => Ok(Some(Self {
                lines: BufReader::new(file),
                bytes: Vec::new(),
                line: 0,
                skipped: Skipped::default(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The next change. Damaged lines are counted and skipped.
    ///
    /// # Errors
    /// The rest of the log cannot be read.
    pub fn next_entry(&mut self) -> io::Result<Option<AuditEntry<'static>>> {
        self.next_entry_with(b"")
    }

    /// The next change of an operation.
    ///
    /// # Errors
    /// The rest of the log cannot be read.
    pub fn next_entry_of(&mut self, op: &str) -> io::Result<Option<AuditEntry<'static>>> {
        while let Some(entry) = self.next_entry_with(op.as_bytes())? {
            if entry.op == op {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// The next change whose line contains these bytes.
    fn next_entry_with(&mut self, bytes: &[u8]) -> io::Result<Option<AuditEntry<'static>>> {
        while let Some(line) = self.next_line_with(bytes)? {
            if let LogLine::Change(entry) = line {
                return Ok(Some(*entry));
            }
        }
        Ok(None)
    }

    /// The next line that contains these bytes. Other lines are not parsed.
    fn next_line_with(&mut self, bytes: &[u8]) -> io::Result<Option<LogLine>> {
        let sought = Finder::new(bytes);
        while files::read_line(&mut self.lines, b'\n', &mut self.bytes, MAX_LINE)? > 0 {
            self.line += 1;
            if sought.find(&self.bytes).is_none() {
                continue;
            }
            if let Some(line) = parse(&self.bytes) {
                return Ok(Some(line));
            }
            self.skipped.damaged += 1;
            self.skipped.first.get_or_insert(self.line);
        }
        Ok(None)
    }
}

/// True if this name occurs anywhere in the log. It must then not be used for a new operation.
///
/// # Errors
/// The log exists but cannot be read.
pub fn mentions(path: &Path, op: &str) -> io::Result<bool> {
    let Some(mut log) = Log::open(path)? else { return Ok(false) };
    let sought = Finder::new(op.as_bytes());
    let mut chunk = Vec::with_capacity(CHUNK);
    loop {
        // The end of the last chunk is searched again, because a name may begin there.
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
/// The log exists but cannot be read.
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

/// The last operation in the log whose backup is this file.
///
/// # Errors
/// The log exists but cannot be read.
pub fn operation_of_backup(path: &Path, file: &str) -> io::Result<Option<String>> {
    let Some(mut log) = Log::open(path)? else { return Ok(None) };
    let mut last = None;
    while let Some(entry) = log.next_entry()? {
        // A restore names the backup as well, but does not leave its keys absent.
        let is_removal = entry.after.as_ref().is_some_and(KeyIdentity::is_absent);
        if is_removal && entry.backup.as_deref() == Some(file) {
            last = Some(entry.op.into_owned());
        }
    }
    Ok(last)
}

/// The state in which each Redis key was left whose lock got its expiry from an operator: by an
/// extension, or by `sweep --action expire`.
///
/// # Errors
/// The log exists but cannot be read.
pub fn extended(path: &Path) -> io::Result<Left> {
    let mut left = Left::new();
    each_expiry(path, |entry, after| {
        left.entry(entry.redis_key_bytes()).or_default().push(after);
    })?;
    Ok(left)
}

/// Passes each extension of the log to `take`: the command, the Redis key, and its identity before
/// and after.
///
/// # Errors
/// The log exists but cannot be read.
pub fn each_extension(
    path: &Path,
    mut take: impl FnMut(&str, Vec<u8>, Option<KeyIdentity>, KeyIdentity),
) -> io::Result<()> {
    each_expiry(path, |entry, after| {
        if entry.what == EXTENDED {
            let redis_key = entry.redis_key_bytes();
            take(&entry.command, redis_key, entry.before, after);
        }
    })
}

/// Passes each change that gave a lock its expiry to `take`, with the identity that it left.
fn each_expiry(
    path: &Path,
    mut take: impl FnMut(AuditEntry<'static>, KeyIdentity),
) -> io::Result<()> {
    let Some(mut log) = Log::open(path)? else { return Ok(()) };
    while let Some(mut entry) = log.next_entry_with(EITHER)? {
        let sets_expiry = entry.what == EXTENDED || entry.what == EXPIRED;
        if sets_expiry && let Some(after) = entry.after.take() {
            take(entry, after);
        }
    }
    Ok(())
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
    // A line without a valid time counts as damaged.
    humantime::parse_rfc3339(&at).ok()?;
    Some(line)
}

/// Passes each change of the log to `take`, with its operation. Changes of idemctl 0.2 are only
/// counted. `None` if there is no log.
///
/// # Errors
/// The log exists but cannot be read.
pub fn each(
    path: &Path,
    mut take: impl FnMut(AuditEntry<'static>, &Operation),
) -> io::Result<Option<(Operations, Skipped)>> {
    let Some(mut log) = Log::open(path)? else { return Ok(None) };
    let mut operations = Operations::default();
    while let Some(line) = log.next_line_with(b"")? {
        match line {
            LogLine::Change(entry) if entry.is_of_older_version() => log.skipped.older += 1,
            LogLine::Change(entry) => {
                let operation = operations.add(&entry);
                take(*entry, operation);
            }
            LogLine::Mark(mark) => operations.add_mark(&mark),
        }
    }
    Ok(Some((operations, log.skipped)))
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
