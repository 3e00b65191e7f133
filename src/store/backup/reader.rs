//! Reading a backup: the whole file is checked before anything of it is used, a line at a time.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{FORMAT, Saved, checksum};
use crate::store::batch::MOST_KEYS;

/// The longest line: the largest value Redis keeps, in base64, and what stands around it.
const LONGEST_LINE: u64 = 1 << 30;

/// How every line begins that idemctl wrote.
const BEGINNING: &[u8] = b"{\"format\":";

/// A Redis key that a backup holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// What `RESTORE` needs.
    pub saved: Saved,
    /// The schema's name.
    pub schema: String,
    /// The idempotency key.
    pub key: Vec<u8>,
    /// The record's state.
    pub state: String,
}

/// Why a backup cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackupError {
    /// The file cannot be read at all.
    #[error("cannot read the backup {path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// A line is not what idemctl wrote.
    #[error("{path}:{line}: {why}")]
    Line {
        /// The file.
        path: String,
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
}

/// Hands out what a backup holds, line by line. What was taken back is left out.
#[derive(Debug)]
pub struct BackupReader {
    lines: BufReader<File>,
    path: PathBuf,
    line: u64,
    /// Lines that may yet be taken back: those of a batch, no more.
    pending: VecDeque<Held>,
    ended: bool,
    cut_short: bool,
}

impl BackupReader {
    /// Opens a backup and checks every line of it, showing `look` what it holds. Only the last line may be cut short,
    /// as a crash leaves it.
    ///
    /// # Errors
    /// When the file cannot be read, is no backup, is damaged, or is in a newer format.
    pub fn open(path: &Path, mut look: impl FnMut(&Held)) -> Result<Self, BackupError> {
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let mut reader = Self {
            lines: BufReader::new(file),
            path: path.to_owned(),
            line: 0,
            pending: VecDeque::new(),
            ended: false,
            cut_short: false,
        };
        while let Some(held) = reader.next_held()? {
            look(&held);
        }
        reader.lines.rewind().map_err(|error| unreadable(path, &error))?;
        (reader.line, reader.ended) = (0, false);
        Ok(reader)
    }

    /// True when the last line is cut short.
    pub fn is_cut_short(&self) -> bool {
        self.cut_short
    }

    /// The next Redis key; `None` at the end.
    ///
    /// # Errors
    /// As [`BackupReader::open`].
    pub fn next_held(&mut self) -> Result<Option<Held>, BackupError> {
        while !self.ended && self.pending.len() <= MOST_KEYS {
            match self.next_line()? {
                None => self.ended = true,
                Some(Line::Held(held)) => self.pending.push_back(*held),
                Some(Line::Void(redis_keys)) => redis_keys.iter().for_each(|redis_key| self.take_back(redis_key)),
            }
        }
        Ok(self.pending.pop_front())
    }

    fn take_back(&mut self, redis_key: &[u8]) {
        let last = self.pending.iter().rposition(|held| held.saved.redis_key == redis_key);
        last.map(|index| self.pending.remove(index));
    }

    fn next_line(&mut self) -> Result<Option<Line>, BackupError> {
        let mut bytes = Vec::new();
        let read = (&mut self.lines).take(LONGEST_LINE).read_until(b'\n', &mut bytes);
        read.map_err(|error| unreadable(&self.path, &error))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        let is_whole = bytes.pop_if(|last| *last == b'\n').is_some();
        match parse(&bytes) {
            Ok(line) => Ok(Some(line)),
            Err(_) if !is_whole && is_beginning(&bytes) => {
                self.cut_short = true;
                Ok(None)
            }
            Err(why) => Err(BackupError::Line { path: self.path.display().to_string(), line: self.line, why }),
        }
    }
}

fn unreadable(path: &Path, error: &io::Error) -> BackupError {
    BackupError::Unreadable { path: path.display().to_string(), why: error.to_string() }
}

fn is_beginning(bytes: &[u8]) -> bool {
    let length = bytes.len().min(BEGINNING.len());
    bytes[..length] == BEGINNING[..length]
}

/// A line of a backup.
enum Line {
    Held(Box<Held>),
    Void(Vec<Vec<u8>>),
}

/// The fields of a line, whatever its kind.
#[derive(Deserialize)]
struct Fields {
    format: Option<u64>,
    redis_key_base64: Option<String>,
    dump_base64: Option<String>,
    ttl_ms: Option<u64>,
    expires_at_ms: Option<u64>,
    schema: Option<String>,
    key: Option<String>,
    key_base64: Option<String>,
    state: Option<String>,
    void: Option<Vec<String>>,
}

fn parse(bytes: &[u8]) -> Result<Line, String> {
    const FOREIGN: &str = "this is no line of an idemctl backup";
    let fields: Fields = serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof if is_beginning(bytes) => "the line is cut short".to_owned(),
        _ if is_beginning(bytes) => format!("the line is damaged, at column {}", error.column()),
        _ => FOREIGN.to_owned(),
    })?;
    match fields.format {
        Some(FORMAT) => {}
        Some(format) => {
            return Err(format!("format {format} is not one this idemctl reads ({FORMAT}): a newer one wrote it"));
        }
        None => return Err(FOREIGN.to_owned()),
    }
    match &fields.void {
        Some(void) => void.iter().map(|text| decode("void", text)).collect::<Result<_, _>>().map(Line::Void),
        None => held(fields).map(|held| Line::Held(Box::new(held))),
    }
}

fn held(fields: Fields) -> Result<Held, String> {
    let missing = |name: &str| format!("the line is damaged: `{name}` is missing");
    let redis_key = fields.redis_key_base64.ok_or_else(|| missing("redis_key_base64"))?;
    let dump = decode("dump_base64", &fields.dump_base64.ok_or_else(|| missing("dump_base64"))?)?;
    if !checksum::holds(&dump) {
        return Err("the line is damaged: the checksum in `dump_base64` does not hold".to_owned());
    }
    if fields.ttl_ms.is_some() != fields.expires_at_ms.is_some() {
        return Err(missing("expires_at_ms"));
    }
    let key = match (fields.key_base64, fields.key) {
        (Some(key), _) => decode("key_base64", &key)?,
        (None, key) => key.ok_or_else(|| missing("key"))?.into_bytes(),
    };
    Ok(Held {
        saved: Saved {
            redis_key: decode("redis_key_base64", &redis_key)?,
            dump,
            ttl_ms: fields.ttl_ms,
            expires_at_ms: fields.expires_at_ms,
        },
        schema: fields.schema.unwrap_or_default(),
        key,
        state: fields.state.unwrap_or_default(),
    })
}

fn decode(name: &str, text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|error| format!("the line is damaged: `{name}` is not base64: {error}"))
}
