//! What an undo does to records that an operation changed. They get their values before the
//! operation if they have not changed since.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use super::changed_records::{ChangedRecord, KeyChange};
use crate::change::restore::{Ending, RestoredKey, is_of_operation};
use crate::domain::record::{
    Content, Deadline, KeyIdentity, KeyState, Observation, RecordName, TimeLeft, locate,
};
use crate::domain::schema::{Catalog, Role, Schema};
use crate::exit::CommandError;
use crate::store::backup::{BackupError, BackupReader, RecordLabel, Saved};
use crate::store::{Client, PriorValue, StoreError};

/// What an undo does to a record.
pub(super) enum UndoPlan {
    /// Each of the Redis keys that the operation changed gets this value again, and the record this
    /// state, if a backup contains it or the schema is known.
    Revert(Vec<PriorValue>, Option<String>),
    /// The record is left alone.
    Leave(Ending),
}

/// A record as it is now, and what the undo does to it.
pub(super) struct PlannedRecord {
    pub(super) label: RecordLabel,
    /// The whole record, if its schema is known.
    pub(super) record: Observation,
    /// The Redis keys that the operation changed.
    pub(super) changed: Observation,
    pub(super) plan: UndoPlan,
    /// Why the record could not be read or changed.
    pub(super) error: Option<StoreError>,
}

/// Reads these records, each under its own schema if that is known, and plans what to do with them.
///
/// # Errors
/// The server could not be asked, or a backup cannot be read.
pub(super) async fn plan(
    client: &Client,
    catalog: &Catalog,
    op: &str,
    records: &[ChangedRecord],
) -> Result<Vec<PlannedRecord>> {
    let mut redis_keys = Vec::with_capacity(records.len());
    let mut schemas = Vec::with_capacity(records.len());
    for record in records {
        let (schema, keys) = keys_to_read(record, catalog);
        schemas.push(schema);
        redis_keys.push(keys);
    }
    // The server computes a checksum from the whole value, so it is asked only if the log has one.
    let mut after =
        records.iter().flat_map(|record| &record.changes).flat_map(|change| &change.after);
    let needs_checksums = after.any(KeyIdentity::needs_checksum);
    let seen = client.look_whole(&redis_keys, needs_checksums).await?;
    let is_nothing_read = seen.iter().all(Result::is_err);
    let reader = client.reader();
    let mut observed = Vec::with_capacity(records.len());
    for (seen, keys) in seen.into_iter().zip(&redis_keys) {
        match seen {
            Ok(seen) => observed.push((seen, None)),
            Err(error) => {
                // If the Redis user may read none of the records, the error is about the Redis
                // user's rights.
                let is_forbidden =
                    matches!(error, StoreError::Permission { .. }) && !is_nothing_read;
                let is_of_record =
                    is_forbidden || error.is_of_the_slot() || reader.can_read_others_after(&error);
                if !is_of_record {
                    return Err(error.into());
                }
                // One unreadable record does not keep the others from being undone.
                observed.push((unread(keys), Some(error)));
            }
        }
    }
    let saved = SavedValues::read(op, records, &observed)?;
    let mut planned = Vec::with_capacity(records.len());
    for ((changed, schema), (seen, error)) in records.iter().zip(&schemas).zip(observed) {
        let mut record = PlannedRecord::new(changed, schema.as_ref(), seen, &saved);
        if let Some(error) = error {
            let ending = if error.is_of_the_slot() { Ending::Moving } else { Ending::Unread };
            record.plan = UndoPlan::Leave(ending);
            record.error = Some(error);
        }
        planned.push(record);
    }
    Ok(planned)
}

/// An observation of Redis keys that could not be read.
fn unread(redis_keys: &[Vec<u8>]) -> Observation {
    let mut keys = Vec::with_capacity(redis_keys.len());
    for redis_key in redis_keys {
        keys.push(KeyState::new(redis_key, Content::Absent, TimeLeft::NoExpiry, Deadline::Unknown));
    }
    Observation { server_ms: None, atomic: false, keys }
}

