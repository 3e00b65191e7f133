//! What an operator expects to find before a change: an owner, or the hash of the bytes.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::domain::observation::Content;
use crate::domain::record::Record;

/// What `--expect` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// The lock is this owner's.
    Owner(Vec<u8>),
    /// The lock's value has this SHA-256, in lower-case hex.
    Sha256(String),
}

impl Expectation {
    /// Parses `sha256:<64 hex digits>`; anything else is an owner.
    ///
    /// # Errors
    /// When the hash is not 64 hex digits.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(hex) = text.strip_prefix("sha256:") else { return Ok(Self::Owner(text.as_bytes().to_vec())) };
        let hex = hex.to_ascii_lowercase();
        if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("sha256: is followed by 64 hex digits".to_owned());
        }
        Ok(Self::Sha256(hex))
    }

    /// True when the record's lock is as expected.
    pub fn holds(&self, record: &Record) -> bool {
        match self {
            Self::Owner(owner) => record.owner() == Some(owner),
            Self::Sha256(hex) => lock_hash(record).as_deref() == Some(hex),
        }
    }
}

/// The SHA-256 of the lock's value in lower-case hex; `None` without a lock, or when the value was not read whole.
pub fn lock_hash(record: &Record) -> Option<String> {
    match &record.lock()?.content {
        Content::Text { head, length } if head.len() as u64 == *length => Some(sha256_hex(head)),
        _ => None,
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
