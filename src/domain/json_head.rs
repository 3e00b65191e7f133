//! JSON that was cut off: closing what is open, so that the part that was read can be used.
//!
//! A stored value may be megabytes long; its state, status and headers stand at its beginning.
//!
//! The services' scripts read JSON with cjson, which takes the bytes inside a string as they come. So that a record's
//! state is told as the scripts tell it, bytes that are not UTF-8 and bare control characters are let through here
//! too; the former become U+FFFD. What cjson takes beyond that is `unreadable`: nesting deeper than 128, numbers such
//! as `0x10` and `nan`, and anything behind a zero byte.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use crate::domain::json::{self, Json, close};

/// Parses JSON bytes, or the beginning of some.
///
/// With `whole` false the bytes may end anywhere: what is open is closed, a string is cut where the bytes end,
/// and an incomplete member is dropped.
///
/// # Errors
/// Why the bytes are not JSON, for people.
pub fn parse(bytes: &[u8], whole: bool) -> Result<Json<'_>, String> {
    if let Some(plain) = json::plain(bytes, whole) {
        return Ok(plain);
    }
    let json = if whole { Cow::Borrowed(bytes) } else { Cow::Owned(close(bytes)) };
    let sound = with_sound_strings(&json);
    match json::plain(sound.as_bytes(), true) {
        Some(plain) => Ok(plain.into_owned()),
        None if json.len() > LARGEST_TREE => Err(damage(&json)),
        None => parse_with_care(bytes, whole).map(Json::from),
    }
}

/// Bytes of JSON from which on no tree is made of it to learn what is wrong.
const LARGEST_TREE: usize = 1024 * 1024;

/// Why bytes of which no tree is made are not JSON.
fn damage(json: &[u8]) -> String {
    match serde_json::from_slice::<serde::de::IgnoredAny>(json) {
        Err(error) => error.to_string(),
        Ok(_) => "an escape sequence in it stands for no character".to_owned(),
    }
}

/// The same for what is odd.
pub(super) fn parse_with_care(bytes: &[u8], whole: bool) -> Result<Value, String> {
    let json = if whole { Cow::Borrowed(bytes) } else { Cow::Owned(close(bytes)) };
    serde_json::from_slice(&json)
        .or_else(|error| serde_json::from_str(&with_sound_strings(&json)).map_err(|_| error.to_string()))
}

/// The same JSON with what JSON forbids inside strings put in a form it allows. A zero byte stays: cjson stops there.
fn with_sound_strings(json: &[u8]) -> String {
    let mut sound = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    // As `from_utf8_lossy` does, without a copy of its own.
    let characters = json.utf8_chunks().flat_map(|chunk| {
        let replacement = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
        chunk.valid().chars().chain(replacement)
    });
    for character in characters {
        match character {
            '\u{1}'..='\u{1f}' if in_string && !escaped => {
                let _ = write!(sound, "\\u{:04x}", u32::from(character));
            }
            _ => sound.push(character),
        }
        in_string ^= character == '"' && !escaped;
        escaped = in_string && !escaped && character == '\\';
    }
    sound
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-zé\"\\\\😀\u{1}]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-z\"]{1,4}", inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
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
    fn a_cut_number_is_dropped_for_it_may_go_on() {
        assert_eq!(parse_with_care(br#"{"status":1,"code":20"#, false).unwrap(), serde_json::json!({"status": 1}));
    }

    #[test]
    fn a_cut_surrogate_pair_is_dropped() {
        assert_eq!(parse_with_care(br#"{"a":"x\ud83d"#, false).unwrap(), serde_json::json!({"a": "x"}));
        assert_eq!(parse_with_care(br#"{"a":"x\ud83d\ude0"#, false).unwrap(), serde_json::json!({"a": "x"}));
    }

    #[test]
    fn any_bytes_in_strings_leave_the_rest_readable() {
        assert_eq!(parse_with_care(b"{\"status\":1,\"body\":\"caf\xe9\"}", true).unwrap()["body"], "caf\u{fffd}");
        assert_eq!(parse_with_care(b"{\"status\":1,\"body\":\"caf\xe9 cr", false).unwrap()["body"], "caf\u{fffd} cr");
        assert_eq!(parse_with_care(b"{\"a\":\"two\nlines\\\\\"}", true).unwrap()["a"], "two\nlines\\");
    }

    #[test]
    fn other_damage_stays_unreadable() {
        for damaged in
            [&b"{\"a\":1\xe9}"[..], b"{\"a\":\"\\\n\"}", b"{\"a\":\"\0\"}", b"{\"a\":\"\\ud83d\"}", b"caf\xe9", b"\x01"]
        {
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
