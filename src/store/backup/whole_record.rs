//! The backup of a whole record, before a step of the service changes it.

use super::entry::{BackupEntry, RecordLabel, Saved};
use super::writer::Backup;
use crate::domain::record::Observation;
use crate::store::change::Writer;
use crate::store::error::StoreError;

impl Writer {
    /// Backs up every existing Redis key of a record. Returns one of the keys in the entry;
    /// `None` if no entry was written, because the record was deleted meanwhile.
    ///
    /// # Errors
    /// The Redis keys cannot be read, or the backup cannot be written.
    pub async fn back_up_record(
        &self,
        seen: &Observation,
        label: &RecordLabel,
        backup: &mut Backup,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut key_indexes = Vec::with_capacity(seen.keys.len());
        let mut redis_keys = Vec::with_capacity(seen.keys.len());
        for (key_index, key) in seen.keys.iter().enumerate() {
            if !key.content.is_absent() {
                key_indexes.push(key_index);
                redis_keys.push(key.redis_key.as_slice());
            }
        }
        let dumps = self.client().dumps(&redis_keys).await?;
        let mut saved = Vec::with_capacity(key_indexes.len());
        for (key_index, dump) in key_indexes.into_iter().zip(dumps) {
            if let Some(dump) = dump {
                saved.push((key_index, Saved::of(&seen.keys[key_index], dump)));
            }
        }
        let Some((_, first)) = saved.first() else { return Ok(None) };
        let redis_key = first.redis_key.clone();
        let from = self.provenance().await?;
        let saved = saved.iter().map(|(key_index, saved)| (*key_index, saved));
        let entry = BackupEntry::new(label, seen, saved);
        backup.append(&from, std::iter::once(entry)).await?;
        Ok(Some(redis_key))
    }
}
