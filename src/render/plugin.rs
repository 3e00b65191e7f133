//! The line of a monitoring plugin: words for people, then the measures as `label=value;warn;crit`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::domain::diagnosis::FindingCode;
use crate::domain::diagnosis::health::{Health, Limits, Status};
use crate::domain::select::tally::TallySample;
use crate::render::change::sample_record;
use crate::render::{coverage, escape, words};

/// The line of `check`.
pub fn health(health: &Health, limits: &Limits) -> String {
    let mut measures = vec![measure("orphaned", FindingCode::NoExpiry, health, limits)];
    for (label, count) in
        [("records", health.records), ("foreign", health.foreign), ("keys", health.keys)]
    {
        measures.push(format!("{label}={count}"));
    }
    if let Some(count) = health.unrecognised_no_expiry {
        measures.push(format!("unrecognised_no_expiry={count}"));
    }
    // Programs that read the measures must know that `records` and `foreign` are estimates.
    if let Some(sample) = health.sample {
        measures.push(format!("sampled={sample}"));
    }
    for code in health.codes(limits) {
        measures.push(measure(&label(code.as_str()), code, health, limits));
    }
    let status = health.status(limits);
    format!(
        "IDEMCTL {} - {} | {}\n",
        status.as_str(),
        one_line(&summary(health, limits)),
        measures.join(" ")
    )
}

/// The document of `check -o json`.
pub fn health_json(health: &Health, limits: &Limits) -> Value {
    let mut findings = Vec::new();
    for code in health.codes(limits) {
        let count = health.count(code);
        let mut schemas = Map::new();
        let mut sample = Vec::new();
        for ((of, schema), group) in health.found.groups() {
            if *of != code {
                continue;
            }
            schemas.insert(schema.clone(), group.count.into());
            sample.extend(group.sample.iter().map(sample_record));
        }
        let (warning, critical) = limits.bounds(code);
        findings.push(json!({
            "code": code.as_str(),
            "count": count,
            "status": limits.status(code, count).as_str(),
            "warning": warning,
            "critical": critical,
            "schemas": schemas,
            "sample": sample,
        }));
    }
    let mut outnumbered = Vec::new();
    for (schema, own, foreign) in &health.outnumbered {
        outnumbered.push(json!({ "schema": schema, "own": own, "foreign": foreign }));
    }
    let mut outlasting = Vec::new();
    for (schema, _, found) in health.outlasting.iter() {
        outlasting.push(json!({
            "schema": schema,
            "default_ms": found.default_ms,
            "most_ms": found.most_ms,
            "locks": found.records,
        }));
    }
    json!({
        "format": 1,
        "status": health.status(limits).as_str(),
        "summary": summary(health, limits),
        "findings": findings,
        "keys": health.keys,
        "unrecognised_no_expiry": health.unrecognised_no_expiry,
        "records": health.records,
        "foreign": health.foreign,
        "sampled": health.sample.is_some(),
        "sample": health.sample,
        "near_misses": coverage::near_misses_json(&health.near_misses),
        "endless_near_misses": health.endless_near_misses,
        "outnumbered": outnumbered,
        "too_large": health.too_large,
        "given_ttl": health.given_ttl.total(),
        "gap": health.covered.unread(),
        "schemas": health.named.as_ref().map(|named| &named.schemas),
        "unread": health.unread,
        "without_keys": coverage::names_without_keys(&health.without_keys),
        "outlasting": outlasting,
        "outlasting_partial": health.outlasting_is_partial,
    })
}

/// The document of `check -o json` if nothing is known. It has the same fields, so that programs
/// need no second format.
pub fn unknown_json(why: &str) -> Value {
    json!({
        "format": 1,
        "status": Status::Unknown.as_str(),
        "summary": why,
        "findings": [],
        "keys": null,
        "unrecognised_no_expiry": null,
        "records": null,
        "foreign": null,
        "sampled": false,
        "sample": null,
        "near_misses": [],
        "endless_near_misses": null,
        "outnumbered": [],
        "too_large": null,
        "given_ttl": null,
        "gap": why,
        "schemas": null,
        "unread": {},
        "without_keys": [],
        "outlasting": [],
        "outlasting_partial": false,
    })
}

/// The line of `check` if nothing is known.
pub fn unknown(why: &str) -> String {
    format!("IDEMCTL {} - {}\n", Status::Unknown.as_str(), one_line(why))
}

fn summary(health: &Health, limits: &Limits) -> String {
    let gap: Vec<String> = health.covered.unread().into_iter().collect();
    let mut clauses = match health.status(limits) {
        Status::Critical | Status::Warning => [troubles(health, limits), gap].concat(),
        // If the check is incomplete, the reason comes before any finding.
        Status::Unknown => [gap, troubles(health, limits)].concat(),
        Status::Ok => match troubles(health, limits) {
            few if few.is_empty() => health.covered.claim(vec![nothing_found(health, limits)], gap),
            few => vec![format!("{}, below the thresholds", few.join("; "))],
        },
    };
    clauses.extend(coverage::without_keys(&health.without_keys));
    clauses.extend(unread(health));
    clauses.join("; ")
}