/// The schema of a record and all of its Redis keys. If no schema has these keys, only those that
/// were changed.
fn keys_to_read(record: &ChangedRecord, catalog: &Catalog) -> (Option<Arc<Schema>>, Vec<Vec<u8>>) {
    let changed: Vec<_> = record.changes.iter().map(|change| change.redis_key.clone()).collect();
    for schema in catalog.all() {
        if schema.name == record.name.schema {
            // The prefix of the deployment may have changed since the operation.
            let whole = schema.redis_keys(&record.name.key);
            if changed.iter().all(|key| whole.contains(key)) {
                return (Some(Arc::clone(schema)), whole);
            }
            break;
        }
    }
    (None, changed)
}

impl PlannedRecord {
    fn new(
        changed: &ChangedRecord,
        schema: Option<&Arc<Schema>>,
        record: Observation,
        saved: &SavedValues,
    ) -> Self {
        // Only the Redis keys that the operation changed are compared and reverted.
        let mut now = record.clone();
        now.keys
            .retain(|key| changed.changes.iter().any(|change| change.redis_key == key.redis_key));
        let state = match schema {
            Some(schema) => {
                locate::undiagnosed_record(schema, &changed.name.key, record.clone()).state.as_str()
            }
            None => "",
        };
        let label = RecordLabel {
            name: changed.name.clone(),
            state,
            roles: match schema {
                Some(schema) => schema.roles(),
                // Without its schema, a record of two Redis keys counts as a lock and a result.
                None if record.keys.len() == 2 => vec![Role::Lock, Role::Result],
                None => Vec::new(),
            },
        };
        let mut plan = plan_record(changed, &now, saved);
        if let (Some(schema), UndoPlan::Revert(prior, becomes @ None)) = (schema, &mut plan) {
            *becomes = Some(state_without(schema, &changed.name.key, &record, &now, prior));
        }
        Self { label, record, changed: now, plan, error: None }
    }

    /// The row of one of the changed Redis keys, and how its change ends if it is made.
    pub(super) fn row(&self, index: usize) -> (RestoredKey<'_>, Ending) {
        let (ending, left) = match &self.plan {
            UndoPlan::Leave(ending) => (*ending, None),
            UndoPlan::Revert(prior, _) => match &prior[index] {
                PriorValue::Nothing => (Ending::Removed, None),
                prior => (Ending::Restored, Some(self.left(prior))),
            },
        };
        let RecordLabel { name: RecordName { schema, key, .. }, state, .. } = &self.label;
        let becomes = match &self.plan {
            UndoPlan::Revert(_, Some(becomes)) if becomes != state => Some(becomes.as_str()),
            _ => None,
        };
        let redis_key = &self.changed.keys[index].redis_key;
        (RestoredKey { outcome: "", redis_key, schema, key, state, becomes, left }, ending)
    }

    /// The remaining TTL of a value that is restored.
    fn left(&self, prior: &PriorValue) -> TimeLeft {
        match prior.expires_at_ms() {
            Some(at) => {
                TimeLeft::Millis(at.saturating_sub(self.changed.server_ms.unwrap_or_default()))
            }
            None => TimeLeft::NoExpiry,
        }
    }
}

/// The state of a record once the Redis keys are removed that had no value before. No value that
/// it had before comes from a backup.
fn state_without(
    schema: &Arc<Schema>,
    key: &[u8],
    record: &Observation,
    changed: &Observation,
    prior: &[PriorValue],
) -> String {
    let mut after = record.clone();
    for (removed, prior) in changed.keys.iter().zip(prior) {
        for state in &mut after.keys {
            if matches!(prior, PriorValue::Nothing) && state.redis_key == removed.redis_key {
                state.content = Content::Absent;
            }
        }
    }
    locate::undiagnosed_record(schema, key, after).state.as_str().to_owned()
}

