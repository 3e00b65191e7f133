//! The output of PHP's `serialize`: <https://www.php.net/manual/en/function.serialize.php>. The
//! format follows `ext/standard/var.c`.
//!
//! Reading never runs code, because an object is read as its class's name and its properties.

use std::borrow::Cow;

use super::items::{PackedReader, UnpackError, UnpackResult, document, name, odd};
use crate::domain::record::Json;
use crate::domain::record::json::Members;

/// The member with an object's class.
pub(crate) const CLASS: &str = "__class";

/// The most digits of a length or a number.
const MAX_DIGITS: usize = 40;

/// Reads a value, or with `whole` false the beginning of one. A list becomes an array; any other
/// array and an object become an object.
///
/// # Errors
/// Why the bytes are not the output of `serialize`, for people.
pub(crate) fn parse(bytes: &[u8], whole: bool) -> Result<Json<'_>, String> {
    document(bytes, whole, item)
}

fn item<'a>(reader: &mut PackedReader<'a>) -> UnpackResult<Json<'a>> {
    let kind = reader.byte()?;
    if kind == b'N' {
        return reader.expect(b";").map(|()| Json::Null);
    }
    reader.expect(b":")?;
    match kind {
        b'b' => match reader.until(b';', MAX_DIGITS)? {
            b"0" => Ok(Json::Bool(false)),
            b"1" => Ok(Json::Bool(true)),
            _ => odd("a truth value is neither 0 nor 1"),
        },
        b'i' => number(reader, |text| text.parse::<i64>().is_ok()),
        b'd' => number(reader, |text| text.parse::<f64>().is_ok()),
        b's' => closed(reader, b";"),
        // A case of an enumeration: its class and its name.
        b'E' => closed(reader, b";"),
        b'a' => array(reader),
        b'O' => object(reader),
        b'C' => of_its_own_form(reader),
        // A reference to an earlier value, by its number.
        b'r' | b'R' => {
            let which = text(reader.until(b';', MAX_DIGITS)?)?;
            Ok(Json::String(Cow::Owned(format!("{}:{which}", char::from(kind)))))
        }
        _ => odd("it is of no type that PHP has"),
    }
}

fn text(bytes: &[u8]) -> UnpackResult<&str> {
    std::str::from_utf8(bytes).or_else(|_| odd("digits are no text"))
}

fn number<'a>(
    reader: &mut PackedReader<'a>,
    is_number: impl Fn(&str) -> bool,
) -> UnpackResult<Json<'a>> {
    let digits = text(reader.until(b';', MAX_DIGITS)?)?;
    match digits {
        // JSON has no such numbers.
        "INF" | "-INF" | "NAN" => Ok(Json::String(Cow::Borrowed(digits))),
        _ if is_number(digits) => Ok(Json::Number(Cow::Borrowed(digits))),
        _ => odd("a number is none"),
    }
}

fn length(reader: &mut PackedReader<'_>) -> UnpackResult<u64> {
    text(reader.until(b':', MAX_DIGITS)?)?.parse().or_else(|_| odd("a length is no number"))
}

/// A quoted string with a length prefix.
fn string<'a>(reader: &mut PackedReader<'a>) -> UnpackResult<Json<'a>> {
    let length = length(reader)?;
    reader.expect(b"\"")?;
    let string = reader.text_or_bytes(length);
    if !reader.cut {
        let read = reader.expect(b"\"");
        or_cut(reader, read)?;
    }
    Ok(string)
}

/// A string, and the bytes that end the value.
fn closed<'a>(reader: &mut PackedReader<'a>, end: &[u8]) -> UnpackResult<Json<'a>> {
    let string = string(reader)?;
    if !reader.cut {
        let read = reader.expect(end);
        or_cut(reader, read)?;
    }
    Ok(string)
}

fn array<'a>(reader: &mut PackedReader<'a>) -> UnpackResult<Json<'a>> {
    let count = length(reader)?;
    let mut members = Members::default();
    elements(reader, count, &mut members, |key| name(key).and_then(not_the_class))?;
    let members = members.into_inner();
    // PHP has one type for lists and maps. The keys of a list are 0, 1, 2 and so on.
    let is_list = members.iter().enumerate().all(|(index, (key, _))| *key == index.to_string());
    if is_list {
        Ok(Json::Array(members.into_iter().map(|(_, value)| value).collect()))
    } else {
        Ok(Json::Object(members))
    }
}

fn object<'a>(reader: &mut PackedReader<'a>) -> UnpackResult<Json<'a>> {
    let class = string(reader)?;
    let mut members = Members::default();
    members.put(Cow::Borrowed(CLASS), class);
    if !reader.cut {
        let read = properties(reader, &mut members);
        or_cut(reader, read)?;
    }
    Ok(Json::Object(members.into_inner()))
}

