//! JSON in which Newtonsoft.Json for .NET writes the type of every object and list
//! (`TypeNameHandling`). `$type` is the first member, and the items of a list are in `$values`.
//! <https://www.newtonsoft.com/json/help/html/SerializeTypeNameHandling.htm>

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::items::{MAX_ITEMS, too_many};
use crate::domain::record::{Json, json, json_prefix};

/// The first character of the names that Newtonsoft.Json reserves for itself.
const OWN: char = '$';
/// The most objects and lists within one another that it reads since 13.0.1 (`MaxDepth`).
const MAX_NESTED: usize = 64;
const TYPE: &str = "$type";
const VALUES: &str = "$values";

/// The lists and dictionaries of .NET Core, by their content. .NET finds these types without a
/// version and in no other assembly.
const LIST_OF_TEXTS: &str = "System.Collections.Generic.List`1\
    [[System.String, System.Private.CoreLib]], System.Private.CoreLib";
const LIST: &str = "System.Collections.Generic.List`1\
    [[System.Object, System.Private.CoreLib]], System.Private.CoreLib";
const DICTIONARY_OF_LISTS: &str = "System.Collections.Generic.Dictionary`2\
    [[System.String, System.Private.CoreLib],\
    [System.Collections.Generic.List`1[[System.String, System.Private.CoreLib]], \
    System.Private.CoreLib]], System.Private.CoreLib";
const DICTIONARY: &str = "System.Collections.Generic.Dictionary`2\
    [[System.String, System.Private.CoreLib],\
    [System.Object, System.Private.CoreLib]], System.Private.CoreLib";

/// Reads the JSON without the types. With `whole` false the bytes may end anywhere.
///
/// # Errors
/// Why the bytes are not JSON, for people.
pub(crate) fn parse(bytes: &[u8], whole: bool) -> Result<Json<'_>, String> {
    untyped(json_prefix::parse(bytes, whole)?)
}

/// True if the outermost object or list has a type.
pub(crate) fn has_type(document: &Value) -> bool {
    matches!(document.get(TYPE), Some(Value::String(_)))
}

