//! What a scan covered, for people and as fields of a report.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{document, escape, invocation, name};
use crate::domain::duration;
use crate::domain::record::age;
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

/// The most schemas that each get their own line about records that were left out.
const MOST_LINES: usize = 2;

/// Every kind of missing evidence, in the order of the JSON.
const MISSING: [Missing; 3] =
    [Missing::Ttl(TtlOf::Lock), Missing::Ttl(TtlOf::Result), Missing::Age];

/// Lines about unrecognised values at the schemas' Redis keys, one per schema.
pub fn unrecognised(coverage: &Coverage, catalog: &Catalog) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, count) in &coverage.foreign {
        let schema = catalog.all().iter().find(|schema| schema.name == *name);
        let under = schema.map(|schema| prefixes(schema)).filter(|prefixes| !prefixes.is_empty());
        let under = under.map_or_else(String::new, |prefixes| format!(" under {prefixes}"));
        let (keys, do_not) = if *count == 1 { ("key", "does not") } else { ("keys", "do not") };
        lines.push(format!("{count} {keys}{under} {do_not} match schema {name}"));
    }
    lines
}

/// Lines about everything that was left out: skipped schemas, locks that another schema reads as
/// results, and records without evidence.
pub fn lines(coverage: &Coverage, catalog: &Catalog) -> Vec<String> {
    let spared = coverage.spared.iter().map(|(name, count)| {
        if *count == 1 {
            format!("1 value that looks like a lock is a completed result of {name}")
        } else {
            format!("{count} values that look like locks are completed results of {name}")
        }
    });
    let unproven = all_unproven(coverage, catalog);
    let skipped =
        catalog.skipped().map(|schema| format!("Skipped schema {}: {NO_PREFIX}.", schema.name));
    let unreadable =
        catalog.unreadable().iter().map(|name| format!("Skipped schema {name}: {UNREADABLE}."));
    skipped
        .chain(unreadable)
        .chain(spared)
        .chain(unproven)
        .chain(named_keys(&coverage.named))
        .collect()
}

