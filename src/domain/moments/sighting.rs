//! A record as a list of one moment shows it.

use std::hash::{BuildHasher, Hash as _, Hasher as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::print::KeyPrint;
use crate::domain::record::Record;

/// What a line of `list -o jsonl` says that a comparison takes; what else the line has is passed over.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Sighting {
    pub(crate) schema: String,
    /// Escaped where `key_base64` has the bytes.
    pub(crate) key: String,
    pub(crate) key_base64: Option<String>,
    pub(crate) redis_keys: Vec<String>,
    pub(crate) state: String,
    pub(crate) owner: Option<String>,
    /// By Redis key; null for one that was not there. `None` where an older idemctl wrote the line.
    pub(crate) identity: Option<Vec<Option<KeyPrint>>>,
}

impl Sighting {
    /// A record that was read just now.
    pub(crate) fn of(record: &Record) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let is_text = std::str::from_utf8(&record.key).is_ok();
        Self {
            schema: record.schema.name.clone(),
            key: text(&record.key),
            key_base64: (!is_text).then(|| STANDARD.encode(&record.key)),
            redis_keys: record.seen.keys.iter().map(|key| text(&key.redis_key)).collect(),
            state: record.state.as_str().to_owned(),
            owner: record.owner().map(text),
            identity: Some(record.seen.keys.iter().map(KeyPrint::of).collect()),
        }
    }

    /// A number for the record, whatever its state: the same for the same record by the same hasher.
    pub(super) fn place(&self, by: &impl BuildHasher) -> u64 {
        let mut hasher = by.build_hasher();
        self.schema.hash(&mut hasher);
        match &self.key_base64 {
            Some(key) => (true, key, self.redis_keys.len()).hash(&mut hasher),
            None => (false, &self.key, &self.redis_keys).hash(&mut hasher),
        }
        hasher.finish()
    }
}
