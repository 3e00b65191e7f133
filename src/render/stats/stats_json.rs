//! Statistics on records as JSON.

use serde_json::{Map, Value, json};

use crate::domain::stats::{BOUNDS, Histogram, Stats, StatsGroup, StatsRow};
use crate::render::document::{base64_unless_text, text};

/// The rows, and the fields about all of them.
pub fn rows(stats: &Stats, owners: usize) -> (Vec<Value>, Map<String, Value>) {
    let mut rows = Vec::new();
    for (schema, group, figures) in stats.rows() {
        rows.push(row(stats, schema, group, figures));
    }
    let mut top_owners = Vec::new();
    for (owner, locks) in &stats.top_owners(owners) {
        top_owners.push(with_bytes("owner", owner, json!({ "locks": locks })));
    }
    let mut more = Map::new();
    more.insert("owners".to_owned(), top_owners.into());
    more.insert("owners_complete".to_owned(), (!stats.has_other_owners()).into());
    (rows, more)
}

fn row(stats: &Stats, schema: &str, group: &StatsGroup, row: &StatsRow) -> Value {
    let by = stats.by().as_str();
    let figures = json!({
        "records": row.records,
        "bytes": row.bytes,
        "memory_bytes": row.memory_bytes(),
        "memory_sampled": !row.is_weighed_whole(),
        "oldest_age_ms": row.oldest.map(|age| age.millis),
        "oldest_age_evidence": row.oldest.map(|age| age.evidence.as_str()),
        "no_expiry": row.no_expiry,
        "no_age": row.ageless,
        "ttl": ranges(&row.ttl),
        "age": ranges(&row.age),
    });
    let named = match group {
        StatsGroup::Of(value) => with_bytes(by, value, figures),
        StatsGroup::None => first(by, Value::Null, figures),
        // Null is the value of the group without a name, so a field of its own marks the rest.
        StatsGroup::Others => first("others", true.into(), first(by, Value::Null, figures)),
    };
    first("schema", schema.into(), named)
}

/// Counts by range. `up_to_ms` is null in the last range, which has no upper bound.
fn ranges(histogram: &Histogram) -> Vec<Value> {
    let mut bounds: Vec<_> = BOUNDS.iter().map(|(bound, _)| Some(*bound)).collect();
    bounds.push(None);
    let mut ranges = Vec::new();
    for (bound, count) in bounds.into_iter().zip(histogram.counts()) {
        ranges.push(json!({ "up_to_ms": bound, "records": count }));
    }
    ranges
}

fn with_bytes(name: &str, bytes: &[u8], more: Value) -> Value {
    let more = match base64_unless_text(bytes) {
        Some(base64) => first(&format!("{name}_base64"), base64.into(), more),
        None => more,
    };
    first(name, text(bytes).into(), more)
}

/// An object with one more field at its beginning.
fn first(name: &str, value: Value, more: Value) -> Value {
    let mut all = Map::new();
    all.insert(name.to_owned(), value);
    all.extend(crate::render::document::fields(more));
    Value::Object(all)
}