/// The number of an object's properties, and the properties.
fn properties<'a>(reader: &mut PackedReader<'a>, members: &mut Members<'a>) -> UnpackResult<()> {
    reader.expect(b":")?;
    let count = length(reader)?;
    elements(reader, count, members, |key| not_the_class(bare(name(key)?)))
}

/// The name of an element, if it cannot be mistaken for the class of an object.
fn not_the_class(name: Cow<'_, str>) -> UnpackResult<Cow<'_, str>> {
    if name == CLASS {
        return odd("an element has the name `__class`, by which idemctl shows the class");
    }
    Ok(name)
}

/// The part that was read before the bytes ended is kept.
fn or_cut(reader: &mut PackedReader<'_>, read: UnpackResult<()>) -> UnpackResult<()> {
    match read {
        Err(UnpackError::Cut) => {
            reader.cut = true;
            Ok(())
        }
        other => other,
    }
}

/// The name of a property. A private or protected one has a prefix of its class, or `*`, between
/// zero bytes.
fn bare(name: Cow<'_, str>) -> Cow<'_, str> {
    match name.rsplit_once('\0') {
        Some((_, bare)) => Cow::Owned(bare.to_owned()),
        None => name,
    }
}

/// Keys and values in braces.
fn elements<'a>(
    reader: &mut PackedReader<'a>,
    count: u64,
    members: &mut Members<'a>,
    named: impl Fn(Json<'a>) -> UnpackResult<Cow<'a, str>>,
) -> UnpackResult<()> {
    reader.expect(b"{")?;
    reader.items(count, |reader| {
        let key = named(item(reader)?)?;
        // A truncated name is dropped.
        if !reader.cut {
            members.put(key, item(reader)?);
        }
        Ok(())
    })?;
    let read = if reader.cut { Ok(()) } else { reader.expect(b"}") };
    or_cut(reader, read)
}

/// An object that its class serializes itself: the class's name, and bytes that only the class can
/// read.
fn of_its_own_form<'a>(reader: &mut PackedReader<'a>) -> UnpackResult<Json<'a>> {
    let class = string(reader)?;
    let mut members = Members::default();
    members.put(Cow::Borrowed(CLASS), class);
    if !reader.cut {
        let read = own_data(reader, &mut members);
        or_cut(reader, read)?;
    }
    Ok(Json::Object(members.into_inner()))
}

