//! What an operation did, record by record, as the audit log tells of it.

use std::io;
use std::path::Path;

use crate::domain::change::provenance::Provenance;
use crate::domain::history::{AuditEntry, LEFT_ALONE};
use crate::domain::record::{KeyIdentity, Only};
use crate::store::audit::log::Log;

/// What was changed of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChangedRecord {
    pub(super) schema: String,
    pub(super) key: Vec<u8>,
    pub(super) changes: Vec<KeyChange>,
}

/// What was changed of one Redis key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyChange {
    pub(super) redis_key: Vec<u8>,
    pub(super) before: Option<KeyIdentity>,
    /// `None` where nobody knows what the change left.
    pub(super) after: Option<KeyIdentity>,
    pub(super) backup: Option<String>,
}

impl ChangedRecord {
    /// True when the operation left nothing of what it changed, and backed all of it up: what the backup holds can come back.
    pub(super) fn is_removal(&self) -> bool {
        let is_removed =
            |change: &KeyChange| change.after.as_ref().is_some_and(KeyIdentity::is_absent);
        self.changes.iter().all(|change| is_removed(change) && change.backup.is_some())
    }

    /// True when the record is one of those that are to be taken back.
    pub(super) fn is_of(&self, only: &Only) -> bool {
        self.changes.iter().any(|change| only.holds(&self.schema, &self.key, &change.redis_key))
    }

    /// Adds the record to those that an `--only` may mean.
    pub(super) fn note_in(&self, only: &mut Only) {
        for change in &self.changes {
            only.note(&self.schema, &self.key, &change.redis_key);
        }
    }

    fn takes(&self, other: &Self) -> bool {
        let is_known =
            |change: &KeyChange| other.changes.iter().any(|new| new.redis_key == change.redis_key);
        self.schema == other.schema && self.key == other.key && !self.changes.iter().any(is_known)
    }
}

/// The records of one operation, in the order of the log.
pub(super) struct ChangedRecords {
    log: Log,
    op: String,
    /// The record of the line that was read last.
    open: Option<ChangedRecord>,
    /// Where the operation changed something, each place once.
    pub(super) places: Vec<Provenance>,
}

impl ChangedRecords {
    /// # Errors
    /// When the log cannot be read.
    pub(super) fn open(path: &Path, op: &str) -> io::Result<Self> {
        let log = Log::open(path)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Self { log, op: op.to_owned(), open: None, places: Vec::new() })
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// When the log cannot be read on.
    pub(super) fn next(&mut self) -> io::Result<Option<ChangedRecord>> {
        while let Some(entry) = self.log.next_entry()? {
            // What was left alone is not undone.
            if entry.op != self.op || entry.what == LEFT_ALONE {
                continue;
            }
            if let Some(place) = entry.from.clone().filter(|place| !self.places.contains(place)) {
                self.places.push(place);
            }
            let record = changed_record(entry);
            match &mut self.open {
                Some(open) if open.takes(&record) => open.changes.extend(record.changes),
                open => {
                    if let Some(whole) = open.replace(record) {
                        return Ok(Some(whole));
                    }
                }
            }
        }
        Ok(self.open.take())
    }
}

fn changed_record(entry: AuditEntry<'static>) -> ChangedRecord {
    let key = entry.key_bytes();
    let change = KeyChange {
        redis_key: entry.redis_key_bytes(),
        before: entry.before,
        after: entry.after,
        backup: entry.backup.map(Into::into),
    };
    ChangedRecord { schema: entry.schema.into(), key, changes: vec![change] }
}
