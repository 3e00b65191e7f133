//! A sample value, decoded as far as its bytes allow.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::domain::record::codec::undo;
use crate::domain::record::{Content, Hash, Json, KeyState, TimeLeft, packed};
use crate::domain::schema::closed_fields::escaped;
use crate::domain::schema::{Codec, Decoder, Decoding, Encoding};

/// A sample value and the expiry of its Redis key.
#[derive(Debug, Clone)]
pub(super) struct SampleValue {
    /// The value as text; empty if it is a document.
    pub(super) text: String,
    /// The decoded object or array; `None` if the value is text.
    pub(super) document: Option<Value>,
    /// The decoding that yields the document.
    pub(super) decoding: Decoding,
    pub(super) time_left: TimeLeft,
}

impl SampleValue {
    /// Decodes the value of a Redis key.
    pub(super) fn of(key: &KeyState) -> Self {
        let mut sample = Self {
            text: String::new(),
            document: None,
            decoding: plain(Encoding::Text.into()),
            time_left: key.time_left,
        };
        match &key.content {
            Content::Hash(hash) => {
                let (decoding, document) = of_hash(hash);
                sample.decoding = decoding;
                sample.document = Some(document);
            }
            Content::Text { head, .. } => match open(head) {
                Some((decoder, document)) => {
                    sample.decoding = plain(decoder);
                    sample.document = Some(document);
                }
                None => sample.text = String::from_utf8_lossy(head).into_owned(),
            },
            Content::Absent | Content::Other(_) => {}
        }
        sample
    }
}

fn plain(value: Decoder) -> Decoding {
    Decoding { value, inside: Vec::new() }
}

/// The fields of a hash. Fields that contain encoded documents are decoded.
fn of_hash(hash: &Hash) -> (Decoding, Value) {
    let mut inside = Vec::new();
    let mut members = Map::new();
    for field in &hash.fields {
        let name = String::from_utf8_lossy(&field.name).into_owned();
        let value = match open(&field.head) {
            Some((decoder, document)) => {
                inside.push((format!("/{}", escaped(&name)), decoder));
                document
            }
            None => text_or_number(&String::from_utf8_lossy(&field.head)),
        };
        members.insert(name, value);
    }
    (Decoding { value: Encoding::Hash.into(), inside }, Value::Object(members))
}

/// Redis hashes store text only, so text that is written as a number becomes a number.
fn text_or_number(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Number(number)) => Value::Number(number),
        _ => Value::from(text),
    }
}

/// The most codecs around one value. Services use one or two; the limit bounds the work for crafted
/// values.
const MAX_CODECS: usize = 3;

/// The longest suffix after a compressed value, such as `:1`, in bytes.
const LONGEST_SUFFIX: usize = 4;

/// The shortest text that counts as Base64 or hex; shorter ones may be words.
const SHORTEST_LETTERS: usize = 16;

/// Decodes bytes to an object or an array, and returns the decoder that did it. `None` for text,
/// and for bytes that no encoding recognises.
pub(super) fn open(bytes: &[u8]) -> Option<(Decoder, Value)> {
    within(bytes, MAX_CODECS)
}

fn within(bytes: &[u8], codecs_left: usize) -> Option<(Decoder, Value)> {
    if let Some((encoding, value)) = document(bytes) {
        return Some((encoding.into(), value));
    }
    if codecs_left == 0 {
        return None;
    }
    let mut codecs = around(bytes)?;
    let plain = undo(&codecs, bytes, true).ok()?;
    let (inner, value) = within(&plain.bytes, codecs_left - 1)?;
    codecs.extend(inner.codecs);
    Some((Decoder { codecs, encoding: inner.encoding }, value))
}

/// The outermost codecs around these bytes, judged by the first bytes or the alphabet.
fn around(bytes: &[u8]) -> Option<Vec<Codec>> {
    match bytes {
        [0x1f, 0x8b, ..] => return Some(vec![Codec::Gzip]),
        // The first byte of zlib with its usual window, and a checksum of the two.
        [0x78, flags, ..] if (0x7800 + u16::from(*flags)) % 31 == 0 => {
            return compressed_with_suffix(bytes);
        }
        _ => {}
    }
    if bytes.len() < SHORTEST_LETTERS {
        return None;
    }
    // Hex is tried first, because every hex digit is also a letter of Base64.
    if bytes.len().is_multiple_of(2) && bytes.iter().all(u8::is_ascii_hexdigit) {
        return Some(vec![Codec::Hex]);
    }
    if bytes.iter().all(|letter| letter.is_ascii_alphanumeric() || b"+/-_=".contains(letter)) {
        return Some(vec![Codec::Base64]);
    }
    None
}

/// Finds the text after a zlib stream. The stream marks its own end, so the longest text that can
/// be cut off is the suffix.
fn compressed_with_suffix(bytes: &[u8]) -> Option<Vec<Codec>> {
    let lengths = 0..=LONGEST_SUFFIX.min(bytes.len());
    let suffix = lengths
        .rev()
        .find(|length| undo(&[Codec::Zlib], &bytes[..bytes.len() - length], true).is_ok())?;
    let text = std::str::from_utf8(&bytes[bytes.len() - suffix..]).ok()?;
    if text.is_empty() {
        return Some(vec![Codec::Zlib]);
    }
    Some(vec![Codec::Suffix(text.to_owned()), Codec::Zlib])
}