/// The bytes that a class wrote, with their length before them.
fn own_data<'a>(reader: &mut PackedReader<'a>, members: &mut Members<'a>) -> UnpackResult<()> {
    reader.expect(b":")?;
    let length = length(reader)?;
    reader.expect(b"{")?;
    members.put(Cow::Borrowed("data"), reader.text_or_bytes(length));
    if reader.cut { Ok(()) } else { reader.expect(b"}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::record::packed::to_php;

    /// What PHP 8.2 writes of an object with a public, a protected and a private property.
    const PARTS: &[u8] = b"O:5:\"Parts\":3:{s:1:\"a\";i:1;s:4:\"\0*\0b\";a:4:{i:0;b:1;i:1;N;i:2;d:1.5;i:3;i:-2;}s:8:\"\0Parts\0c\";a:2:{s:1:\"x\";s:2:\"\xc3\xbc\";i:5;s:1:\"y\";}}";

    /// What it writes of the value that square1/laravel-idempotency stores.
    const STORED: &str = r#"O:56:"Square1\LaravelIdempotency\Providers\CachedResponseValue":5:{s:4:"body";s:8:"{"id":1}";s:6:"status";i:201;s:7:"headers";a:1:{s:12:"content-type";a:1:{i:0;s:16:"application/json";}}s:4:"path";s:7:"api/pay";s:11:"originalKey";s:5:"key-1";}"#;

    fn value(bytes: &[u8]) -> Value {
        parse(bytes, true)
            .unwrap_or_else(|why| panic!("{}: {why}", bytes.escape_ascii()))
            .to_value()
    }

    #[test]
    fn what_php_writes_is_read() {
        for (bytes, wanted) in [
            (
                PARTS,
                json!({ "__class": "Parts", "a": 1, "b": [true, null, 1.5, -2], "c": { "x": "ü", "5": "y" } }),
            ),
            (b"E:11:\"Suit:Hearts\";", json!("Suit:Hearts")),
            (b"C:3:\"Own\":4:{ab}c}", json!({ "__class": "Own", "data": "ab}c" })),
            (
                b"a:2:{i:0;i:1;i:1;a:2:{i:0;i:2;s:1:\"k\";d:INF;}}",
                json!([1, { "0": 2, "k": "INF" }]),
            ),
            (b"a:2:{i:0;N;i:1;r:2;}", json!([null, "r:2"])),
            (b"a:0:{}", json!([])),
            (b"s:5:\"a\"b;}\";", json!("a\"b;}")),
            (b"i:-9223372036854775808;", json!(i64::MIN)),
            (b"N;", json!(null)),
        ] {
            assert_eq!(value(bytes), wanted, "{}", bytes.escape_ascii());
        }
        assert!(
            matches!(parse(b"s:1:\"\xff\";", true), Ok(Json::Bytes(bytes)) if *bytes == b"\xff"[..])
        );
        assert_eq!(value(b"d:1.0E+100;").as_f64(), Some(1e100));
        assert_eq!(value(STORED.as_bytes())["headers"]["content-type"][0], "application/json");
    }

    #[test]
    fn what_is_written_is_what_php_writes() {
        let read = parse(STORED.as_bytes(), true).unwrap();
        assert_eq!(String::from_utf8(to_php(&read).unwrap()).unwrap(), STORED);
        let array = json!({ "0": 2, "k": [true, null, 1.5, -2], "05": "x" });
        let wanted =
            r#"a:3:{i:0;i:2;s:1:"k";a:4:{i:0;b:1;i:1;N;i:2;d:1.5;i:3;i:-2;}s:2:"05";s:1:"x";}"#;
        assert_eq!(String::from_utf8(to_php(&array.into()).unwrap()).unwrap(), wanted);
    }

    /// Rule: the members of JSON have no order, so an object is written wherever its class is.
    #[test]
    fn the_position_of_the_class_does_not_matter() {
        for document in [
            r#"{"__class":"A","x":{"__class":"B","y":1},"z":2}"#,
            r#"{"x":{"y":1,"__class":"B"},"__class":"A","z":2}"#,
            r#"{"x":{"y":1,"__class":"B"},"z":2,"__class":"A"}"#,
        ] {
            let document: Value = serde_json::from_str(document).unwrap();
            let wanted = r#"O:1:"A":2:{s:1:"x";O:1:"B":1:{s:1:"y";i:1;}s:1:"z";i:2;}"#;
            assert_eq!(String::from_utf8(to_php(&document.into()).unwrap()).unwrap(), wanted);
        }
        let number = json!({ "a": 1, "__class": 1 });
        assert!(to_php(&number.into()).unwrap_err().contains("`__class` is not a text"));
    }

    /// Rule: an array is never shown as an object of a class.
    #[test]
    fn an_element_that_would_look_like_the_class_is_refused() {
        for bytes in [
            &br#"a:2:{s:1:"a";i:1;s:7:"__class";s:1:"A";}"#[..],
            br#"O:1:"A":1:{s:7:"__class";s:1:"B";}"#,
            b"O:1:\"A\":1:{s:10:\"\0*\0__class\";s:1:\"B\";}",
        ] {
            let why = parse(bytes, true).unwrap_err();
            assert!(why.contains("`__class`"), "{why}");
        }
    }

    #[test]
    fn the_beginning_of_a_value_gives_what_is_complete_in_it() {
        for cut in 1..STORED.len() {
            let part = parse(&STORED.as_bytes()[..cut], false);
            let part = part.unwrap_or_else(|why| panic!("{cut}: {why}")).to_value();
            assert!(cut < 112 || part["status"] == 201, "{cut}: {part}");
            assert!(parse(&STORED.as_bytes()[..cut], true).is_err(), "{cut}");
        }
    }

    #[test]
    fn damage_is_refused() {
        for bytes in [
            &b"b:2;"[..],
            b"i:x;",
            b"s:3:\"ab\";",
            b"s:2:ab;",
            b"a:1:{i:0;i:1;",
            b"N;N;",
            b"x:1;",
            b"",
            b"{}",
            b"O:1:\"A\";",
        ] {
            assert!(parse(bytes, true).is_err(), "{}", bytes.escape_ascii());
        }
        let deep = [b"a:1:{i:0;".repeat(200), b"N;".to_vec(), b"}".repeat(200)].concat();
        assert!(parse(&deep, true).is_err());
    }

    fn documents() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,5}", inner, 1..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(document in documents()) {
            prop_assert_eq!(value(&to_php(&document.clone().into()).unwrap()), document);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in "[abdisNOCE:;{}\"0-9]{0,60}", whole in any::<bool>()) {
            let _ = parse(bytes.as_bytes(), whole);
        }
    }
}
