//! Encodes a value as a service stores it: the text from `[write]`, packed by the codecs and
//! encoding of the value format.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::codec::wrap;
use super::json::Json;
use super::packed;
use crate::domain::schema::{Decoder, Decoding, Encoding};

/// Packs a text; `bytes_at` are pointers to base64 texts in it that are stored as bytes.
///
/// # Errors
/// Why the text cannot be stored in this format, for people.
pub(crate) fn encode(
    decoding: &Decoding,
    text: Vec<u8>,
    bytes_at: &[String],
) -> Result<Vec<u8>, String> {
    let value = &decoding.value;
    let stands_as_it_is = matches!(value.encoding, Encoding::Text | Encoding::Json);
    if stands_as_it_is && decoding.inside.is_empty() && bytes_at.is_empty() {
        return wrap(&value.codecs, text);
    }
    pack(&packed_inside(decoding, &text, bytes_at)?, value)
}

/// The fields of a hash, names and values in turn. Texts are stored as they are, all other values
/// as JSON.
///
/// # Errors
/// Why the text is not such a hash, for people.
pub(crate) fn encode_fields(
    decoding: &Decoding,
    text: &[u8],
    bytes_at: &[String],
) -> Result<Vec<Vec<u8>>, String> {
    let Json::Object(members) = packed_inside(decoding, text, bytes_at)? else {
        return Err(
            "what is written is not a JSON object, whose members are the fields of the hash"
                .to_owned(),
        );
    };
    let mut words = Vec::with_capacity(2 * members.len());
    for (name, value) in members {
        words.push(name.into_owned().into_bytes());
        words.push(match value {
            Json::String(text) => text.into_owned().into_bytes(),
            Json::Bytes(bytes) => bytes.into_owned(),
            other => other.to_value().to_string().into_bytes(),
        });
    }
    Ok(words)
}

/// The document, after its packed fields are packed.
fn packed_inside(
    decoding: &Decoding,
    text: &[u8],
    bytes_at: &[String],
) -> Result<Json<'static>, String> {
    let tree: serde_json::Value = serde_json::from_slice(text)
        .map_err(|why| format!("what is written is not JSON: {why}"))?;
    let mut document = Json::from(tree);
    for path in bytes_at {
        put_bytes(&mut document, path)?;
    }
    // A field inside another packed field is packed before that field.
    for (path, decoder) in decoding.inside.iter().rev() {
        let Some(field) = document.pointer(path) else { continue };
        let packed = pack(&field, decoder)?;
        document.put(path, string(packed));
    }
    Ok(document)
}

/// Replaces a base64 text by the bytes that it encodes.
fn put_bytes(document: &mut Json<'static>, path: &str) -> Result<(), String> {
    let bytes = match document.pointer(path) {
        Some(Json::String(text)) => {
            STANDARD.decode(&*text).map_err(|why| format!("`{path}` is no base64: {why}"))?
        }
        // A lock has no body.
        None => return Ok(()),
        Some(_) => return Err(format!("`{path}` is no text that stands for bytes")),
    };
    document.put(path, Json::Bytes(bytes.into()));
    Ok(())
}

fn pack(document: &Json<'_>, decoder: &Decoder) -> Result<Vec<u8>, String> {
    let bytes = match (decoder.encoding, document) {
        (Encoding::Msgpack, _) => packed::to_msgpack(document)?,
        (Encoding::Php, _) => packed::to_php(document)?,
        (Encoding::Newtonsoft, _) => packed::to_newtonsoft(document)?,
        // A text counts as a document that is already encoded, if it is JSON.
        (Encoding::Json, Json::String(text)) if is_json(text) => text.as_bytes().to_vec(),
        (Encoding::Json, _) => document.to_value().to_string().into_bytes(),
        (Encoding::Text, Json::String(text)) => text.as_bytes().to_vec(),
        (Encoding::Text, Json::Bytes(bytes)) => bytes.to_vec(),
        (other, _) => return Err(format!("{} is read and not written", other.as_str())),
    };
    wrap(&decoder.codecs, bytes)
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn string(bytes: Vec<u8>) -> Json<'static> {
    match String::from_utf8(bytes) {
        Ok(text) => Json::String(text.into()),
        Err(error) => Json::Bytes(error.into_bytes().into()),
    }
}
