//! What an operation changed, record by record, according to the audit log.

use std::io;
use std::path::Path;

use crate::domain::change::provenance::Provenance;
use crate::domain::history::{AuditEntry, LEFT_ALONE};
use crate::domain::record::{KeyIdentity, Only};
use crate::store::audit::log::Log;

/// The changes to one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChangedRecord {
    pub(super) schema: String,
    pub(super) key: Vec<u8>,
    pub(super) changes: Vec<KeyChange>,
}

/// The change to one Redis key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyChange {
    pub(super) redis_key: Vec<u8>,
    pub(super) before: Option<KeyIdentity>,
    /// `None` if the state after the change is unknown.
    pub(super) after: Option<KeyIdentity>,
    pub(super) backup: Option<String>,
}

impl ChangedRecord {
    /// True if the operation removed all of these Redis keys and backed them up, so that a restore
    /// of the backup undoes it.
    pub(super) fn is_removal(&self) -> bool {
        for change in &self.changes {
            let Some(after) = &change.after else { return false };
            if !after.is_absent() || change.backup.is_none() {
                return false;
            }
        }
        true
    }

    /// True if the record is to be undone.
    pub(super) fn is_of(&self, only: &Only) -> bool {
        self.changes.iter().any(|change| only.holds(&self.schema, &self.key, &change.redis_key))
    }

    /// Adds the record to those that `--only` can name.
    pub(super) fn note_in(&self, only: &mut Only) {
        for change in &self.changes {
            only.note(&self.schema, &self.key, &change.redis_key);
        }
    }

    /// True if the next line of the log is about another Redis key of this record.
    fn takes(&self, other: &Self) -> bool {
        if self.schema != other.schema || self.key != other.key {
            return false;
        }
        // A second line about the same Redis key is a change of its own.
        for change in &self.changes {
            if other.changes.iter().any(|new| new.redis_key == change.redis_key) {
                return false;
            }
        }
        true
    }
}

/// The records of one operation, in the order of the log.
pub(super) struct ChangedRecords {
    log: Log,
    op: String,
    /// The record of the line that was read last.
    open: Option<ChangedRecord>,
    /// The servers on which the operation changed something, each once.
    pub(super) places: Vec<Provenance>,
}

impl ChangedRecords {
    /// # Errors
    /// When the log cannot be read.
    pub(super) fn open(path: &Path, op: &str) -> io::Result<Self> {
        let Some(log) = Log::open(path)? else { return Err(io::ErrorKind::NotFound.into()) };
        Ok(Self { log, op: op.to_owned(), open: None, places: Vec::new() })
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// When the log cannot be read on.
    pub(super) fn next(&mut self) -> io::Result<Option<ChangedRecord>> {
        while let Some(entry) = self.log.next_entry()? {
            // A record that was left alone has nothing to undo.
            if entry.op != self.op || entry.what == LEFT_ALONE {
                continue;
            }
            if let Some(place) = &entry.from
                && !self.places.contains(place)
            {
                self.places.push(place.clone());
            }
            // The lines of one record follow each other in the log, so one open record is enough.
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
