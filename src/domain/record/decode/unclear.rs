//! Fields of a result that the service may fail to decode: then it may not replay the result.

use std::ops::RangeInclusive;

use super::fields::{FieldSource, millis};
use super::reading::Decoded;
use super::stored::{bytes_of_numbers, is_base64};
use crate::domain::record::{Json, json, json_prefix};
use crate::domain::schema::{
    BodyEncoding, BodyIs, Encoding, HeadersAs, Schema, State, Template, Timestamp, ValueFormat,
};

const OTHER_TYPE: &str = "is not of the type that the service writes";

const OTHER_HEADER: &str = "has a header of another type than the service writes";

/// Why the service may fail to decode a field of the response in a whole result; `None` if nothing
/// shows that.
pub(super) fn response_field(
    schema: &Schema,
    format: &ValueFormat,
    source: FieldSource<'_>,
    decoded: &Decoded,
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
    if let Some(path) = &fields.fingerprint
        && let Some(found) = document.pointer(path)
        && !(is_text(&found) || found == Json::Null)
        && writes_fingerprint_as_text(schema, format)
    {
        return Some(format!("`{path}` {OTHER_TYPE}"));
    }
    let times =
        [(&fields.created_at, decoded.created_ms), (&fields.completed_at, decoded.completed_ms)];
    for (path, time) in times {
        // A time that could be decoded is one.
        if time.is_none()
            && let Some(path) = path
            && let Some(found) = document.pointer(path)
            && !(found == Json::Null || is_time(&found, format.timestamp))
        {
            return Some(format!("`{path}` is not a time"));
        }
    }
    if let Some(expires_at) = &format.expires_at
        && let Some(Json::String(_)) = document.pointer(&expires_at.field)
        && format.encoding() != Encoding::Hash
        && template_of(schema, format).is_some_and(Template::writes_expiry_as_number)
    {
        return Some(format!("`{}` {OTHER_TYPE}", expires_at.field));
    }
    if let Some(path) = &fields.headers
        && let Some(found) = document.pointer(path)
        && let Some(why) = headers(schema, format, &found)
    {
        return Some(format!("`{path}` {why}"));
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

/// The statuses of HTTP (RFC 9110, section 15).
const HTTP_STATUSES: RangeInclusive<i64> = 100..=599;

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
            Some(OTHER_TYPE)
        }
        Json::String(_) => None,
        other => match other.as_i64() {
            // Many servers refuse to send any other.
            Some(status) if !HTTP_STATUSES.contains(&status) => Some("is not a status"),
            Some(_) => None,
            None => Some("is not a status"),
        },
    }
}

/// True if the service writes a text as the fingerprint, in the result or in the lock that the
/// result keeps it of. Its value is not described if the lock needs other data.
fn writes_fingerprint_as_text(schema: &Schema, format: &ValueFormat) -> bool {
    let write = &schema.write;
    if write.lock_needs.is_some() {
        return false;
    }
    let mut templates = template_of(schema, format).into_iter().chain(&write.lock_value);
    templates.any(Template::writes_fingerprint_as_text)
}

/// True for a time in this unit, as a number or a text.
fn is_time(found: &Json<'_>, unit: Timestamp) -> bool {
    match found {
        Json::Number(text) | Json::String(text) => millis(text.as_bytes(), unit).is_some(),
        _ => false,
    }
}

fn is_field_of_hash(path: &str) -> bool {
    !path.trim_start_matches('/').contains('/')
}

/// What is wrong with the headers.
fn headers(schema: &Schema, format: &ValueFormat, found: &Json<'_>) -> Option<&'static str> {
    let found = found.opened();
    if !matches!(found, Json::Null | Json::Object(_) | Json::Array(_)) {
        return Some("has no headers");
    }
    let are_lists = template_of(schema, format)?.writes_header_lists()?;
    let members = match &found {
        Json::Object(members) => members,
        // PHP has one type for both.
        Json::Array(items) if items.is_empty() && format.encoding() == Encoding::Php => {
            return None;
        }
        Json::Array(_) => return Some(OTHER_TYPE),
        _ => return None,
    };
    let is_single = schema.write.headers_as == HeadersAs::One;
    for (_, value) in members {
        match value.opened() {
            // Symfony has `null` in such a list.
            Json::Array(items) if are_lists => {
                if !items.iter().all(|item| is_text(item) || *item == Json::Null) {
                    return Some(OTHER_HEADER);
                }
            }
            _ if are_lists => return Some(OTHER_HEADER),
            Json::Array(_) if is_single => return Some(OTHER_HEADER),
            Json::Array(items) => {
                if !items.iter().all(is_header_text) {
                    return Some(OTHER_HEADER);
                }
            }
            Json::String(_) | Json::Bytes(_) => {}
            // Node.js keeps the type of a number that the handler set.
            Json::Number(_) if !is_single => {}
            _ => return Some(OTHER_HEADER),
        }
    }
    None
}

fn is_text(found: &Json<'_>) -> bool {
    matches!(found, Json::String(_) | Json::Bytes(_))
}

fn is_header_text(found: &Json<'_>) -> bool {
    is_text(found) || matches!(found, Json::Number(_))
}

/// What is wrong with a body.
fn body(schema: &Schema, format: &ValueFormat, found: &Json<'_>) -> Option<&'static str> {
    let is_text = is_text(found);
    // A missing body is judged by `null`, and any other value is a body in JSON.
    if *found == Json::Null || format.body_encoding == BodyEncoding::Json {
        return None;
    }
    if format.body_encoding == BodyEncoding::Bytes {
        return if bytes_of_numbers(found).is_some() { None } else { Some(OTHER_TYPE) };
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
    let is_json = json::plain(bytes, true).is_some()
        || (json_prefix::parse_with_care(bytes, true).is_ok() && json_prefix::is_standard(bytes));
    if !is_no_body && !is_json {
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
