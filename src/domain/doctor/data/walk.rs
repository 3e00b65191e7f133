//! Visits each text of a record: its fields as the schema decodes them, documents within texts, and
//! the stored body.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::masked_pointer::PathStep;
use super::text_findings::{self, TextFindings};
use super::{card_number, named};
use crate::domain::record::codec::undo;
use crate::domain::record::decode::document;
use crate::domain::record::{Content, Json, KeyState, Reading, Record, json_prefix};
use crate::domain::schema::{BodyEncoding, Codec};

/// The deepest path that is followed. What is deeper is one text. The walk is recursive, so the
/// limit protects the stack.
const DEEPEST: usize = 100;

/// How many documents within texts of documents are opened. The walk is recursive, so the limit
/// protects the stack.
const MAX_NESTED: usize = 8;

/// The most bytes of a compressed body that are looked at, as many as are read of a value.
const MAX_OF_BODY: usize = 1 << 20;

/// The most bytes of texts of one record that are looked at. Compressed values may have more.
const MAX_OF_RECORD: usize = 4 << 20;

/// The shortest text that is taken for base64, and the most bytes of a hash, a key or a signature
/// in base64. If base64 of more bytes contains no text, the record counts as not decoded.
const MIN_BASE64: usize = 20;
const LARGEST_HASH: usize = 1024;

/// The first bytes of gzip (RFC 1952).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// How much of a record was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LookedAt {
    Whole,
    /// Only the beginning of a value was read.
    InPart,
    /// A value or a body is in an encoding that idemctl does not decode.
    NotDecoded,
}

/// What a walk reports.
pub(super) trait WalkSink {
    /// A text with findings at this path.
    fn found(&mut self, path: &[PathStep], findings: &TextFindings);
}

/// Visits the values of a record.
pub(super) fn record(record: &Record, sink: &mut dyn WalkSink) -> LookedAt {
    let mut walk = Walk {
        sink,
        path: Vec::new(),
        nested: 0,
        whole: true,
        looked_at: LookedAt::Whole,
        left: MAX_OF_RECORD,
    };
    for (key_index, key) in record.seen.keys.iter().enumerate() {
        if !key.content.is_absent() {
            walk.key(record, key_index, key);
        }
    }
    walk.body(record);
    if record.shown_only().is_some() {
        walk.looked_at = LookedAt::NotDecoded;
    }
    walk.looked_at
}

struct Walk<'a> {
    sink: &'a mut dyn WalkSink,
    path: Vec<PathStep>,
    /// The number of texts around this place that contain documents.
    nested: usize,
    /// False if only the beginning of the value was read.
    whole: bool,
    looked_at: LookedAt,
    /// The bytes of texts that are still looked at.
    left: usize,
}

