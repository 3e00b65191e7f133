//! Keys from a file or stdin, read twice: once to count, once to act.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;

use crate::exit::Stop;

/// A list of keys that can be read more than once.
pub struct KeyFile {
    file: BufReader<File>,
    name: String,
    end: u8,
}

impl KeyFile {
    /// Opens a file, or stdin for `-`. What cannot be read twice, such as a pipe, is kept in a file without a name in
    /// `temp_dir`.
    ///
    /// # Errors
    /// Usage: it cannot be read.
    pub fn open(path: &Path, null: bool, temp_dir: &Path) -> Result<Self, Stop> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
        let file = if is_stdin { spool(io::stdin().lock(), temp_dir) } else { open(path, temp_dir) };
        let file = file.map_err(|error| cannot_read(&name, &error).hint("nothing was changed"))?;
        Ok(Self { file: BufReader::new(file), name, end: if null { 0 } else { b'\n' } })
    }

    /// Starts again at the first key.
    ///
    /// # Errors
    /// Usage: it cannot be read.
    pub fn rewind(&mut self) -> Result<(), Stop> {
        self.file.seek(SeekFrom::Start(0)).map(drop).map_err(|error| cannot_read(&self.name, &error))
    }

    /// The next keys, at most so many; none at the end. Empty lines are no keys.
    ///
    /// # Errors
    /// Usage: it cannot be read.
    pub fn next(&mut self, most: usize) -> Result<Vec<Vec<u8>>, Stop> {
        let mut keys = Vec::with_capacity(most);
        while keys.len() < most {
            let mut key = Vec::new();
            if self.file.read_until(self.end, &mut key).map_err(|error| cannot_read(&self.name, &error))? == 0 {
                break;
            }
            if key.last() == Some(&self.end) {
                key.pop();
            }
            if !key.is_empty() {
                keys.push(key);
            }
        }
        Ok(keys)
    }
}

fn open(path: &Path, temp_dir: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if kind.is_file() { Ok(file) } else { spool(file, temp_dir) }
}

fn spool(mut from: impl io::Read, temp_dir: &Path) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(temp_dir)?;
    io::copy(&mut from, &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn cannot_read(name: &str, error: &io::Error) -> Stop {
    Stop::usage(format!("cannot read keys from {name}: {error}")).hint("nothing more was changed")
}