/// A note about locks that outlast a default lock TTL. They may be stuck or not: that depends on
/// the deployment's lock TTL, which is not configured. Which of them are read may differ from run to
/// run, and alerts are compared by their text, so that only the schemas are named.
pub fn outlasting(health: &Health) -> Option<String> {
    let mut names = BTreeSet::new();
    if health.outlasting_is_partial {
        names.clone_from(&health.outlasting_unread);
    }
    names.extend(health.outlasting.iter().map(|(schema, ..)| schema.to_owned()));
    if names.is_empty() {
        return None;
    }
    let names: Vec<_> = names.into_iter().collect();
    Some(format!(
        "locks of {} may outlast the default lock TTL (set lock_ttl)",
        words::list(&names, "and")
    ))
}

/// A note that keys of other schemas were not checked.
fn unread(health: &Health) -> Option<String> {
    let named = health.named.as_ref()?;
    let mut others = Vec::new();
    for (schema, count) in &health.unread {
        others.push(format!("{schema} {count}"));
    }
    if let Some(context) = &named.context {
        others.push(format!("context {}", escape::text(context.as_bytes())));
    }
    if others.is_empty() {
        return None;
    }
    Some(format!("other schemas are not checked ({})", others.join(", ")))
}

fn nothing_found(health: &Health, limits: &Limits) -> String {
    let mut kinds = vec!["stuck locks".to_owned()];
    kinds.extend(limits.alarms.keys().map(|code| code.as_str().to_owned()));
    let of = match &health.named {
        Some(named) => format!(" of {}", words::list(&named.schemas, "and")),
        None => String::new(),
    };
    let filters = if health.is_narrowed { " (filtered)" } else { "" };
    // The scan read all locks. Only the number of records comes from the sample.
    let about = if health.sample.is_some() { "about " } else { "" };
    format!(
        "no {}{of}{filters} among {about}{} in {}",
        words::list(&kinds, "or"),
        words::counted(health.records, "record"),
        words::counted(health.keys, "key")
    )
}

/// A measure with its alert thresholds. A plugin's range alerts above its bound, so a threshold of
/// N is written as N - 1.
fn measure(label: &str, code: FindingCode, health: &Health, limits: &Limits) -> String {
    let (warning, critical) = limits.bounds(code);
    let mut measure = format!("{label}={}", health.count(code));
    for bound in [warning, critical] {
        measure.push(';');
        if let Some(bound) = bound {
            measure.push_str(&bound.saturating_sub(1).to_string());
        }
    }
    measure
}

/// The label of the measure for a finding's code.
fn label(code: &str) -> String {
    code.replace('-', "_")
}

fn troubles(health: &Health, limits: &Limits) -> Vec<String> {
    let mut troubles = Vec::new();
    for code in health.codes(limits) {
        let mut schemas = Vec::new();
        let mut first = None;
        for ((of, schema), group) in health.found.groups() {
            if *of == code {
                schemas.push(format!("{schema} {}", group.count));
                // One example is enough to begin with, and keeps the line short.
                first = first.or_else(|| group.sample.first());
            }
        }
        if !schemas.is_empty() {
            let locks = locks(code, health.count(code));
            troubles.push(format!("{locks} ({}){}", schemas.join(", "), example(first)));
        }
    }
    for (schema, group) in health.given_ttl.groups() {
        troubles.push(format!(
            "{} of {schema} without TTL until the next retry{}",
            words::counted(group.count, "lock"),
            example(group.sample.first())
        ));
    }
    let about = if health.sample.is_some() { "about " } else { "" };
    for (schema, own, foreign) in &health.outnumbered {
        troubles.push(format!(
            "keys under {schema}'s prefix that do not match schema {schema}: {about}{foreign}, that \
            do: {about}{own}"
        ));
    }
    if let (Some(count @ 1..), Some(_)) = (health.unrecognised_no_expiry, limits.unrecognised) {
        let keys = words::counted(count, "Redis key");
        troubles.push(format!("{keys} without expiry that no schema reads"));
    }
    if health.endless_near_misses > 0 {
        troubles.push(format!(
            "locks without expiry that differ from their schema by one field: {}",
            health.endless_near_misses
        ));
    }
    if health.too_large > 0 {
        troubles.push(format!(
            "values without expiry that may be locks, and are too large to read: {}",
            health.too_large
        ));
    }
    troubles
}

/// The key of a lock, as the end of a clause.
fn example(lock: Option<&TallySample>) -> String {
    match lock {
        Some(lock) => format!(", e.g. {}", short(&lock.key)),
        None => String::new(),
    }
}

