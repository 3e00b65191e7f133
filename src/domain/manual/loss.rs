//! What a completion would lose of the value that the result replaces.

use crate::domain::record::{Content, Json, Record, decode, json_prefix};
use crate::domain::step::Request;
use crate::domain::step::kept::unknown_fields;

/// JSON pointers to what stands in the value of before and not in the result: fields that the value's form does not name, and
/// the hash of the payload. A retry may be refused for the lack of either.
///
/// A step that sends no whole result leaves the rest to the service's own script.
pub(crate) fn lost_fields(record: &Record, request: &Request<'_>) -> Vec<String> {
    let schema = &record.schema;
    let role = schema.lock_role();
    let Content::Text { head: before, .. } = &record.seen.keys[role].content else { return Vec::new() };
    if role != schema.result_role() || !schema.sends_result_value() {
        return Vec::new();
    }
    let result = request.result_value();
    let after = json_prefix::parse(&result, true).unwrap_or(Json::Null);
    let told = unknown_fields(schema, before);
    let old = json_prefix::parse(before, true).unwrap_or(Json::Null);
    let path = |name: &str| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    let is_lost = |path: &String| {
        old.pointer(path).map(|value| value.to_value()) != after.pointer(path).map(|value| value.to_value())
    };
    let mut lost: Vec<_> = told.iter().map(|(name, _)| path(name)).filter(is_lost).collect();
    lost.extend(lost_fingerprint(record, &result).filter(|path| !lost.contains(path)));
    lost
}

/// The place of the payload's hash in the value of before, where the result does not have that hash.
fn lost_fingerprint(record: &Record, result: &[u8]) -> Option<String> {
    let schema = &record.schema;
    let before = record.readings[schema.lock_role()].decoded()?;
    let stored = before.fingerprint.as_ref()?;
    let after = decode::read(schema, schema.result_role(), &Content::text(result.to_vec()));
    let kept = after.decoded().and_then(|value| value.fingerprint.as_ref());
    (kept != Some(stored)).then(|| schema.values[before.case].fields.fingerprint.clone()).flatten()
}