impl Walk<'_> {
    fn key(&mut self, record: &Record, key_index: usize, key: &KeyState) {
        self.whole = key.content.is_whole();
        if !self.whole {
            self.limit(LookedAt::InPart);
        }
        // A document that is damaged is looked at as the text it is.
        if let Some(document) = document(&record.schema, key_index, &key.content) {
            self.value(&document);
            return;
        }
        match &key.content {
            Content::Text { head, .. } => self.bytes(head),
            Content::Hash(hash) => {
                for field in &hash.fields {
                    let name = String::from_utf8_lossy(&field.name);
                    self.whole = field.is_whole();
                    self.member(&name, &Json::Bytes(Cow::Borrowed(&field.head)));
                }
            }
            Content::Other(_) => self.limit(LookedAt::NotDecoded),
            Content::Absent => {}
        }
    }

    /// Visits the stored body, which may be base64 in the document.
    fn body(&mut self, record: &Record) {
        // Any other body is a text of the document.
        let decoded = record.readings.iter().filter_map(Reading::decoded);
        let mut formats = decoded.map(|value| &record.schema.values[value.format]);
        let Some(format) = formats.find(|format| {
            format.fields.body.is_some() && format.body_encoding == BodyEncoding::Base64
        }) else {
            return;
        };
        let Some(response) = record.response() else { return };
        let pointer = format.fields.body.as_deref();
        for name in pointer.unwrap_or_default().split('/').skip(1) {
            self.path.push(PathStep::to_member(name));
        }
        self.whole = response.whole;
        self.bytes(&response.body);
        self.path.clear();
    }

    fn limit(&mut self, to: LookedAt) {
        self.looked_at = self.looked_at.max(to);
    }

    fn value(&mut self, value: &Json<'_>) {
        match value {
            Json::Null | Json::Bool(_) => {}
            Json::Number(text) => match card_number::of_float(text) {
                Some(digits) => self.text(&digits),
                None => self.text(text),
            },
            Json::String(text) => self.string(text),
            Json::Bytes(bytes) => self.bytes(bytes),
            Json::Raw(text) if self.path.len() >= DEEPEST => self.text(text),
            Json::Raw(_) => self.value(&value.opened()),
            Json::Array(items) => self.items(items),
            Json::Object(members) => {
                if let Some((name, value)) = named_value(members) {
                    self.header(name, value);
                }
                for (name, value) in members {
                    self.member(name, value);
                }
            }
        }
    }

    fn items(&mut self, items: &[Json<'_>]) {
        // Pairs of names and values, as a list each or all in one list.
        for pair in items.chunks_exact(2) {
            if let Json::String(name) = &pair[0] {
                self.header(name, &pair[1]);
            }
        }
        self.path.push(PathStep::Any);
        for item in items {
            self.value(item);
        }
        self.path.pop();
    }

    fn member(&mut self, name: &str, value: &Json<'_>) {
        let step = PathStep::to_member(name);
        if step == PathStep::Any {
            self.path.push(PathStep::Any);
            self.text(name);
            self.path.pop();
        }
        self.path.push(step);
        self.header(name, value);
        if self.path.len() < 2 * DEEPEST {
            self.value(value);
        } else {
            self.limit(LookedAt::NotDecoded);
        }
        self.path.pop();
    }

    /// Looks at the value of a header that contains credentials, or of a member that contains a
    /// token. The value may be a list.
    fn header(&mut self, name: &str, value: &Json<'_>) {
        let opened;
        let values = match value {
            Json::Array(_) | Json::Raw(_) => {
                opened = value.opened();
                match &opened {
                    Json::Array(values) => values.as_slice(),
                    _ => return,
                }
            }
            single => std::slice::from_ref(single),
        };
        for value in values {
            let text = match value {
                Json::String(text) | Json::Number(text) => text.as_bytes(),
                Json::Bytes(bytes) => bytes,
                _ => continue,
            };
            if let Some(kind) = named::kind_of(name, text) {
                let mut findings = TextFindings::default();
                findings.kinds.insert(kind);
                self.sink.found(&self.path, &findings);
            }
        }
    }

    /// Looks at a text, or at the document in it.
    fn string(&mut self, text: &str) {
        if self.nested < MAX_NESTED
            && let Some(bytes) = base64_text(text)
        {
            self.text(text);
            self.undo_base64(text, &bytes);
            return;
        }
        let is_document = text.trim_start().starts_with(['{', '[', '"']);
        if is_document
            && self.nested < MAX_NESTED
            && let Ok(document) = json_prefix::parse(text.as_bytes(), self.whole)
        {
            self.nested += 1;
            self.value(&document);
            self.nested -= 1;
        } else {
            self.text(text);
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.string(text),
            // The last character may be cut.
            Err(error) if !self.whole && error.error_len().is_none() => {
                self.string(&String::from_utf8_lossy(&bytes[..error.valid_up_to()]));
            }
            Err(_) if bytes.starts_with(&GZIP_MAGIC) && self.nested < MAX_NESTED => {
                self.compressed(bytes);
            }
            Err(_) => {
                self.limit(LookedAt::NotDecoded);
                self.text(&String::from_utf8_lossy(bytes));
            }
        }
    }

    /// Looks at what a text contains that may be base64. Short ones are hashes and signatures.
    fn undo_base64(&mut self, text: &str, bytes: &[u8]) {
        // Words and repeated letters are base64 only by their form.
        let has = |of: fn(&u8) -> bool| text.as_bytes().iter().any(of);
        let is_mixed =
            has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
        let is_text = std::str::from_utf8(bytes).is_ok_and(|text| {
            !text.contains(|letter: char| letter.is_control() && !letter.is_whitespace())
        });
        if is_text || bytes.starts_with(&GZIP_MAGIC) {
            self.nested += 1;
            self.bytes(bytes);
            self.nested -= 1;
        } else if is_mixed && bytes.len() > LARGEST_HASH {
            self.limit(LookedAt::NotDecoded);
        }
    }

    fn compressed(&mut self, bytes: &[u8]) {
        let Ok(plain) = undo(&[Codec::Gzip], bytes, self.whole) else {
            self.limit(LookedAt::NotDecoded);
            return;
        };
        let was_whole = self.whole;
        let beginning = &plain.bytes[..plain.bytes.len().min(MAX_OF_BODY)];
        self.whole = plain.whole && beginning.len() == plain.bytes.len();
        if !self.whole {
            self.limit(LookedAt::InPart);
        }
        self.nested += 1;
        self.bytes(beginning);
        self.nested -= 1;
        self.whole = was_whole;
    }

    fn text(&mut self, text: &str) {
        let Some(left) = self.left.checked_sub(text.len()) else {
            self.limit(LookedAt::InPart);
            return;
        };
        self.left = left;
        let findings = text_findings::of(text);
        if !findings.is_empty() {
            self.sink.found(&self.path, &findings);
        }
    }
}

/// The bytes of a text that may be base64, of either alphabet.
fn base64_text(text: &str) -> Option<Vec<u8>> {
    let is_base64 = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=' | b'\n' | b'\r')
    };
    if text.len() < MIN_BASE64 || !text.bytes().all(is_base64) {
        return None;
    }
    let mut letters = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'-' => letters.push(b'+'),
            b'_' => letters.push(b'/'),
            b'=' | b'\n' | b'\r' => {}
            other => letters.push(other),
        }
    }
    // A text that was cut has complete groups of four letters at its beginning.
    if letters.len() % 4 == 1 {
        letters.pop();
    }
    STANDARD_NO_PAD
        .decode(&letters)
        .or_else(|_| STANDARD_NO_PAD.decode(&letters[..letters.len() / 4 * 4]))
        .ok()
}

/// The name and the value of `{"name": …, "value": …}`, as some services store headers.
fn named_value<'a>(members: &'a [(Cow<'_, str>, Json<'_>)]) -> Option<(&'a str, &'a Json<'a>)> {
    let of = |wanted: [&str; 2]| {
        let found = members.iter().find(|(name, _)| wanted.contains(&name.as_ref()));
        found.map(|(_, value)| value)
    };
    match (of(["name", "key"])?, of(["value", "values"])?) {
        (Json::String(name), value) => Some((name, value)),
        _ => None,
    }
}
