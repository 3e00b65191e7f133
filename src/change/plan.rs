//! A plan: the removals that one run of `purge`, `sweep` or `force-unlock` chose, for `apply` to
//! make. It is a file of JSON lines: a header, the records with the identities of their Redis keys,
//! and a digest of the lines before. It contains no value.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::domain::change::provenance::Provenance;
use crate::domain::hex::hex;
use crate::domain::record::{KeyIdentity, Observation, RecordName};
use crate::exit::CommandError;
use crate::files;
use crate::render::document::{base64_unless_text, line, text};
use crate::render::words;
use crate::session::Session;
use crate::store::Change;

const FORMAT: u64 = 1;

/// How long a plan can be applied.
const VALID: Duration = Duration::from_hours(24);

/// The longest line in bytes: a key of 1 MiB, escaped, in its name and its Redis keys.
const MAX_LINE: u64 = 32 << 20;

/// The first line of a plan.
#[derive(Serialize, Deserialize)]
pub struct PlanHeader {
    pub format: u64,
    /// The command that chose the records.
    pub command: PlannedCommand,
    pub reason: Option<String>,
    /// `USER@HOST`.
    pub planner: String,
    /// The server and database of the records.
    pub from: Provenance,
    /// RFC 3339 in UTC, as is the next one.
    pub at: String,
    pub expires_at: String,
    /// True if the command asked whether the owners of the locks are alive.
    pub owner_alive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlannedCommand {
    Purge,
    Sweep,
    ForceUnlock,
}

/// A record of a plan.
#[derive(Serialize, Deserialize)]
pub struct PlannedRecord {
    /// `SCHEMA/KEY`, as [`RecordName::text`] writes it.
    name: String,
    /// The hash of the schema's files.
    schema_sha256: String,
    keys: Vec<PlannedKey>,
}

#[derive(Serialize, Deserialize)]
struct PlannedKey {
    redis_key: String,
    /// The bytes of the Redis key, if they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redis_key_base64: Option<String>,
    remove: bool,
    #[serde(flatten)]
    identity: KeyIdentity,
}

/// The last line of a plan: the digest of the lines before it.
#[derive(Serialize, Deserialize)]
struct PlanEnd {
    sha256: String,
}

impl PlannedRecord {
    /// The name; `None` if the text is not one.
    pub fn name(&self) -> Option<RecordName> {
        RecordName::parse(self.name.as_bytes())
    }

    /// True if this is the whole record that was planned. Unknown parts count as different.
    pub fn is_still(&self, now: &Observation) -> bool {
        self.keys.len() == now.keys.len()
            && self.keys.iter().zip(&now.keys).all(|(planned, now)| {
                planned.redis_key == text(&now.redis_key)
                    && planned.redis_key_base64 == base64_unless_text(&now.redis_key)
                    && planned.identity.is_still(now)
            })
    }

    /// True if the Redis key with this index is removed.
    pub fn removes(&self, key_index: usize) -> bool {
        self.keys.get(key_index).is_some_and(|key| key.remove)
    }

    /// The most bytes of a value that have to be read to compare it.
    pub fn read_bytes(&self) -> usize {
        self.keys.iter().map(|key| key.identity.read_bytes()).max().unwrap_or(0)
    }
}

/// A plan that is being written. The file appears at the end, or not at all.
pub struct PlanWriter {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
    digest: Sha256,
    records: u64,
    expires_at: String,
}

impl PlanWriter {
    /// Begins a plan of removals on the server of this run.
    ///
    /// # Errors
    /// The server cannot be asked which one it is, or the file cannot be written.
    pub async fn create(
        session: &mut Session,
        path: &Path,
        command: PlannedCommand,
        reason: Option<String>,
        owner_alive: bool,
    ) -> Result<Self> {
        let time = |time| humantime::format_rfc3339_millis(time).to_string();
        let now = session.now();
        let header = PlanHeader {
            format: FORMAT,
            command,
            reason,
            planner: format!("{}@{}", session.settings.environment().user(), session.host()),
            from: session.connect().await?.provenance().await?,
            at: time(now),
            expires_at: time(now + VALID),
            owner_alive,
        };
        let file = NamedTempFile::new_in(files::folder_of(path));
        let file = file.map_err(|error| refused(path, error))?;
        let mut plan = Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            digest: Sha256::new(),
            records: 0,
            expires_at: header.expires_at.clone(),
        };
        plan.write(&header)?;
        Ok(plan)
    }

    /// Adds a removal. `schema_sha256` is the hash of the files of the record's schema.
    ///
    /// # Errors
    /// The record was not read exactly enough to compare it later; the file cannot be written.
    pub fn add(&mut self, change: &Change, schema_sha256: String) -> Result<(), CommandError> {
        let name = change.label.name.text();
        let mut keys = Vec::with_capacity(change.seen.keys.len());
        for (key_index, key) in change.seen.keys.iter().enumerate() {
            let Some(identity) = KeyIdentity::of(key).written() else {
                return Err(refused(&self.path, format!("the expiry of {name} is unknown")));
            };
            keys.push(PlannedKey {
                redis_key: text(&key.redis_key).into_owned(),
                redis_key_base64: base64_unless_text(&key.redis_key),
                remove: change.changed_indexes.contains(&key_index),
                identity,
            });
        }
        self.records += 1;
        self.write(&PlannedRecord { name, schema_sha256, keys })
    }

