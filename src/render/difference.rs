//! Differences between two moments, as lines for people and as JSON.

use serde_json::{Map, Value, json};

use super::document::Streamed;
use super::escape;
use super::style::View;
use super::table::Table;
use crate::domain::snapshot::{
    DifferenceCounts, DifferenceKind, HowRecordEnded, KeyPrint, ListedRecord, Summary,
};

/// What happened to one record.
pub struct DifferenceRow<'a> {
    pub(crate) what: DifferenceKind,
    /// How it went, if that is known.
    pub(crate) how: Option<HowRecordEnded>,
    /// Its state at the first moment; `None` where it was not there.
    pub(crate) before: Option<&'a str>,
    /// Its state at the second.
    pub(crate) after: Option<&'a str>,
    /// The record at the second moment, or, where it went, at the first.
    pub(crate) of: &'a ListedRecord,
}

/// Rows, shown as they are found.
pub struct DifferenceRows {
    document: Streamed,
    is_open: bool,
}

impl DifferenceRows {
    pub fn new() -> Self {
        Self { document: Streamed::new("differences"), is_open: false }
    }

    /// One line for people, the key last for its length, below the heading where it is the first.
    pub fn line(&mut self, row: &DifferenceRow<'_>) -> String {
        let heading =
            if self.is_open { String::new() } else { columns("WHAT", "STATE", "SCHEMA", "KEY") };
        self.is_open = true;
        let state = match (row.before, row.after) {
            (Some(before), Some(after)) if before != after => format!("{before} → {after}"),
            (before, after) => after.or(before).unwrap_or_default().to_owned(),
        };
        let [state, schema] = [&state, &row.of.schema].map(|text| escape::again(text));
        // A key that is no text is escaped in a list already.
        let what = row.how.as_ref().map_or(row.what.as_str(), HowRecordEnded::as_str);
        heading + &columns(what, &state, &schema, &escape::again(&row.of.key))
    }

    /// One element of a document.
    pub fn element(&mut self, row: &DifferenceRow<'_>) -> String {
        self.document.before_value() + &json(row)
    }

    /// The end of the document. `complete` says whether both snapshots have all records, if that is known.
    pub(crate) fn end(
        &mut self,
        counts: &DifferenceCounts,
        summary: &Summary,
        complete: Option<bool>,
    ) -> String {
        let DifferenceCounts { came, went, expired, removed, state, retaken, renewed, same } =
            counts;
        let counts = [
            ("came", came),
            ("went", went),
            ("expired", expired),
            ("removed", removed),
            ("state", state),
            ("retaken", retaken),
            ("renewed", renewed),
            ("same", same),
        ];
        let mut of_all: Map<_, _> = counts
            .into_iter()
            .map(|(name, count)| (name.to_owned(), Value::from(*count)))
            .collect();
        let mut kinds = Vec::new();
        for (by, schema, name, [before, after]) in summary.rows() {
            let kind = json!({ "by": by.as_str(), "schema": schema, "name": name, "before": before, "after": after });
            kinds.push(kind);
        }
        of_all.insert("summary".to_owned(), kinds.into());
        of_all.insert("complete".to_owned(), complete.into());
        self.document.end(&of_all)
    }
}

/// How many records of each kind there were, and are.
pub(crate) fn summary_table(summary: &Summary, view: View) -> String {
    let mut table = Table::new(view.palette);
    table.heading(["SCHEMA", "BY", "RECORDS", "BEFORE", "AFTER", "CHANGE"]);
    let mut is_empty = true;
    for (by, schema, name, [before, after]) in summary.rows() {
        let change = match after.cmp(&before) {
            std::cmp::Ordering::Equal => "-".to_owned(),
            std::cmp::Ordering::Less => format!("-{}", before - after),
            std::cmp::Ordering::Greater => format!("+{}", after - before),
        };
        let [schema, name] = [schema, name].map(escape::again);
        table.row([
            schema,
            by.as_str().to_owned(),
            name,
            before.to_string(),
            after.to_string(),
            change,
        ]);
        is_empty = false;
    }
    if is_empty {
        return String::new();
    }
    (3..6).for_each(|column| table.align_right(column));
    table.text(0)
}

fn columns(what: &str, state: &str, schema: &str, key: &str) -> String {
    format!("{what:<7}  {state:<24}  {schema:<16}  {key}\n")
}

pub fn json(row: &DifferenceRow<'_>) -> String {
    let DifferenceRow { what, how, before, after, of } = row;
    let expires = |print: &Option<KeyPrint>| print.as_ref().and_then(|print| print.expires_at_ms);
    let mut value = json!({
        "what": what.as_str(),
        "how": how.as_ref().map(HowRecordEnded::as_str),
        "schema": of.schema,
        "key": of.key,
        "redis_keys": of.redis_keys,
        "before": before,
        "after": after,
        "owner": of.owner,
        "expires_at_ms": of.identity.iter().map(expires).collect::<Vec<_>>(),
    });
    if let Some(base64) = &of.key_base64 {
        value["key_base64"] = base64.as_str().into();
    }
    escape::json(value.to_string())
}

/// The counts as a sentence.
pub(crate) fn summary(counts: &DifferenceCounts) -> String {
    let DifferenceCounts { came, went, expired, removed, state, retaken, renewed, same } = counts;
    let how = match (expired, removed) {
        (0, 0) => String::new(),
        _ => format!(" ({expired} expired, {removed} removed before)"),
    };
    format!(
        "{came} came, {went} went{how}, {state} changed their state, {retaken} retaken, {renewed} renewed; {same} as they were."
    )
}
