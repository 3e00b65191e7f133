//! What a scan covered, for people and as fields of a report.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{document, escape, invocation, name};
use crate::domain::duration;
use crate::domain::record::{RecordName, age};
use crate::domain::schema::{Catalog, Schema, TtlOf};
use crate::domain::select::contradiction::Contradiction;
use crate::domain::select::named_keys::NamedKeys;
use crate::domain::select::unproven::LeftOut;
use crate::domain::select::{Coverage, Missing};

/// Why a scan skips a schema that is not named.
const NO_PREFIX: &str =
    "it has no fixed prefix, so any Redis key could match; name it with --schema";

/// Why a scan skips a schema of the context.
const UNREADABLE: &str = "its files are invalid, so idemctl did not look for its records";

/// Why a filter does not select a result, although its beginning matches a format.
const DEVIATES: &str = "its whole value matches no format of the schema";

/// The same of several results.
const DEVIATE: &str = "their whole values match no format of the schema";

/// Why the end of a record may be unknown.
const NO_TIME: &str = "The expiry in the value is not a time, or idemctl cannot read the server's time (the user \
    needs +time).";

/// Why a field or the format of a value is unknown.
const TOO_LARGE: &str =
    "A scan reads at most 1 MiB of a value; `idemctl inspect KEY --full` reads all of it.";

/// The most schemas that each get their own line about records that were left out.
const MAX_LINES: usize = 2;

/// Lines about unrecognised values at the schemas' Redis keys, one per schema.
pub fn unrecognised(coverage: &Coverage, catalog: &Catalog) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, count) in &coverage.unrecognised {
        let mut under = String::new();
        if let Some(schema) = catalog.all().iter().find(|schema| schema.name == *name) {
            let prefixes = prefixes(schema);
            if !prefixes.is_empty() {
                under = format!(" under {prefixes}");
            }
        }
        let keys = if *count == 1 { "key" } else { "keys" };
        let do_not = if *count == 1 { "does not" } else { "do not" };
        lines.push(format!("{count} {keys}{under} {do_not} match schema {name}"));
    }
    lines
}

/// Lines about everything that was left out: skipped schemas, locks that another schema reads as
/// results, and records without evidence.
pub fn lines(coverage: &Coverage, catalog: &Catalog) -> Vec<String> {
    let mut lines = Vec::new();
    for schema in catalog.skipped() {
        lines.push(format!("Skipped schema {}: {NO_PREFIX}.", schema.name));
    }
    lines.extend(without_keys(&coverage.without_keys));
    for (name, count) in &coverage.spared {
        lines.push(if *count == 1 {
            format!("1 value that looks like a lock is a completed result of {name}")
        } else {
            format!("{count} values that look like locks are completed results of {name}")
        });
    }
    lines.extend(all_unproven(coverage, catalog));
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
    match keys.ambiguous - keys.listed_ambiguous.len() as u64 {
        0 => {}
        1 => lines.push("1 more key is ambiguous".to_owned()),
        more => lines.push(format!("{more} more keys are ambiguous")),
    }
    lines
}

/// A line with the names of the schemas that were left out; `None` if there are none.
pub fn left_out(catalog: &Catalog) -> Option<String> {
    let names: Vec<_> = catalog.left_out().map(|schema| schema.name.as_str()).collect();
    match names.as_slice() {
        [] => None,
        [name] => Some(format!("not read: schema {name} ({NO_PREFIX})")),
        names => Some(format!(
            "not read: schemas {} (they have no fixed prefix; name them with --schema)",
            names.join(", ")
        )),
    }
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
fn all_unproven(coverage: &Coverage, catalog: &Catalog) -> Vec<String> {
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
            lines.push(unproven(lacking, catalog, missing));
        }
    }
    lines
}

/// A sentence after a space; empty if no record has an expiry.
fn longest_time_left(longest_ms: Option<u64>) -> String {
    match longest_ms {
        Some(ms) => format!(" The longest time left is {}.", duration::short(ms)),
        None => String::new(),
    }
}

/// The name of one of the records, as the end of a clause, so that the reader can inspect it.
pub fn example(first: Option<&RecordName>) -> String {
    match first {
        Some(name) => format!(", e.g. {}", escape::again(&name.text())),
        None => String::new(),
    }
}

