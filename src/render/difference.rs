//! Differences between two moments, as lines for people and as JSON.

use serde_json::{Map, Value, json};

use super::document::Streamed;
use super::escape;
use crate::domain::moments::{Counts, KeyPrint, Sighting, What};

/// What happened to one record.
pub struct Row<'a> {
    pub(crate) what: What,
    /// Its state at the first moment; `None` where it was not there.
    pub(crate) before: Option<&'a str>,
    /// Its state at the second.
    pub(crate) after: Option<&'a str>,
    /// The record at the second moment, or, where it went, at the first.
    pub(crate) of: &'a Sighting,
}

/// Rows, shown as they are found.
pub struct Rows {
    document: Streamed,
    is_open: bool,
}

impl Rows {
    pub fn new() -> Self {
        Self { document: Streamed::new("differences"), is_open: false }
    }

    /// One line for people, the key last, below the heading where it is the first.
    pub fn line(&mut self, row: &Row<'_>) -> String {
        let heading = if self.is_open { String::new() } else { columns("WHAT", "STATE", "SCHEMA", "KEY") };
        self.is_open = true;
        let state = match (row.before, row.after) {
            (Some(before), Some(after)) if before != after => format!("{before} → {after}"),
            (before, after) => after.or(before).unwrap_or_default().to_owned(),
        };
        let [state, schema] = [&state, &row.of.schema].map(|text| escape::again(text));
        // A key that is no text is escaped in a list already.
        heading + &columns(row.what.as_str(), &state, &schema, &escape::again(&row.of.key))
    }

    /// One element of a document.
    pub fn element(&mut self, row: &Row<'_>) -> String {
        self.document.before_value() + &json(row)
    }

    /// The end of the document.
    pub(crate) fn end(&mut self, counts: &Counts) -> String {
        let Counts { came, went, state, retaken, renewed, same } = counts;
        let counts = [
            ("came", came),
            ("went", went),
            ("state", state),
            ("retaken", retaken),
            ("renewed", renewed),
            ("same", same),
        ];
        let of_all: Map<_, _> =
            counts.into_iter().map(|(name, count)| (name.to_owned(), Value::from(*count))).collect();
        self.document.end(&of_all)
    }
}

fn columns(what: &str, state: &str, schema: &str, key: &str) -> String {
    format!("{what:<7}  {state:<24}  {schema:<16}  {key}\n")
}

pub fn json(row: &Row<'_>) -> String {
    let Row { what, before, after, of } = row;
    let expires = |print: &Option<KeyPrint>| print.as_ref().and_then(|print| print.expires_at_ms);
    let mut value = json!({
        "what": what.as_str(),
        "schema": of.schema,
        "key": of.key,
        "redis_keys": of.redis_keys,
        "before": before,
        "after": after,
        "owner": of.owner,
        "expires_at_ms": of.identity.iter().flatten().map(expires).collect::<Vec<_>>(),
    });
    if let Some(base64) = &of.key_base64 {
        value["key_base64"] = base64.as_str().into();
    }
    escape::json(value.to_string())
}

/// The counts as a sentence.
pub(crate) fn summary(counts: &Counts) -> String {
    let Counts { came, went, state, retaken, renewed, same } = counts;
    format!(
        "{came} came, {went} went, {state} changed their state, {retaken} retaken, {renewed} renewed; {same} as they were."
    )
}
