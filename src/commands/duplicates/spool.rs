//! A temporary file with the records that may belong to a group, so that memory does not grow with
//! the lengths of keys. It has no name, and disappears with the process.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;

use crate::exit::CommandError;

/// The bytes before each entry, which are its length.
const LENGTH_BYTES: usize = 4;

pub(super) struct Spool {
    file: BufWriter<File>,
    end: u64,
}

impl Spool {
    /// An empty file in the system's folder for temporary files.
    ///
    /// # Errors
    /// Usage: the file cannot be created.
    pub(super) fn create() -> Result<Self, CommandError> {
        let file = tempfile::tempfile().map_err(|error| unwritable(&error))?;
        Ok(Self { file: BufWriter::with_capacity(1 << 16, file), end: 0 })
    }

    /// Appends an entry, and returns its place.
    ///
    /// # Errors
    /// Usage: the file cannot be written, for example because the disk is full.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<u64, CommandError> {
        let place = self.end;
        let Ok(length) = u32::try_from(bytes.len()) else {
            return Err(unwritable(&io::Error::other("an entry is larger than 4 GiB")));
        };
        let written =
            self.file.write_all(&length.to_le_bytes()).and_then(|()| self.file.write_all(bytes));
        written.map_err(|error| unwritable(&error))?;
        self.end += (LENGTH_BYTES + bytes.len()) as u64;
        Ok(place)
    }

    /// Ends writing.
    ///
    /// # Errors
    /// Usage: the file cannot be written.
    pub(super) fn finish(self) -> Result<SpoolReader, CommandError> {
        let file = self.file.into_inner().map_err(|error| unwritable(error.error()))?;
        Ok(SpoolReader { file })
    }
}

pub(super) struct SpoolReader {
    file: File,
}

impl SpoolReader {
    /// The entry at a place.
    ///
    /// # Errors
    /// Usage: the file cannot be read.
    pub(super) fn read(&self, place: u64) -> Result<Vec<u8>, CommandError> {
        let mut length = [0; LENGTH_BYTES];
        self.file.read_exact_at(&mut length, place).map_err(|error| unreadable(&error))?;
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        let after = place + LENGTH_BYTES as u64;
        self.file.read_exact_at(&mut bytes, after).map_err(|error| unreadable(&error))?;
        Ok(bytes)
    }
}

fn unwritable(error: &io::Error) -> CommandError {
    CommandError::usage(format!("cannot write a temporary file: {error}"))
        .hint("set TMPDIR to a folder with more space")
}

fn unreadable(error: &io::Error) -> CommandError {
    CommandError::usage(format!("cannot read the temporary file: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_at_their_places() {
        let mut spool = Spool::create().unwrap();
        let places: Vec<_> =
            [&b"a"[..], b"", b"long entry"].iter().map(|bytes| spool.add(bytes).unwrap()).collect();
        let reader = spool.finish().unwrap();
        assert_eq!(reader.read(places[2]).unwrap(), b"long entry");
        assert_eq!(reader.read(places[1]).unwrap(), b"");
        assert_eq!(reader.read(places[0]).unwrap(), b"a");
    }
}
