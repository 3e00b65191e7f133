//! A moment as a file: what `idemctl list -o json` wrote, or a record a line, as `-o jsonl` writes them.
//!
//! A document says at its end whether the list is complete. Lines do not: a list that was cut off between two of them looks
//! whole.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Result;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use crate::domain::snapshot::{ListScope, ListedRecord};
use crate::exit::CommandError;
use crate::files::{self, Opened};

/// The most bytes of a line: a list may show whole values.
const MOST_LINE: u64 = 1 << 30;

/// What a moment says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Completeness {
    Complete,
    /// The scan was cut off, or some records could not be read.
    Incomplete,
    /// Nothing: `-o jsonl` wrote it.
    Unknown,
    /// Nothing, because the file is empty.
    Empty,
}

/// What a moment says of itself: whether it is complete, and which records it was to hold, if it says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) completeness: Completeness,
    pub(super) scope: Option<ListScope>,
}

impl Snapshot {
    fn without_scope(completeness: Completeness) -> Self {
        Self { completeness, scope: None }
    }
}

/// Hands out each record of a moment, a file, a pipe, or stdin where the name is `-`. Memory does not depend on how many
/// there are.
///
/// # Errors
/// Usage: the file cannot be read, is no list, or is cut short; else that of `take`.
pub(super) fn records(
    path: &Path,
    mut take: impl FnMut(ListedRecord) -> Result<()>,
) -> Result<Snapshot> {
    let mut from = open(path)?;
    let mut line = Vec::new();
    let read_line = |from: &mut Input, line: &mut Vec<u8>| {
        files::read_line(from, b'\n', line, MOST_LINE).map_err(|error| unreadable(path, &error))
    };
    if read_line(&mut from, &mut line)? == 0 {
        return Ok(Snapshot::without_scope(Completeness::Empty));
    }
    // The first line of a document is not the whole of a record.
    if serde_json::from_slice::<ListedRecord>(&line).is_err() && opens_document(&line) {
        return document(path, line.chain(from), take);
    }
    let mut number = 1;
    loop {
        take(serde_json::from_slice(&line).map_err(|error| no_list(path, number, &error))?)?;
        if read_line(&mut from, &mut line)? == 0 {
            return Ok(Snapshot::without_scope(Completeness::Unknown));
        }
        number += 1;
    }
}

type Input = BufReader<Box<dyn Read>>;

fn open(path: &Path) -> Result<Input, CommandError> {
    let from: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => match files::open_or_receive(path).map_err(|error| unreadable(path, &error))? {
            Opened::File(file) => Box::new(file),
            Opened::Pipe(pipe) => Box::new(pipe),
            // A line may be as long as a value, so that a device without end would fill the memory.
            Opened::Device(_) => return Err(unreadable(path, &io::Error::other("it is a device"))),
        },
    };
    Ok(BufReader::with_capacity(1 << 16, from))
}

/// True for the first line of a document, whoever laid it out: its opening brace alone, or `"format"` behind it.
fn opens_document(line: &[u8]) -> bool {
    let Some(fields) = line.trim_ascii().strip_prefix(b"{") else { return false };
    let fields = fields.trim_ascii();
    fields.is_empty() || fields.starts_with(b"\"format\"")
}

/// Hands out the records of a document.
fn document(
    path: &Path,
    from: impl Read,
    mut take: impl FnMut(ListedRecord) -> Result<()>,
) -> Result<Snapshot> {
    let mut stopped = None;
    let mut read = serde_json::Deserializer::from_reader(from);
    let records = Records {
        take: &mut |listed_record: ListedRecord| {
            take(listed_record).map_err(|error| stopped = Some(error)).is_ok()
        },
    };
    let snapshot = ListDocument { records }
        .deserialize(&mut read)
        .and_then(|snapshot| read.end().map(|()| snapshot));
    match (snapshot, stopped) {
        (_, Some(error)) => Err(error),
        (Ok(snapshot), None) => Ok(snapshot),
        (Err(error), None) => Err(no_list(path, error.line(), &error).into()),
    }
}

/// A list as a document, whose records are handed out while it is read. Its value is what it says of itself.
struct ListDocument<'a> {
    records: Records<'a>,
}

impl<'de> DeserializeSeed<'de> for ListDocument<'_> {
    type Value = Snapshot;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Snapshot, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ListDocument<'_> {
    type Value = Snapshot;

    fn expecting(&self, into: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        into.write_str("a list")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut fields: M) -> Result<Snapshot, M::Error> {
        let (mut has_records, mut complete, mut scope) = (false, None, None);
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "records" => {
                    fields.next_value_seed(&mut self.records)?;
                    has_records = true;
                }
                "complete" => complete = Some(fields.next_value::<bool>()?),
                "scope" => scope = Some(fields.next_value::<ListScope>()?),
                // It holds the records of some keys, not of a keyspace.
                "unclaimed" => return Err(M::Error::custom("`inspect` wrote it")),
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        if !has_records {
            return Err(M::Error::missing_field("records"));
        }
        let complete = complete.ok_or_else(|| M::Error::missing_field("complete"))?;
        let completeness = if complete { Completeness::Complete } else { Completeness::Incomplete };
        Ok(Snapshot { completeness, scope })
    }
}

struct Records<'a> {
    /// False where no more is wanted.
    take: &'a mut dyn FnMut(ListedRecord) -> bool,
}

impl<'de> DeserializeSeed<'de> for &mut Records<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut Records<'_> {
    type Value = ();

    fn expecting(&self, into: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        into.write_str("records")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut records: S) -> Result<(), S::Error> {
        while let Some(listed_record) = records.next_element()? {
            if !(self.take)(listed_record) {
                return Err(S::Error::custom("no more is wanted"));
            }
        }
        Ok(())
    }
}

fn no_list(path: &Path, line: usize, error: &serde_json::Error) -> CommandError {
    let why = if error.is_eof() {
        "it is truncated, so the list is not complete"
    } else {
        "this is not a line of a list"
    };
    CommandError::usage(format!("{}:{line}: {why}", path.display()))
        .hint("write it with `idemctl list -o json` of this version, and let the list finish")
}

/// How many lines a file has.
///
/// # Errors
/// Usage: the file cannot be read, or only once.
pub(super) fn count(path: &Path) -> Result<usize, CommandError> {
    let wrong = |error: io::Error| unreadable(path, &error);
    let Opened::File(file) = files::open_or_receive(path).map_err(wrong)? else {
        return Err(CommandError::usage(format!(
            "{} must be a regular file, because it is read twice",
            path.display()
        ))
        .hint("write the first snapshot to a file; only the second can be read from stdin, as -"));
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

fn unreadable(path: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(format!("cannot read the snapshot {}: {error}", path.display()))
}
