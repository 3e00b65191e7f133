//! A moment as a file: what `idemctl list -o jsonl` wrote, a record a line.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::domain::moments::Sighting;
use crate::exit::Stop;
use crate::files::{self, Opened};

/// The most bytes of a line: a list may show whole values.
const MOST_LINE: u64 = 1 << 30;

/// The records of a moment, one by one: memory does not depend on how many there are.
pub(super) struct Lines {
    from: BufReader<Box<dyn Read>>,
    path: PathBuf,
    line: u64,
    bytes: Vec<u8>,
}

impl Lines {
    /// Opens a file or a pipe, or stdin where the name is `-`.
    pub(super) fn open(path: &Path) -> Result<Self, Stop> {
        let from: Box<dyn Read> = match path.to_str() {
            Some("-") => Box::new(io::stdin()),
            _ => match files::open_or_receive(path).map_err(|error| unreadable(path, &error))? {
                Opened::File(file) => Box::new(file),
                Opened::Pipe(pipe) => Box::new(pipe),
                // A line may be as long as a value, so that a device without end would fill the memory.
                Opened::Device(_) => return Err(unreadable(path, &io::Error::other("it is a device"))),
            },
        };
        Ok(Self { from: BufReader::with_capacity(1 << 16, from), path: path.to_owned(), line: 0, bytes: Vec::new() })
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// Usage: the file cannot be read, or a line is none of a list's.
    pub(super) fn next(&mut self) -> Result<Option<Sighting>, Stop> {
        let read = files::read_line(&mut self.from, b'\n', &mut self.bytes, MOST_LINE);
        if read.map_err(|error| unreadable(&self.path, &error))? == 0 {
            return Ok(None);
        }
        self.line += 1;
        let wrong = |why: &str| Stop::usage(format!("{}:{}: {why}", self.path.display(), self.line));
        let sighting: Sighting = serde_json::from_slice(&self.bytes).map_err(|error| {
            let why = if error.is_eof() {
                "the line is cut short, so the list is not whole"
            } else {
                "this is no line of a list"
            };
            wrong(why).hint("a moment is what `idemctl list -o jsonl` wrote, to its end")
        })?;
        if sighting.identity.is_none() {
            return Err(wrong("the line has no `identity`: an older idemctl wrote the list")
                .hint("idemctl list -o jsonl writes one that can be compared"));
        }
        Ok(Some(sighting))
    }
}

/// Hands out each record of a file.
///
/// # Errors
/// Usage: the file cannot be read, or a line is none of a list's; else that of `take`.
pub(super) fn records(path: &Path, mut take: impl FnMut(Sighting) -> Result<()>) -> Result<()> {
    let mut lines = Lines::open(path)?;
    while let Some(sighting) = lines.next()? {
        take(sighting)?;
    }
    Ok(())
}

/// How many lines a file has.
///
/// # Errors
/// Usage: the file cannot be read, or only once.
pub(super) fn count(path: &Path) -> Result<usize, Stop> {
    let wrong = |error: io::Error| unreadable(path, &error);
    let Opened::File(file) = files::open_or_receive(path).map_err(wrong)? else {
        return Err(Stop::usage(format!("{} is read twice, and is no regular file", path.display()))
            .hint("write the first moment into a file; the second may come from stdin, as -"));
    };
    let mut from = BufReader::with_capacity(1 << 16, file);
    let mut lines = 0;
    loop {
        let buffer = from.fill_buf().map_err(wrong)?;
        if buffer.is_empty() {
            return Ok(lines + 1);
        }
        lines += memchr::memchr_iter(b'\n', buffer).count();
        let read = buffer.len();
        from.consume(read);
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Stop {
    Stop::usage(format!("cannot read the moment {}: {error}", path.display()))
}
