//! The print of a Redis key in a list: enough to recognise the same value in another snapshot.

use crc::{CRC_64_XZ, Crc, Table};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::domain::record::{Content, Deadline, Hash, KeyState};

/// Processes sixteen bytes at a time, because every record of a list and every byte of a backup
/// passes through it. Its table has 32 KiB, so there is one for both.
pub(crate) static CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

/// A checksum of the bytes that were read of a Redis key, and its expiry. It serves comparisons
/// only, never a change: anyone can construct another value with the same CRC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyPrint {
    /// The CRC-64/XZ of the bytes that were read, as 16 hex digits; null for other types than
    /// strings and hashes.
    #[serde(serialize_with = "in_hex", deserialize_with = "of_hex")]
    pub(crate) crc64: Option<u64>,
    /// The number of bytes that were read from the beginning.
    pub(crate) read: u64,
    /// True if those are all bytes of the value.
    pub(crate) whole: bool,
    /// The expiry in milliseconds since the epoch; null if there is none.
    pub(crate) expires_at_ms: Option<u64>,
    /// The uncertainty of the expiry in milliseconds, if it was computed from TIME and PTTL.
    #[serde(default, skip_serializing_if = "is_exact")]
    pub(crate) within_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_exact(within: &u64) -> bool {
    *within == 0
}

impl KeyPrint {
    /// The print of a Redis key; `None` if the key does not exist.
    pub(crate) fn of(key: &KeyState) -> Option<Self> {
        let (crc64, read) = match &key.content {
            Content::Absent => return None,
            Content::Other(_) => (None, 0),
            Content::Text { head, .. } => (Some(CRC.checksum(head)), head.len() as u64),
            Content::Hash(hash) => (Some(of_fields(hash)), key.content.read_bytes() as u64),
        };
        let within_ms = match key.deadline {
            // `millis` is the middle of the interval. One more covers the rounding of the division.
            Deadline::Between(earliest, latest) => latest.saturating_sub(earliest) / 2 + 1,
            _ => 0,
        };
        Some(Self {
            crc64,
            read,
            whole: key.content.is_whole(),
            expires_at_ms: key.deadline.millis(),
            within_ms,
        })
    }
}

/// The CRC of the names, the lengths and the read bytes of fields. The fields are sorted by name,
/// because Redis returns them in no fixed order.
fn of_fields(hash: &Hash) -> u64 {
    let mut digest = CRC.digest();
    for field in &hash.fields {
        // Lengths separate the fields: without them, `a` + `bc` and `ab` + `c` would be equal.
        digest.update(&(field.name.len() as u64).to_le_bytes());
        digest.update(&field.name);
        digest.update(&field.length.to_le_bytes());
        digest.update(&field.head);
    }
    digest.finalize()
}

#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn in_hex<S: Serializer>(crc: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    match crc {
        Some(crc) => to.collect_str(&format_args!("{crc:016x}")),
        None => to.serialize_none(),
    }
}

fn of_hex<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text: Option<std::borrow::Cow<'de, str>> = Option::deserialize(from)?;
    text.map(|text| u64::from_str_radix(&text, 16).map_err(serde::de::Error::custom)).transpose()
}
