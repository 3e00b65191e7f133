//! What stands in a value, field by field.

use std::borrow::Cow;

use super::form::Form;
use super::reading::Decoded;
use super::stored::Stored;
use crate::domain::record::Json;
use crate::domain::schema::{Timestamp, ValueFormat};
use crate::domain::step::encoding::compact_json;
use crate::domain::ticks;

/// What a value of a case holds, by the case's index.
pub(super) fn decode(
    case: &ValueFormat,
    index: usize,
    form: Form,
    source: FieldSource<'_>,
) -> Decoded {
    let fields = &case.fields;
    let text = |path: &Option<String>| {
        source.text(path.as_deref()?).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let time = |path: &Option<String>| {
        source.text(path.as_deref()?).and_then(|bytes| millis(&bytes, case.timestamp))
    };
    Decoded {
        case: index,
        form,
        owner: fields.owner.as_deref().and_then(|path| source.text(path)).map(Cow::into_owned),
        fingerprint: text(&fields.fingerprint),
        created_ms: time(&fields.created_at),
        completed_ms: time(&fields.completed_at),
        expires_ms: source.expires_ms(case),
        lapsed: None,
        response: source.response(case),
        error: text(&fields.error),
        blob: fields
            .blob
            .as_deref()
            .and_then(|path| source.document?.pointer(path))
            .map(|blob| blob.to_value()),
    }
}

/// The bytes of a value, and the document they hold where they are JSON.
#[derive(Clone, Copy)]
pub(super) struct FieldSource<'a> {
    pub(crate) head: &'a [u8],
    pub(crate) whole: bool,
    pub(crate) document: Option<&'a Json<'a>>,
}

impl FieldSource<'_> {
    /// A field as text: a JSON string's own text, any other JSON value as JSON.
    fn text(&self, path: &str) -> Option<Cow<'_, [u8]>> {
        match self.document {
            None => path.is_empty().then_some(Cow::Borrowed(self.head)),
            Some(document) => match document.pointer(path)? {
                Json::Null => None,
                Json::String(Cow::Borrowed(text)) => Some(Cow::Borrowed(text.as_bytes())),
                Json::String(Cow::Owned(text)) => Some(Cow::Owned(text.into_bytes())),
                Json::Bytes(bytes) => Some(bytes),
                // Without a tree, which takes many times the memory of a large body.
                Json::Raw(text) => compact_json(text.as_bytes()).map(Cow::Owned),
                other => Some(Cow::Owned(other.to_value().to_string().into_bytes())),
            },
        }
    }

    /// When the value ends by what it holds.
    pub(super) fn expires_ms(&self, case: &ValueFormat) -> Option<u64> {
        let expires_at = case.expires_at.as_ref()?;
        millis(&self.text(&expires_at.field)?, expires_at.unit)
    }

    fn response(&self, case: &ValueFormat) -> Option<Stored> {
        let fields = &case.fields;
        if [&fields.status, &fields.headers, &fields.content_type, &fields.body]
            .iter()
            .all(|field| field.is_none())
        {
            return None;
        }
        let at = |path: &Option<String>| self.document?.pointer(path.as_deref()?);
        let status = at(&fields.status).and_then(|status| whole_number(&status));
        let body = fields.body.as_deref().and_then(|path| self.text(path));
        let content_type = fields.content_type.as_deref().and_then(|path| self.text(path));
        let content_type = content_type.map(|text| String::from_utf8_lossy(&text).into_owned());
        let stored = Stored::new(status, at(&fields.headers), body, case.body_encoding, self.whole);
        Some(stored.of_type(content_type))
    }
}

/// A whole number, also one that stands as text: a hash has no numbers.
fn whole_number(found: &Json<'_>) -> Option<i64> {
    match found {
        Json::String(text) => text.parse().ok(),
        other => other.as_i64(),
    }
}

pub(super) fn millis(text: &[u8], unit: Timestamp) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    match unit {
        Timestamp::Milliseconds => text.parse().ok(),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a negative or huge time saturates"
        )]
        Timestamp::Seconds => text.parse::<f64>().ok().map(|seconds| (seconds * 1000.0) as u64),
        Timestamp::Ticks => text.parse().ok().map(ticks::to_ms),
        Timestamp::Rfc3339 => {
            let time = humantime::parse_rfc3339_weak(text).ok()?;
            let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
            u64::try_from(since.as_millis()).ok()
        }
    }
}
