//! A snapshot in a file: a document of `idemctl list -o json`, or one record per line of `-o
//! jsonl`.
//!
//! A document says at its end whether the list is complete. Lines do not, so a list that was cut
//! off between two lines looks complete.

use std::io::{self, BufReader, Read};
use std::path::Path;

use anyhow::Result;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use crate::domain::snapshot::{ListScope, ListedRecord};
use crate::exit::CommandError;
use crate::files::{self, Opened};

/// The most bytes of a line. It is large, because a list may contain whole values, of which Redis
/// stores up to 512 MiB each.
const MAX_LINE: u64 = 1 << 30;

/// What a snapshot contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// Whether it is complete, according to its file: false also for an empty file, and `None` if
    /// `-o jsonl` wrote it, which does not show it.
    pub(super) is_complete: Option<bool>,
    pub(super) scope: Option<ListScope>,
}

/// Passes each record of a snapshot to `take`. The snapshot is a file, a pipe, or stdin if the name
/// is `-`. Memory does not depend on the number of records.
///
/// # Errors
/// Usage: the file cannot be read, is not a list, or is truncated; else the error of `take`.
pub(super) fn records(
    path: &Path,
    mut take: impl FnMut(ListedRecord) -> Result<()>,
) -> Result<Snapshot> {
    let mut from = open(path)?;
    let mut line = Vec::new();
    if read_line(path, &mut from, &mut line)? == 0 {
        return Ok(Snapshot { is_complete: Some(false), scope: None });
    }
    // The first line of a document is not a whole record.
    if serde_json::from_slice::<ListedRecord>(&line).is_err() && opens_document(&line) {
        return document(path, line.chain(from), take);
    }
    let mut number = 1;
    loop {
        take(serde_json::from_slice(&line).map_err(|error| no_list(path, number, &error))?)?;
        if read_line(path, &mut from, &mut line)? == 0 {
            return Ok(Snapshot { is_complete: None, scope: None });
        }
        number += 1;
    }
}

type Input = BufReader<Box<dyn Read>>;

/// Reads the next line into `line`, and returns its length; 0 at the end.
fn read_line(path: &Path, from: &mut Input, line: &mut Vec<u8>) -> Result<usize, CommandError> {
    files::read_line(from, b'\n', line, MAX_LINE).map_err(|error| unreadable(path, &error))
}

fn open(path: &Path) -> Result<Input, CommandError> {
    let from: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => match files::open_or_receive(path).map_err(|error| unreadable(path, &error))? {
            Opened::File(file) => Box::new(file),
            Opened::Pipe(pipe) => Box::new(pipe),
            // A line may be as long as a value, so a device without an end would fill the memory.
            Opened::Device(_) => return Err(unreadable(path, &io::Error::other("it is a device"))),
        },
    };
    Ok(BufReader::with_capacity(1 << 16, from))
}

/// True for the first line of a document in any layout: its opening brace alone, or with
/// `"format"`.
fn opens_document(line: &[u8]) -> bool {
    let Some(fields) = line.trim_ascii().strip_prefix(b"{") else { return false };
    let fields = fields.trim_ascii();
    fields.is_empty() || fields.starts_with(b"\"format\"")
}

/// Passes the records of a document to `take`.
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
    let snapshot = ListDocument { records }.deserialize(&mut read);
    // The error of `take` ended the reading, so it comes before the parser's own.
    if let Some(error) = stopped {
        return Err(error);
    }
    let snapshot = snapshot.map_err(|error| no_list(path, error.line(), &error))?;
    read.end().map_err(|error| no_list(path, error.line(), &error))?;
    Ok(snapshot)
}

/// A list as a document, whose records are passed on while it is read. Its value is the rest of the
/// document.
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
        let mut has_records = false;
        let mut complete = None;
        let mut scope = None;
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "records" => {
                    fields.next_value_seed(&mut self.records)?;
                    has_records = true;
                }
                "complete" => complete = Some(fields.next_value::<bool>()?),
                "scope" => scope = Some(fields.next_value::<ListScope>()?),
                // Such a document has the records of some keys, and not of the keyspace.
                "unclaimed" => return Err(M::Error::custom("`inspect` wrote it")),
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        if !has_records {
            return Err(M::Error::missing_field("records"));
        }
        // The field is at the end of a document, so a truncated list does not have it.
        if complete.is_none() {
            return Err(M::Error::missing_field("complete"));
        }
        Ok(Snapshot { is_complete: complete, scope })
    }
}

struct Records<'a> {
    /// False if no more records are wanted.
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

/// Passes if the snapshot can be read twice.
///
/// # Errors
/// Usage: it cannot be read, or is no regular file.
pub(super) fn require_file(path: &Path) -> Result<(), CommandError> {
    match files::open_or_receive(path).map_err(|error| unreadable(path, &error))? {
        Opened::File(_) => Ok(()),
        Opened::Pipe(_) | Opened::Device(_) => Err(CommandError::usage(format!(
            "{} must be a regular file, because it is read twice",
            path.display()
        ))
        .hint("write the first snapshot to a file; only the second can be read from stdin, as -")),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(format!("cannot read the snapshot {}: {error}", path.display()))
}
