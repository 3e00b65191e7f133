//! Redis keys as the services of the built-in schemas write them.

use serde_json::Value;

use crate::support::{LOCK, PENDING, Server};

const OWNER: &str = "2c1f9a4e-8d57-4b0e-9a63-7f1f0c3f6b11";

/// Ten locks and ten results of a schema, with this prefix in their Redis keys.
pub fn seed(server: &Server, schema: &str, prefix: &str) {
    let key = |number: usize| format!("order-{schema}-{number}");
    let all = (0..20).map(|number| record(schema, prefix, &key(number), number >= 10));
    server.fill(all, 25_000);
}

fn record(schema: &str, prefix: &str, key: &str, done: bool) -> (String, String) {
    let one = |name: &str, lock: &str, result: &str| {
        (format!("{prefix}{name}{key}"), if done { result } else { lock }.to_owned())
    };
    match schema {
        "go-middleware" => one(
            "idempotency:",
            PENDING,
            r#"{"status":"COMPLETED","code":201,"headers":{"Content-Type":["application/json"]},"body":"e30="}"#,
        ),
        "go-middleware-v1" => one("idempotency:", "in-progress", "completed"),
        "go-chi" => one(
            "",
            r#"{"status":0}"#,
            r#"{"status":1,"response":{"StatusCode":201,"Header":{"Content-Type":["application/json"]},"Body":"e30="}}"#,
        ),
        "event-driven" => {
            let name = if done { "result" } else { "started" };
            (
                format!("idem:{name}:{prefix}{key}"),
                if done { r#"{"statusCode":200,"body":"{}"}"# } else { OWNER }.to_owned(),
            )
        }
        "express" => one(
            "idem:",
            LOCK,
            r#"{"status":"COMPLETED","statusCode":201,"headers":{"content-type":"application/json"},"body":{"id":1}}"#,
        ),
        "event-consumer" => {
            (format!("{prefix}idem:{}:{key}", if done { "done" } else { "lock" }), "1".to_owned())
        }
        _ => one(
            "idemkey:",
            r#"{"state":"in-progress","owner":"w-1","fingerprint":"f","created_at":1795219914280}"#,
            r#"{"state":"completed","owner":"w-1","fingerprint":"f","created_at":1795219914280,"completed_at":1795219915280,"response":{"status":200,"headers":{},"body":"e30=","error":null}}"#,
        ),
    }
}

/// What `detect` says, as JSON.
pub fn detected(server: &Server, words: &[&str]) -> Value {
    server.idemctl(&[&["detect", "-o", "json"], words].concat()).exits(0).json()
}

/// The schemas that were named, each with the prefix that is not its own, its certainty, and how many samples.
pub fn named(found: &Value) -> Vec<(String, Option<String>, String, u64)> {
    let text = |group: &Value, field: &str| group[field].as_str().map(str::to_owned);
    let claimed = found["groups"].as_array().unwrap().iter().filter_map(|group| {
        let confidence = text(group, "confidence").unwrap();
        Some((
            text(group, "schema")?,
            text(group, "prefix"),
            confidence,
            group["sampled"].as_u64().unwrap(),
        ))
    });
    let mut claimed: Vec<_> = claimed.collect();
    claimed.sort();
    claimed
}
