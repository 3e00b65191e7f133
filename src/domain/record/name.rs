//! The name of a record, `SCHEMA/KEY`: what `list -o name` prints, and every command that takes
//! keys reads back.

use super::Record;
use crate::domain::schema::{Catalog, Prefix, Schema};

/// One record: an idempotency key under one schema and prefix.
///
/// As text it is `SCHEMA/KEY`. A key that holds more than printable text is written in double
/// quotes with the escapes of C. A record under another prefix than the schema's own is
/// `SCHEMA@"PREFIX"/KEY`, whether the schema, an option or the context names that prefix. One of
/// another database is `DB/SCHEMA/KEY`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordName {
    /// The database, if the record was listed with those of all databases.
    pub db: Option<i64>,
    pub schema: String,
    /// The prefix, if it is not the schema's own.
    pub prefix: Option<String>,
    pub key: Vec<u8>,
}

impl RecordName {
    pub(crate) fn of(record: &Record) -> Self {
        Self { db: record.db, ..Self::new(&record.schema, &record.key) }
    }

    /// The name of a key under a schema.
    pub(crate) fn new(schema: &Schema, key: &[u8]) -> Self {
        let Prefix { text, is_own, .. } = &schema.prefix;
        let prefix = if *is_own { None } else { Some(text.clone()) };
        Self { db: None, schema: schema.name.clone(), prefix, key: key.to_vec() }
    }

    /// True if the name means this schema, under the same prefix.
    pub(crate) fn is_under(&self, schema: &Schema) -> bool {
        let is_there = match &self.prefix {
            Some(prefix) => *prefix == schema.prefix.text,
            None => schema.prefix.is_own,
        };
        is_there && schema.name == self.schema
    }

    /// The name in one line that is safe to show.
    pub fn text(&self) -> String {
        if is_plain(&self.key) {
            self.before_key() + &String::from_utf8_lossy(&self.key)
        } else {
            self.quoted()
        }
    }

    /// The name with its key in quotes.
    pub(crate) fn quoted(&self) -> String {
        self.before_key() + &quote(&self.key)
    }

    /// The name with the key's bytes unchanged, for lists that end each name with NUL. An empty
    /// key, or one with a quote, a backslash or a NUL, is still quoted.
    pub(crate) fn raw(&self) -> Vec<u8> {
        if self.key.is_empty() || self.key.iter().any(|byte| b"\"\\\0".contains(byte)) {
            return self.quoted().into_bytes();
        }
        [self.before_key().as_bytes(), &self.key].concat()
    }

    /// The name as an operator has to write it after `given` named more than one record.
    pub(crate) fn instead_of(&self, given: &[u8]) -> String {
        for text in [self.text(), self.quoted()] {
            if text.as_bytes() != given {
                return text;
            }
        }
        // The same key in other words.
        let mut escaped = self.before_key() + "\"";
        push_hex(&mut escaped, &self.key);
        escaped + "\""
    }

    fn before_key(&self) -> String {
        let mut text = match self.db {
            Some(db) => format!("{db}/"),
            None => String::new(),
        };
        let schema = self.schema.as_bytes();
        let is_word =
            schema.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
        // A number without quotes would be read as a database.
        if is_word && !schema.is_empty() && !is_number(schema) {
            text.push_str(&self.schema);
        } else {
            text.push_str(&quote(schema));
        }
        if let Some(prefix) = &self.prefix {
            text.push('@');
            text.push_str(&quote(prefix.as_bytes()));
        }
        text.push('/');
        text
    }

    /// Reads a name. `None` for any other text.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut rest = text;
        let mut db = None;
        if let Some(end) = text.iter().position(|byte| *byte == b'/')
            && is_number(&text[..end])
        {
            let digits = std::str::from_utf8(&text[..end]).ok()?;
            db = Some(digits.parse().ok()?);
            rest = &text[end + 1..];
        }
        let (schema, mut rest) = if rest.starts_with(b"\"") {
            unquote(rest)?
        } else {
            let end = rest.iter().position(|byte| b"/@".contains(byte))?;
            (rest[..end].to_vec(), &rest[end..])
        };
        let mut prefix = None;
        if let Some(quoted) = rest.strip_prefix(b"@") {
            let (bytes, after) = unquote(quoted)?;
            prefix = Some(String::from_utf8(bytes).ok()?);
            rest = after;
        }
        let rest = rest.strip_prefix(b"/")?;
        let is_quoted = rest.starts_with(b"\"");
        let key = if is_quoted {
            let (key, rest) = unquote(rest)?;
            if !rest.is_empty() {
                return None;
            }
            key
        } else if rest.iter().any(|byte| b"\"\\".contains(byte)) {
            // A shell removed the quotes around the escapes, so the text would now mean another
            // key.
            return None;
        } else {
            rest.to_vec()
        };
        let schema = String::from_utf8(schema).ok()?;
        // Without quotes, a name that lost its key would mean the empty key.
        if schema.is_empty() || (key.is_empty() && !is_quoted) {
            return None;
        }
        Some(Self { db, schema, prefix, key })
    }
}

