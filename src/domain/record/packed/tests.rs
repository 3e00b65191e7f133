use proptest::prelude::*;
use serde_json::{Value, json};

use super::{msgpack, php};
use crate::domain::record::Json;

/// What Python's `msgpack` writes.
const MSGPACK: &str = "8aa2687381ac436f6e74656e742d5479706591b06170706c69636174696f6e2f6a736f6ea162c4087b226964223a337da27363ccc9a16ec0a166cb3ff8000000000000a36e6567f9a3626967cf8000000000000000a174c3a16c920102a178d92878787878787878787878787878787878787878787878787878787878787878787878787878787878";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn value(bytes: &[u8], whole: bool) -> Result<Value, String> {
    msgpack(bytes, whole).map(|json| json.to_value())
}

#[test]
fn what_other_encoders_write_is_read() {
    let wanted = json!({
        "hs": { "Content-Type": ["application/json"] }, "b": r#"{"id":3}"#, "sc": 201, "n": null, "f": 1.5, "neg": -7,
        "big": 9_223_372_036_854_775_808_u64, "t": true, "l": [1, 2], "x": "x".repeat(40),
    });
    assert_eq!(value(&bytes(MSGPACK), true).unwrap(), wanted);
}

#[test]
fn the_beginning_of_a_document_gives_what_is_complete_in_it() {
    let whole = bytes(MSGPACK);
    for cut in 1..whole.len() {
        let part = value(&whole[..cut], false).unwrap();
        assert!(cut < 60 || part["sc"] == 201, "{cut}: {part}");
        assert!(value(&whole[..cut], true).is_err(), "{cut}");
    }
}

#[test]
fn damage_is_refused() {
    let deep = [vec![0x91; 200], vec![0x01]].concat();
    for bytes in [&b"\xc1"[..], b"\x01\x02", b"\x81\x90\x01", &deep, b""] {
        assert!(value(bytes, true).is_err(), "{}", bytes.escape_ascii());
    }
}

proptest! {
    /// A length in front that no bytes follow reserves no memory, and no bytes make a reader panic.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80), whole in any::<bool>()) {
        let _ = value(&bytes, whole);
    }
}

/// Rule: a document takes a bounded tree, however few bytes its items take.
#[test]
fn a_document_of_too_many_items_is_refused() {
    let most = super::items::MAX_ITEMS;
    let of_msgpack = |count: usize| {
        [&b"\xdd"[..], &u32::try_from(count).unwrap().to_be_bytes(), &vec![0xc0; count]].concat()
    };
    let of_php = |count: usize| format!("a:{count}:{{{}}}", "i:0;N;".repeat(count)).into_bytes();
    let of_newtonsoft = |count: usize| {
        let items = vec!["1"; count].join(",");
        format!(r#"{{"l":{{"$type":"x","$values":[{items}]}}}}"#).into_bytes()
    };
    type Parse = fn(&[u8], bool) -> Result<(), String>;
    let formats: [(Vec<u8>, Vec<u8>, Parse); 3] = [
        (of_msgpack(most), of_msgpack(most + 1), |bytes, whole| msgpack(bytes, whole).map(drop)),
        (of_php(most), of_php(most + 1), |bytes, whole| php(bytes, whole).map(drop)),
        (of_newtonsoft(most), of_newtonsoft(most + 2), |bytes, whole| {
            super::newtonsoft(bytes, whole).map(drop)
        }),
    ];
    for (fits, bomb, parse) in formats {
        assert_eq!(parse(&fits, true), Ok(()));
        for whole in [true, false] {
            assert!(
                parse(&bomb, whole).unwrap_err().contains("expands beyond 262144 items"),
                "{whole}"
            );
        }
    }
    // Items count wherever they are.
    let nested = [&b"\xdd\0\x04\0\0"[..], &b"\x91\xc0".repeat(most)].concat();
    assert!(msgpack(&nested, true).unwrap_err().contains("expands beyond"));
}

#[test]
fn a_key_that_is_written_twice_is_one_field_with_the_last_value() {
    // {"a": 1, "a": 2} in MessagePack, and the same array in PHP's format.
    let packed = bytes("82a16101a16102");
    let Json::Object(members) = msgpack(&packed, true).unwrap() else { panic!("an object") };
    assert_eq!(members, [("a".into(), Json::Number("2".into()))]);
    let text = br#"a:2:{s:1:"a";i:1;s:1:"a";i:2;}"#;
    let Json::Object(members) = php(text, true).unwrap() else { panic!("an object") };
    assert_eq!(members, [("a".into(), Json::Number("2".into()))]);
}
