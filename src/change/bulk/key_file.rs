//! Keys from a file or stdin, read twice: once to count, once to act.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::args::KeysArgs;
use crate::exit::Stop;
use crate::files;

/// The most bytes of a key; no service has longer keys.
const MOST_KEY: u64 = 1 << 20;

/// The most bytes that are kept of a list that cannot be read twice: the list may have no end.
const MOST_KEPT: u64 = 4 << 30;

/// A list of keys that can be read more than once.
pub struct KeyFile {
    file: BufReader<File>,
    name: String,
    end: u8,
}

impl KeyFile {
    /// The keys that the options name; `None` where they name none.
    ///
    /// # Errors
    /// Usage: the keys cannot be read, or stdin is named beside others.
    pub fn of(args: &KeysArgs, temp_dir: &Path) -> Result<Option<Self>, Stop> {
        if let Some(path) = &args.key_file {
            return Self::open(path, args.null, temp_dir).map(Some);
        }
        match args.keys.as_slice() {
            [] if args.null => Err(Stop::usage("-0 tells how keys end in a file or on stdin, and there is none")),
            [] => Ok(None),
            keys if keys.iter().any(|key| key.is_empty()) => Err(Stop::usage("a key is empty")),
            [only] if only == "-" => Self::open(Path::new("-"), args.null, temp_dir).map(Some),
            keys if keys.iter().any(|key| key == "-") => {
                Err(Stop::usage("`-` for keys from stdin stands alone, without other keys"))
            }
            keys => Self::of_words(keys, temp_dir).map(Some),
        }
    }

    fn of_words(keys: &[OsString], temp_dir: &Path) -> Result<Self, Stop> {
        let mut list = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            // A key that is named twice is one.
            if !keys[..index].contains(key) {
                list.extend_from_slice(key.as_bytes());
                list.push(0);
            }
        }
        let name = "the command line".to_owned();
        let file = keep(&list[..], 0, temp_dir).map_err(|error| cannot_read(&name, &error))?;
        Ok(Self { file: BufReader::new(file), name, end: 0 })
    }

    /// Opens a file, or stdin for `-`. A list that cannot be read twice, such as a pipe, is copied into a file without a name
    /// in `temp_dir`.
    pub fn open(path: &Path, null: bool, temp_dir: &Path) -> Result<Self, Stop> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
        let end = if null { 0 } else { b'\n' };
        let file = if is_stdin { keep(io::stdin().lock(), end, temp_dir) } else { open(path, end, temp_dir) };
        let file = file.map_err(|error| cannot_read(&name, &error).hint("nothing was changed"))?;
        Ok(Self { file: BufReader::new(file), name, end })
    }

    pub fn rewind(&mut self) -> Result<(), Stop> {
        self.file.seek(SeekFrom::Start(0)).map(drop).map_err(|error| cannot_read(&self.name, &error))
    }

    /// The next keys, at most `most`; none at the end of the file. Empty lines are no keys.
    pub fn next(&mut self, most: usize) -> Result<Vec<Vec<u8>>, Stop> {
        let mut keys = Vec::with_capacity(most);
        while keys.len() < most {
            let mut key = Vec::new();
            let read = files::read_line(&mut self.file, self.end, &mut key, MOST_KEY);
            if read.map_err(|error| cannot_read(&self.name, &error))? == 0 {
                break;
            }
            if key.last() == Some(&self.end) {
                key.pop();
            }
            // Lines of a file from Windows end with CR LF; a key that ends with CR is named with NUL behind it.
            if self.end == b'\n' && key.last() == Some(&b'\r') {
                key.pop();
            }
            if !key.is_empty() {
                keys.push(key);
            }
        }
        Ok(keys)
    }
}

fn open(path: &Path, end: u8, temp_dir: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if kind.is_file() { Ok(file) } else { keep(BufReader::new(file), end, temp_dir) }
}

fn keep(mut from: impl BufRead, end: u8, temp_dir: &Path) -> io::Result<File> {
    let mut file = BufWriter::new(tempfile::tempfile_in(temp_dir)?);
    let (mut line, mut kept) = (Vec::new(), 0);
    loop {
        let read = files::read_line(&mut from, end, &mut line, MOST_KEY)? as u64;
        if read == 0 {
            break;
        }
        kept += read;
        if kept > MOST_KEPT {
            return Err(io::Error::other(format!("it is larger than {} GiB", MOST_KEPT >> 30)));
        }
        file.write_all(&line)?;
    }
    let mut file = file.into_inner()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn cannot_read(name: &str, error: &io::Error) -> Stop {
    Stop::usage(format!("cannot read keys from {name}: {error}")).hint("nothing more was changed")
}
