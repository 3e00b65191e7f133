//! What a scan covered, for people and as fields of a report.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{document, escape, invocation, name, words};
use crate::domain::duration;
use crate::domain::record::{RecordName, age};
use crate::domain::schema::{Catalog, TtlOf};
use crate::domain::select::contradiction::Contradiction;
use crate::domain::select::named_keys::NamedKeys;
use crate::domain::select::unproven::LeftOut;
use crate::domain::select::{Coverage, Missing};

/// Why a scan skips a schema that is not named.
const NO_PREFIX: &str = "no fixed prefix, so any Redis key could match; name it with --schema";

/// Why a scan skips a schema of the context.
const UNREADABLE: &str = "its files are invalid, so idemctl did not look for its records";

/// The most schemas that each get their own line about records that were left out.
const MAX_LINES: usize = 2;

/// A line about unrecognised values at the schemas' Redis keys; `None` if there are none.
pub fn unrecognised(coverage: &Coverage) -> Option<String> {
    let mut counts = Vec::new();
    for (name, count) in &coverage.unrecognised {
        counts.push(format!("{name} {count}"));
    }
    if counts.is_empty() {
        return None;
    }
    Some(format!("values that match no format of their schema: {}", counts.join(", ")))
}

/// A line for each field that alone keeps records from being those of their schema, and the setting
/// that accepts it.
pub fn near_misses(found: &BTreeMap<(String, String), u64>) -> Vec<String> {
    let mut lines = Vec::new();
    for ((schema, field), count) in found {
        let field = escape::text(field.as_bytes());
        let verb = if *count == 1 { "differs" } else { "differ" };
        lines.push(format!(
            "{} {verb} from {schema} only by {field}; extra_fields = [\"{field}\"] in \
            [contexts.NAME.deployment.{schema}] accepts the field",
            words::counted(*count, "record")
        ));
    }
    lines
}

/// The same for JSON.
pub fn near_misses_json(found: &BTreeMap<(String, String), u64>) -> Value {
    let shown = |((schema, field), count): (&(String, String), &u64)| json!({ "schema": schema, "field": escape::text(field.as_bytes()), "records": count });
    found.iter().map(shown).collect()
}

/// Lines about everything that was left out: skipped schemas, locks that another schema reads as
/// results, and records without evidence.
pub fn lines(coverage: &Coverage, catalog: &Catalog) -> Vec<String> {
    let mut lines = Vec::new();
    for schema in catalog.skipped() {
        lines.push(format!("Skipped schema {}: {NO_PREFIX}.", schema.name));
    }
    if !coverage.has_no_key {
        lines.extend(without_keys(&coverage.without_keys));
    }
    for (name, count) in &coverage.spared {
        lines.push(format!(
            "values that look like locks and are completed results of {name}: {count}"
        ));
    }
    lines.extend(near_misses(&coverage.near_misses));
    lines.extend(all_unproven(coverage));
    lines.extend(named_keys(&coverage.named));
    lines
}

/// Lines about named schemas that have no Redis key, each with the prefix of its keys.
pub fn without_keys(schemas: &[(String, Vec<u8>)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, prefix) in schemas {
        lines.push(format!("schema {name} has no key under {}", escape::text(prefix)));
    }
    lines
}

/// The names of these schemas, as JSON.
pub fn names_without_keys(schemas: &[(String, Vec<u8>)]) -> Value {
    schemas.iter().map(|(name, _)| name.as_str()).collect()
}

/// Lines about the operator's keys that were not found or left alone, the first ones by name.
fn named_keys(keys: &NamedKeys) -> Vec<String> {
    let mut lines = Vec::new();
    if keys.absent > 0 {
        let names: Vec<_> = keys.listed_absent.iter().map(|key| escape::text(key)).collect();
        // Only the first keys are kept by name, because a file may name any number of keys.
        let more = keys.absent - names.len() as u64;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("not found: {}{more}", names.join(", ")));
        if let Some((key, why, hint)) = &keys.first_excluded {
            lines.push(format!("{}: {why}; {hint}", escape::text(key)));
        }
    }
    for (name, why) in &keys.listed_left {
        let name = escape::again(&name.text());
        lines.push(format!("unchanged: {name} ({})", escape::text(why.as_bytes())));
    }
    let more_unchanged = keys.left_alone - keys.listed_left.len() as u64;
    if more_unchanged > 0 {
        lines.push(format!("unchanged: {more_unchanged} more of the keys"));
    }
    if let Some(name) = &keys.first_lock {
        let name = invocation::argument(&name.text());
        lines.push(format!("to remove a lock, run `idemctl force-unlock {name}`"));
    }
    for (key, names) in &keys.listed_ambiguous {
        lines.push(name::ambiguous(key, names));
    }
    let more_ambiguous = keys.ambiguous - keys.listed_ambiguous.len() as u64;
    if more_ambiguous > 0 {
        lines.push(format!("more ambiguous keys: {more_ambiguous}"));
    }
    lines
}

