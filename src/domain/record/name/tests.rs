use proptest::prelude::*;

use super::*;
use crate::domain::samples::catalog;

fn named(key: &[u8]) -> RecordName {
    RecordName { db: None, schema: "express".to_owned(), prefix: None, key: key.to_vec() }
}

/// Bytes of the kinds that a name has to keep apart.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let telling = prop::sample::select(b"\"\\/@xnr0a9 \r\n\0\xff\xe2".to_vec());
    prop::collection::vec(prop_oneof![telling, any::<u8>()], 1..12)
}

#[test]
fn a_name_is_plain_unless_its_key_is_not() {
    let shown = [
        (&b"abc"[..], "express/abc"),
        (b"a/b@c 'd'", "express/a/b@c 'd'"),
        (b"idem:victim", "express/idem:victim"),
        ("für-😀".as_bytes(), "express/für-😀"),
        (b"a\nb", r#"express/"a\nb""#),
        (b"victim\r", r#"express/"victim\r""#),
        (b"b,\"c\"", r#"express/"b,\"c\"""#),
        (b"a\\b", r#"express/"a\\b""#),
        (b" a", r#"express/" a""#),
        (b"\x1b[31m\xff", r#"express/"\x1b[31m\xff""#),
        ("\u{202e}x".as_bytes(), r#"express/"\xe2\x80\xaex""#),
    ];
    for (key, text) in shown {
        assert_eq!(named(key).text(), text);
    }
    let elsewhere = RecordName { db: Some(3), prefix: Some("old/".to_owned()), ..named(b"k") };
    assert_eq!(elsewhere.text(), r#"3/express@"old/"/k"#);
    assert_eq!(RecordName { schema: "3".to_owned(), ..named(b"k") }.text(), r#""3"/k"#);
}

/// Rule: only quotes name the empty key: a text that lost its key is no name.
#[test]
fn the_empty_key_is_named_in_quotes() {
    assert_eq!(named(b"").text(), "express/\"\"");
    assert_eq!(named(b"").raw(), b"express/\"\"");
    assert_eq!(RecordName::parse(b"express/\"\"").unwrap(), named(b""));
    assert_eq!(RecordName::parse(b"express/"), None);
}

#[test]
fn other_texts_are_no_names() {
    for text in ["", "k", "express", "express/", "/k", "express/\"a", "express/\"a\"b", "3/k"] {
        assert_eq!(RecordName::parse(text.as_bytes()), None, "{text}");
    }
    for text in [
        r#"express/"\q""#,
        r#"express/"\x1""#,
        "express@old/k",
        r#""express/k"#,
        r"express/x\n",
        r#"express/x"y"#,
    ] {
        assert_eq!(RecordName::parse(text.as_bytes()), None, "{text}");
    }
}

/// Rule: only a line that ends with NUL is always a name; any other may be a key that looks like one.
#[test]
fn a_text_is_read_in_every_way_that_it_can_be_meant() {
    let readings = |text: &str, chosen: &[&str]| {
        let readings = GivenKey::word(text).meanings(&catalog(chosen, None), 0);
        (readings.name.map(|name| name.text()), readings.keys.len())
    };
    let is = |name: &str| Some(name.to_owned());
    assert_eq!(readings("express/k", &[]), (is("express/k"), 1));
    assert_eq!(readings("express/\"k\"", &[]), (is("express/k"), 1));
    assert_eq!(readings("payments/k", &[]), (None, 1));
    assert_eq!(readings("payments/\"k\"", &[]), (None, 1));
    assert_eq!(
        readings("express/k", &["go-chi"]),
        (None, 0),
        "no record of the other schema is meant"
    );
    assert_eq!(readings("0/express/k", &[]), (is("0/express/k"), 1));
    assert_eq!(readings("3/express/k", &[]), (None, 0), "nor one of this database");
    let of_nul_list = GivenKey { is_name: true, ..GivenKey::word("express/\"k\"") };
    assert_eq!(of_nul_list.meanings(&catalog(&[], None), 0).keys.len(), 0);
}

#[test]
fn the_way_out_of_an_ambiguity_is_another_text() {
    assert_eq!(named(b"k").instead_of(b"k"), "express/k");
    assert_eq!(named(b"k").instead_of(b"express/k"), "express/\"k\"");
    assert_eq!(named(b"\"").instead_of(br#"express/"\"""#), r#"express/"\x22""#);
}

proptest! {
    #[test]
    fn every_name_is_read_back(
        key in any_bytes(),
        schema in "[a-z0-9@/\"\\\\ -]{1,6}",
        prefix in prop::option::of(".{0,5}"),
        db in prop::option::of(0i64..1000),
    ) {
        let name = RecordName { db, schema, prefix, key };
        for text in [name.text().into_bytes(), name.quoted().into_bytes(), name.raw()] {
            prop_assert_eq!(&RecordName::parse(&text).unwrap(), &name, "{}", text.escape_ascii());
        }
        prop_assert!(name.text().chars().all(|c| !c.is_control()));
        prop_assert!(!name.raw().contains(&0));
    }

    /// A text is one name at most: what is read is printed as what is read back the same.
    #[test]
    fn what_is_read_is_one_name(text in any_bytes()) {
        if let Some(parsed) = RecordName::parse(&[b"express/", &text[..]].concat()) {
            prop_assert_eq!(RecordName::parse(parsed.text().as_bytes()).unwrap(), parsed);
        }
    }
}
