//! Guesses the meaning of fields of sample values from their names and values.

use serde_json::Value;

use crate::domain::rfc3339;

/// The fields that a schema can name, and the names that services give them.
const NAMES: [(&str, &[&str]); 8] = [
    ("owner", &["owner", "worker", "workerid", "token", "lockid", "holder", "lockedby", "by"]),
    (
        "fingerprint",
        &["fingerprint", "hash", "checksum", "payloadhash", "requesthash", "validation"],
    ),
    ("created_at", &["createdat", "startedat", "lockedat", "created", "started", "at"]),
    ("completed_at", &["completedat", "finishedat", "completed", "finished"]),
    ("status", &["statuscode", "code", "httpstatus", "status"]),
    ("headers", &["headers", "header"]),
    ("body", &["body", "data", "payload", "result", "resp"]),
    ("error", &["error", "errormessage"]),
];

/// Names of objects that hold a response.
const RESPONSES: [&str; 6] = ["response", "res", "result", "reply", "data", "value"];

/// A field's meaning and the JSON pointer to it.
pub(super) type FoundField = (&'static str, String);

/// The parts of a response, which are the only fields that are looked for inside a response.
const RESPONSE_PARTS: [&str; 4] = ["status", "headers", "body", "error"];

/// The meanings of a value's fields: those at its top level, and those in a response object. The
/// field at the pointer `state_field` has none, because it holds the state.
pub(super) fn of(value: &Value, state_field: Option<&str>) -> Vec<FoundField> {
    let mut found = Vec::new();
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Array(items) => return of_items(items),
        _ => return found,
    };
    // The response comes first: its `status` is an HTTP status, and a top-level `status` is often
    // the state.
    for (name, value) in fields {
        let Value::Object(response) = value else { continue };
        if !RESPONSES.contains(&plain(name).as_str()) {
            continue;
        }
        for (inner_name, value) in response {
            let pointer = format!("/{}/{}", step(name), step(inner_name));
            if is_response_part(inner_name) && state_field != Some(pointer.as_str()) {
                add(&mut found, pointer, inner_name, value);
            }
        }
    }
    for (name, value) in fields {
        let pointer = format!("/{}", step(name));
        // An object that contains the state is not the body of a response.
        let holds_state = state_field
            .and_then(|field| field.strip_prefix(&pointer))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if !holds_state {
            add(&mut found, pointer, name, value);
        }
    }
    found
}

/// The meanings of an array's items, which have no names: a status code, headers, and a text or
/// parts of one as the body.
fn of_items(items: &[Value]) -> Vec<FoundField> {
    let mut found = Vec::new();
    if let Some(index) = items.iter().position(|item| fits("status", item)) {
        found.push(("status", format!("/{index}")));
    }
    if let Some(index) = items.iter().position(Value::is_object) {
        found.push(("headers", format!("/{index}")));
    }
    if let Some(index) = items.iter().position(Value::is_string) {
        found.push(("body", format!("/{index}")));
    } else if let Some(index) = items.iter().position(starts_with_text) {
        found.push(("body", format!("/{index}/0")));
    }
    found
}

/// True for an array whose first item is a text.
fn starts_with_text(item: &Value) -> bool {
    matches!(item.get(0), Some(Value::String(_)))
}

/// Adds the meaning of a field, unless an earlier field already has that meaning.
fn add(found: &mut Vec<FoundField>, pointer: String, name: &str, value: &Value) {
    let name = plain(name);
    let meant =
        NAMES.iter().find(|(what, names)| names.contains(&name.as_str()) && fits(what, value));
    let Some((what, _)) = meant else { return };
    if !found.iter().any(|(known, _)| known == what) {
        found.push((what, pointer));
    }
}

/// True for a name that services give to a part of a response.
fn is_response_part(name: &str) -> bool {
    let name = plain(name);
    NAMES
        .iter()
        .any(|(what, names)| RESPONSE_PARTS.contains(what) && names.contains(&name.as_str()))
}

fn fits(what: &str, value: &Value) -> bool {
    match what {
        "status" => value.as_u64().is_some_and(|status| (100..600).contains(&status)),
        "headers" => value.is_object(),
        "created_at" | "completed_at" => timestamp(value).is_some(),
        "body" => true,
        _ => value.is_string(),
    }
}

/// The format of a time, as `schema.toml` names it; `None` if the value is not a time.
pub(super) fn timestamp(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(text) => {
            rfc3339::to_ms(text)?;
            Some("rfc3339")
        }
        Value::Number(number) => match number.as_f64()? {
            // The ranges cover 2001 to 5138 in seconds and 1973 to 5138 in milliseconds. Smaller
            // numbers are counts or codes.
            ..1e9 => None,
            ..1e11 => Some("s"),
            ..1e14 => Some("ms"),
            _ => None,
        },
        _ => None,
    }
}

/// A field name as a step of a JSON pointer (RFC 6901).
pub(super) fn step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The name in lower case without punctuation, so that `created_at` and `createdAt` are equal.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_recognised_by_their_names_and_values() {
        let value = json!({"status": "DONE", "createdAt": 1_795_223_514_263_u64, "fingerPrint": "f", "response": {"statusCode": 201, "body": {}, "headers": {}}});
        let mut found = of(&value, Some("/status"));
        found.sort_unstable();
        let is = |what, pointer: &str| (what, pointer.to_owned());
        assert_eq!(
            found,
            [
                is("body", "/response/body"),
                is("created_at", "/createdAt"),
                is("fingerprint", "/fingerPrint"),
                is("headers", "/response/headers"),
                is("status", "/response/statusCode"),
            ]
        );
    }

    #[test]
    fn the_unit_of_a_time_follows_from_its_size() {
        assert_eq!(timestamp(&json!(1_795_223_514_263_u64)), Some("ms"));
        assert_eq!(timestamp(&json!(1_795_223_514.25)), Some("s"));
        assert_eq!(timestamp(&json!("2026-11-21T01:11:44.246377Z")), Some("rfc3339"));
        assert_eq!(timestamp(&json!(200)), None);
    }
}
