//! Parses a line of a backup. It distinguishes lines that idemctl did not write from lines that
//! were damaged later.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::entry::{Beside, BesideFields, FORMAT, Maker, Saved};
use super::integrity::{self, Count, LineFault};
use crate::domain::change::provenance::Provenance;
use crate::domain::record::RecordName;
use crate::domain::schema::Role;

/// The beginning of every line that idemctl writes.
pub(super) const BEGINNING: &[u8] = b"{\"format\":";

/// A record that a backup holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its name. A backup of idemctl 0.3.0 or earlier does not hold the prefix.
    pub name: RecordName,
    pub state: String,
    /// Its Redis keys that changed, at least one.
    pub keys: Vec<HeldKey>,
    /// The record's other Redis keys.
    pub beside: Vec<Beside>,
    /// Where it was backed up; `None` if no line states it.
    pub from: Option<Arc<Provenance>>,
}

impl Held {
    /// True if it restores this Redis key.
    pub fn has(&self, redis_key: &[u8]) -> bool {
        self.keys.iter().any(|key| key.saved.redis_key == redis_key)
    }
}

/// A Redis key in a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldKey {
    /// Its role; `None` for the only Redis key of a record.
    pub role: Option<Role>,
    pub saved: Saved,
}

#[derive(Debug)]
pub(super) enum BackupLine {
    Held(Box<Held>),
    Void(Vec<Vec<u8>>),
    From(Box<(Provenance, Option<Maker>)>),
    End(Count),
}

#[derive(Deserialize)]
struct Fields {
    format: Option<u64>,
    #[serde(default)]
    keys: Vec<KeyFields>,
    schema: Option<String>,
    prefix: Option<String>,
    key: Option<String>,
    key_base64: Option<String>,
    state: Option<String>,
    void: Option<Vec<String>>,
    #[serde(default)]
    beside: Vec<BesideFields>,
    from: Option<Provenance>,
    by: Option<Maker>,
    end: Option<Count>,
}

/// The fields that a line of every format has.
#[derive(Deserialize)]
struct FormatFields {
    format: Option<u64>,
    crc64: Option<IgnoredAny>,
}

/// The fields of a Redis key.
#[derive(Deserialize)]
struct KeyFields {
    redis_key_base64: Option<String>,
    dump_base64: Option<String>,
    ttl_ms: Option<u64>,
    expires_at_ms: Option<u64>,
    role: Option<String>,
}

/// Parses a line without its line feed.
///
/// # Errors
/// Why the line cannot be used.
pub(super) fn parse(bytes: &[u8]) -> Result<BackupLine, LineFault> {
    let fields: Fields = match serde_json::from_slice(bytes) {
        Ok(fields) => fields,
        // The fields of another format may have other types, so the format is checked first.
        Err(error) => {
            return Err(match other_version(bytes) {
                Some(fault) => fault,
                None => unreadable(bytes, &error),
            });
        }
    };
    if fields.format.is_none() {
        return Err(LineFault::Foreign);
    }
    if fields.format != Some(FORMAT)
        && let Some(fault) = other_version(bytes)
    {
        return Err(fault);
    }
    if !integrity::is_sealed(bytes) {
        return Err(LineFault::Damaged("the line is damaged: its checksum is wrong".to_owned()));
    }
    if let Some(from) = fields.from {
        return Ok(BackupLine::From(Box::new((from, fields.by))));
    }
    if let Some(end) = fields.end {
        return Ok(BackupLine::End(end));
    }
    if let Some(void) = &fields.void {
        let mut redis_keys = Vec::with_capacity(void.len());
        for text in void {
            redis_keys.push(decode("void", text)?);
        }
        return Ok(BackupLine::Void(redis_keys));
    }
    Ok(BackupLine::Held(Box::new(held(fields)?)))
}

/// True if these bytes are the beginning of a line, however short.
pub(super) fn is_beginning(bytes: &[u8]) -> bool {
    let length = bytes.len().min(BEGINNING.len());
    bytes[..length] == BEGINNING[..length]
}

