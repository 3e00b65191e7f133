//! The schemas leave nothing open: no field without a sentence, no field that a schema does not name.

use serde_json::{Value, json};

use super::validator::{faults, files};
use crate::support::{FOREVER, PENDING, Server};

/// What is wrong with the objects of a schema, from this place on down.
fn openings(at: &str, schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(properties) = schema["properties"].as_object() {
        let is_part = at.ends_with("/fields") && !schema["unevaluatedProperties"].is_boolean();
        let is_closed =
            schema["additionalProperties"] == false || schema["unevaluatedProperties"] == false;
        found.extend((!is_closed && !is_part).then(|| format!("{at} lets any field stand")));
        found.extend(
            (!schema["required"].is_array())
                .then(|| format!("{at} does not say which fields are always there")),
        );
        let is_told =
            |property: &Value| property["description"].is_string() || property["$ref"].is_string();
        let untold = properties.iter().filter(|(_, property)| !is_told(property));
        found.extend(untold.map(|(name, _)| format!("{at}/{name} has no description")));
    }
    let below: Vec<_> = match schema {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    found.extend(
        below.into_iter().flat_map(|(name, value)| openings(&format!("{at}/{name}"), value)),
    );
    found
}

#[test]
fn no_schema_lets_a_field_stand_that_it_does_not_describe() {
    let found: Vec<_> = files().iter().flat_map(|(name, schema)| openings(name, schema)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_schema_says_who_it_is() {
    for (name, schema) in files() {
        assert!(jsonschema::meta::is_valid(schema), "{name} is no JSON Schema");
        assert_eq!((&schema["$id"], &schema["title"].is_string()), (&json!(name), &true), "{name}");
        assert!(
            schema["description"].as_str().is_some_and(|text| text.ends_with('.')),
            "{name} has no description"
        );
    }
}

#[test]
fn an_open_object_an_untold_field_and_an_unsaid_need_are_noticed() {
    let closed = json!({ "properties": { "a": { "description": "x" } }, "required": [], "additionalProperties": false });
    assert_eq!(openings("x", &closed), [""; 0]);
    let open = json!({ "items": { "properties": { "a": { "type": "string" } } } });
    let found = [
        "x/items lets any field stand",
        "x/items does not say which fields are always there",
        "x/items/a has no description",
    ];
    assert_eq!(openings("x", &open), found);
}

/// A record as `list` writes it.
fn record() -> Value {
    let server = Server::holding(&[("idempotency:order-1", PENDING, FOREVER)]);
    let mut records = server.idemctl(&["list", "-o", "jsonl"]).exits(0).json_lines();
    records.pop().unwrap()
}

#[test]
fn a_record_that_is_not_as_its_schema_says_is_refused() {
    let record = record();
    assert_eq!(faults("record.json", std::slice::from_ref(&record)), [""; 0]);
    let cases: [(&str, Value); 9] = [
        ("", json!({ "undocumented": 1 })),
        ("/findings/0", json!({ "undocumented": 1 })),
        ("/identity/0", json!({ "undocumented": 1 })),
        ("", json!({ "schema": null })),
        ("", json!({ "state": "finished" })),
        ("", json!({ "lock_ttl_ms": "20s" })),
        ("", json!({ "lock_ttl_ms": -1 })),
        ("/next_request", json!({ "answer": "perhaps" })),
        ("/findings/0", json!({ "code": "new-code" })),
    ];
    for (place, fields) in cases {
        let mut other = record.clone();
        let object = other.pointer_mut(place).unwrap().as_object_mut().unwrap();
        object.extend(fields.as_object().unwrap().clone());
        assert_ne!(faults("record.json", &[other]), [""; 0], "{place} {fields}");
    }
    for name in ["schema", "owner", "findings", "identity"] {
        let mut other = record.clone();
        other.as_object_mut().unwrap().remove(name);
        assert_ne!(faults("record.json", &[other]), [""; 0], "without {name}");
    }
}
