//! The reports of changes to many records, as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::domain::change::outcome_counts::OutcomeCounts;
use crate::domain::select::Tally;
use crate::domain::select::tally::{TallyGroup, TallySample};
use crate::render::document::{fields, with};
use crate::render::escape;

/// The report of a sweep: the records by finding, what the scan covered, and the outcome.
pub fn sweep_report(
    tally: &Tally<&'static str>,
    sought: &[&'static str],
    covered: Map<String, Value>,
    swept: &OutcomeCounts,
) -> Value {
    let mut found = Map::new();
    // Findings without a record are included, so that programs find every field.
    for code in sought {
        found.insert((*code).to_owned(), group(&TallyGroup::default()));
    }
    for (code, of_code) in tally.groups() {
        if let Some(fields) = found.get_mut(*code) {
            *fields = group(of_code);
        }
    }
    let report = json!({
        "format": 1,
        "outcome": swept.ended.as_str(),
        "keys": covered.get("keys_walked"),
        "found": found,
        "total": tally.total(),
        "done": swept.done,
        "read_back": swept.read_back,
        "unknown": swept.unknown,
        // A record that is gone has changed since the scan, and the contract has one field for
        // both.
        "changed": swept.changed_meanwhile + swept.gone,
        "renewed": swept.renewed,
        "skipped_alive": swept.skipped_alive,
        "owner_unknown": swept.owner_unknown,
        "left_to_expire": swept.left_to_expire,
        "left_foreign": swept.unrecognised,
        "left_too_large": swept.too_large,
        "backup": swept.backup,
    });
    with(report, covered)
}

/// The report of a purge: the records by schema and state, what the scan covered, and the outcome.
pub fn purge_report(
    tally: &Tally<(String, &'static str)>,
    covered: Map<String, Value>,
    purged: &OutcomeCounts,
) -> Value {
    let mut found = Vec::new();
    for ((schema, state), of) in tally.groups() {
        found.push(with(json!({ "schema": schema, "state": state }), fields(group(of))));
    }
    let report = json!({
        "format": 1,
        "outcome": purged.ended.as_str(),
        "found": found,
        "total": tally.total(),
        "done": purged.done,
        "read_back": purged.read_back,
        "unknown": purged.unknown,
        "partly": purged.partly.len(),
        "changed": purged.changed_meanwhile + purged.renewed,
        "gone": purged.gone,
        "left_foreign": purged.unrecognised,
        "left_too_large": purged.too_large,
        "backup": purged.backup,
    });
    with(report, covered)
}

fn group(group: &TallyGroup) -> Value {
    json!({
        "count": group.count,
        "oldest_ms": group.oldest.map(|age| age.millis),
        "oldest_evidence": group.oldest.map(|age| age.evidence.as_str()),
        "sample": group.sample.iter().map(sample_record).collect::<Vec<_>>(),
    })
}

/// A record that serves as an example of its group.
pub fn sample_record(sample: &TallySample) -> Value {
    match std::str::from_utf8(&sample.key) {
        Ok(key) => json!({ "schema": sample.schema, "key": key }),
        Err(_) => json!({
            "schema": sample.schema,
            "key": escape::text(&sample.key),
            "key_base64": STANDARD.encode(&sample.key),
        }),
    }
}
