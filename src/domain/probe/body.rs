//! The body of an answer or of a record, of which only the beginning is kept.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::domain::hex::hex;

/// The most bytes that are kept. A run keeps all answers until the end.
const MOST: usize = 16 << 10;

/// The digits of a hash that are shown.
const SHOWN_DIGITS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ProbeBody {
    pub(crate) beginning: Vec<u8>,
    /// How many bytes there were.
    pub(crate) length: usize,
    hash: String,
    /// The hash of its JSON, in which the order of members does not count; `None` if it is not JSON.
    json_hash: Option<String>,
}

impl ProbeBody {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let json: Option<Value> = serde_json::from_slice(bytes).ok();
        let json_hash = json.map(|mut json| {
            json.sort_all_objects();
            hash(json.to_string().as_bytes())
        });
        let beginning = bytes[..bytes.len().min(MOST)].to_vec();
        Self { beginning, length: bytes.len(), hash: hash(bytes), json_hash }
    }

    /// True if all bytes are kept.
    pub(crate) fn is_kept(&self) -> bool {
        self.beginning.len() == self.length
    }

    pub(crate) fn has_same_bytes(&self, other: &Self) -> bool {
        self.hash == other.hash
    }

    /// True if the bodies are equal, as bytes or as JSON. Numbers keep their text, so 1.0 and 1
    /// differ here as they do in bytes.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_same_json = self.json_hash.is_some() && self.json_hash == other.json_hash;
        is_same_json || self.has_same_bytes(other)
    }

    /// The length and the beginning of the hash, e.g. `36 bytes, sha256 5feceb66`.
    pub(crate) fn in_words(&self) -> String {
        format!("{} bytes, sha256 {}", self.length, &self.hash[..SHOWN_DIGITS.min(self.hash.len())])
    }
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
