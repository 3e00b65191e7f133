//! A response as it is stored in a value. Its texts are decoded only on request, because a scan
//! classifies millions of records by their states and shows only a few.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::domain::record::json::shallow;
use crate::domain::record::response::CONTENT_TYPE;
use crate::domain::record::{Json, Response};
use crate::domain::schema::BodyEncoding;

#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub(crate) status: Option<i64>,
    headers: StoredHeaders,
    /// The content type, if it has a field of its own.
    content_type: Option<String>,
    body: Vec<u8>,
    is_base64: bool,
    /// False if the value was read in part, so that the body may be longer.
    pub(crate) whole: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum StoredHeaders {
    /// An object or an array, in its original text.
    Text(String),
    Read(Vec<(String, String)>),
}

impl Stored {
    /// `body` is the text of the body's field, or its bytes if the encoding is `bytes`.
    pub(super) fn new(
        status: Option<i64>,
        found: Option<Json<'_>>,
        body: Option<Cow<'_, [u8]>>,
        encoding: BodyEncoding,
        whole: bool,
    ) -> Self {
        let headers = match found {
            Some(found) if encoding == BodyEncoding::Bytes => {
                StoredHeaders::Read(headers(&found.opened(), encoding))
            }
            Some(Json::Raw(text)) => StoredHeaders::Text(text.into_owned()),
            Some(other) => StoredHeaders::Read(headers(&other, encoding)),
            None => StoredHeaders::Read(Vec::new()),
        };
        let body = body.map(Cow::into_owned).unwrap_or_default();
        Self {
            status,
            headers,
            content_type: None,
            body,
            is_base64: encoding == BodyEncoding::Base64,
            whole,
        }
    }

    /// Adds a content type that has a field of its own.
    pub(super) fn of_type(self, content_type: Option<String>) -> Self {
        Self { content_type, ..self }
    }

    /// This response, with what it lacks taken from another part of it.
    pub(super) fn with(self, more: Self) -> Self {
        let has_headers = match &self.headers {
            StoredHeaders::Text(_) => true,
            StoredHeaders::Read(headers) => !headers.is_empty(),
        };
        let (body, is_base64) = if self.body.is_empty() {
            (more.body, more.is_base64)
        } else {
            (self.body, self.is_base64)
        };
        Self {
            status: self.status.or(more.status),
            headers: if has_headers { self.headers } else { more.headers },
            content_type: self.content_type.or(more.content_type),
            body,
            is_base64,
            whole: self.whole && more.whole,
        }
    }

    pub(crate) fn response(&self) -> Response {
        let mut headers = match &self.headers {
            StoredHeaders::Text(text) => headers(&shallow(text), BodyEncoding::Text),
            StoredHeaders::Read(headers) => headers.clone(),
        };
        if let Some(kind) = &self.content_type {
            headers.push((CONTENT_TYPE.to_owned(), kind.clone()));
        }
        Response { status: self.status, headers, body: self.body().into_owned(), whole: self.whole }
    }

    /// The body's bytes, with base64 decoded.
    pub(crate) fn body(&self) -> Cow<'_, [u8]> {
        if self.is_base64 {
            Cow::Owned(base64_bytes(&self.body))
        } else {
            Cow::Borrowed(&self.body)
        }
    }

    pub(crate) fn forget_body(&mut self) {
        self.body = Vec::new();
    }
}

/// Decodes base64, in groups of four letters. Text that is not base64 stays unchanged; a truncated
/// text decodes to its complete bytes.
pub(super) fn base64_bytes(text: &[u8]) -> Vec<u8> {
    STANDARD.decode(&text[..text.len() - text.len() % 4]).unwrap_or_else(|_| text.to_vec())
}

/// The letters of base64 that are decoded at a time. Each four letters are decoded on their own.
const LETTERS: usize = 1024;

/// True if a whole text is base64. A scan asks this of every stored body, so nothing is allocated.
pub(super) fn is_base64(text: &[u8]) -> bool {
    let mut decoded = [0; LETTERS / 4 * 3];
    let mut rest = text;
    while let Some((letters, more)) = rest.split_at_checked(LETTERS)
        && !more.is_empty()
    {
        // Only the end of the whole text may be padded.
        if letters.ends_with(b"=") || STANDARD.decode_slice(letters, &mut decoded).is_err() {
            return false;
        }
        rest = more;
    }
    STANDARD.decode_slice(rest, &mut decoded).is_ok()
}

/// The bytes of an array of their numbers, as serde writes `Vec<u8>`; `None` for any other value.
pub(super) fn bytes_of_numbers(found: &Json<'_>) -> Option<Vec<u8>> {
    match found {
        // Without a tree, which would take many times the memory of a large body.
        Json::Raw(text) => serde_json::from_str(text).ok(),
        other => serde_json::from_value(other.to_value()).ok(),
    }
}

