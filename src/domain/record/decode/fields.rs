//! Decoding the fields of a value.

use std::borrow::Cow;

use super::conformance::Conformance;
use super::reading::Decoded;
use super::stored::{Stored, bytes_of_numbers};
use crate::domain::record::{FieldSet, Hash, Json, ValueField};
use crate::domain::schema::{BodyEncoding, BodyIs, Timestamp, ValueFormat};
use crate::domain::step::encoding::compact_json;
use crate::domain::{rfc3339, ticks};

/// Decodes the fields of a value of a format, which has this index in the schema.
pub(super) fn decode_fields(
    format: &ValueFormat,
    index: usize,
    conformance: Conformance,
    source: FieldSource<'_>,
) -> Decoded {
    let fields = &format.fields;
    let mut blob = None;
    if let Some(path) = &fields.blob
        && let Some(document) = source.document
    {
        blob = document.pointer(path).map(|pointer| pointer.to_value());
    }
    let mut decoded = Decoded {
        format: index,
        conformance,
        owner: source.bytes(fields.owner.as_ref()).map(Cow::into_owned),
        fingerprint: source.text(fields.fingerprint.as_ref()),
        created_ms: source.time(fields.created_at.as_ref(), format.timestamp),
        completed_ms: source.time(fields.completed_at.as_ref(), format.timestamp),
        expires_ms: source.expires_ms(format),
        unclear_expiry: source.unclear_expiry(format),
        // That depends on the whole schema, so `decode_value` sets it.
        unclear_response: None,
        // That depends on the time of the read, so `decode_at` sets it.
        past_expiry: None,
        response: source.response(format),
        error: source.text(fields.error.as_ref()),
        blob,
        unread: source.unread(format),
    };
    if !decoded.unread.is_empty() {
        decoded.drop_cut_fields();
    }
    decoded
}

/// The bytes of a value after its codecs are undone, and the document in them if the format has
/// one.
#[derive(Clone, Copy)]
pub(super) struct FieldSource<'a> {
    pub(crate) head: &'a [u8],
    pub(crate) whole: bool,
    pub(crate) document: Option<&'a Json<'a>>,
    /// The hash whose fields the document has, if the value is a hash.
    pub(crate) hash: Option<&'a Hash>,
}

