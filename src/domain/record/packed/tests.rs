use proptest::prelude::*;
use serde_json::{Value, json};

use super::{cbor, msgpack};

/// What Python's `msgpack` and `cbor2` write of one and the same value.
const MSGPACK: &str = "8aa2687381ac436f6e74656e742d5479706591b06170706c69636174696f6e2f6a736f6ea162c4087b226964223a337da27363ccc9a16ec0a166cb3ff8000000000000a36e6567f9a3626967cf8000000000000000a174c3a16c920102a178d92878787878787878787878787878787878787878787878787878787878787878787878787878787878";
const CBOR: &str = "aa626873a16c436f6e74656e742d5479706581706170706c69636174696f6e2f6a736f6e6162487b226964223a337d62736318c9616ef66166fb3ff8000000000000636e656726636269671b80000000000000006174f5616c8201026178782878787878787878787878787878787878787878787878787878787878787878787878787878787878";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn value(format: &str, bytes: &[u8], whole: bool) -> Result<Value, String> {
    let json = if format == "cbor" { cbor(bytes, whole) } else { msgpack(bytes, whole) };
    json.map(|json| json.to_value())
}

fn from_cbor(hex: &str) -> Value {
    value("cbor", &bytes(hex), true).unwrap_or_else(|why| panic!("{hex}: {why}"))
}

#[test]
fn what_other_encoders_write_is_read() {
    let wanted = json!({
        "hs": { "Content-Type": ["application/json"] }, "b": r#"{"id":3}"#, "sc": 201, "n": null, "f": 1.5, "neg": -7,
        "big": 9_223_372_036_854_775_808_u64, "t": true, "l": [1, 2], "x": "x".repeat(40),
    });
    for (format, hex) in [("msgpack", MSGPACK), ("cbor", CBOR)] {
        assert_eq!(value(format, &bytes(hex), true).unwrap(), wanted, "{format}");
    }
}

/// From appendix A of RFC 8949.
#[test]
fn the_examples_of_the_standard_are_read() {
    for (hex, wanted) in [
        ("00", json!(0)),
        ("1903e8", json!(1000)),
        ("1bffffffffffffffff", json!(u64::MAX)),
        ("3903e7", json!(-1000)),
        ("f93e00", json!(1.5)),
        ("f9c400", json!(-4)),
        ("fa47c35000", json!(100_000)),
        ("fbc010666666666666", json!(-4.1)),
        ("f6", json!(null)),
        ("c074323031332d30332d32315432303a30343a30305a", json!("2013-03-21T20:04:00Z")),
        ("62c3bc", json!("ü")),
        ("7f657374726561646d696e67ff", json!("streaming")),
        ("9f018202039f0405ffff", json!([1, [2, 3], [4, 5]])),
        ("bf61610161629f0203ffff", json!({ "a": 1, "b": [2, 3] })),
        ("a201020304", json!({ "1": 2, "3": 4 })),
    ] {
        assert_eq!(from_cbor(hex), wanted, "{hex}");
    }
}

#[test]
fn the_beginning_of_a_document_gives_what_is_complete_in_it() {
    let whole = bytes(MSGPACK);
    for (format, whole) in [("msgpack", whole), ("cbor", bytes(CBOR))] {
        for cut in 1..whole.len() {
            let part = value(format, &whole[..cut], false).unwrap();
            assert!(cut < 60 || part["sc"] == 201, "{format} {cut}: {part}");
            assert!(value(format, &whole[..cut], true).is_err(), "{format} {cut}");
        }
    }
}

#[test]
fn damage_is_refused() {
    let deep = [vec![0x91; 200], vec![0x01]].concat();
    let tags = [vec![0xc0; 200], vec![0x01]].concat();
    for (format, bytes) in [
        ("msgpack", &b"\xc1"[..]),
        ("msgpack", b"\x01\x02"),
        ("msgpack", b"\x81\x90\x01"),
        ("msgpack", &deep),
        ("cbor", b"\xff"),
        ("cbor", b"\x1f"),
        ("cbor", b"\x5f\x01\xff"),
        ("cbor", &tags),
        ("cbor", b""),
    ] {
        assert!(value(format, bytes, true).is_err(), "{}", bytes.escape_ascii());
    }
}

proptest! {
    /// A length in front that no bytes follow reserves no memory, and no bytes make a reader panic.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80), whole in any::<bool>()) {
        for format in ["msgpack", "cbor"] {
            let _ = value(format, &bytes, whole);
        }
    }
}

/// Rule: a document takes a bounded tree, however few bytes its items take.
#[test]
fn a_document_of_too_many_items_is_refused() {
    let most = super::items::MOST_ITEMS;
    let of_msgpack =
        |count: usize| [&b"\xdd"[..], &u32::try_from(count).unwrap().to_be_bytes(), &vec![0xc0; count]].concat();
    let of_cbor = |count: usize| [&b"\x9f"[..], &vec![0xf6; count], b"\xff"].concat();
    let of_php = |count: usize| format!("a:{count}:{{{}}}", "i:0;N;".repeat(count)).into_bytes();
    let of_newtonsoft = |count: usize| {
        let items = vec!["1"; count].join(",");
        format!(r#"{{"l":{{"$type":"x","$values":[{items}]}}}}"#).into_bytes()
    };
    type Parse = fn(&[u8], bool) -> Result<(), String>;
    let formats: [(Vec<u8>, Vec<u8>, Parse); 4] = [
        (of_msgpack(most), of_msgpack(most + 1), |bytes, whole| msgpack(bytes, whole).map(drop)),
        (of_cbor(most - 1), of_cbor(most + 1), |bytes, whole| cbor(bytes, whole).map(drop)),
        (of_php(most), of_php(most + 1), |bytes, whole| super::php(bytes, whole).map(drop)),
        (of_newtonsoft(most), of_newtonsoft(most + 2), |bytes, whole| super::newtonsoft(bytes, whole).map(drop)),
    ];
    for (fits, bomb, parse) in formats {
        assert_eq!(parse(&fits, true), Ok(()));
        for whole in [true, false] {
            assert!(parse(&bomb, whole).unwrap_err().contains("expands beyond 262144 items"), "{whole}");
        }
    }
    // Items count wherever they are.
    let nested = [&b"\xdd\0\x04\0\0"[..], &b"\x91\xc0".repeat(most)].concat();
    assert!(msgpack(&nested, true).unwrap_err().contains("expands beyond"));
}
