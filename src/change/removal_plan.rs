//! A plan: the removals that one run of `purge`, `sweep` or `force-unlock` chose, for `apply` to
//! make. It is a file of JSON lines: a header, and the records with the identities of their Redis
//! keys. It contains no value.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Deserializer, Value};

use super::audit_log::begin_of;
use crate::args::{ChangeArgs, PlanArgs};
use crate::domain::change::provenance::Provenance;
use crate::domain::history::Begin;
use crate::domain::record::{Identity, KeyIdentity, Observation, Record, RecordName};
use crate::exit::CommandError;
use crate::files;
use crate::render::{document, words};
use crate::session::Session;
use crate::store::RecordReader;

const FORMAT: u64 = 1;

/// How long a plan can be applied.
const VALID: Duration = Duration::from_secs(24 * 3600);

const UNWRITTEN: &str = "the plan cannot be written";
pub const UNUSABLE: &str = "the plan cannot be used";

/// The first line of a plan.
#[derive(Serialize, Deserialize)]
pub struct PlanHeader {
    format: u64,
    /// Who made the plan when, with which command and filters, and why.
    #[serde(flatten)]
    pub begin: Begin,
    /// The server and database of the records.
    pub place: Provenance,
    /// RFC 3339 in UTC.
    pub expires_at: String,
    /// True if the locks may have living owners, so that `--owner-alive` has to be asked.
    pub owner_alive: bool,
    /// The hashes of the schemas' files, by the name of the empty key under each schema.
    pub schemas: BTreeMap<String, String>,
    /// How many records follow, or are still to be read.
    records: u64,
}

/// A record of a plan.
#[derive(Serialize, Deserialize)]
pub struct PlannedRecord {
    /// Its [`RecordName::text`].
    pub name: String,
    /// The identities of its Redis keys. Bytes that are not UTF-8 are escaped.
    keys: BTreeMap<String, KeyIdentity>,
}

impl PlannedRecord {
    /// True if this is the whole record as it was planned. Unknown parts count as different.
    pub fn is_still(&self, now: &Observation) -> bool {
        self.keys.len() == now.keys.len()
            && now.keys.iter().all(|now| {
                let planned = self.keys.get(&*document::text(&now.redis_key));
                planned.is_some_and(|planned| planned.is_still(now))
            })
    }
}

/// A plan that is being written. The file appears at the end, or not at all.
pub struct PlanWriter {
    path: PathBuf,
    header: PlanHeader,
    /// The lines of the records.
    lines: File,
}

impl PlanWriter {
    /// The plan of this run, if the options ask for one.
    ///
    /// # Errors
    /// Usage: the file exists, or its folder cannot be written. The errors of [`Session::connect`].
    pub async fn open(
        session: &mut Session,
        args: &ChangeArgs,
        plan: &PlanArgs,
        command: &str,
        owner_alive: bool,
    ) -> Result<Option<Self>> {
        let Some(path) = plan.plan.clone() else { return Ok(None) };
        if path.symlink_metadata().is_ok() {
            return Err(
                CommandError::usage(format!("--plan: {} exists already", path.display())).into()
            );
        }
        let lines = tempfile::tempfile_in(files::folder_of(&path))
            .with_context(|| format!("{UNWRITTEN} ({})", path.display()))?;
        let begin = begin_of(session, &args.confirm_args, command);
        let place = session.connect().await?.provenance().await?;
        let header = PlanHeader {
            format: FORMAT,
            begin: Begin { server: place.to_string(), ..begin },
            place,
            expires_at: humantime::format_rfc3339_seconds(session.now() + VALID).to_string(),
            owner_alive,
            schemas: BTreeMap::new(),
            records: 0,
        };
        Ok(Some(Self { path, header, lines }))
    }

    /// Adds the removal of those records that are as they were shown. They are read once more, in
    /// the same way as when the plan is applied.
    ///
    /// # Errors
    /// The server could not be asked, or the file cannot be written.
    pub async fn add(&mut self, reader: &mut RecordReader, records: &[Record]) -> Result<()> {
        let wanted: Vec<_> = records.iter().map(Record::redis_keys).collect();
        let read = reader.read_for_change(&wanted, 0).await?;
        let mut lines = String::new();
        for (record, now) in records.iter().zip(read) {
            let Ok(now) = now else { continue };
            if Identity::of(&record.seen).differs(&now) {
                continue;
            }
            let mut keys = BTreeMap::new();
            for key in &now.keys {
                keys.insert(document::text(&key.redis_key).into_owned(), KeyIdentity::of(key));
            }
            let name = RecordName::of(record).text();
            lines += &document::line(&PlannedRecord { name, keys });
            let schema = RecordName::new(&record.schema, b"").text();
            self.header.schemas.insert(schema, record.schema.files_hash.clone());
            self.header.records += 1;
        }
        self.lines.write_all(lines.as_bytes()).context(UNWRITTEN)
    }

    /// Writes the file, unless nothing is planned, and prints how many of `selected` records it has.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn finish(mut self, session: &mut Session, selected: u64) -> Result<()> {
        let path = self.path.display();
        let PlanHeader { records, expires_at, .. } = &self.header;
        if *records == 0 {
            session.ui.status(&format!("nothing is planned; {path} was not written"));
            return Ok(());
        }
        self.lines.rewind()?;
        let header = document::line(&self.header);
        let lines = header.as_bytes().chain(&self.lines);
        files::write_from(&self.path, lines, false).context(UNWRITTEN)?;
        session.ui.status(&format!(
            "Planned {records} of {} in {path}, for apply until {expires_at}.",
            words::counted(selected, "record")
        ));
        Ok(())
    }
}

/// A plan that is read, record by record.
pub struct Plan {
    pub header: PlanHeader,
    path: PathBuf,
    lines: Box<dyn Iterator<Item = serde_json::Result<Value>>>,
}

impl Plan {
    /// Opens a plan, and reads its header.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or has another format.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let file = BufReader::new(files::open_regular(&path)?);
        let mut lines = Deserializer::from_reader(file).into_iter();
        let header: Value = lines.next().transpose()?.unwrap_or_default();
        if header["format"] != FORMAT {
            return Err(io::Error::other("this version of idemctl does not know its format"));
        }
        Ok(Self { header: serde_json::from_value(header)?, path, lines: Box::new(lines) })
    }

    /// Goes back to the first record.
    ///
    /// # Errors
    /// As [`Plan::open`].
    pub fn rewind(&mut self) -> io::Result<()> {
        *self = Self::open(self.path.clone())?;
        Ok(())
    }

    /// The next records, up to `most`; empty at the end.
    ///
    /// # Errors
    /// As [`Plan::open`].
    pub fn next(&mut self, most: usize) -> io::Result<Vec<PlannedRecord>> {
        let mut records = Vec::new();
        for line in self.lines.by_ref().take(most) {
            records.push(serde_json::from_value(line?)?);
        }
        self.header.records = self.header.records.wrapping_sub(records.len() as u64);
        if records.is_empty() && self.header.records != 0 {
            return Err(io::Error::other("records are missing"));
        }
        Ok(records)
    }
}