fn locks(code: FindingCode, count: u64) -> String {
    match code {
        FindingCode::NoExpiry => words::counted(count, "stuck lock"),
        FindingCode::LeftoverLock => words::counted(count, "leftover lock"),
        FindingCode::Unreadable => words::counted(count, "unreadable value"),
        code => words::counted(count, &format!("{} lock", code.as_str())),
    }
}

/// The most characters of a key in the line. Clients choose keys, and monitoring systems cut or
/// reject long lines.
const MAX_OF_KEY: usize = 80;

/// A key as the line shows it.
fn short(key: &[u8]) -> String {
    // An escaped byte has at least one character, so this prefix has enough characters even for a
    // long key.
    let text = escape::key(&key[..key.len().min(MAX_OF_KEY + 1)]);
    if text.chars().count() <= MAX_OF_KEY {
        return text;
    }
    let shown: String = text.chars().take(MAX_OF_KEY).collect();
    format!("{shown}… ({} bytes)", key.len())
}

/// The words without line ends, and without the `|` that separates words from measures.
fn one_line(words: &str) -> String {
    escape::styled(&words.replace(['\n', '\r', '\x1b'], " ")).replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, chi};

    #[test]
    fn every_status_is_one_line_with_every_measure() {
        let limits = Limits { warning: Some(1), critical: 5, ..Limits::default() };
        let health = |found: &Health| health(found, &limits);
        let mut found = Health { records: 7, keys: 9, ..Health::default() };
        assert_eq!(
            health(&found),
            "IDEMCTL OK - no stuck locks among 7 records in 9 keys | orphaned=0;0;4 records=7 foreign=0 keys=9 no_expiry=0;0;4\n"
        );
        found.add(FindingCode::NoExpiry, &chi(CHI_LOCK, TimeLeft::NoExpiry));
        let lenient = Limits { warning: None, critical: 2, ..Limits::default() };
        let few = super::health(&found, &lenient);
        assert!(
            few.starts_with(
                "IDEMCTL OK - 1 stuck lock (go-chi 1), e.g. k, below the thresholds | "
            ),
            "{few}"
        );
        found.outnumbered.push(("express".to_owned(), 1, 8));
        found.foreign = 8;
        let troubles = "1 stuck lock (go-chi 1), e.g. k; keys under express's prefix that do \
            not match schema express: 8, that do: 1";
        let measures = "orphaned=1;0;4 records=7 foreign=8 keys=9 no_expiry=1;0;4\n";
        assert_eq!(health(&found), format!("IDEMCTL WARNING - {troubles} | {measures}"));
        found.covered.leave_out("redis", "down\nand out | gone");
        assert_eq!(
            health(&found),
            format!("IDEMCTL UNKNOWN - redis: down and out / gone; {troubles} | {measures}")
        );
        assert_eq!(unknown("a\nb\u{1b}[2J\u{7}"), "IDEMCTL UNKNOWN - a b [2J\\x07\n");
    }

    #[test]
    fn a_long_key_is_cut() {
        assert_eq!(short(b"k"), "k");
        assert_eq!(short(&[b'k'; 80]), "k".repeat(80));
        assert_eq!(short(&vec![b'k'; 1 << 20]), format!("{}… (1048576 bytes)", "k".repeat(80)));
    }

    #[test]
    fn each_finding_that_is_sought_has_its_words_and_its_measure() {
        let alarms =
            [(FindingCode::ExcessTtl, Status::Critical), (FindingCode::Overdue, Status::Warning)];
        let limits = Limits { critical: 1, alarms: alarms.into(), ..Limits::default() };
        let mut found = Health { records: 7, keys: 9, ..Health::default() };
        let measures =
            "orphaned=0;;0 records=7 foreign=0 keys=9 no_expiry=0;;0 excess_ttl=0;;0 overdue=0;0;";
        let nothing = "no stuck locks, excess-ttl or overdue among 7 records in 9 keys";
        assert_eq!(health(&found, &limits), format!("IDEMCTL OK - {nothing} | {measures}\n"));
        found.sample = Some(5);
        let sampled = health(&found, &limits);
        assert!(
            sampled.contains("excess-ttl or overdue among about 7 records in 9 keys |"),
            "{sampled}"
        );
        assert!(sampled.contains(" keys=9 sampled=5 no_expiry=0"), "{sampled}");
        found.add(FindingCode::ExcessTtl, &chi(CHI_LOCK, TimeLeft::Millis(600_000)));
        let line = health(&found, &limits);
        assert!(line.starts_with("IDEMCTL CRITICAL - 1 excess-ttl lock (go-chi 1), e.g. k |"));
        assert!(line.contains("excess_ttl=1;;0 overdue=0;0;"), "{line}");
        assert_eq!(health_json(&found, &limits)["findings"][1]["schemas"]["go-chi"], 1);
    }
}
