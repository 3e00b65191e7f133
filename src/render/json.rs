//! Records as JSON: the documented, versioned contract. Fields are added, never renamed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::escape;
use crate::domain::diagnosis::Finding;
use crate::domain::observation::{Expiry, SeenSlot};
use crate::domain::record::Record;
use crate::domain::response::{Response, is_secret_header};

/// What stands in place of a hidden header's value.
pub const HIDDEN: &str = "(hidden)";

/// A record as one line of JSON, safe to show on a terminal.
pub fn line(record: &Record, reveal: bool) -> String {
    escape::json(self::record(record, reveal).to_string())
}

/// A whole document: `{"format":1,"records":[…]}`.
pub fn document(records: &[Record], reveal: bool) -> String {
    let records: Vec<_> = records.iter().map(|record| self::record(record, reveal)).collect();
    let document = json!({ "format": 1, "records": records });
    format!("{}\n", escape::json(serde_json::to_string_pretty(&document).unwrap_or_default()))
}

/// A record as a JSON value; what is unknown is null.
pub fn record(record: &Record, reveal: bool) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("schema", json!(record.schema.name));
    put("key", text(&record.key));
    if std::str::from_utf8(&record.key).is_err() {
        put("key_base64", json!(STANDARD.encode(&record.key)));
    }
    put("redis_keys", record.seen.slots.iter().map(|slot| text(&slot.redis_key)).collect());
    put("state", json!(record.state.word()));
    put("owner", record.owner().map_or(Value::Null, text));
    put("lock_ttl_ms", ttl(record.lock()));
    put("result_ttl_ms", ttl(record.result()));
    put("no_expiry", json!(record.expiry() == Some(Expiry::Never)));
    put("age_ms", json!(record.age.map(|age| age.millis)));
    put("age_source", json!(record.age.map(|age| age.source.word())));
    put("size_bytes", json!(record.size_bytes()));
    put("memory_bytes", json!(record.memory_bytes()));
    put("idle_seconds", json!(record.idle().map(|idle| idle.as_secs())));
    put("fingerprint", json!(record.fingerprint()));
    put("response", record.response().map_or(Value::Null, |response| self::response(response, reveal)));
    put("error", json!(record.error()));
    put("blob", record.blob().cloned().unwrap_or_default());
    put("next_request", next_request(record));
    put("findings", record.findings.iter().map(finding).collect());
    Value::Object(fields)
}

fn ttl(slot: Option<&SeenSlot>) -> Value {
    json!(slot.and_then(|slot| slot.expiry.millis()))
}

fn next_request(record: &Record) -> Value {
    let next = &record.next_request;
    json!({
        "answer": next.answer.word(),
        "until_ms": next.until.and_then(Expiry::millis),
        "client": next.client,
    })
}

fn response(response: &Response, reveal: bool) -> Value {
    let mut headers = Map::new();
    for (name, value) in &response.headers {
        let shown = if reveal || !is_secret_header(name) { value.as_str() } else { HIDDEN };
        if let Value::Array(values) = headers.entry(name.clone()).or_insert_with(|| json!([])) {
            values.push(json!(shown));
        }
    }
    let mut fields = Map::new();
    fields.insert("status".to_owned(), json!(response.status));
    fields.insert("headers".to_owned(), Value::Object(headers));
    match std::str::from_utf8(&response.body) {
        Ok(body) => fields.insert("body".to_owned(), json!(body)),
        Err(_) => fields.insert("body_base64".to_owned(), json!(STANDARD.encode(&response.body))),
    };
    fields.insert("whole".to_owned(), json!(response.whole));
    Value::Object(fields)
}

fn finding(finding: &Finding) -> Value {
    json!({
        "code": finding.code,
        "severity": finding.severity.word(),
        "message": finding.message,
        "advice": finding.advice,
    })
}

/// UTF-8 as it is; other bytes escaped, to be read by people beside a base64 field.
fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!(escape::text(bytes)),
    }
}