/// Lines about the operator's keys that were not found or left alone, the first ones by name.
fn named_keys(keys: &NamedKeys) -> impl Iterator<Item = String> {
    let told: Vec<_> = keys.told.iter().map(|key| escape::text(key)).collect();
    let more = keys.absent - told.len() as u64;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let absent = (keys.absent > 0).then(|| format!("not found: {}{more}", told.join(", ")));
    let left = keys.told_left.iter().map(|(name, why)| {
        format!("unchanged: {} ({})", escape::again(&name.text()), escape::text(why.as_bytes()))
    });
    let unnamed = keys.left - keys.told_left.len() as u64;
    let unnamed = (unnamed > 0).then(|| format!("unchanged: {unnamed} more of the keys"));
    let lock = keys.first_lock.as_ref().map(|name| {
        format!(
            "to remove a lock, run `idemctl force-unlock {}`",
            invocation::argument(&name.text())
        )
    });
    let ambiguous = keys.told_ambiguous.iter().map(|(key, names)| name::ambiguous(key, names));
    let untold = keys.ambiguous - keys.told_ambiguous.len() as u64;
    let untold = match untold {
        0 => None,
        1 => Some("1 more key is ambiguous".to_owned()),
        more => Some(format!("{more} more keys are ambiguous")),
    };
    absent.into_iter().chain(left).chain(unnamed).chain(lock).chain(ambiguous).chain(untold)
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
    let left_out =
        catalog.left_out().map(|schema| json!({ "schema": schema.name, "reason": NO_PREFIX }));
    let unreadable =
        catalog.unreadable().iter().map(|name| json!({ "schema": name, "reason": UNREADABLE }));
    let mut unproven = Map::new();
    for missing in MISSING {
        unproven.insert(missing.as_str().to_owned(), coverage.unproven.count(missing).into());
    }
    document::fields(json!({
        "keys_walked": keys,
        "foreign": coverage.foreign,
        "spared": coverage.spared,
        "left_out": left_out.chain(unreadable).collect::<Vec<_>>(),
        "unproven": unproven,
        "keys_not_found": coverage.named.absent,
        "not_found": coverage.named.told.iter().map(|key| escape::text(key)).collect::<Vec<_>>(),
        "keys_left_alone": coverage.named.left,
        "left_alone": coverage.named.told_left.iter().map(|(name, why)| json!({
            "name": name.text(),
            "reason": escape::text(why.as_bytes()),
        })).collect::<Vec<_>>(),
        "keys_ambiguous": coverage.named.ambiguous,
        "ambiguous": coverage.named.told_ambiguous.iter().map(|(key, names)| json!({
            "key": escape::text(key),
            "names": names.iter().map(|name| name.instead_of(key)).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
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
/// same TTL, they share a line, because a server may have many schemas.
fn all_unproven(coverage: &Coverage, catalog: &Catalog) -> Vec<String> {
    let mut lines = Vec::new();
    for missing in MISSING {
        let lacking: Vec<_> =
            coverage.unproven.of_schemas().filter(|(_, of, _)| *of == missing).collect();
        if lacking.len() > MOST_LINES {
            lines.push(unproven_of_several(missing, &lacking));
            continue;
        }
        for (name, _, left_out) in lacking {
            let schema = catalog.all().iter().find(|schema| schema.name == name);
            lines.push(unproven(name, schema.map(Arc::as_ref), missing, left_out));
        }
    }
    lines
}

fn unproven_of_several(missing: Missing, lacking: &[(&str, Missing, LeftOut)]) -> String {
    let count: u64 = lacking.iter().map(|(.., left_out)| left_out.count).sum();
    let longest = lacking.iter().filter_map(|(.., left_out)| left_out.longest_ms).max();
    let mut by_schema = Vec::new();
    for (name, _, left_out) in lacking {
        by_schema.push(format!("{name} {}", left_out.count));
    }
    let by_schema = by_schema.join(", ");
    let Missing::Ttl(of) = missing else {
        return format!(
            "Skipped {count} records of unknown age ({by_schema}). They never expire, or have more \
            time left than their service's TTL."
        );
    };
    let longest = longest
        .map(|longest| format!(" The longest time left is {}.", duration::short(longest)))
        .unwrap_or_default();
    format!(
        "Skipped {count} records ({by_schema}), because their age is only estimated: the {} TTLs of \
        this deployment are not configured.{longest}",
        of.as_str()
    )
}

fn unproven(name: &str, schema: Option<&Schema>, missing: Missing, left_out: LeftOut) -> String {
    let count = left_out.count;
    let (records, their, they, have) = match count {
        1 => ("record", "its", "It never expires", "has"),
        _ => ("records", "their", "They never expire", "have"),
    };
    let Missing::Ttl(of) = missing else {
        return format!(
            "Skipped {count} {name} {records} of unknown age. {they}, or {have} more time left than \
            the service's TTL."
        );
    };
    let default =
        schema.and_then(|schema| schema.ttl(of)).map(|ttl| duration::short(age::millis(ttl)));
    let default =
        default.map(|ttl| format!(" (the schema's default is {ttl})")).unwrap_or_default();
    let longest = left_out.longest_ms.map(duration::short);
    let longest =
        longest.map(|longest| format!(" The longest time left is {longest}.")).unwrap_or_default();
    format!(
        "Skipped {count} {name} {records}, because {their} age is only estimated: the {} TTL of \
        this deployment is not configured{default}.{longest}",
        of.as_str()
    )
}

/// For each schema with records that were left out for want of a TTL: the options that set it, with
/// a placeholder for the duration.
pub fn stating(coverage: &Coverage) -> Vec<[String; 4]> {
    let mut options = Vec::new();
    for (schema, missing, _) in coverage.unproven.of_schemas() {
        if let Missing::Ttl(of) = missing {
            options.push(["--schema", schema, of.option(), "DURATION"].map(str::to_owned));
        }
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
        for (schema, _, found) in coverage.contradictions.iter().filter(|(_, ttl, _)| *ttl == of) {
            defaults.push(format!("{schema} ({})", duration::short(found.default_ms)));
            records += found.records;
            longest_ms = longest_ms.max(found.most_ms);
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
        let at_least = if coverage.contradictions.is_of_a_sample() { "at least " } else { "" };
        notes.push(format!(
            "{at_least}{records} {have} {} left, more than the default {name} {ttl} of {}. If your service uses a longer TTL, \
             set {name}_ttl in the context or pass {}.",
            duration::short(longest_ms),
            defaults.join(", "),
            of.option(),
        ));
    }
    notes
}

fn prefixes(schema: &Schema) -> String {
    let prefixes: BTreeSet<_> =
        schema.keys.iter().map(|key| escape::text(key.template.prefix())).collect();
    prefixes.into_iter().filter(|prefix| !prefix.is_empty()).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Expiry;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, catalog, chi};

    #[test]
    fn missing_evidence_and_contradicted_defaults_are_reported() {
        let (mut coverage, catalog) = (Coverage::default(), catalog(&[], None));
        assert!(lines(&coverage, &catalog).is_empty());
        coverage.unproven.add(&chi(CHI_RESULT, Expiry::In(60_000)), Missing::Ttl(TtlOf::Result));
        coverage.unproven.add(&chi(CHI_LOCK, Expiry::Never), Missing::Age);
        coverage.contradictions.note(&chi(CHI_LOCK, Expiry::In(600_000)));
        assert_eq!(
            lines(&coverage, &catalog),
            [
                "Skipped 1 go-chi record, because its age is only estimated: the result TTL of this \
                deployment is not configured (the schema's default is 1d). The longest time left \
                is 1m.",
                "Skipped 1 go-chi record of unknown age. It never expires, or has more time left \
                than the service's TTL.",
            ]
        );
        assert_eq!(
            contradicted_defaults(&coverage),
            [
                "1 lock has 10m left, more than the default lock TTL of go-chi (1m). If your service uses a longer TTL, set lock_ttl in the context or pass --lock-ttl.",
            ]
        );
        let report = fields(&coverage, &catalog, 1);
        assert_eq!(report["unproven"], json!({ "lock_ttl": 0, "result_ttl": 1, "age": 1 }));
        assert_eq!(report["contradicted_defaults"][0]["most_ms"], json!(600_000));
    }
}
