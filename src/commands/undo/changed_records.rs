//! What an operation changed, record by record, according to its details.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;

use crate::domain::history::{AuditEntry, LEFT_ALONE, RECONCILE};
use crate::domain::record::{KeyIdentity, Only, RecordName};
use crate::store::audit::log::{AuditLines, details};

/// The changes to one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChangedRecord {
    pub(super) name: RecordName,
    pub(super) changes: Vec<KeyChange>,
    /// True if `reconcile` made the changes, whose results are not removed later.
    pub(super) is_of_reconcile: bool,
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
    /// of the backup undoes it. Also true if it changed none of them.
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
        self.changes.iter().any(|change| only.holds(&self.name, &change.redis_key))
    }

    /// Adds the record to those that `--only` can name.
    pub(super) fn note_in(&self, only: &mut Only) {
        for change in &self.changes {
            only.note(&self.name, &change.redis_key);
        }
    }

    /// Adds a later change of the same operation to the same record.
    fn follow(&mut self, later: Self) {
        for change in later.changes {
            self.changes.retain(|known| known.redis_key != change.redis_key);
            self.changes.push(change);
        }
    }

    /// True if the next line of the log is about another Redis key of this record.
    fn takes(&self, other: &Self) -> bool {
        if self.name != other.name {
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

impl KeyChange {
    /// True if the Redis key existed neither before nor after.
    fn is_none(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => before.is_absent() && after.is_absent(),
            _ => false,
        }
    }
}

/// The records of one operation, in the order of the log.
pub(super) struct ChangedRecords {
    pub(super) details: AuditLines,
    /// The record of the line that was read last.
    open: Option<ChangedRecord>,
    /// The records of an operation that changes a record several times, oldest first. `None` until
    /// such an operation was found.
    gathered: Option<VecDeque<ChangedRecord>>,
}

impl ChangedRecords {
    /// # Errors
    /// When the details cannot be read.
    pub(super) fn open(folder: &Path, op: &str) -> io::Result<Self> {
        let Some(details) = details(folder, op)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        Ok(Self { details, open: None, gathered: None })
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// When the log cannot be read on.
    pub(super) fn next(&mut self) -> io::Result<Option<ChangedRecord>> {
        if let Some(gathered) = &mut self.gathered {
            return Ok(gathered.pop_front());
        }
        while let Some(entry) = self.next_entry()? {
            if entry.command == RECONCILE {
                return self.gather(entry);
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

    /// The next line of the operation.
    fn next_entry(&mut self) -> io::Result<Option<AuditEntry<'static>>> {
        while let Some(entry) = self.details.next::<AuditEntry<'static>>()? {
            // A record that was left alone has nothing to undo.
            if entry.what != LEFT_ALONE {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Reads the operation to its end, because it changes a record several times: it extends the
    /// lock first, and stores the result later. Such an operation has few records. Returns the
    /// first of them.
    ///
    /// An undo takes back what happened to the values. The time that locks got stays: they end by
    /// themselves, and without it a retry would execute an operation that may be done.
    fn gather(&mut self, first: AuditEntry<'static>) -> io::Result<Option<ChangedRecord>> {
        let mut records: Vec<ChangedRecord> = Vec::new();
        let mut indexes: HashMap<RecordName, usize> = HashMap::new();
        let mut next = Some(first);
        while let Some(entry) = next {
            next = self.next_entry()?;
            if entry.changes_only_expiry() {
                continue;
            }
            let record = changed_record(entry);
            match indexes.get(&record.name) {
                Some(index) => records[*index].follow(record),
                None => {
                    indexes.insert(record.name.clone(), records.len());
                    records.push(record);
                }
            }
        }
        let mut gathered = VecDeque::from(records);
        let first = gathered.pop_front();
        self.gathered = Some(gathered);
        Ok(first)
    }
}

fn changed_record(entry: AuditEntry<'static>) -> ChangedRecord {
    let name = entry.name();
    let is_of_reconcile = entry.command == RECONCILE;
    let change = KeyChange {
        redis_key: entry.redis_key_bytes(),
        before: entry.before,
        after: entry.after,
        backup: entry.backup.map(Into::into),
    };
    // A step may only change Redis keys outside the record, so that nothing can be reverted here.
    let changes = if change.is_none() { Vec::new() } else { vec![change] };
    ChangedRecord { name, changes, is_of_reconcile }
}