/// The headers of an object, or of an array of pairs `["name", "value"]`.
fn headers(value: &Json<'_>, encoding: BodyEncoding) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    match value {
        Json::Object(members) => {
            for (name, value) in members {
                add_header(&mut headers, name, &value.opened(), encoding);
            }
        }
        Json::Array(items) => {
            for item in items {
                let Json::Array(pair) = item.opened() else { continue };
                let [name, value] = pair.as_slice() else { continue };
                if let Some(name) = header_text(name, encoding) {
                    add_header(&mut headers, &name, &value.opened(), encoding);
                }
            }
        }
        _ => {}
    }
    headers
}

/// Adds a header. Some services store a list of values for each header, others a single text.
fn add_header(
    headers: &mut Vec<(String, String)>,
    name: &str,
    value: &Json<'_>,
    encoding: BodyEncoding,
) {
    let values = match value {
        // An array of bytes is one text.
        Json::Array(values) if header_text(value, encoding).is_none() => values.as_slice(),
        single => std::slice::from_ref(single),
    };
    for value in values {
        let text = match header_text(value, encoding) {
            Some(text) => text.into_owned(),
            None => value.to_value().to_string(),
        };
        headers.push((name.to_owned(), text));
    }
}

/// A header's name or value that is stored as text or as bytes; `None` for any other JSON value.
fn header_text<'a>(stored: &'a Json<'_>, encoding: BodyEncoding) -> Option<Cow<'a, str>> {
    match stored {
        Json::String(text) => Some(Cow::Borrowed(text)),
        // MessagePack has a type for bytes.
        Json::Bytes(bytes) => Some(String::from_utf8_lossy(bytes)),
        _ if encoding == BodyEncoding::Bytes => {
            let bytes = bytes_of_numbers(stored)?;
            Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_any_length_is_base64_exactly_if_it_decodes() {
        for length in [0_usize, 1, 2, 3, 4, 1023, 1024, 1025, 1028, 2048, 2052, 3000] {
            for bad in [None, Some(b'='), Some(b'!'), Some(b'B')] {
                for at in [0, length / 2, 1023, length.saturating_sub(2)] {
                    let mut text = vec![b'A'; length];
                    if let (Some(bad), Some(letter)) = (bad, text.get_mut(at)) {
                        *letter = bad;
                    }
                    assert_eq!(is_base64(&text), STANDARD.decode(&text).is_ok(), "{length} {at}");
                    text.push(b'=');
                    assert_eq!(is_base64(&text), STANDARD.decode(&text).is_ok(), "{length} {at}");
                }
            }
        }
    }

    #[test]
    fn headers_are_an_object_of_texts_or_lists_or_an_array_of_pairs() {
        let wanted = [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())];
        for text in [
            r#"{"a":"1","b":["2"]}"#,
            r#"[["a","1"],["b","2"]]"#,
            r#"[["a",["1"]],["b","2"],"stray",["c"]]"#,
        ] {
            assert_eq!(headers(&shallow(text), BodyEncoding::Text), wanted, "{text}");
        }
        let bytes = |text: &'static str| Json::Bytes(Cow::Borrowed(text.as_bytes()));
        let pair = |name, value| Json::Array(vec![bytes(name), bytes(value)]);
        let pairs = Json::Array(vec![pair("a", "1"), pair("b", "2")]);
        assert_eq!(headers(&pairs, BodyEncoding::Text), wanted, "ASGI keeps headers as bytes");
        let repeated = headers(&shallow(r#"[["a","1"],["a","2"]]"#), BodyEncoding::Text);
        assert_eq!(repeated, [("a".into(), "1".into()), ("a".to_owned(), "2".to_owned())]);
    }

    /// Rule: an array with anything else than bytes is shown as it is stored.
    #[test]
    fn headers_of_bytes_are_arrays_of_numbers_below_256() {
        for (value, texts) in [
            ("[97,112,112]", vec!["app"]),
            ("[]", vec![""]),
            ("[[97],[98]]", vec!["a", "b"]),
            ("[97,256]", vec!["97", "256"]),
            ("[97,-1]", vec!["97", "-1"]),
            ("[97,1.5]", vec!["97", "1.5"]),
            ("\"app\"", vec!["app"]),
        ] {
            let document = format!("{{\"a\":{value}}}");
            let read = headers(&shallow(&document), BodyEncoding::Bytes);
            let wanted: Vec<_> = texts.iter().map(|text| ("a".into(), (*text).into())).collect();
            assert_eq!(read, wanted, "{value}");
        }
        let text = headers(&shallow(r#"{"a":[97]}"#), BodyEncoding::Text);
        assert_eq!(text, [("a".to_owned(), "97".to_owned())], "only if the format says so");
    }
}
