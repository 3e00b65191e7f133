//! How services in different languages encode the parts of a response.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use crate::domain::record::Response;
use crate::domain::schema::{HeaderNames, Timestamp};
use crate::domain::ticks;

/// Headers as Go encodes a map: sorted by name, with all values of a header in one list.
pub(super) fn header_lists(response: &Response, names: HeaderNames) -> Value {
    let mut lists: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, text) in &response.headers {
        lists.entry(header_name(response, name, names)).or_default().push(text);
    }
    lists.into_iter().map(|(name, texts)| (name, Value::from(texts))).collect()
}

/// Headers as JavaScript encodes an object: in their order, with an array for a header that occurs
/// more than once.
pub(super) fn headers(response: &Response, names: HeaderNames) -> Value {
    let mut object = Map::new();
    for (name, text) in &response.headers {
        let name = header_name(response, name, names);
        match object.get_mut(&name) {
            None => {
                object.insert(name, Value::from(text.as_str()));
            }
            Some(Value::Array(texts)) => texts.push(Value::from(text.as_str())),
            Some(first) => *first = Value::from(vec![first.take(), Value::from(text.as_str())]),
        }
    }
    Value::Object(object)
}

/// A header's name as the service writes it. Readers take `x-a` and `X-A` for one header, so that
/// they could drop the values of the second: a repeated header has its first name.
fn header_name(response: &Response, name: &str, names: HeaderNames) -> String {
    match names {
        HeaderNames::AsGiven => {
            let mut headers = response.headers.iter();
            let first = headers.find(|(first, _)| first.eq_ignore_ascii_case(name));
            first.map_or(name, |(first, _)| first).to_owned()
        }
        HeaderNames::Lower => name.to_ascii_lowercase(),
        HeaderNames::Canonical => canonical(name),
    }
}

/// A header's name as Go's `textproto.CanonicalMIMEHeaderKey` writes it. The first letter and each
/// letter after a hyphen are upper case, and the others are lower case. A name with a byte that no
/// header may have is unchanged.
fn canonical(name: &str) -> String {
    if name.is_empty() || !name.bytes().all(is_in_header_names) {
        return name.to_owned();
    }
    let mut canonical = String::with_capacity(name.len());
    let mut starts_word = true;
    for letter in name.chars() {
        canonical.push(if starts_word {
            letter.to_ascii_uppercase()
        } else {
            letter.to_ascii_lowercase()
        });
        starts_word = letter == '-';
    }
    canonical
}

/// True for the bytes of a token of RFC 9110. A header's name is such a token.
fn is_in_header_names(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Rewrites JSON as `JSON.stringify` does: without spaces, and without unnecessary escapes in
/// strings. Numbers are unchanged, so that no digits are lost that JavaScript would lose. `None` if
/// the text is not JSON.
pub(in crate::domain) fn compact_json(text: &[u8]) -> Option<Vec<u8>> {
    // Own code, because parsing to a `Value` and back would change numbers, as in `1.0` or 20
    // digits.
    serde_json::from_slice::<serde::de::IgnoredAny>(text).ok()?;
    let mut compact = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.first() {
        let length = if *first == b'"' { string_length(rest) } else { 1 };
        let (token, more) = rest.split_at(length);
        match first {
            b'"' => compact.extend(unescaped(token)),
            byte if byte.is_ascii_whitespace() => {}
            byte => compact.push(*byte),
        }
        rest = more;
    }
    Some(compact)
}

/// The length in bytes of the JSON string at the beginning of the text, including its quotes.
fn string_length(text: &[u8]) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.iter().enumerate().skip(1) {
        if *byte == b'"' && !is_escaped {
            return at + 1;
        }
        // A backslash that is itself escaped does not escape the next byte.
        is_escaped = *byte == b'\\' && !is_escaped;
    }
    text.len()
}

/// A JSON string with only the necessary escapes. A string with an unpaired surrogate is unchanged.
fn unescaped(string: &[u8]) -> Vec<u8> {
    match serde_json::from_slice::<String>(string) {
        Ok(text) => Value::from(text).to_string().into_bytes(),
        Err(_) => string.to_vec(),
    }
}

