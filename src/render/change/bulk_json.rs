//! Reports as JSON: the documented, versioned contract. Fields are added, never renamed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::domain::change::outcome::Account;
use crate::domain::select::tally::{Group, Sample, Tally};
use crate::render::escape;

/// What a sweep found among what it covered, by each finding that was sought, and did.
pub fn sweep(
    tally: &Tally<&'static str>,
    sought: &[&'static str],
    covered: Map<String, Value>,
    swept: &Account,
) -> Value {
    let nothing = Group::default();
    let of = |code: &str| tally.groups().find(|(found, _)| **found == code).map_or(&nothing, |(_, group)| group);
    let found: Map<_, _> = sought.iter().map(|code| ((*code).to_owned(), Value::Object(group(of(code))))).collect();
    let report = json!({
        "format": 1,
        "outcome": swept.outcome.as_str(),
        "keys": covered.get("keys_walked"),
        "found": found,
        "total": tally.total(),
        "done": swept.done,
        "read_back": swept.read_back,
        "unknown": swept.unknown,
        "changed": swept.changed + swept.gone,
        "renewed": swept.renewed,
        "skipped_alive": swept.skipped_alive,
        "left_to_expire": swept.left_to_expire,
        "left_foreign": swept.foreign,
        "backup": swept.backup,
    });
    with(report, covered)
}

/// What a purge found, by schema and state, and did.
pub fn purge(tally: &Tally<(String, &'static str)>, covered: Map<String, Value>, purged: &Account) -> Value {
    let found: Vec<_> = tally
        .groups()
        .map(|((schema, state), of)| {
            let mut fields = Map::from_iter([("schema".to_owned(), json!(schema)), ("state".to_owned(), json!(state))]);
            fields.extend(group(of));
            Value::Object(fields)
        })
        .collect();
    let report = json!({
        "format": 1,
        "outcome": purged.outcome.as_str(),
        "found": found,
        "total": tally.total(),
        "done": purged.done,
        "read_back": purged.read_back,
        "unknown": purged.unknown,
        "changed": purged.changed + purged.renewed,
        "gone": purged.gone,
        "left_foreign": purged.foreign,
        "backup": purged.backup,
    });
    with(report, covered)
}

fn with(mut report: Value, covered: Map<String, Value>) -> Value {
    if let Some(fields) = report.as_object_mut() {
        fields.extend(covered);
    }
    report
}

fn group(group: &Group) -> Map<String, Value> {
    let sample: Vec<_> = group.sample.iter().map(shown).collect();
    Map::from_iter([
        ("count".to_owned(), json!(group.count)),
        ("oldest_ms".to_owned(), json!(group.oldest.map(|age| age.millis))),
        ("oldest_evidence".to_owned(), json!(group.oldest.map(|age| age.evidence.as_str()))),
        ("sample".to_owned(), json!(sample)),
    ])
}

fn shown(sample: &Sample) -> Value {
    match std::str::from_utf8(&sample.key) {
        Ok(key) => json!({ "schema": sample.schema, "key": key }),
        Err(_) => json!({
            "schema": sample.schema,
            "key": escape::text(&sample.key),
            "key_base64": STANDARD.encode(&sample.key),
        }),
    }
}
