//! Figures on records as rows of fields, for a spreadsheet.

use serde_json::Value;

use crate::domain::stats::By;
use crate::render::escape;

/// The fields behind the schema and what is counted by.
const FIELDS: [&str; 8] = [
    "records",
    "bytes",
    "memory_bytes",
    "memory_sampled",
    "oldest_age_ms",
    "oldest_age_evidence",
    "no_expiry",
    "no_age",
];

/// The rows, as JSON has them, below their names; `row` writes one. What is unknown is empty.
pub fn separated(rows: &[Value], by: By, row: fn(&mut dyn Iterator<Item = String>) -> String) -> String {
    let names = || ["schema", by.as_str()].into_iter().chain(FIELDS);
    let line = |of: &Value| row(&mut names().map(|name| field(of, name, by)));
    let heading = row(&mut names().map(str::to_owned));
    [heading].into_iter().chain(rows.iter().map(line)).collect()
}

fn field(of: &Value, name: &str, by: By) -> String {
    match &of[name] {
        Value::Null if name == by.as_str() && of["others"] == true => "(others)".to_owned(),
        Value::Null => String::new(),
        Value::String(text) => escape::text(text.as_bytes()),
        other => other.to_string(),
    }
}
