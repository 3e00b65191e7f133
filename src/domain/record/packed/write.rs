//! Writes a document in its format.

use std::fmt::Display;

use rmp::encode;

use super::php::CLASS;
use crate::domain::record::Json;

/// The largest length that MessagePack can write, for the bytes of a text and the items of a
/// container.
const MOST: usize = u32::MAX as usize;

/// The document as MessagePack, with each number and length in as few bytes as possible.
///
/// # Errors
/// Why MessagePack cannot represent the document, for people.
pub(crate) fn msgpack(document: &Json<'_>) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    pack(document, &mut bytes)?;
    Ok(bytes)
}

fn pack(document: &Json<'_>, to: &mut Vec<u8>) -> Result<(), String> {
    match document {
        Json::Null => told(encode::write_nil(to)),
        Json::Bool(flag) => told(encode::write_bool(to, *flag)),
        Json::Number(text) => pack_number(text, to),
        // The crate truncates a length that is too large, so it is checked before.
        Json::String(text) => {
            length(text.len())?;
            told(encode::write_str(to, text))
        }
        Json::Bytes(bytes) => {
            length(bytes.len())?;
            told(encode::write_bin(to, bytes))
        }
        Json::Raw(_) => pack(&document.to_value().into(), to),
        Json::Array(items) => {
            told(encode::write_array_len(to, length(items.len())?))?;
            for item in items {
                pack(item, to)?;
            }
            Ok(())
        }
        Json::Object(members) => {
            told(encode::write_map_len(to, length(members.len())?))?;
            for (name, value) in members {
                told(encode::write_str(to, name))?;
                pack(value, to)?;
            }
            Ok(())
        }
    }
}

fn pack_number(text: &str, to: &mut Vec<u8>) -> Result<(), String> {
    // An integer type comes first, because a float would lose the last digits of a large number.
    if let Ok(number) = text.parse::<i64>() {
        return told(encode::write_sint(to, number));
    }
    if let Ok(number) = text.parse::<u64>() {
        return told(encode::write_uint(to, number));
    }
    match text.parse::<f64>() {
        Ok(number) => told(encode::write_f64(to, number)),
        Err(_) => Err(format!("{text} is not a MessagePack number")),
    }
}

fn length(length: usize) -> Result<u32, String> {
    u32::try_from(length).map_err(|_| format!("MessagePack has no length above {MOST}"))
}

fn told<T>(written: Result<T, impl Display>) -> Result<(), String> {
    match written {
        Ok(_) => Ok(()),
        Err(why) => Err(why.to_string()),
    }
}

/// The document as PHP's `serialize` writes an array, or an object if a member is its class. The
/// position of that member does not matter, because the members of JSON have no order.
///
/// # Errors
/// Why PHP would not read the document back, for people.
pub(crate) fn php(document: &Json<'_>) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    serialize(document, &mut bytes)?;
    Ok(bytes)
}

fn serialize(document: &Json<'_>, to: &mut Vec<u8>) -> Result<(), String> {
    match document {
        Json::Null => to.extend(b"N;"),
        Json::Bool(flag) => to.extend(format!("b:{};", u8::from(*flag)).bytes()),
        Json::Number(text) => {
            let kind = if text.parse::<i64>().is_ok() { 'i' } else { 'd' };
            to.extend(format!("{kind}:{text};").bytes());
        }
        Json::String(text) => string(text.as_bytes(), "s:", ";", to),
        Json::Bytes(bytes) => string(bytes, "s:", ";", to),
        Json::Raw(_) => serialize(&document.to_value().into(), to)?,
        Json::Array(items) => {
            to.extend(format!("a:{}:{{", items.len()).bytes());
            for (index, item) in items.iter().enumerate() {
                to.extend(format!("i:{index};").bytes());
                serialize(item, to)?;
            }
            to.push(b'}');
        }
        Json::Object(members) => object(members, to)?,
    }
    Ok(())
}

fn object(members: &[(impl AsRef<str>, Json<'_>)], to: &mut Vec<u8>) -> Result<(), String> {
    let class = match members.iter().find(|(name, _)| name.as_ref() == CLASS) {
        Some((_, Json::String(class))) => Some(class),
        Some(_) => return Err(format!("`{CLASS}` is not a text, so it cannot be a PHP class")),
        None => None,
    };
    match class {
        Some(class) => string(class.as_bytes(), "O:", ":", to),
        None => to.extend(b"a:"),
    }
    let count = members.len() - usize::from(class.is_some());
    to.extend(format!("{count}:{{").bytes());
    for (name, value) in members {
        let name = name.as_ref();
        match class {
            Some(_) if name == CLASS => continue,
            None if is_index(name) => to.extend(format!("i:{name};").bytes()),
            _ => string(name.as_bytes(), "s:", ";", to),
        }
        serialize(value, to)?;
    }
    to.push(b'}');
    Ok(())
}

/// True for a key that PHP stores as a number: a whole number in PHP's notation.
fn is_index(name: &str) -> bool {
    name.parse::<i64>().is_ok_and(|number| number.to_string() == name)
}

fn string(bytes: &[u8], kind: &str, end: &str, to: &mut Vec<u8>) {
    to.extend(format!("{kind}{}:\"", bytes.len()).bytes());
    to.extend(bytes);
    to.extend(b"\"");
    to.extend(end.bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::record::packed;

    fn documents() -> impl Strategy<Value = Json<'static>> {
        let number = prop_oneof![
            any::<i64>().prop_map(|n| n.to_string()),
            any::<u64>().prop_map(|n| n.to_string())
        ];
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::Bool),
            number.prop_map(|text| Json::Number(text.into())),
            any::<String>().prop_map(|text| Json::String(text.into())),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| Json::Bytes(bytes.into())),
        ];
        leaf.prop_recursive(3, 40, 20, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..20).prop_map(Json::Array),
                prop::collection::btree_map("[a-z]{1,40}", inner, 0..20).prop_map(|members| {
                    Json::Object(
                        members.into_iter().map(|(name, value)| (name.into(), value)).collect(),
                    )
                }),
            ]
        })
    }

    /// What Python's `msgpack` writes of the same.
    #[test]
    fn messagepack_is_as_short_as_it_can_be() {
        let document =
            serde_json::json!([201, -7, 1.5, "Content-Type", { "a": null, "b": [true] }]);
        let bytes =
            b"\x95\xcc\xc9\xf9\xcb\x3f\xf8\0\0\0\0\0\0\xacContent-Type\x82\xa1a\xc0\xa1b\x91\xc3";
        assert_eq!(msgpack(&document.into()).unwrap(), bytes);
    }

    proptest! {
        #[test]
        fn messagepack_that_is_written_is_read_back(document in documents()) {
            let bytes = msgpack(&document).unwrap();
            prop_assert_eq!(packed::msgpack(&bytes, true).unwrap(), document);
        }
    }
}