/// The object or array that these bytes encode, and the encoding.
fn document(bytes: &[u8]) -> Option<(Encoding, Value)> {
    // JSON is tried first because MessagePack accepts nearly any bytes.
    if let Ok(value) = serde_json::from_slice::<Value>(bytes)
        && is_document(&value)
    {
        // Newtonsoft's format is JSON that also names the types of its objects.
        if packed::has_type(&value) {
            return packed_document(Encoding::Newtonsoft, packed::newtonsoft(bytes, true));
        }
        return Some((Encoding::Json, value));
    }
    packed_document(Encoding::Php, packed::php(bytes, true))
        .or_else(|| packed_document(Encoding::Msgpack, packed::msgpack(bytes, true)))
}

/// The value that a reader of packed values returned, if it is an object or an array.
fn packed_document(
    encoding: Encoding,
    parsed: Result<Json<'_>, String>,
) -> Option<(Encoding, Value)> {
    let value = parsed.ok()?.to_value();
    if is_document(&value) { Some((encoding, value)) } else { None }
}

fn is_document(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// The number of leading bytes by which formats are distinguished.
const BEGINNING: usize = 32;

/// At most `most` of these keys, with an equal share of each format as far as possible.
///
/// Two values have one format if they begin alike (digits aside) or have the same fields, and
/// either both expire or neither.
pub(crate) fn representatives(samples: Vec<KeyState>, most: usize) -> Vec<KeyState> {
    let mut formats: BTreeMap<(bool, Vec<Vec<u8>>), Vec<KeyState>> = BTreeMap::new();
    for sample in samples {
        let expires = sample.time_left != TimeLeft::NoExpiry;
        formats.entry((expires, signature(&sample.content))).or_default().push(sample);
    }
    let mut chosen = Vec::with_capacity(most);
    while chosen.len() < most {
        let before = chosen.len();
        // One of each format per round: a rare format is represented before a common one fills the
        // space.
        for samples in formats.values_mut() {
            if chosen.len() < most {
                chosen.extend(samples.pop());
            }
        }
        if chosen.len() == before {
            break;
        }
    }
    chosen
}

/// The part of a value that distinguishes formats: the names of its fields, or its beginning.
fn signature(content: &Content) -> Vec<Vec<u8>> {
    match content {
        Content::Hash(hash) => {
            let mut names: Vec<_> = hash.fields.iter().map(|field| field.name.clone()).collect();
            names.sort_unstable();
            names
        }
        Content::Text { head, .. } => {
            let mut beginning = head[..head.len().min(BEGINNING)].to_vec();
            // Numbers differ from value to value of one format.
            for byte in &mut beginning {
                if byte.is_ascii_digit() {
                    *byte = b'0';
                }
            }
            vec![beginning]
        }
        Content::Absent | Content::Other(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::domain::record::Deadline;
    use crate::domain::record::codec::wrap;

    fn words(bytes: &[u8]) -> Option<Vec<String>> {
        open(bytes).map(|(decoder, _)| decoder.words().into_iter().map(String::from).collect())
    }

    #[test]
    fn the_codecs_around_a_value_are_found() {
        let document = json!({ "status": "DONE", "code": 201 });
        let text = document.to_string().into_bytes();
        for codecs in [
            &[][..],
            &[Codec::Gzip],
            &[Codec::Suffix(":1".to_owned()), Codec::Zlib],
            &[Codec::Base64, Codec::Zlib],
            &[Codec::Hex, Codec::Gzip],
        ] {
            let stored = wrap(codecs, text.clone()).unwrap();
            let (decoder, value) = open(&stored).unwrap();
            assert_eq!(
                (&decoder.codecs[..], decoder.encoding, &value),
                (codecs, Encoding::Json, &document)
            );
        }
        assert_eq!(words(b"a:1:{s:1:\"a\";i:1;}").unwrap(), ["php"]);
        assert_eq!(words(br#"{"$type":"Pay, app","Id":1}"#).unwrap(), ["newtonsoft"]);
        assert_eq!(words(b"\x82\xa1a\x01\xa1b\x02").unwrap(), ["msgpack"]);
    }

    #[test]
    fn words_and_tokens_are_not_documents() {
        for text in [
            &b"in-progress"[..],
            b"",
            b"1",
            b"7b0e2c1a-5d0f-4a6e-9a57-0b7f3a3f6f11",
            b"9f86d081884c7d659a2feaa0c55ad015",
            b"Zk3uJ9aQw1XyBv7T",
            b"x\x9cno",
            b"\x1f\x8bno",
            b"\"text\"",
        ] {
            assert_eq!(words(text), None, "{}", text.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = open(&bytes);
        }
    }

    fn sample(key: &str, text: &str, time_left: TimeLeft) -> KeyState {
        KeyState::new(
            key.as_bytes(),
            Content::text(text.as_bytes().to_vec()),
            time_left,
            Deadline::Unknown,
        )
    }

    #[test]
    fn each_format_is_represented_however_rare() {
        let expires = TimeLeft::Millis(1_000);
        let mut samples: Vec<_> =
            (0..100).map(|n| sample(&format!("done-{n}"), "{\"s\":\"done\"}", expires)).collect();
        samples.push(sample("held", "{\"s\":\"held\"}", expires));
        samples.push(sample("stuck", "{\"s\":\"held\"}", TimeLeft::NoExpiry));
        let chosen = representatives(samples.clone(), 10);
        assert_eq!(chosen.len(), 10);
        for key in ["held", "stuck"] {
            assert!(chosen.iter().any(|sample| sample.redis_key == key.as_bytes()), "{key}");
        }
        assert_eq!(representatives(samples, 1_000).len(), 102);
    }
}