/// A time, given in milliseconds since the epoch, as a value stores it.
pub(super) fn timestamp(ms: u64, unit: Timestamp) -> Vec<u8> {
    match unit {
        Timestamp::Milliseconds => ms.to_string().into_bytes(),
        Timestamp::Seconds => (ms / 1_000).to_string().into_bytes(),
        Timestamp::Ticks => ticks::from_ms(ms).to_string().into_bytes(),
        Timestamp::Rfc3339 => {
            humantime::format_rfc3339_millis(system_time(ms)).to_string().into_bytes()
        }
    }
}

/// A time as `datetime.isoformat()` of Python writes it in UTC: with microseconds unless they are
/// 0, and with an offset, because Python before 3.11 does not read `Z`.
pub(super) fn isoformat(ms: u64) -> Vec<u8> {
    let time = system_time(ms);
    let text = if ms.is_multiple_of(1_000) {
        humantime::format_rfc3339_seconds(time).to_string()
    } else {
        humantime::format_rfc3339_micros(time).to_string()
    };
    text.replace('Z', "+00:00").into_bytes()
}

/// The time this many milliseconds after the epoch, but before the year 10000, which neither RFC
/// 3339 nor Python has.
fn system_time(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms.min(253_402_300_799_000))
}

/// A TTL for `EX`, which takes whole seconds. It is rounded up, so that no lock ends early and no
/// TTL is 0.
pub(super) fn whole_seconds(ttl: Duration) -> Vec<u8> {
    ttl.as_millis().div_ceil(1000).to_string().into_bytes()
}

/// A TTL for `PX`, which takes whole milliseconds. It is rounded up, so that no TTL is 0.
pub(super) fn milliseconds(ttl: Duration) -> Vec<u8> {
    ttl.as_nanos().div_ceil(1_000_000).to_string().into_bytes()
}

/// Escapes the characters that Go's `encoding/json` always escapes.
pub(super) fn escape_html(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up() {
        assert_eq!(whole_seconds(Duration::from_millis(1)), b"1");
        assert_eq!(whole_seconds(Duration::from_millis(30_000)), b"30");
    }

    /// From Python 3.11: `datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat()`.
    #[test]
    fn times_are_as_python_writes_them() {
        assert_eq!(isoformat(1_795_795_382_675), b"2026-11-27T16:03:02.675000+00:00");
        assert_eq!(isoformat(1_795_795_382_000), b"2026-11-27T16:03:02+00:00");
    }

    #[test]
    fn gos_json_escapes_angle_brackets() {
        assert_eq!(escape_html("<a&b>"), "\\u003ca\\u0026b\\u003e");
    }

    #[test]
    fn header_names_are_written_as_the_language_does() {
        for (given, written) in [
            ("content-type", "Content-Type"),
            ("CONTENT-TYPE", "Content-Type"),
            ("x-requestID", "X-Requestid"),
            ("ETag", "Etag"),
            ("-x-", "-X-"),
            ("not a name", "not a name"),
        ] {
            assert_eq!(canonical(given), written);
        }
        let header = |name: &str| (name.to_owned(), String::new());
        let response =
            Response { headers: vec![header("ETag"), header("etag")], ..Response::default() };
        let name = |name, names| header_name(&response, name, names);
        assert_eq!(name("ETag", HeaderNames::Lower), "etag");
        assert_eq!(name("ETag", HeaderNames::AsGiven), "ETag");
        assert_eq!(name("etag", HeaderNames::AsGiven), "ETag", "one header has one name");
    }

    #[test]
    fn json_loses_its_spaces_and_nothing_else() {
        let compact = |text: &str| {
            compact_json(text.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        assert_eq!(
            compact("{ \"a b\" : [1.0, 12345678901234567890 ] }\n").unwrap(),
            r#"{"a b":[1.0,12345678901234567890]}"#
        );
        assert_eq!(compact(r#" "a \" b \\" "#).unwrap(), r#""a \" b \\""#);
        assert_eq!(
            compact(r#"["a\/b","\u00e9\u0009\u001F","\ud800", "\\\\"]"#).unwrap(),
            r#"["a/b","é\t\u001f","\ud800","\\\\"]"#
        );
        assert_eq!(compact("hello world"), None);
    }
}
