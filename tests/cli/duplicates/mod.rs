//! `idemctl duplicates` from the outside.

mod evidence;
mod shop;
mod unknown;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::support::{Run, Server};

/// A completed record of the reference schema, whose response is about this order.
pub fn reference(owner: &str, fingerprint: &str, created_ms: u64, order: &str) -> String {
    with_body(owner, fingerprint, created_ms, 201, &format!(r#"{{"order":{{"id":"{order}"}}}}"#))
}

/// A completed record of the reference schema with this status and body.
pub fn with_body(
    owner: &str,
    fingerprint: &str,
    created_ms: u64,
    status: u16,
    body: &str,
) -> String {
    let body = STANDARD.encode(body);
    let completed_ms = created_ms + 300;
    format!(
        r#"{{"state":"completed","owner":"{owner}","fingerprint":"{fingerprint}","created_at":{created_ms},"completed_at":{completed_ms},"response":{{"status":{status},"headers":{{}},"body":"{body}"}}}}"#
    )
}

/// The time of the first record.
pub const FIRST: u64 = 1_795_000_000_000;

/// A result of the event-driven schema, which stores no time and no fingerprint.
pub fn result(body: &str) -> String {
    format!(r#"{{"statusCode":201,"body":{}}}"#, Value::from(body))
}

/// Runs `duplicates` with `-o json`.
pub fn found(server: &Server, words: &[&str]) -> Run {
    server.idemctl(&[&["duplicates", "-o", "json"], words].concat())
}

/// The keys of each group, sorted.
pub fn keys(document: &Value) -> Vec<Vec<String>> {
    let mut groups = Vec::new();
    for group in document["groups"].as_array().unwrap() {
        let records = group["records"].as_array().unwrap();
        let mut keys: Vec<_> =
            records.iter().map(|record| record["key"].as_str().unwrap().to_owned()).collect();
        keys.sort();
        groups.push(keys);
    }
    groups.sort();
    groups
}
