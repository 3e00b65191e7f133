//! A line of the audit log: one change to one Redis key.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::domain::change::provenance::Provenance;
use crate::domain::record::KeyIdentity;

/// What an entry says was done where no reply told what became of a change.
pub(crate) const OUTCOME_UNKNOWN: &str = "outcome-unknown";

/// What an entry says was done where a step of several calls ended between two of them.
pub(crate) const PARTIAL: &str = "partial";

/// What an entry says of a Redis key that stayed although the rest of its record was changed.
pub(crate) const LEFT_ALONE: &str = "left-alone";

/// The length of an operation's name: 64 bits in hex digits. The names of idemctl 0.2 were shorter.
const OP_LENGTH: usize = 16;

/// One change: who, where, when, what and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry<'a> {
    /// RFC 3339 in UTC.
    pub at: Cow<'a, str>,
    /// The operator's user name.
    pub who: Cow<'a, str>,
    pub host: Cow<'a, str>,
    pub server: Cow<'a, str>,
    pub command: Cow<'a, str>,
    pub schema: Cow<'a, str>,
    /// The idempotency key; bytes that are not UTF-8 escaped.
    pub key: String,
    /// The Redis key that changed; bytes that are not UTF-8 escaped.
    pub redis_key: String,
    pub what: Cow<'a, str>,
    pub reason: Option<Cow<'a, str>>,
    pub backup: Option<Cow<'a, str>>,
    /// The operation: one run of a command.
    pub op: Cow<'a, str>,
    /// Who called sudo, where the user is another one by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sudo_user: Option<Cow<'a, str>>,
    /// The operation that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<Cow<'a, str>>,
    /// The bytes of the idempotency key, where the text does not hold them as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis_key_base64: Option<String>,
    /// What stood at the Redis key before, where the change left something there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<KeyIdentity>,
    /// What the change left at the Redis key; `None` where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<KeyIdentity>,
    /// Where it was changed: on the first line of an operation, and where that changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Provenance>,
}

/// The bytes that a text and, where the text does not hold them, its Base64 tell.
fn bytes(base64: Option<&str>, text: &str) -> Vec<u8> {
    base64
        .and_then(|base64| STANDARD.decode(base64).ok())
        .unwrap_or_else(|| text.as_bytes().to_vec())
}

impl AuditEntry<'_> {
    /// The bytes of the Redis key.
    pub(crate) fn redis_key_bytes(&self) -> Vec<u8> {
        bytes(self.redis_key_base64.as_deref(), &self.redis_key)
    }

    /// The bytes of the idempotency key.
    pub(crate) fn key_bytes(&self) -> Vec<u8> {
        bytes(self.key_base64.as_deref(), &self.key)
    }

    /// True when nobody knows what became of the change.
    pub(crate) fn is_unknown(&self) -> bool {
        self.what == OUTCOME_UNKNOWN
    }

    /// True if idemctl 0.2 wrote the line. Its operations have no line that says how they began and ended.
    pub(crate) fn is_of_older_version(&self) -> bool {
        self.op.len() < OP_LENGTH
    }
}
