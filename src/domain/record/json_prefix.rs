//! Reads truncated JSON: closes the open containers, so that the part that was read can be used.
//!
//! A stored value may be megabytes long, but its state, status and headers are at its beginning.
//!
//! The services' scripts read JSON with cjson. So that idemctl sees the same state as the scripts,
//! it accepts everything that cjson accepts. That includes bytes that are not UTF-8 (they become
//! U+FFFD), bare control characters in strings, and numbers such as `0x10`, `01` and `NaN`. It also
//! includes containers 1000 deep, and anything after a zero byte, where cjson's text ends.

mod number;

use std::borrow::Cow;
use std::fmt::Write as _;

use super::json::{self, Json, close};

/// Parses JSON bytes, or the beginning of a JSON document.
///
/// With `whole` false the bytes may end anywhere: open containers are closed, a string ends where
/// the bytes end, and an incomplete member is dropped.
///
/// # Errors
/// Why the bytes are not JSON, for people.
pub fn parse(bytes: &[u8], whole: bool) -> Result<Json<'_>, String> {
    if let Some(plain) = json::plain(bytes, whole) {
        return Ok(plain);
    }
    parse_with_care(bytes, whole)
}

/// Reads JSON that [`plain`] does not read.
pub(in crate::domain) fn parse_with_care(
    bytes: &[u8],
    whole: bool,
) -> Result<Json<'static>, String> {
    let end = bytes.iter().position(|byte| *byte == 0);
    // cjson rejects a text with a zero byte among its first two as UTF-16 or UTF-32.
    if matches!(end, Some(0 | 1)) && bytes.len() > 1 {
        return Err("it begins as UTF-16 or UTF-32 does".to_owned());
    }
    let text = &bytes[..end.unwrap_or(bytes.len())];
    let whole = whole || end.is_some();
    let text = if whole { Cow::Borrowed(text) } else { Cow::Owned(close(text)) };
    let sound = sound(&text);
    if let Some(plain) = json::plain(sound.as_bytes(), true) {
        return Ok(plain.into_owned());
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(&sound) {
        Err(error) => Err(error.to_string()),
        Ok(_) if sound.trim_start().starts_with(['{', '[']) => Err(
            "an escape sequence in it stands for no character, or it is nested deeper than 1000"
                .to_owned(),
        ),
        // A document that is neither an object nor an array matches no format, so a tree that may
        // round its number is good enough.
        Ok(_) => match serde_json::from_str::<serde_json::Value>(&sound) {
            Ok(scalar) => Ok(Json::from(scalar)),
            Err(error) => Err(error.to_string()),
        },
    }
}

/// True if decoders that follow the standard accept a whole document, unlike cjson without its own
/// numbers and bare control characters. Bytes that are not UTF-8 are left out of account, because
/// many decoders replace them.
pub(in crate::domain) fn is_standard(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok()
}

/// Rewrites everything that cjson accepts and JSON forbids, in a form that JSON allows.
fn sound(json: &[u8]) -> String {
    let mut sound = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(first) = rest.first() {
        let length = match first {
            b'"' => string(rest, &mut sound),
            byte if number::may_begin(*byte) => number::copy(rest, &mut sound),
            byte if byte.is_ascii() => {
                sound.push(char::from(*byte));
                1
            }
            // No JSON document has such a byte outside of a string.
            _ => {
                sound.push(char::REPLACEMENT_CHARACTER);
                1
            }
        };
        rest = &rest[length..];
    }
    sound
}

/// Copies the string at the beginning; returns how many bytes it takes.
fn string(json: &[u8], sound: &mut String) -> usize {
    let mut is_escaped = false;
    let closing = json.iter().skip(1).position(|byte| {
        let closes = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        closes
    });
    let length = match closing {
        Some(at) => at + 2,
        None => json.len(),
    };
    let mut is_escaped = false;
    // Like `from_utf8_lossy`, without its copy.
    for chunk in json[..length].utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                // Writing to a string cannot fail.
                '\u{1}'..='\u{1f}' if !is_escaped => {
                    _ = write!(sound, "\\u{:04x}", u32::from(character))
                }
                _ => sound.push(character),
            }
            is_escaped = !is_escaped && character == '\\';
        }
        if !chunk.invalid().is_empty() {
            sound.push(char::REPLACEMENT_CHARACTER);
            is_escaped = false;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use crate::domain::samples::json;

    fn parse_with_care(bytes: &[u8], whole: bool) -> Result<Value, String> {
        super::parse_with_care(bytes, whole).map(|json| json.to_value())
    }

    #[test]
    fn a_cut_body_leaves_status_and_headers() {
        let head = br#"{"status":"COMPLETED","code":201,"headers":{"A":["b"]},"body":"aGVsbG8"#;
        let value = parse_with_care(head, false).unwrap();
        assert_eq!(value["code"], 201);
        assert_eq!(value["headers"]["A"][0], "b");
        assert_eq!(value["body"], "aGVsbG8");
    }

    #[test]
    fn a_cut_number_and_a_cut_surrogate_pair_are_dropped_for_they_may_go_on() {
        for (cut, left) in [
            (r#"{"status":1,"code":20"#, r#"{"status":1}"#),
            (r#"{"a":"x\ud83d"#, r#"{"a":"x"}"#),
            (r#"{"a":"x\ud83d\ude0"#, r#"{"a":"x"}"#),
        ] {
            assert_eq!(parse_with_care(cut.as_bytes(), false).unwrap().to_string(), left, "{cut}");
        }
    }

    #[test]
    fn a_string_that_ends_like_a_cut_surrogate_pair_is_kept() {
        let cut = r#"{"a":"x\\ud83d"#;
        assert_eq!(parse_with_care(cut.as_bytes(), false).unwrap()["a"], r"x\ud83d");
    }

    #[test]
    fn any_bytes_in_strings_leave_the_rest_readable() {
        assert_eq!(
            parse_with_care(b"{\"status\":1,\"body\":\"caf\xe9\"}", true).unwrap()["body"],
            "caf\u{fffd}"
        );
        assert_eq!(
            parse_with_care(b"{\"status\":1,\"body\":\"caf\xe9 cr", false).unwrap()["body"],
            "caf\u{fffd} cr"
        );
        assert_eq!(
            parse_with_care(b"{\"a\":\"two\nlines\\\\\"}", true).unwrap()["a"],
            "two\nlines\\"
        );
    }

    #[test]
    fn other_damage_stays_unreadable() {
        for damaged in [
            &b"{\"a\":1\xe9}"[..],
            b"{\"a\":\"\\\n\"}",
            b"{\"a\":\"\0\"}",
            b"{\"a\":\"\\ud83d\"}",
            b"caf\xe9",
            b"\x01",
        ] {
            assert!(parse_with_care(damaged, true).is_err(), "{}", damaged.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn every_beginning_of_an_object_parses(value in json(), cut in any::<prop::sample::Index>()) {
            let text = serde_json::to_vec(&serde_json::json!({ "a": value })).unwrap();
            let cut = 1 + cut.index(text.len());
            prop_assert!(parse_with_care(&text[..cut], false).is_ok(), "{}", String::from_utf8_lossy(&text[..cut]));
        }

        #[test]
        fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = parse_with_care(&bytes, false);
            let _ = parse_with_care(&bytes, true);
        }
    }
}
