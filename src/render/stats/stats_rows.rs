//! Statistics on records as rows of fields, for a spreadsheet.

use serde_json::Value;

use crate::domain::stats::StatsDimension;
use crate::render::columns::Separated;
use crate::render::escape;

/// The fields after the schema and the dimension.
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

/// The rows of the JSON document, after a row of names. Unknown values are empty.
pub fn separated(rows: &[Value], by: StatsDimension, separated: Separated) -> String {
    let mut names = vec!["schema", by.as_str()];
    names.extend(FIELDS);
    let mut text = separated.row(names.iter().map(|name| (*name).to_owned()));
    for row in rows {
        text.push_str(&separated.row(names.iter().map(|name| field(row, name, by))));
    }
    text
}

fn field(of: &Value, name: &str, by: StatsDimension) -> String {
    match &of[name] {
        Value::Null if name == by.as_str() && of["others"] == true => "(others)".to_owned(),
        Value::Null => String::new(),
        Value::String(text) => escape::text(text.as_bytes()),
        other => other.to_string(),
    }
}
