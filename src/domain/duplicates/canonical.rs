//! JSON values as canonical texts. Two values are equal exactly if their texts are.
//!
//! Numbers are compared by their exact decimal values, so `1`, `1.0` and `1e0` are equal, and
//! 9007199254740993 and 9007199254740992 are not. The number 1 and the text "1" differ. The order
//! of an object's members does not matter, that of an array's items does. Texts are compared by
//! their characters, without normalising Unicode.
//!
//! This is own code, because the JSON Canonicalization Scheme (RFC 8785) reads numbers as doubles,
//! which makes different large numbers equal.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::domain::decimal::decimal;
use crate::domain::hex::hex;
use crate::domain::record::{Json, json_prefix};

/// The longest text that is kept as it is. Values that identify an operation are shorter.
const MAX_TEXT: usize = 4 << 10;

/// The mark of a text that stands for a longer one. No JSON begins so.
pub(crate) const DIGEST: &str = "sha256:";

/// The text, or if it is longer than 4 KiB its SHA-256, so that memory stays bounded.
pub(super) fn bounded(text: String) -> String {
    if text.len() <= MAX_TEXT {
        return text;
    }
    format!("{DIGEST}{}", hex(&Sha256::digest(text.as_bytes())))
}

/// A response body read as JSON. A body that is a JSON text is read once more, because some
/// services store a body that they encoded before. `None` if the body is not JSON.
pub(super) fn body(bytes: &[u8]) -> Option<Json<'_>> {
    let outer = json_prefix::parse(bytes, true).ok()?;
    let Json::String(text) = &outer else { return Some(outer) };
    match json_prefix::parse(text.as_bytes(), true) {
        Ok(inner) => Some(inner.into_owned()),
        // A JSON text that is only a text.
        Err(_) => Some(outer),
    }
}

/// What is at a pointer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AtPointer {
    /// The canonical text.
    Value(String),
    /// Missing, null, or an empty text, array or object, which identifies nothing.
    Nothing,
    /// Nested too deeply to be compared.
    TooDeep,
}

/// What a document has at a pointer.
pub(super) fn at_pointer(document: &Json<'_>, pointer: &str) -> AtPointer {
    let Some(found) = document.pointer(pointer) else { return AtPointer::Nothing };
    let value = match &found {
        Json::Raw(text) => match serde_json::from_str(text) {
            Ok(value) => value,
            Err(_) => return AtPointer::TooDeep,
        },
        other => other.to_value(),
    };
    match text_of(&value) {
        Some(text) => AtPointer::Value(text),
        None => AtPointer::Nothing,
    }
}

/// The canonical text of a value; `None` for a value that identifies nothing.
pub(super) fn text_of(value: &Value) -> Option<String> {
    let is_empty = match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    if is_empty {
        return None;
    }
    let mut text = String::new();
    push(&mut text, value);
    Some(text)
}

fn push(text: &mut String, value: &Value) {
    match value {
        Value::Number(number) => text.push_str(&decimal(&number.to_string())),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                push(text, item);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                push(text, member);
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::String(_) => text.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(document: &str, pointer: &str) -> AtPointer {
        at_pointer(&body(document.as_bytes()).unwrap(), pointer)
    }

    fn equal(one: &str, other: &str) -> bool {
        let value = |text: &str| at(&format!("{{\"a\":{text}}}"), "/a");
        value(one) == value(other)
    }

    #[test]
    fn numbers_are_equal_by_their_exact_values() {
        for (one, other) in [
            ("1", "1.0"),
            ("1", "1e0"),
            ("100", "1E2"),
            ("0", "-0.0"),
            ("0.10", "1e-1"),
            ("1200", "0.12e4"),
            ("1e400", "10e399"),
            ("[1,{\"a\":2.50}]", "[1.0,{\"a\":2.5}]"),
        ] {
            assert!(equal(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("9007199254740993", "9007199254740992"),
            ("1", "\"1\""),
            ("1", "-1"),
            ("1", "10"),
            ("0.1", "0.01"),
            ("1e400", "1e401"),
            ("0.30000000000000004", "0.3"),
            ("[1,2]", "[2,1]"),
            ("true", "\"true\""),
            (
                "12345678901234567890123456789012345678901",
                "12345678901234567890123456789012345678902",
            ),
        ] {
            assert!(!equal(one, other), "{one} {other}");
        }
    }

    #[test]
    fn a_number_is_written_as_people_write_it() {
        for (number, text) in
            [("1.0", "1"), ("-12.50", "-12.5"), ("0.05", "0.05"), ("1e3", "1000"), ("1e60", "1e60")]
        {
            assert_eq!(decimal(number), text);
        }
    }

    #[test]
    fn members_are_compared_without_their_order_and_texts_with_their_characters() {
        assert!(equal(r#"{"x":1,"y":[null]}"#, r#"{"y":[null],"x":1}"#));
        assert!(equal(r#""\u0061""#, r#""a""#));
        assert!(!equal(r#""a""#, r#""A""#));
        assert!(!equal(r#"{"a,b":1}"#, r#"{"a":1}"#));
    }

    #[test]
    fn what_identifies_nothing_is_no_value() {
        for document in ["{}", r#"{"a":null}"#, r#"{"a":""}"#, r#"{"a":[]}"#, r#"{"a":{}}"#, "7"] {
            assert_eq!(at(document, "/a"), AtPointer::Nothing, "{document}");
        }
        assert_eq!(at(r#"{"a":false}"#, "/a"), AtPointer::Value("false".to_owned()));
        assert_eq!(at(r#"{"a":0}"#, "/a"), AtPointer::Value("0".to_owned()));
    }

    #[test]
    fn a_body_may_be_a_json_text_with_json_in_it() {
        let inside = r#""{\"order\":{\"id\":\"o-1\"}}""#;
        assert_eq!(at(inside, "/order/id"), AtPointer::Value("\"o-1\"".to_owned()));
        assert_eq!(at(r#""only a text""#, "/order/id"), AtPointer::Nothing);
        assert!(body(b"<html>").is_none() && body(b"{\"a\":").is_none());
    }

    #[test]
    fn a_long_value_is_compared_by_its_digest() {
        let long = |end: char| bounded(format!("{}{end}", "x".repeat(MAX_TEXT)));
        assert!(long('a').starts_with(DIGEST) && long('a').len() < 100);
        assert!(long('a') == long('a') && long('a') != long('b'));
        assert_eq!(bounded("x".repeat(MAX_TEXT)).len(), MAX_TEXT);
    }

    #[test]
    fn a_value_that_is_nested_too_deeply_is_not_compared() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(300), "]".repeat(300));
        assert_eq!(at(&deep, "/a"), AtPointer::TooDeep);
    }
}