    /// Writes the file, unless nothing is planned, and prints how many of `selected` records it has.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn finish(mut self, session: &mut Session, selected: u64) -> Result<(), CommandError> {
        if self.records == 0 {
            print_nothing(session, &self.path);
            return Ok(());
        }
        self.write(&PlanEnd { sha256: hex(&self.digest.clone().finalize()) })?;
        let Self { path, file, records, expires_at, .. } = self;
        let file = file.into_inner().map_err(|error| refused(&path, error.error()))?;
        let synced = file.as_file().sync_all();
        synced.map_err(|error| refused(&path, error))?;
        file.persist_noclobber(&path).map_err(|error| refused(&path, error.error))?;
        session.ui.status(&format!(
            "Planned {records} of {}; `idemctl apply {}` removes them until {expires_at}.",
            words::counted(selected, "record"),
            path.display()
        ));
        Ok(())
    }

    fn write(&mut self, value: &impl Serialize) -> Result<(), CommandError> {
        let line = line(value);
        self.digest.update(&line);
        self.file.write_all(line.as_bytes()).map_err(|error| refused(&self.path, error))
    }
}

/// Prints that a plan has no record.
pub fn print_nothing(session: &mut Session, path: &Path) {
    session.ui.status(&format!("nothing is planned; {} was not written", path.display()));
}

/// Passes if no such file exists, before anything is read for the plan.
///
/// # Errors
/// Usage: it exists.
pub fn check_new(path: Option<&Path>) -> Result<(), CommandError> {
    match path {
        Some(path) if path.symlink_metadata().is_ok() => Err(refused(path, "it exists already")),
        _ => Ok(()),
    }
}

/// A plan that is read, record by record.
pub struct Plan {
    pub header: PlanHeader,
    /// How many records it has.
    pub records: u64,
    /// A record's name for each schema, prefix, and hash of the schema's files.
    pub places: BTreeMap<(String, Option<String>, String), RecordName>,
    path: PathBuf,
    source: BufReader<File>,
    digest: Sha256,
    /// True after the last line.
    is_read: bool,
}

impl Plan {
    /// Opens a plan, and checks all of it.
    ///
    /// # Errors
    /// Usage: it cannot be read, is damaged, has expired, or has another format.
    pub fn open(path: &Path, now: SystemTime) -> Result<Self, CommandError> {
        let file = files::open_regular(path).map_err(|error| refused(path, error))?;
        let mut source = BufReader::new(file);
        let (header, digest) = read_header(path, &mut source)?;
        let expires_at = humantime::parse_rfc3339(&header.expires_at);
        if expires_at.map_err(|error| refused(path, error))? <= now {
            return Err(refused(path, format!("it expired at {}", header.expires_at)));
        }
        let path = path.to_owned();
        let places = BTreeMap::new();
        let mut plan = Self { header, records: 0, places, path, source, digest, is_read: false };
        while let Some(record) = plan.next_record()? {
            plan.records += 1;
            let name = plan.name_of(&record)?;
            let place = (name.schema.clone(), name.prefix.clone(), record.schema_sha256);
            plan.places.entry(place).or_insert(name);
        }
        Ok(plan)
    }

    /// Goes back to the first record.
    ///
    /// # Errors
    /// As [`Plan::open`].
    pub fn rewind(&mut self) -> Result<(), CommandError> {
        self.source.rewind().map_err(|error| refused(&self.path, error))?;
        self.is_read = false;
        (self.header, self.digest) = read_header(&self.path, &mut self.source)?;
        Ok(())
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// Usage: the plan cannot be read, or is damaged.
    pub fn next_record(&mut self) -> Result<Option<PlannedRecord>, CommandError> {
        if self.is_read {
            return Ok(None);
        }
        let line = read_line(&self.path, &mut self.source)?;
        if let Ok(end) = serde_json::from_slice::<PlanEnd>(&line) {
            if end.sha256 != hex(&self.digest.clone().finalize()) {
                return Err(refused(&self.path, "it was modified"));
            }
            self.is_read = true;
            return Ok(None);
        }
        self.digest.update(&line);
        parsed(&self.path, &line).map(Some)
    }

    /// The name of a record.
    ///
    /// # Errors
    /// Usage: the text is not a name.
    pub fn name_of(&self, record: &PlannedRecord) -> Result<RecordName, CommandError> {
        record.name().ok_or_else(|| refused(&self.path, "a record has no name"))
    }

    /// The error of a plan that cannot be used.
    pub fn refused(&self, why: impl Display) -> CommandError {
        refused(&self.path, why)
    }
}

fn read_header(
    path: &Path,
    source: &mut BufReader<File>,
) -> Result<(PlanHeader, Sha256), CommandError> {
    let line = read_line(path, source)?;
    let format = parsed::<serde_json::Value>(path, &line)?["format"].clone();
    if format != FORMAT {
        return Err(refused(path, "this version of idemctl does not know its format"));
    }
    Ok((parsed(path, &line)?, Sha256::new_with_prefix(&line)))
}

/// The next line. Only an incomplete plan ends without its last line.
fn read_line(path: &Path, source: &mut BufReader<File>) -> Result<Vec<u8>, CommandError> {
    let mut line = Vec::new();
    let read = files::read_line(source, b'\n', &mut line, MAX_LINE);
    match read.map_err(|error| refused(path, error))? {
        0 => Err(refused(path, "its end is missing")),
        _ => Ok(line),
    }
}

fn parsed<T: DeserializeOwned>(path: &Path, line: &[u8]) -> Result<T, CommandError> {
    serde_json::from_slice(line).map_err(|error| refused(path, format!("it is damaged: {error}")))
}

fn refused(path: &Path, why: impl Display) -> CommandError {
    CommandError::usage(format!("plan {}: {why}", path.display())).changed_nothing()
}
