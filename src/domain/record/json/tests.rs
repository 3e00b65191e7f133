use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::domain::record::json_prefix::parse_with_care;
use crate::domain::samples::json;

/// JSON, and what is nearly JSON.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let words = r#"{ } [ ] , : " "a" "b": "a":1, "c":"x \ \n \u00e9 \ud83d \ude00 \q 0 1 - 12.5 01 1e9 e+ . true false nul null
        é 😀 {"a":{"b":[1,"x", {} [] x"#;
    let piece = prop::sample::select(
        words.split_whitespace().chain([" ", "\n", "\u{1}"]).collect::<Vec<_>>(),
    );
    let odd = prop_oneof![9 => piece.prop_map(|text| text.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 1..2)];
    prop::collection::vec(odd, 0..12).prop_map(|pieces| [&b"{"[..], &pieces.concat()].concat())
}

/// Where the plain way reads something, the careful one reads the same.
fn agree(bytes: &[u8], whole: bool) -> Result<(), TestCaseError> {
    if let Some(plain) = plain(bytes, whole) {
        let careful = parse_with_care(bytes, whole).map(|json| json.to_value());
        prop_assert_eq!(Ok(plain.to_value()), careful, "{} {}", bytes.escape_ascii(), whole);
    }
    Ok(())
}

#[test]
fn what_services_write_is_plain() {
    for (text, whole) in [
        (r#"{"status":"PENDING"}"#, true),
        (r#"{"status":"COMPLETED","code":201,"headers":{"Content-Type":["app"#, false),
        (r#"{"status":1,"response":{"StatusCode":200,"Header":{},"Body":"aGVs"#, false),
        (r#"{"statusCode":200,"body":"{\"id\":\"ord_1\",\"state\":\"done and m"#, false),
        (r#"{"status":"COMPLETED","code":20"#, false),
    ] {
        assert!(plain(text.as_bytes(), whole).is_some(), "{text}");
    }
}

#[test]
fn pointers_are_followed() {
    let document = plain(br#"{"a":{"b/c":[10,{"~":null}]},"":1}"#, true).unwrap();
    let number = |path| document.pointer(path).and_then(|found| found.as_i64());
    assert_eq!(number("/a/b~1c/0"), Some(10));
    assert_eq!(document.pointer("/a/b~1c/1/~0"), Some(Json::Null));
    assert_eq!(number("/"), Some(1));
    assert_eq!(document.pointer("").map(|found| found.to_value()), Some(document.to_value()));
    assert_eq!(
        (document.pointer("/a/b~1c/01"), document.pointer("a"), document.pointer("/x")),
        (None, None, None)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_nearly_json_is_read_as_with_care(bytes in text(), whole in any::<bool>()) {
        agree(&bytes, whole)?;
    }

    #[test]
    fn every_beginning_is_read_as_with_care(value in json(), cut in any::<prop::sample::Index>(), path in "(/[a-c0-2]){0,3}") {
        let text = serde_json::to_vec(&serde_json::json!({ "a": value, "b": [value] })).unwrap();
        let part = &text[..=cut.index(text.len())];
        agree(part, false)?;
        agree(&text, true)?;
        let document = plain(&text, true).expect("a plain object");
        let owned: Value = serde_json::from_slice(&text).unwrap();
        prop_assert_eq!(document.pointer(&path).map(|found| found.to_value()), owned.pointer(&path).cloned());
    }
}

/// Rule: what is settled in a part of a document is what the whole document has there.
#[test]
fn what_is_settled_does_not_change_with_further_bytes() {
    let text =
        r#"{"a":"x\u00e9y","n":12,"o":{"s":201,"t":"end","l":[1,"two"]},"w":true,"z":"last"}"#;
    let whole = plain(text.as_bytes(), true).unwrap();
    let paths = ["/a", "/n", "/o", "/o/s", "/o/t", "/o/l/1", "/o/none", "/w", "/z", "/none"];
    let mut settled = 0;
    for end in 1..text.len() {
        let Some(part) = plain(&text.as_bytes()[..end], false) else { continue };
        for path in paths {
            if part.is_settled(path) {
                settled += 1;
                let found = part.pointer(path).map(|found| found.to_value());
                assert_eq!(
                    found,
                    whole.pointer(path).map(|found| found.to_value()),
                    "{path} {end}"
                );
            }
        }
    }
    // Most fields are settled as soon as the next one begins.
    assert!(settled > 200, "{settled}");
}
