//! Differences between two snapshots, as lines for people and as JSON.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::style::View;
use super::table::{Column, of_columns};
use super::{document, escape};
use crate::domain::snapshot::{
    DifferenceCounts, DifferenceKind, HowRecordEnded, ListedRecord, Summary, SummaryRow,
};

/// The difference of one record.
pub struct DifferenceRow<'a> {
    pub(crate) what: DifferenceKind,
    /// How the record ended, if that is known.
    pub(crate) how: Option<HowRecordEnded>,
    /// Its state in the first snapshot; `None` if it did not exist then.
    pub(crate) before: Option<&'a str>,
    /// Its state in the second snapshot.
    pub(crate) after: Option<&'a str>,
    /// The record in the second snapshot, or in the first one if it has ended.
    pub(crate) of: &'a ListedRecord,
}

/// The heading of the rows for people.
pub(crate) fn heading() -> String {
    line(["WHAT", "STATE", "SCHEMA", "KEY"])
}

/// The row for people, in one line. The key comes last, because it may be long.
pub(crate) fn text(row: &DifferenceRow<'_>) -> String {
    // The separator is ASCII, so that columns are aligned in every locale.
    let state = match (row.before, row.after) {
        (Some(before), Some(after)) if before != after => format!("{before} -> {after}"),
        (before, after) => after.or(before).unwrap_or_default().to_owned(),
    };
    let what = match &row.how {
        Some(how) => how.as_str(),
        None => row.what.as_str(),
    };
    // Lists already escape keys that are not UTF-8.
    let ListedRecord { schema, key, .. } = row.of;
    line([what, &escape::again(&state), &escape::again(schema), &escape::again(key)])
}

/// Rows are printed as they are found, so the columns have fixed widths. A longer cell moves the
/// next ones to the right.
fn line([what, state, schema, key]: [&str; 4]) -> String {
    format!("{what:<7}  {state:<24}  {schema:<16}  {key}\n")
}

/// The fields of the JSON document beside the rows. `complete` is true if both snapshots contain
/// all records, and `None` if that is unknown.
pub(crate) fn document_fields(
    counts: &DifferenceCounts,
    summary: &Summary,
    complete: Option<bool>,
) -> Map<String, Value> {
    let mut kinds = Vec::new();
    for row in summary.rows() {
        kinds.push(json!({
            "by": row.by.as_str(),
            "schema": row.schema,
            "name": row.name,
            "before": row.before,
            "after": row.after,
        }));
    }
    let mut fields = document::fields(json!(counts));
    fields.insert("summary".to_owned(), kinds.into());
    fields.insert("complete".to_owned(), complete.into());
    fields
}

/// The number of records of each kind in both snapshots.
pub(crate) fn summary_table(summary: &Summary, view: View) -> String {
    let columns = [
        Column::text("SCHEMA", 0, |row: &SummaryRow<'_>| escape::again(row.schema)),
        Column::text("BY", 0, |row| row.by.as_str().to_owned()),
        Column::shortened("RECORDS", 0, |row| escape::again(row.name)),
        Column::number("BEFORE", 0, |row| row.before.to_string()),
        Column::number("AFTER", 0, |row| row.after.to_string()),
        Column::number("CHANGE", 0, |row| match row.after.cmp(&row.before) {
            Ordering::Equal => "-".to_owned(),
            Ordering::Less => format!("-{}", row.before - row.after),
            Ordering::Greater => format!("+{}", row.after - row.before),
        }),
    ];
    of_columns(view, &columns, &summary.rows())
}

/// One difference as a JSON object.
pub fn json(row: &DifferenceRow<'_>) -> String {
    let DifferenceRow { what, how, before, after, of } = row;
    let mut expires_at_ms = Vec::new();
    for print in &of.identity {
        expires_at_ms.push(print.as_ref().and_then(|print| print.expires_at_ms));
    }
    let mut value = json!({
        "what": what.as_str(),
        "how": how.as_ref().map(HowRecordEnded::as_str),
        "schema": of.schema,
        "key": of.key,
        "redis_keys": of.redis_keys,
        "before": before,
        "after": after,
        "owner": of.owner,
        "expires_at_ms": expires_at_ms,
    });
    if let Some(base64) = &of.key_base64 {
        value["key_base64"] = base64.as_str().into();
    }
    escape::json(value.to_string())
}

/// How many records of each moment a filter by age left out; `None` if there are none.
pub(crate) fn unproven([before, after]: [u64; 2]) -> Option<String> {
    if before + after == 0 {
        return None;
    }
    Some(format!(
        "Skipped because their age is only estimated or unknown: {before} before, {after} after. \
        To get known ages, list with the TTLs of your deployment (--lock-ttl, --result-ttl, or the \
        context)."
    ))
}

/// The counts as a sentence.
pub(crate) fn summary(counts: &DifferenceCounts) -> String {
    let DifferenceCounts { came, went, expired, removed, state, retaken, renewed, same, partial } =
        counts;
    format!(
        "{came} added, {went} gone ({expired} expired, {removed} before their expiry), {state} with \
        another state, {retaken} with another value, {renewed} with another expiry, {same} \
        unchanged, {partial} not compared to the end."
    )
}