/// The names of records, without duplicates.
pub(crate) fn of_each<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<RecordName> {
    let mut seen: Vec<Vec<&[u8]>> = Vec::new();
    let mut names = Vec::new();
    for record in records {
        let redis_keys: Vec<_> =
            record.seen.keys.iter().map(|key| key.redis_key.as_slice()).collect();
        // Several schemas may read the same record.
        if !seen.contains(&redis_keys) {
            seen.push(redis_keys);
            names.push(RecordName::of(record));
        }
    }
    names
}

/// A key as an operator gave it: as an argument, or as a line of a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GivenKey {
    pub(crate) text: Vec<u8>,
    /// True if a text that can be read as a name is nothing else.
    pub(crate) is_name: bool,
}

impl GivenKey {
    pub(crate) fn word(text: impl Into<Vec<u8>>) -> Self {
        Self { text: text.into(), is_name: false }
    }

    pub(crate) fn name(name: &RecordName) -> Self {
        Self { is_name: true, ..Self::word(name.quoted()) }
    }

    /// How the text can be read in a database: as a name, and as an idempotency key or a Redis key.
    pub(crate) fn meanings(&self, catalog: &Catalog, db: i64) -> KeyMeanings {
        let keys = vec![self.text.clone()];
        let Some(name) = RecordName::parse(&self.text) else {
            return KeyMeanings { name: None, keys };
        };
        // An idempotency key may contain a slash too, so only a known schema makes a record's name.
        if !catalog.all().iter().any(|schema| schema.name == name.schema) {
            return KeyMeanings { name: None, keys };
        }
        let is_elsewhere = name.db.is_some_and(|name_db| name_db != db);
        // The name of a schema that is not selected, or of another database, means nothing here. In
        // particular it must not mean another record.
        if self.excluded_schema(catalog).is_some() || is_elsewhere {
            return KeyMeanings::default();
        }
        let keys = if self.is_name { Vec::new() } else { keys };
        KeyMeanings { name: Some(name), keys }
    }

    /// The schema of the record that the text names, if that schema is known and not selected.
    fn excluded_schema(&self, catalog: &Catalog) -> Option<String> {
        let schema = RecordName::parse(&self.text)?.schema;
        let is_known = catalog.all().iter().any(|known| known.name == schema);
        if is_known && catalog.excludes(&schema) { Some(schema) } else { None }
    }

    /// What the text means, and how to name an idempotency key that looks like it, if
    /// [`Self::excluded_schema`] is why it means nothing here.
    pub(crate) fn excluded_because(&self, catalog: &Catalog) -> Option<(String, String)> {
        let schema = self.excluded_schema(catalog)?;
        let why = format!("it names a record of {schema}, which --schema excludes");
        let selected = match catalog.chosen() {
            [one] => one.name.as_str(),
            _ => "SCHEMA",
        };
        let hint = format!("if this is the idempotency key itself, write {selected}/ before it");
        Some((why, hint))
    }
}

/// The possible meanings of a text.
#[derive(Debug, Default)]
pub(crate) struct KeyMeanings {
    pub(crate) name: Option<RecordName>,
    /// Idempotency keys or Redis keys.
    pub(crate) keys: Vec<Vec<u8>>,
}

fn is_number(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}

/// True for text whose characters all print as themselves, and that does not begin with a quote.
fn is_plain(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    // A space at either end is lost when the name is copied.
    if text.is_empty() || text.trim() != text {
        return false;
    }
    text.chars().all(prints_as_itself)
}

/// True for a character that needs no escape in double quotes.
fn prints_as_itself(character: char) -> bool {
    // `escape_debug` escapes the single quote as well.
    character == '\'' || character.escape_debug().count() == 1
}

/// Bytes in double quotes, with the escapes of C: `\n`, `\r`, `\t`, `\"`, `\\`, and `\xHH` with
/// exactly two digits.
fn quote(bytes: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\n' => quoted.push_str("\\n"),
                '\r' => quoted.push_str("\\r"),
                '\t' => quoted.push_str("\\t"),
                '"' | '\\' => quoted.extend(['\\', character]),
                _ if prints_as_itself(character) => quoted.push(character),
                _ => push_hex(&mut quoted, character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        push_hex(&mut quoted, chunk.invalid());
    }
    quoted.push('"');
    quoted
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(&format!("\\x{byte:02x}"));
    }
}

/// The bytes in the quotes at the beginning of a text, and the rest after the quotes.
fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut bytes = Vec::new();
    loop {
        let (byte, after) = match rest {
            [b'"', after @ ..] => return Some((bytes, after)),
            [b'\\', b'n', after @ ..] => (b'\n', after),
            [b'\\', b'r', after @ ..] => (b'\r', after),
            [b'\\', b't', after @ ..] => (b'\t', after),
            [b'\\', byte @ (b'"' | b'\\'), after @ ..] => (*byte, after),
            [b'\\', b'x', high, low, after @ ..] => (hex(*high)? << 4 | hex(*low)?, after),
            [b'\\', ..] | [] => return None,
            [byte, after @ ..] => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests;