fn untyped(document: Json<'_>) -> Result<Json<'_>, String> {
    Ok(match document {
        // Without a type in the text there is nothing to remove, so it need not be parsed.
        Json::Raw(text) if !text.contains(TYPE) => Json::Raw(text),
        // Items are separated by commas, so many commas mean many items.
        Json::Raw(text) if memchr::memchr_iter(b',', text.as_bytes()).count() > MAX_ITEMS => {
            return Err(too_many());
        }
        Json::Raw(Cow::Borrowed(text)) => untyped(json::shallow(text))?,
        Json::Raw(Cow::Owned(text)) => untyped(json::shallow(&text))?.into_owned(),
        Json::Array(items) => {
            Json::Array(items.into_iter().map(untyped).collect::<Result<_, _>>()?)
        }
        Json::Object(mut members) => {
            // Newtonsoft.Json reads a type only before the members that are not its own.
            let own = members.iter().take_while(|(name, _)| name.starts_with(OWN)).count();
            if let Some(place) = members[..own].iter().position(|(name, _)| name == TYPE) {
                members.remove(place);
            }
            match members.pop() {
                Some((name, items)) if name == VALUES && members.is_empty() => untyped(items)?,
                last => {
                    members.extend(last);
                    for (_, value) in &mut members {
                        let typed = std::mem::replace(value, Json::Null);
                        *value = untyped(typed)?;
                    }
                    Json::Object(members)
                }
            }
        }
        other => other,
    })
}

/// The document in a form that Newtonsoft.Json reads back into lists and dictionaries of texts,
/// numbers and so on.
///
/// # Errors
/// Why .NET would read a different document, for people.
pub(crate) fn write(document: &Json<'_>) -> Result<Vec<u8>, String> {
    let value = typed(document.to_value())?;
    let nested = depth(&value);
    if nested > MAX_NESTED {
        return Err(format!(
            "its objects and lists are nested {nested} deep with their types, and Newtonsoft.Json \
            reads at most {MAX_NESTED}"
        ));
    }
    Ok(value.to_string().into_bytes())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The first text of a body that Newtonsoft.Json reads as a time (`DateParseHandling`) and that
/// .NET then writes differently; `None` if there is none.
/// <https://www.newtonsoft.com/json/help/html/DatesInJSON.htm>
pub(crate) fn changed_time(body: &Value) -> Option<&str> {
    match body {
        Value::String(text) if is_changed_time(text) => Some(text),
        // The type of such a list says that these are texts.
        Value::Array(items) if items.iter().all(Value::is_string) => None,
        Value::Array(items) => items.iter().find_map(changed_time),
        Value::Object(members) => members.values().find_map(changed_time),
        _ => None,
    }
}

/// .NET keeps a time in UTC or without a zone, and drops the zeros at the end of its fraction.
/// It converts any other time to the time zone of its server.
fn is_changed_time(text: &str) -> bool {
    if text.starts_with("/Date(") && text.ends_with(")/") {
        return true;
    }
    let bytes = text.as_bytes();
    let Some((start, rest)) = bytes.split_at_checked(19) else { return false };
    let mut shape = start.to_vec();
    for byte in &mut shape {
        if byte.is_ascii_digit() {
            *byte = b'0';
        }
    }
    if shape != b"0000-00-00T00:00:00" {
        return false;
    }
    let after_fraction = rest.strip_prefix(b".").unwrap_or(rest);
    let digits = after_fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (fraction, zone) = after_fraction.split_at(digits);
    match zone {
        // 24:00 is the next day.
        b"" | b"Z" => fraction.ends_with(b"0") || digits > 7 || start[11..].starts_with(b"24"),
        _ => zone.starts_with(b"+") || zone.starts_with(b"-"),
    }
}

fn typed(value: Value) -> Result<Value, String> {
    match value {
        Value::Array(items) => {
            let kind = if items.iter().all(Value::is_string) { LIST_OF_TEXTS } else { LIST };
            let items = items.into_iter().map(typed).collect::<Result<Value, _>>()?;
            Ok(with_type(kind, [(VALUES.to_owned(), items)]))
        }
        Value::Object(members) => {
            let kind = if members.values().all(is_list_of_texts) {
                DICTIONARY_OF_LISTS
            } else {
                DICTIONARY
            };
            let members: Vec<_> = members.into_iter().map(member).collect::<Result<_, _>>()?;
            Ok(with_type(kind, members))
        }
        Value::Number(number) if !number.is_i64() && !number.is_f64() => Err(format!(
            "{number} is no number of 64 bits: .NET replays something else in its place"
        )),
        other => Ok(other),
    }
}

/// A second `$type` would choose the .NET type of the object, and the sender of a body must not be
/// able to do that.
fn member((name, value): (String, Value)) -> Result<(String, Value), String> {
    if name.starts_with(OWN) {
        return Err(format!("Newtonsoft.Json takes a member named `{name}` for its own"));
    }
    Ok((name, typed(value)?))
}

fn with_type(kind: &str, members: impl IntoIterator<Item = (String, Value)>) -> Value {
    let mut object = Map::new();
    // Newtonsoft.Json reads the type only if it is the first member.
    object.insert(TYPE.to_owned(), Value::from(kind));
    object.extend(members);
    Value::Object(object)
}

fn is_list_of_texts(value: &Value) -> bool {
    let Value::Array(items) = value else { return false };
    items.iter().all(Value::is_string)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// What IdempotentAPI wrote on .NET Core 3.1 for a request at work, and of a response.
    #[test]
    fn what_dotnet_wrote_is_read_without_its_types() {
        let text = format!(
            r#"{{"$type":"{DICTIONARY}","Request.Inflight":"66de3b32","Headers":{{"$type":"{DICTIONARY_OF_LISTS}","Location":{{"$type":"{LIST_OF_TEXTS}","$values":["/x"]}}}},"Value":{{"$type":"Pay, app","Id":1,"Tags":{{"$type":"{LIST_OF_TEXTS}","$values":[]}}}}}}"#
        );
        let read = parse(text.as_bytes(), true).unwrap();
        let plain = json!({"Request.Inflight": "66de3b32", "Headers": {"Location": ["/x"]}, "Value": {"Id": 1, "Tags": []}});
        assert_eq!(read.to_value(), plain);
        let beginning = parse(&text.as_bytes()[..text.len() / 2], false).unwrap();
        assert_eq!(beginning.pointer("/Request.Inflight").unwrap().to_value(), "66de3b32");
    }

    /// Rule: a member that .NET does not read as a type is a field.
    #[test]
    fn a_type_after_other_members_is_a_field() {
        let read = |text: &str| parse(text.as_bytes(), true).unwrap().to_value();
        let text = r#"{"a":1,"$type":"A, app","b":{"$id":"1","$type":"B, app","c":2}}"#;
        assert_eq!(read(text), json!({"a": 1, "$type": "A, app", "b": {"$id": "1", "c": 2}}));
    }

    #[test]
    fn lists_and_dictionaries_are_of_what_they_hold() {
        let written = |value: Value| {
            serde_json::from_slice::<Value>(&write(&Json::from(value)).unwrap()).unwrap()
        };
        let kind = |value: Value| written(value)[TYPE].as_str().unwrap().to_owned();
        assert_eq!(kind(json!({"Location": ["/x"], "Via": []})), DICTIONARY_OF_LISTS);
        assert_eq!(
            (kind(json!({})), kind(json!([]))),
            (DICTIONARY_OF_LISTS.to_owned(), LIST_OF_TEXTS.to_owned())
        );
        assert_eq!(
            (kind(json!({"a": 1})), kind(json!(["a", 1]))),
            (DICTIONARY.to_owned(), LIST.to_owned())
        );
        let first = written(json!({" a": 1})).as_object().unwrap().keys().next().cloned();
        assert_eq!(first.as_deref(), Some(TYPE), "else Newtonsoft.Json does not see the type");
    }

    /// Rule: a body never names a .NET type.
    #[test]
    fn a_member_that_would_name_a_type_is_refused() {
        for name in ["$type", "$values", "$id", "$ref"] {
            let body = json!({"body": [{name: "System.Diagnostics.Process, System"}]});
            let why = write(&Json::from(body)).unwrap_err();
            assert!(why.contains(name), "{why}");
        }
    }

    #[test]
    fn a_number_that_dotnet_would_replay_as_an_object_is_refused() {
        let body: Value = serde_json::from_str(r#"{"n":12345678901234567890123}"#).unwrap();
        assert!(write(&Json::from(body)).is_err());
        let good: Value =
            serde_json::from_str(r#"{"n":-9223372036854775808,"x":2.5e3,"y":1.10}"#).unwrap();
        assert!(write(&Json::from(good)).is_ok());
    }

    /// Rule: a text that .NET replays as another one is found, wherever it would be read as a time.
    #[test]
    fn times_that_dotnet_writes_differently_are_found() {
        for text in [
            "2026-11-22T19:50:00+02:00",
            "2026-11-22T19:50:00.5-08:00",
            "2026-11-22T19:50:00.120Z",
            "2026-11-22T19:50:00.123456789Z",
            "2026-11-22T24:00:00Z",
            "/Date(1763841000000)/",
        ] {
            let body = json!({"a": [1, {"at": text}]});
            assert_eq!(changed_time(&body), Some(text));
            assert_eq!(changed_time(&json!([text, "a"])), None, "a list of texts");
        }
        for text in [
            "2026-11-22T19:50:00Z",
            "2026-11-22T19:50:00.1234567Z",
            "2026-11-22T19:50:00",
            "2026-11-22",
            "2026-11-22 19:50:00+02:00",
            "2026-11-22T19:50:00 in Rome",
            "order-2026-11-22T19:50:00+02:00",
            "",
        ] {
            assert_eq!(changed_time(&json!({"at": text})), None, "{text}");
        }
    }

    /// Rule: a document that Newtonsoft.Json refuses to read is not written.
    #[test]
    fn a_document_with_too_many_levels_is_refused() {
        let nested = |levels: usize| {
            let mut value = json!(1);
            for _ in 0..levels {
                value = json!({ "a": value });
            }
            write(&Json::from(value))
        };
        assert!(nested(MAX_NESTED).is_ok());
        assert!(nested(MAX_NESTED + 1).unwrap_err().contains("nested 65 deep"));
    }

    fn documents() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 40, 10, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..10).prop_map(Value::from),
                prop::collection::btree_map("[^$]{1,10}", inner, 0..10)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            members in prop::collection::btree_map("[^$]{1,10}", documents(), 0..10),
        ) {
            let document = Value::Object(members.into_iter().collect());
            let bytes = write(&Json::from(document.clone())).unwrap();
            prop_assert_eq!(parse(&bytes, true).unwrap().to_value(), document);
        }
    }
}
