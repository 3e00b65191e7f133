//! Fields of a result that the service may fail to decode: then it may not replay the result.

use super::fields::FieldSource;
use super::stored::is_base64;
use crate::domain::record::{Json, json_prefix};
use crate::domain::schema::{BodyEncoding, BodyIs, Encoding, Schema, State, Template, ValueFormat};

/// Why the service may fail to decode a field of the response in a whole result; `None` if nothing
/// shows that.
pub(super) fn response_field(
    schema: &Schema,
    format: &ValueFormat,
    source: FieldSource<'_>,
) -> Option<String> {
    if !source.whole || !format.state.is_result() {
        return None;
    }
    let document = source.document?;
    let fields = &format.fields;
    if let Some(path) = &fields.status
        && let Some(why) = status(schema, format, document, path)
    {
        return Some(format!("`{path}` {why}"));
    }
    if let Some(path) = &fields.headers
        && let Some(found) = document.pointer(path)
        && !matches!(found, Json::Null | Json::Object(_) | Json::Array(_) | Json::Raw(_))
    {
        return Some(format!("`{path}` has no headers"));
    }
    let path = fields.body.as_ref()?;
    // A body that is decoded as a document was found to be one.
    if format
        .decoding
        .inside
        .iter()
        .any(|(at, decoder)| at == path && decoder.encoding.has_fields())
    {
        return None;
    }
    let why = body(schema, format, &document.pointer(path)?)?;
    Some(format!("`{path}` {why}"))
}

/// What is wrong with the status at a path.
fn status(
    schema: &Schema,
    format: &ValueFormat,
    document: &Json<'_>,
    path: &str,
) -> Option<&'static str> {
    match document.pointer(path)? {
        Json::Null => None,
        // A hash has only texts.
        Json::String(text) if format.encoding() == Encoding::Hash && is_field_of_hash(path) => {
            if text.parse::<i64>().is_ok() {
                None
            } else {
                Some("is not a status")
            }
        }
        Json::String(text) if text.parse::<i64>().is_err() => Some("is not a status"),
        Json::String(_) if template_of(schema, format)?.writes_status_as_number() => {
            Some("is a text, and the service writes a number")
        }
        Json::String(_) => None,
        other => {
            if other.as_i64().is_some() {
                None
            } else {
                Some("is not a status")
            }
        }
    }
}

fn is_field_of_hash(path: &str) -> bool {
    !path.trim_start_matches('/').contains('/')
}

/// What is wrong with a body.
fn body(schema: &Schema, format: &ValueFormat, found: &Json<'_>) -> Option<&'static str> {
    let is_text = matches!(found, Json::String(_) | Json::Bytes(_));
    // A missing body is judged by `null`, and any other value is a body in JSON.
    if *found == Json::Null || format.body_encoding == BodyEncoding::Json {
        return None;
    }
    let bytes = match found {
        Json::String(text) => text.as_bytes(),
        Json::Bytes(bytes) => &bytes[..],
        _ => &[],
    };
    if format.body_encoding == BodyEncoding::Base64 && !(is_text && is_base64(bytes)) {
        return Some("is not base64");
    }
    // Only a body that is JSON in a text is decoded. Other services take a value of any type.
    if format.body_is != BodyIs::Json || format.body_encoding != BodyEncoding::Text {
        return None;
    }
    if !is_text {
        return Some("is not a text");
    }
    let is_no_body = bytes.is_empty() && schema.write.no_body.as_deref() == Some("");
    if !is_no_body && json_prefix::parse(bytes, true).is_err() {
        return Some("is not JSON");
    }
    None
}

/// The template that has the response of a result of this format.
fn template_of<'a>(schema: &'a Schema, format: &ValueFormat) -> Option<&'a Template> {
    let write = &schema.write;
    if write.response.is_some() {
        return write.response.as_ref();
    }
    match format.state {
        State::Failed if write.failed_value.is_some() => write.failed_value.as_ref(),
        _ => write.result_value.as_ref(),
    }
}