/// A line about the records of these schemas that lack the same evidence.
fn unproven(lacking: &[(&str, &LeftOut)], catalog: &Catalog, missing: Missing) -> String {
    let mut count = 0;
    let mut longest_ms = None;
    let mut by_schema = Vec::new();
    let example = example(lacking.iter().find_map(|(_, left_out)| left_out.first.as_ref()));
    for (name, left_out) in lacking {
        count += left_out.count;
        longest_ms = longest_ms.max(left_out.longest_ms);
        by_schema.push(format!("{name} {}", left_out.count));
    }
    let (records, their, they, have) = match count {
        1 => ("record", "its", "It never expires", "has"),
        _ => ("records", "their", "They never expire", "have"),
    };
    let skipped = match lacking {
        [(name, _)] => format!("Skipped {count} {name} {records}"),
        _ => format!("Skipped {count} {records} ({})", by_schema.join(", ")),
    };
    let of = match missing {
        Missing::Ttl(of) => of,
        Missing::Age => {
            return format!(
                "{skipped} of unknown age. {they}, {have} more time left than the service's TTL, \
                or got {their} expiry from an operator."
            );
        }
        Missing::Field(_) | Missing::Format => {
            return format!("{skipped} of unknown {}{example}. {TOO_LARGE}", missing.as_str());
        }
        Missing::WholeFormat => {
            let why = if count == 1 { DEVIATES } else { DEVIATE };
            return format!("{skipped}{example}, because {why}.");
        }
        Missing::Expiry => return format!("{skipped} of unknown expiry{example}. {NO_TIME}"),
    };
    let mut default = String::new();
    if let [(name, _)] = lacking
        && let Some(ms) = default_ttl(catalog, name, of)
    {
        default = format!(" (the schema's default is {})", duration::short(ms));
    }
    let longest = longest_time_left(longest_ms);
    format!(
        "{skipped}, because {their} age is only estimated: the {} TTL of this deployment is not \
        configured{default}.{longest}",
        of.as_str()
    )
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
        let mut defaults = Vec::new();
        let mut records = 0;
        let mut longest_ms = 0;
        let mut its_default_ms = 0;
        for (schema, ttl, found) in coverage.contradictions.iter() {
            if ttl != of {
                continue;
            }
            defaults.push(format!("{schema} ({})", duration::short(found.default_ms)));
            records += found.records;
            if found.most_ms > longest_ms {
                longest_ms = found.most_ms;
                its_default_ms = found.default_ms;
            }
        }
        if records == 0 {
            continue;
        }
        let name = of.as_str();
        let have = match records {
            1 => format!("{name} has"),
            _ => format!("{name}s have up to"),
        };
        let ttl = if defaults.len() == 1 { "TTL" } else { "TTLs" };
        // A check reads only a sample of the records, so more of them may contradict the default.
        let at_least = if coverage.contradictions.is_of_a_sample() { "at least " } else { "" };
        notes.push(format!(
            "{at_least}{records} {have} {} left, more than the default {name} {ttl} of {}. \
             If your service uses a longer TTL, set {name}_ttl in the context or pass {}.",
            duration::longer_than(longest_ms, its_default_ms),
            defaults.join(", "),
            of.option(),
        ));
    }
    notes
}

fn prefixes(schema: &Schema) -> String {
    // A set, because the keys of a record often share their prefix.
    let mut prefixes = BTreeSet::new();
    for key in &schema.keys {
        let prefix = escape::text(key.template.prefix());
        if !prefix.is_empty() {
            prefixes.insert(prefix);
        }
    }
    prefixes.into_iter().collect::<Vec<_>>().join(" and ")
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
                "Skipped 1 go-chi record, because its age is only estimated: the result TTL of this \
                deployment is not configured (the schema's default is 1d). The longest time left \
                is 1m.",
                "Skipped 1 go-chi record of unknown age. It never expires, has more time left \
                than the service's TTL, or got its expiry from an operator.",
            ]
        );
        assert_eq!(
            contradicted_defaults(&coverage),
            [
                "1 lock has 10m left, more than the default lock TTL of go-chi (1m). If your service uses a longer TTL, set lock_ttl in the context or pass --lock-ttl.",
            ]
        );
        let report = fields(&coverage, &catalog, 1);
        let unproven = &report["unproven"];
        assert_eq!((&unproven["result_ttl"], &unproven["age"]), (&json!(1), &json!(1)));
        assert_eq!((&unproven["lock_ttl"], &unproven["status"]), (&json!(0), &json!(0)));
        assert_eq!(report["contradicted_defaults"][0]["most_ms"], json!(600_000));
    }
}
