//! Reading the audit log, a line at a time.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use super::entry::Entry;
use crate::files;

/// The most bytes of a line: a key of a megabyte, each byte of which is escaped, takes six.
const MOST_LINE: u64 = 16 << 20;

/// The log, from its first line on.
#[derive(Debug)]
pub struct Log {
    lines: BufReader<File>,
    line: u64,
}

impl Log {
    /// Opens it; `None` when there is none, for nothing was changed yet.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        match File::open(path) {
            Ok(file) => Ok(Some(Self { lines: BufReader::new(file), line: 0 })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The number of the line that was read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next change; `Some(None)` is a line that is damaged, `None` the end.
    pub fn next_line(&mut self) -> io::Result<Option<Option<Entry<'static>>>> {
        let mut bytes = Vec::new();
        if files::read_line(&mut self.lines, b'\n', &mut bytes, MOST_LINE)? == 0 {
            return Ok(None);
        }
        self.line += 1;
        Ok(Some(serde_json::from_slice(&bytes).ok()))
    }
}
