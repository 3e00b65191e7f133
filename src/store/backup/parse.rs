//! A line of a backup as it is read: told apart from what idemctl did not write, and from what was damaged since.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::beside::Beside;
use super::checksum;
use super::maker::Maker;
use super::saved::{FORMAT, Saved};
use crate::domain::change::provenance::Provenance;
use crate::domain::schema::Role;

/// How every line begins that idemctl wrote.
pub(super) const BEGINNING: &[u8] = b"{\"format\":";

/// What a line may hold that has no checksum: all that lines held before they had one. Any other field is one of a line
/// whose checksum was damaged.
const WITHOUT_CHECKSUM: [&str; 10] = [
    "format",
    "redis_key_base64",
    "dump_base64",
    "ttl_ms",
    "expires_at_ms",
    "schema",
    "key",
    "key_base64",
    "state",
    "void",
];

/// A Redis key that a backup holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub saved: Saved,
    pub schema: String,
    pub key: Vec<u8>,
    pub state: String,
    /// The record's other Redis key; `None` where the record has none, or an older idemctl wrote the line.
    pub beside: Option<Beside>,
    /// Where it was taken from; `None` where nothing says so.
    pub from: Option<Arc<Provenance>>,
}

#[derive(Debug)]
pub(super) enum Line {
    Held(Box<Held>),
    Void(Vec<Vec<u8>>),
    From(Box<(Provenance, Option<Maker>)>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// A newer idemctl wrote it.
    Newer(String),
    /// It holds no byte of anything: a line feed, spaces, or the NULs of a disk that was never written.
    Blank,
    Cut,
    /// It does not begin as a line of a backup.
    Foreign,
    /// It is not what was written.
    Damaged(String),
}

impl Fault {
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Newer(why) | Self::Damaged(why) => why,
            Self::Blank => "the line is empty",
            Self::Cut => "the line is cut short",
            Self::Foreign => "this is no line of an idemctl backup",
        }
    }
}

#[derive(Deserialize)]
struct Fields {
    format: Option<u64>,
    redis_key_base64: Option<String>,
    dump_base64: Option<String>,
    ttl_ms: Option<u64>,
    expires_at_ms: Option<u64>,
    schema: Option<String>,
    key: Option<String>,
    key_base64: Option<String>,
    state: Option<String>,
    void: Option<Vec<String>>,
    beside: Option<BesideFields>,
    from: Option<Provenance>,
    by: Option<Maker>,
}

#[derive(Deserialize)]
struct BesideFields {
    role: String,
    redis_key_base64: String,
    there: bool,
}

/// Reads a line, without its line feed; `is_sealed` says whether it has its checksum, and `must_be` whether the backup is
/// one in which every line has.
pub(super) fn parse(bytes: &[u8], is_sealed: bool, must_be: bool) -> Result<Line, Fault> {
    let fields: Fields = serde_json::from_slice(bytes).map_err(|error| unreadable(bytes, &error))?;
    let format = fields.format.ok_or(Fault::Foreign)?;
    if !is_sealed {
        may_be_without_checksum(bytes, format, must_be)?;
    }
    if format != FORMAT {
        let why = format!("format {format} is not one this idemctl reads ({FORMAT}): a newer one wrote it");
        return Err(Fault::Newer(why));
    }
    if let Some(from) = fields.from {
        return Ok(Line::From(Box::new((from, fields.by))));
    }
    match &fields.void {
        Some(void) => void.iter().map(|text| decode("void", text)).collect::<Result<_, _>>().map(Line::Void),
        None => held(fields).map(|held| Line::Held(Box::new(held))),
    }
}

/// True when these are the first bytes of a line, or all that is left of one.
pub(super) fn is_beginning(bytes: &[u8]) -> bool {
    let length = bytes.len().min(BEGINNING.len());
    bytes[..length] == BEGINNING[..length]
}

fn unreadable(bytes: &[u8], error: &serde_json::Error) -> Fault {
    match error.classify() {
        _ if !is_beginning(bytes) => Fault::Foreign,
        serde_json::error::Category::Eof => Fault::Cut,
        _ => Fault::Damaged(format!("the line is damaged, at column {}", error.column())),
    }
}

/// A line of the first release has no checksum, and one of a newer format may have another.
fn may_be_without_checksum(bytes: &[u8], format: u64, must_have: bool) -> Result<(), Fault> {
    let fields: BTreeMap<String, IgnoredAny> =
        serde_json::from_slice(bytes).map_err(|error| unreadable(bytes, &error))?;
    let is_first = !must_have && fields.keys().all(|name| WITHOUT_CHECKSUM.contains(&name.as_str()));
    let is_newer = format != FORMAT && !fields.contains_key("crc64");
    if is_first || is_newer {
        return Ok(());
    }
    Err(Fault::Damaged("the line is damaged: its checksum does not hold".to_owned()))
}

fn held(fields: Fields) -> Result<Held, Fault> {
    let missing = |name: &str| Fault::Damaged(format!("the line is damaged: `{name}` is missing"));
    let redis_key = fields.redis_key_base64.ok_or_else(|| missing("redis_key_base64"))?;
    let dump = decode("dump_base64", &fields.dump_base64.ok_or_else(|| missing("dump_base64"))?)?;
    if !checksum::holds(&dump) {
        let why = "the line is damaged: the checksum in `dump_base64` does not hold";
        return Err(Fault::Damaged(why.to_owned()));
    }
    if fields.ttl_ms.is_some() != fields.expires_at_ms.is_some() {
        return Err(missing("expires_at_ms"));
    }
    let key = match (fields.key_base64, fields.key) {
        (Some(key), _) => decode("key_base64", &key)?,
        (None, key) => key.ok_or_else(|| missing("key"))?.into_bytes(),
    };
    Ok(Held {
        saved: Saved {
            redis_key: decode("redis_key_base64", &redis_key)?,
            dump,
            ttl_ms: fields.ttl_ms,
            expires_at_ms: fields.expires_at_ms,
        },
        schema: fields.schema.unwrap_or_default(),
        key,
        state: fields.state.unwrap_or_default(),
        beside: fields.beside.map(beside).transpose()?,
        from: None,
    })
}

fn beside(fields: BesideFields) -> Result<Beside, Fault> {
    let role = [Role::Lock, Role::Result].into_iter().find(|role| role.as_str() == fields.role);
    let unknown = || Fault::Newer(format!("`{}` is a role that this idemctl does not know", fields.role));
    Ok(Beside {
        role: role.ok_or_else(unknown)?,
        redis_key: decode("beside", &fields.redis_key_base64)?,
        there: fields.there,
    })
}

fn decode(name: &str, text: &str) -> Result<Vec<u8>, Fault> {
    let wrong = |error| Fault::Damaged(format!("the line is damaged: `{name}` is not base64: {error}"));
    STANDARD.decode(text).map_err(wrong)
}