/// Plans to revert a record only if all of its Redis keys are still as the operation left them.
fn plan_record(changed: &ChangedRecord, now: &Observation, saved: &SavedValues) -> UndoPlan {
    let mut prior = Vec::with_capacity(now.keys.len());
    let mut becomes = None;
    for key in &now.keys {
        let Some(change) = changed.changes.iter().find(|change| change.redis_key == key.redis_key)
        else {
            continue;
        };
        let Some(after) = &change.after else { return UndoPlan::Leave(Ending::Untold) };
        if !after.is_still(key) {
            return UndoPlan::Leave(Ending::Changed);
        }
        if changed.is_of_reconcile && change.has_ended(now.server_ms) {
            return UndoPlan::Leave(Ending::Expired);
        }
        let value = match prior_source(change, after, now.server_ms) {
            PriorSource::Known(value) => Some(value),
            PriorSource::Backup(file) => match saved.get(file, &change.redis_key) {
                Some((saved, state)) => {
                    becomes = Some(state.clone());
                    Some(PriorValue::Dump(saved.dump.clone(), saved.expires_at_ms))
                }
                None => None,
            },
            PriorSource::Unknown => None,
        };
        let Some(value) = value else { return UndoPlan::Leave(Ending::Untold) };
        prior.push(value);
    }
    UndoPlan::Revert(prior, becomes)
}

impl KeyChange {
    /// True if the value before would have expired by now. To remove the result of a reconciled
    /// lock would let the operation run again, of which the provider said that it is done.
    fn has_ended(&self, now_ms: Option<u64>) -> bool {
        match (self.before.as_ref().and_then(KeyIdentity::expires_at_ms), now_ms) {
            (Some(at), Some(now)) => at <= now,
            _ => false,
        }
    }
}

/// The source of the value that a Redis key had before.
enum PriorSource<'a> {
    Known(PriorValue),
    /// The backup in this file.
    Backup(&'a str),
    Unknown,
}

/// The source of the value that a Redis key had before. A value that would have expired since is
/// not restored.
fn prior_source<'a>(
    change: &'a KeyChange,
    after: &KeyIdentity,
    now_ms: Option<u64>,
) -> PriorSource<'a> {
    let Some(before) = &change.before else { return PriorSource::Unknown };
    if before.is_absent() || change.has_ended(now_ms) {
        return PriorSource::Known(PriorValue::Nothing);
    }
    // Only the expiry changed, as after `extend`, so no backup is needed.
    if before.has_same_value(after) {
        return PriorSource::Known(PriorValue::Until(before.expires_at_ms()));
    }
    match &change.backup {
        Some(file) => PriorSource::Backup(file),
        None => PriorSource::Unknown,
    }
}

/// The values that changes replaced, each with the state of its record, by backup and Redis key.
struct SavedValues(HashMap<(String, Vec<u8>), (Saved, String)>);

impl SavedValues {
    /// Reads the values that only a backup has and that records get again. Each backup is read
    /// once, whatever the number of records, and none is read for records that are left alone.
    ///
    /// # Errors
    /// Usage: a backup cannot be read, or belongs to another operation.
    fn read(
        op: &str,
        records: &[ChangedRecord],
        observed: &[(Observation, Option<StoreError>)],
    ) -> Result<Self, CommandError> {
        let mut wanted: BTreeMap<&str, HashSet<&[u8]>> = BTreeMap::new();
        for (record, (now, _)) in records.iter().zip(observed) {
            for change in &record.changes {
                let key = now.keys.iter().find(|key| key.redis_key == change.redis_key);
                let (Some(key), Some(after)) = (key, &change.after) else { continue };
                if after.is_still(key)
                    && let PriorSource::Backup(file) = prior_source(change, after, now.server_ms)
                {
                    wanted.entry(file).or_default().insert(&change.redis_key);
                }
            }
        }
        let mut saved = HashMap::new();
        for (file, redis_keys) in wanted {
            let mut reader =
                BackupReader::open(Path::new(file), |_| {}).map_err(unreadable_backup)?;
            is_of_operation(Path::new(file), &reader, op)?;
            while let Some(held) = reader.next_held().map_err(unreadable_backup)? {
                for key in held.keys {
                    // If a Redis key has several entries, the last one counts.
                    if redis_keys.contains(key.saved.redis_key.as_slice()) {
                        let at = (file.to_owned(), key.saved.redis_key.clone());
                        saved.insert(at, (key.saved, held.state.clone()));
                    }
                }
            }
        }
        Ok(Self(saved))
    }

    fn get(&self, file: &str, redis_key: &[u8]) -> Option<&(Saved, String)> {
        self.0.get(&(file.to_owned(), redis_key.to_vec()))
    }
}

fn unreadable_backup(error: BackupError) -> CommandError {
    CommandError::usage(error.to_string()).hint("nothing was changed")
}