impl FieldSource<'_> {
    /// The fields of a format that are unknown, because the part that was read does not have all of
    /// them.
    fn unread(&self, format: &ValueFormat) -> FieldSet {
        let mut unread = FieldSet::NONE;
        if self.whole {
            return unread;
        }
        let fields = &format.fields;
        for (field, path) in [
            (ValueField::Owner, &fields.owner),
            (ValueField::Fingerprint, &fields.fingerprint),
            (ValueField::Status, &fields.status),
            (ValueField::Time, &fields.created_at),
            (ValueField::Time, &fields.completed_at),
        ] {
            if let Some(path) = path
                && !self.is_settled(path)
            {
                unread.insert(field);
            }
        }
        unread
    }

    /// True if more bytes cannot change what is at a path.
    fn is_settled(&self, path: &str) -> bool {
        let Some(document) = self.document else { return false };
        let Some(hash) = self.hash else { return document.is_settled(path) };
        // The fields of a hash are read in part one by one.
        let name = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        match hash.fields.iter().find(|field| field.name == name.as_bytes()) {
            Some(field) => field.is_whole(),
            None => hash.has_all(),
        }
    }

    /// The bytes of a field: those of a JSON string, any other JSON value as JSON. `None` without a
    /// path.
    fn bytes(&self, path: Option<&String>) -> Option<Cow<'_, [u8]>> {
        let path = path?;
        match self.document {
            // An empty path means the whole text.
            None if path.is_empty() => Some(Cow::Borrowed(self.head)),
            None => None,
            Some(document) => match document.pointer(path)? {
                Json::Null => None,
                Json::String(Cow::Borrowed(text)) => Some(Cow::Borrowed(text.as_bytes())),
                Json::String(Cow::Owned(text)) => Some(Cow::Owned(text.into_bytes())),
                Json::Bytes(bytes) => Some(bytes),
                // Most times are such numbers, and their text needs no change.
                Json::Number(Cow::Borrowed(text)) if is_digits(text) => {
                    Some(Cow::Borrowed(text.as_bytes()))
                }
                // This builds no tree, which would take many times the memory of a large body.
                Json::Raw(text) => compact_json(text.as_bytes()).map(Cow::Owned),
                other => Some(Cow::Owned(other.to_value().to_string().into_bytes())),
            },
        }
    }

    /// A field as text; bytes that are not UTF-8 become replacement characters.
    fn text(&self, path: Option<&String>) -> Option<String> {
        let bytes = self.bytes(path)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A field as a time, in milliseconds since the epoch.
    fn time(&self, path: Option<&String>, unit: Timestamp) -> Option<u64> {
        millis(&self.bytes(path)?, unit)
    }

    /// The expiry that the value itself holds, in milliseconds since the epoch.
    pub(super) fn expires_ms(&self, format: &ValueFormat) -> Option<u64> {
        let expires_at = format.expires_at.as_ref()?;
        let written = match &*self.bytes(Some(&expires_at.field))? {
            // Elsewhere, a time before 1970 counts as 1970.
            [b'-', ..] | b"nan" | b"NaN" => return None,
            text => millis(text, expires_at.unit)?,
        };
        let expires_ms = written.saturating_add(expires_at.plus_ms());
        // Services write such a time, or infinity, into a value that never expires.
        if expires_ms >= YEAR_10000_MS { None } else { Some(expires_ms) }
    }

    /// Why the expiry that the value itself holds is unknown; `None` if it is known or absent.
    fn unclear_expiry(&self, format: &ValueFormat) -> Option<Box<str>> {
        let field = &format.expires_at.as_ref()?.field;
        let text = self.bytes(Some(field))?;
        // A time after the year 9999 means that the value does not expire.
        let is_time = !text.starts_with(b"-")
            && !text.eq_ignore_ascii_case(b"nan")
            && millis(&text, format.expires_at.as_ref()?.unit).is_some();
        if is_time { None } else { Some(format!("`{field}` is not a time").into()) }
    }

    /// The stored response, if the format has one.
    fn response(&self, format: &ValueFormat) -> Option<Stored> {
        let fields = &format.fields;
        if fields.status.is_none()
            && fields.headers.is_none()
            && fields.content_type.is_none()
            && fields.body.is_none()
        {
            return None;
        }
        let status = match self.document {
            Some(_) => {
                self.pointer(fields.status.as_ref()).and_then(|status| whole_number(&status))
            }
            // The whole text is the status.
            None => self.text(fields.status.as_ref()).and_then(|status| status.parse().ok()),
        };
        let headers = self.pointer(fields.headers.as_ref());
        let mut body = self.bytes(fields.body.as_ref());
        if format.body_is == BodyIs::Json && format.body_encoding == BodyEncoding::Json {
            match self.pointer(fields.body.as_ref()) {
                Some(Json::String(text)) => {
                    let text = serde_json::Value::from(text).to_string();
                    body = Some(Cow::Owned(text.into_bytes()));
                }
                Some(Json::Null) => body = Some(Cow::Borrowed(b"null")),
                _ => {}
            }
        }
        if format.body_encoding == BodyEncoding::Bytes
            && let Some(found) = self.pointer(fields.body.as_ref())
            && let Some(bytes) = bytes_of_numbers(&found)
        {
            body = Some(Cow::Owned(bytes));
        }
        let content_type = self.text(fields.content_type.as_ref());
        let stored = Stored::new(status, headers, body, format.body_encoding, self.whole);
        Some(stored.of_type(content_type))
    }

    fn pointer(&self, path: Option<&String>) -> Option<Json<'_>> {
        self.document?.pointer(path?)
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A whole number, also if it is written as text, because a hash has no numbers.
fn whole_number(found: &Json<'_>) -> Option<i64> {
    match found {
        Json::String(text) => text.parse().ok(),
        other => other.as_i64(),
    }
}

/// The beginning of the year 10000, in milliseconds since the epoch.
const YEAR_10000_MS: u64 = 253_402_300_800_000;

/// A time in this unit as milliseconds since the epoch; `None` for any other text.
pub(super) fn millis(text: &[u8], unit: Timestamp) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    match unit {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "only times from 1970 on are cast, and a huge one saturates"
        )]
        Timestamp::Milliseconds => match text.parse() {
            Ok(millis) => Some(millis),
            // Some clients write fractions.
            Err(_) => {
                let millis: f64 = text.parse().ok()?;
                if millis >= 0.0 { Some(millis as u64) } else { None }
            }
        },
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a negative or huge time saturates"
        )]
        Timestamp::Seconds => {
            let seconds: f64 = text.parse().ok()?;
            Some((seconds * 1000.0) as u64)
        }
        Timestamp::Ticks => text.parse().ok().map(ticks::to_ms),
        Timestamp::Rfc3339 => rfc3339::to_ms(text),
    }
}