fn unreadable(bytes: &[u8], error: &serde_json::Error) -> LineFault {
    match error.classify() {
        _ if !is_beginning(bytes) => LineFault::Foreign,
        serde_json::error::Category::Eof => LineFault::Cut,
        _ => LineFault::Damaged(format!("the line is damaged, at column {}", error.column())),
    }
}

/// The fault of a line in the format of another version.
///
/// The checksum distinguishes a damaged format number from another format. A line without `crc64`
/// counts as another format, because a newer one may have another kind of checksum.
fn other_version(bytes: &[u8]) -> Option<LineFault> {
    let fields: FormatFields = serde_json::from_slice(bytes).ok()?;
    let format = fields.format?;
    if format == FORMAT {
        return None;
    }
    if fields.crc64.is_some() && !integrity::is_sealed(bytes) {
        return None;
    }
    Some(LineFault::OtherVersion(if format < FORMAT {
        format!("this backup has format {format}, of idemctl 0.2; restore it with idemctl 0.2")
    } else {
        format!(
            "this idemctl reads backups of format {FORMAT}, and a newer one wrote format {format}"
        )
    }))
}

fn missing(name: &str) -> LineFault {
    LineFault::Damaged(format!("the line is damaged: `{name}` is missing"))
}

fn held(fields: Fields) -> Result<Held, LineFault> {
    let mut others = Vec::with_capacity(fields.beside.len());
    for other in fields.beside {
        others.push(beside(other)?);
    }
    let mut keys = Vec::with_capacity(fields.keys.len());
    for key in fields.keys {
        keys.push(held_key(key)?);
    }
    if keys.is_empty() {
        return Err(missing("keys"));
    }
    let key = match (fields.key_base64, fields.key) {
        // In this case, `key` is only an approximation, because the bytes are not UTF-8.
        (Some(key), _) => decode("key_base64", &key)?,
        (None, Some(key)) => key.into_bytes(),
        (None, None) => return Err(missing("key")),
    };
    let schema = fields.schema.unwrap_or_default();
    Ok(Held {
        name: RecordName { db: None, schema, prefix: fields.prefix, key },
        state: fields.state.unwrap_or_default(),
        keys,
        beside: others,
        from: None,
    })
}

fn held_key(fields: KeyFields) -> Result<HeldKey, LineFault> {
    let Some(redis_key) = fields.redis_key_base64 else {
        return Err(missing("redis_key_base64"));
    };
    let Some(dump) = fields.dump_base64 else { return Err(missing("dump_base64")) };
    let dump = decode("dump_base64", &dump)?;
    if !integrity::holds(&dump) {
        let why = "the line is damaged: the checksum in `dump_base64` is wrong";
        return Err(LineFault::Damaged(why.to_owned()));
    }
    if fields.ttl_ms.is_some() != fields.expires_at_ms.is_some() {
        return Err(missing("expires_at_ms"));
    }
    let redis_key = decode("redis_key_base64", &redis_key)?;
    let saved =
        Saved { redis_key, dump, ttl_ms: fields.ttl_ms, expires_at_ms: fields.expires_at_ms };
    let role = match &fields.role {
        Some(name) => Some(role(name)?),
        None => None,
    };
    Ok(HeldKey { role, saved })
}

fn role(name: &str) -> Result<Role, LineFault> {
    for role in [Role::Lock, Role::Result, Role::Record] {
        if role.as_str() == name {
            return Ok(role);
        }
    }
    // The line has the right checksum, so a newer idemctl wrote this name.
    Err(LineFault::OtherVersion(format!("`{name}` is a role that this idemctl does not know")))
}

fn beside(fields: BesideFields) -> Result<Beside, LineFault> {
    Ok(Beside {
        role: role(&fields.role)?,
        redis_key: decode("beside", &fields.redis_key_base64)?,
        there: fields.there,
    })
}

fn decode(name: &str, text: &str) -> Result<Vec<u8>, LineFault> {
    STANDARD.decode(text).map_err(|error| {
        LineFault::Damaged(format!("the line is damaged: `{name}` is not base64: {error}"))
    })
}