/// A line with the names of the schemas that were left out; `None` if there are none.
pub fn left_out(catalog: &Catalog) -> Option<String> {
    let names: Vec<_> = catalog.left_out().map(|schema| schema.name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    Some(format!("not read: schema {} ({NO_PREFIX})", names.join(", ")))
}

/// The coverage of a scan, as fields of a report.
pub fn fields(coverage: &Coverage, catalog: &Catalog, keys: u64) -> Map<String, Value> {
    // Both kinds were not read, so programs find them in one list.
    let mut left_out = Vec::new();
    for schema in catalog.left_out() {
        left_out.push(json!({ "schema": schema.name, "reason": NO_PREFIX }));
    }
    for name in &catalog.unreadable {
        left_out.push(json!({ "schema": name, "reason": UNREADABLE }));
    }
    let mut unproven = Map::new();
    for missing in Missing::ALL {
        unproven.insert(missing.as_str().to_owned(), coverage.unproven.count(missing).into());
    }
    let named = &coverage.named;
    let not_found: Vec<_> = named.listed_absent.iter().map(|key| escape::text(key)).collect();
    let mut left_alone = Vec::new();
    for (name, why) in &named.listed_left {
        left_alone.push(json!({ "name": name.text(), "reason": escape::text(why.as_bytes()) }));
    }
    let mut ambiguous = Vec::new();
    for (key, names) in &named.listed_ambiguous {
        let names: Vec<_> = names.iter().map(|name| name.instead_of(key)).collect();
        ambiguous.push(json!({ "key": escape::text(key), "names": names }));
    }
    document::fields(json!({
        "keys_walked": keys,
        "foreign": coverage.unrecognised,
        "near_misses": near_misses_json(&coverage.near_misses),
        "spared": coverage.spared,
        "left_out": left_out,
        "unproven": unproven,
        "without_keys": names_without_keys(&coverage.without_keys),
        "keys_not_found": named.absent,
        "not_found": not_found,
        "keys_left_alone": named.left_alone,
        "left_alone": left_alone,
        "keys_ambiguous": named.ambiguous,
        "ambiguous": ambiguous,
        "contradicted_defaults": coverage.contradictions.iter().map(shown).collect::<Vec<_>>(),
    }))
}

fn shown((schema, of, found): (&str, TtlOf, Contradiction)) -> Value {
    json!({
        "schema": schema,
        "ttl": of.as_str(),
        "default_ms": found.default_ms,
        "most_ms": found.most_ms,
        "records": found.records,
    })
}

/// Lines about records that were left out for want of evidence. If more than two schemas lack the
/// same, they share a line, because a server may have many schemas.
fn all_unproven(coverage: &Coverage) -> Vec<String> {
    let mut lines = Vec::new();
    for missing in Missing::ALL {
        let mut lacking = Vec::new();
        for (name, of, left_out) in coverage.unproven.of_schemas() {
            if of == missing {
                lacking.push((name, left_out));
            }
        }
        let schemas = if lacking.len() > MAX_LINES { lacking.len() } else { 1 };
        for lacking in lacking.chunks(schemas) {
            lines.push(unproven(lacking, missing));
        }
    }
    lines
}

/// The name of one of the records, as the end of a clause, so that the reader can inspect it.
pub fn example(first: Option<&RecordName>) -> String {
    match first {
        Some(name) => format!(", e.g. {}", escape::again(&name.text())),
        None => String::new(),
    }
}

/// A line about the records of these schemas that lack the same evidence.
fn unproven(lacking: &[(&str, &LeftOut)], missing: Missing) -> String {
    let mut count = 0;
    let mut by_schema = Vec::new();
    for (name, left_out) in lacking {
        count += left_out.count;
        by_schema.push(format!("{name} {}", left_out.count));
    }
    let skipped = format!("Skipped {} ({})", words::counted(count, "record"), by_schema.join(", "));
    let example = example(lacking.iter().find_map(|(_, left_out)| left_out.first.as_ref()));
    match missing {
        Missing::Ttl(of) => format!(
            "{skipped}: the age is only estimated, because the {} TTL of this deployment is not \
            configured.",
            of.as_str()
        ),
        Missing::WholeFormat => {
            format!("{skipped}{example}: the whole value matches no format of the schema.")
        }
        Missing::Age | Missing::Field(_) | Missing::Format | Missing::Expiry => {
            format!("{skipped} of unknown {}{example}.", missing.as_str())
        }
    }
}

/// The default TTL of the schema with this name, in milliseconds.
fn default_ttl(catalog: &Catalog, name: &str, of: TtlOf) -> Option<u64> {
    let schema = catalog.all().iter().find(|schema| schema.name == name)?;
    schema.ttl(of).map(age::millis)
}

/// For each schema with records that were left out for want of a TTL: the options that set it to
/// the schema's default, or to the longest time left if that is more.
pub fn stating(coverage: &Coverage, catalog: &Catalog) -> Vec<[String; 4]> {
    let mut options = Vec::new();
    for (name, missing, left_out) in coverage.unproven.of_schemas() {
        // No option can set an age that is unknown for other reasons.
        let Missing::Ttl(of) = missing else { continue };
        let mut ttl_ms = duration::rounded_up(left_out.longest_ms.unwrap_or_default());
        ttl_ms = ttl_ms.max(default_ttl(catalog, name, of).unwrap_or_default());
        let ttl = duration::short(ttl_ms).replace(' ', "");
        options.push(["--schema".to_owned(), name.to_owned(), of.option().to_owned(), ttl]);
    }
    options
}

/// Notes about default TTLs that the records contradict: at most one for locks and one for results,
/// for any number of schemas.
pub fn contradicted_defaults(coverage: &Coverage) -> Vec<String> {
    let mut notes = Vec::new();
    for of in [TtlOf::Lock, TtlOf::Result] {
        let mut records = 0;
        let mut longest_ms = 0;
        for (_, ttl, found) in coverage.contradictions.iter() {
            if ttl == of {
                records += found.records;
                longest_ms = longest_ms.max(found.most_ms);
            }
        }
        if records == 0 {
            continue;
        }
        let name = of.as_str();
        notes.push(format!(
            "{} with up to {} left, more than the default {name} TTL. If your service uses a \
            longer TTL, set {name}_ttl in the context or pass {}.",
            words::counted(records, name),
            duration::short(longest_ms),
            of.option(),
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, catalog, chi};

    #[test]
    fn missing_evidence_and_contradicted_defaults_are_reported() {
        let (mut coverage, catalog) = (Coverage::default(), catalog(&[], None));
        assert!(lines(&coverage, &catalog).is_empty());
        coverage
            .unproven
            .add(&chi(CHI_RESULT, TimeLeft::Millis(60_000)), Missing::Ttl(TtlOf::Result));
        coverage.unproven.add(&chi(CHI_LOCK, TimeLeft::NoExpiry), Missing::Age);
        coverage.contradictions.note(&chi(CHI_LOCK, TimeLeft::Millis(600_000)));
        assert_eq!(
            lines(&coverage, &catalog),
            [
                "Skipped 1 record (go-chi 1): the age is only estimated, because the result TTL of \
                this deployment is not configured.",
                "Skipped 1 record (go-chi 1) of unknown age, e.g. go-chi/k.",
            ]
        );
        assert_eq!(
            contradicted_defaults(&coverage),
            [
                "1 lock with up to 10m left, more than the default lock TTL. If your service uses a longer TTL, set lock_ttl in the context or pass --lock-ttl.",
            ]
        );
        let report = fields(&coverage, &catalog, 1);
        let unproven = &report["unproven"];
        assert_eq!((&unproven["result_ttl"], &unproven["age"]), (&json!(1), &json!(1)));
        assert_eq!((&unproven["lock_ttl"], &unproven["status"]), (&json!(0), &json!(0)));
        assert_eq!(report["contradicted_defaults"][0]["most_ms"], json!(600_000));
    }
}
