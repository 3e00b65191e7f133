//! Groups of duplicates as JSON.

use serde_json::{Map, Value, json};

use crate::domain::duplicates::{
    ComparedName, ComparedRecord, DIGEST, DuplicateGroup, GroupBasis, NotCompared, UnknownBecause,
};
use crate::render::columns::rfc3339;
use crate::render::document::{self, base64_unless_text, text};
use crate::render::duplicates::DuplicatesReport;
use strum::VariantArray as _;

/// One document: the groups, then the summary and what a scan covered.
pub(crate) fn document(report: &DuplicatesReport<'_>, covered: Map<String, Value>) -> String {
    let groups: Vec<_> =
        report.grouped.groups.iter().map(|group| group_json(report, group)).collect();
    let mut more = document::fields(json!({
        "same": report.rule.pointers,
        "also": report.rule.further_names(),
        "within_ms": report.within_ms,
        "records": report.counts.records,
        "compared": report.counts.compared,
        "strong_groups": strong(report, true),
        "weak_groups": strong(report, false),
        "repeated_results": repeated_results(report),
        "not_compared": not_compared(report),
        "unknown": unknown(report),
        "fingerprints_left_out": report.leaves_fingerprints_out,
        "candidates": candidates(report),
        "pointers_left_out": report.candidates.is_some_and(|tally| tally.leaves_out),
    }));
    more.extend(covered);
    document::document("groups", &groups, &more)
}

/// One group per line.
pub(crate) fn lines(report: &DuplicatesReport<'_>) -> String {
    let groups = report.grouped.groups.iter();
    groups.map(|group| document::line(&group_json(report, group))).collect()
}

fn group_json(report: &DuplicatesReport<'_>, group: &DuplicateGroup) -> Value {
    let grouped = report.grouped;
    let counts = grouped.counts(group);
    let gaps = grouped.gaps(group);
    let mut records = Vec::with_capacity(group.members.len());
    for (index, gap) in group.members.iter().zip(&gaps) {
        records.push(record_json(&grouped.records[*index], *gap));
    }
    let mut values = Vec::new();
    for (name, value) in report.names(group).iter().zip(&group.values) {
        // The text at a pointer is JSON, unless it is too long; a fingerprint is a text.
        let value = match group.basis {
            GroupBasis::Values if !value.starts_with(DIGEST) => {
                serde_json::from_str(value).unwrap_or_default()
            }
            _ => Value::from(value.as_str()),
        };
        values.push(json!({ "name": name, "value": value }));
    }
    for (name, value) in report.rule.further_names().iter().zip(&group.further) {
        values.push(json!({ "name": name, "value": text(value) }));
    }
    json!({
        "evidence": if group.basis.is_strong() { "strong" } else { "weak" },
        "basis": group.basis.as_str(),
        "values": values,
        "values_differ": !group.basis.is_strong() && grouped.values_differ(&group.members),
        "keys": counts.keys,
        "completed": counts.completed,
        "failed": counts.failed,
        "in_progress": counts.in_progress,
        "unknown": counts.unknown,
        "longest_gap_ms": gaps.into_iter().flatten().max(),
        "time_evidence": grouped.time_evidence(group).map(|evidence| evidence.as_str()),
        "mixed_times": grouped.has_mixed_times(group),
        "key_stem": grouped.common_stem(group).map(text),
        "records": records,
    })
}

fn record_json(record: &ComparedRecord, gap_ms: Option<u64>) -> Value {
    let mut fields = document::fields(json!({
        "schema": schema(&record.name),
        "key": text(&record.name.key),
    }));
    if let Some(bytes) = base64_unless_text(&record.name.key) {
        fields.insert("key_base64".to_owned(), bytes.into());
    }
    fields.extend(document::fields(json!({
        "state": record.state.map(|state| state.as_str()),
        "status": record.status,
        "outcome": record.outcome.as_str(),
        "owner": record.owner.as_deref().map(text),
        "at": record.time.and_then(|time| rfc3339(time.at_ms)),
        "at_is": record.time.map(|time| time.is.as_str()),
        "at_evidence": record.time.map(|time| time.evidence.as_str()),
        "gap_ms": gap_ms,
    })));
    Value::Object(fields)
}

/// Null for a record of a file that names no schema.
fn schema(name: &ComparedName) -> Option<&str> {
    if name.schema.is_empty() { None } else { Some(&name.schema) }
}

fn strong(report: &DuplicatesReport<'_>, is_strong: bool) -> usize {
    report.grouped.groups.iter().filter(|group| group.basis.is_strong() == is_strong).count()
}

/// For each number of completed results from two on, the number of groups of strong evidence.
fn repeated_results(report: &DuplicatesReport<'_>) -> Vec<Value> {
    let mut groups = std::collections::BTreeMap::new();
    for group in &report.grouped.groups {
        let completed = report.grouped.counts(group).completed;
        if group.basis.is_strong() && completed > 1 {
            *groups.entry(completed).or_insert(0_u64) += 1;
        }
    }
    let shown = |(completed, groups)| json!({ "completed": completed, "groups": groups });
    groups.into_iter().map(shown).collect()
}

fn not_compared(report: &DuplicatesReport<'_>) -> Map<String, Value> {
    let mut fields = Map::new();
    for why in NotCompared::VARIANTS {
        let count = report.counts.not_compared.get(why).copied().unwrap_or_default();
        fields.insert(why.as_str().to_owned(), count.into());
    }
    fields
}

fn unknown(report: &DuplicatesReport<'_>) -> Map<String, Value> {
    let mut fields = Map::new();
    for why in UnknownBecause::VARIANTS {
        let known = report.counts.unknown.get(why);
        let mut examples = Vec::new();
        for name in known.iter().flat_map(|unknown| &unknown.names) {
            examples.push(json!({ "schema": schema(name), "key": text(&name.key) }));
        }
        let count = known.map_or(0, |unknown| unknown.count);
        let shown = json!({ "records": count, "examples": examples });
        fields.insert(why.as_str().to_owned(), shown);
    }
    fields
}

fn candidates(report: &DuplicatesReport<'_>) -> Vec<Value> {
    let mut candidates = Vec::new();
    for count in report.candidates.iter().flat_map(|tally| tally.counts()) {
        candidates.push(json!({
            "pointer": count.pointer,
            "values": count.values,
            "repeated": count.repeated,
            "estimated": count.is_estimate,
        }));
    }
    candidates
}
