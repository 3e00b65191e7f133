//! The print of a Redis key in a list: enough to tell at another moment whether it is the same one.

use crc::{CRC_64_XZ, Crc, Table};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::domain::record::{Content, Deadline, Hash, SeenKey};

/// Sixteen bytes at a time, for every record of a list goes through.
static CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

/// The bytes of a Redis key that were read, and the moment at which it expires. Good for telling what happened, and for no
/// change: a CRC keeps nobody from making another value with the same one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyPrint {
    /// The CRC-64/XZ of the bytes that were read, 16 hex digits; null for what is no string.
    #[serde(serialize_with = "in_hex", deserialize_with = "of_hex")]
    pub(crate) crc64: Option<u64>,
    /// How many bytes were read from the beginning.
    pub(crate) read: u64,
    /// True when those are all bytes of the value.
    pub(crate) whole: bool,
    /// Null without expiry.
    pub(crate) expires_at_ms: Option<u64>,
    /// How far from that the moment may be, where TIME and PTTL told it.
    #[serde(default, skip_serializing_if = "is_exact")]
    pub(crate) within_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_exact(within: &u64) -> bool {
    *within == 0
}

impl KeyPrint {
    /// `None` for a Redis key that is not there.
    pub(crate) fn of(key: &SeenKey) -> Option<Self> {
        let (crc64, read) = match &key.content {
            Content::Absent => return None,
            Content::Other(_) => (None, 0),
            Content::Text { head, .. } => (Some(CRC.checksum(head)), head.len() as u64),
            Content::Hash(hash) => (Some(of_fields(hash)), key.content.read_bytes() as u64),
        };
        let within_ms = match key.deadline {
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

/// Of names, lengths and what was read of values: fields stand in the order of their names.
fn of_fields(hash: &Hash) -> u64 {
    let mut digest = CRC.digest();
    for field in &hash.fields {
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
