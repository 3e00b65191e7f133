//! The line of a monitoring plugin: words for people, then the measures as `label=value;warn;crit`.

use serde_json::{Map, Value, json};

use crate::domain::diagnosis::FindingCode;
use crate::domain::diagnosis::health::{CheckedSchemas, Health, Limits, Status};
use crate::domain::duration;
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
    // Programs that read the measures must know that `records` and `foreign` are estimates.
    if let Some(sample) = health.sample {
        measures.push(format!("sampled={sample}"));
    }
    for code in limits.sought() {
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
    for code in limits.sought() {
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
        "records": health.records,
        "foreign": health.foreign,
        "sampled": health.sample.is_some(),
        "sample": health.sample,
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
        "records": null,
        "foreign": null,
        "sampled": false,
        "sample": null,
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
    clauses.extend(outlasting(health));
    clauses.extend(coverage::without_keys(&health.without_keys));
    clauses.extend(unread(health));
    clauses.join("; ")
}

/// A note about locks that outlast a default lock TTL. They may be stuck or not: that depends on
/// the deployment's lock TTL, which is not configured.
fn outlasting(health: &Health) -> Option<String> {
    let of_locks: Vec<_> = health.outlasting.iter().collect();
    let set_ttl = "set lock_ttl for them in the context";
    if health.outlasting_is_partial {
        // Which of them are read differs from run to run, and alerts are compared by their text.
        let mut names = health.outlasting_unread.clone();
        names.extend(of_locks.iter().map(|(schema, ..)| (*schema).to_owned()));
        let names: Vec<_> = names.into_iter().collect();
        return Some(format!(
            "it is unknown whether locks of {} outlast the default lock TTL ({set_ttl})",
            words::list(&names, "and")
        ));
    }
    if of_locks.is_empty() {
        return None;
    }
    let mut count = 0;
    let mut most_ms = 0;
    let mut its_default_ms = 0;
    let mut defaults = Vec::new();
    for (schema, _, found) in &of_locks {
        count += found.records;
        if found.most_ms > most_ms {
            most_ms = found.most_ms;
            its_default_ms = found.default_ms;
        }
        defaults.push(format!("{schema} ({})", duration::short(found.default_ms)));
    }
    let defaults = match of_locks.as_slice() {
        [(schema, _, found)] => {
            format!("{schema}'s default lock TTL of {}", duration::short(found.default_ms))
        }
        _ => format!("the default lock TTLs of {}", words::list(&defaults, "and")),
    };
    let locks = if count == 1 { "lock has" } else { "locks have up to" };
    Some(format!(
        "{count} {locks} {} left, more than {defaults} ({set_ttl})",
        duration::longer_than(most_ms, its_default_ms),
    ))
}

/// A note about keys of other schemas, which the check did not read.
fn unread(health: &Health) -> Option<String> {
    let CheckedSchemas { schemas, context } = health.named.as_ref()?;
    let mut counts = Vec::new();
    for (schema, count) in &health.unread {
        let keys = if *count == 1 { "key with a name" } else { "keys with names" };
        counts.push(format!("{count} {keys} of {schema}"));
    }
    let context = context.as_ref().map(|context| escape::text(context.as_bytes()));
    match (counts.as_slice(), context) {
        ([], None) => None,
        ([], Some(context)) => Some(format!("context {context} checks no other schema")),
        (counts, None) => {
            let were = if counts.len() == 1 { "was" } else { "were" };
            let counts = words::list(counts, "and");
            Some(format!("not checked: {counts}, which {were} not named"))
        }
        (counts, Some(context)) => Some(format!(
            "not checked: {}, because context {context} reads only {}",
            words::list(counts, "and"),
            words::list(schemas, "and")
        )),
    }
}

fn nothing_found(health: &Health, limits: &Limits) -> String {
    let mut kinds = vec!["orphaned"];
    // A result can be unreadable, too.
    let others = limits.alarms.keys().filter(|code| **code != FindingCode::Unreadable);
    kinds.extend(others.map(|code| code.as_str()));
    let values = match limits.alarms.contains_key(&FindingCode::Unreadable) {
        true => " or unreadable values",
        false => "",
    };
    let kinds = match kinds.split_last() {
        Some((last, kinds)) if !kinds.is_empty() => format!("{} or {last}", kinds.join(", ")),
        _ => kinds.concat(),
    };
    let records = words::counted(health.records, "record");
    let keys = words::counted(health.keys, "key");
    let of = match &health.named {
        Some(named) => format!(" of {}", words::list(&named.schemas, "and")),
        None => String::new(),
    };
    if health.is_narrowed {
        return format!("no {kinds} locks{values}{of} match the filters in {keys}");
    }
    // Nothing of these schemas was found to be in order.
    let are_all_others = health.records == 0 && health.foreign == 0 && !health.unread.is_empty();
    if are_all_others && health.sample.is_none() {
        return format!("no records{of} in {keys}");
    }
    match health.sample {
        // The scan read all locks. Only the number of records comes from the sample.
        Some(_) => {
            format!("no {kinds} locks{values}{of} in {keys} (about {records}, counted by sample)")
        }
        None => format!("no {kinds} locks{values}{of} among {records} in {keys}"),
    }
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
    for code in limits.sought() {
        let mut schemas = Vec::new();
        let mut example = String::new();
        for ((of, schema), group) in health.found.groups() {
            if *of != code {
                continue;
            }
            // One example is enough to begin with, and keeps the line short.
            if schemas.is_empty()
                && let Some(lock) = group.sample.first()
            {
                example = format!(", e.g. {}", short(&lock.key));
            }
            schemas.push(format!("{schema} {}", group.count));
        }
        if schemas.is_empty() {
            continue;
        }
        let locks = locks(code, health.count(code));
        troubles.push(format!("{locks} ({}){example}", schemas.join(", ")));
    }
    for (schema, group) in health.given_ttl.groups() {
        let example = match group.sample.first() {
            Some(lock) => format!(", e.g. {}", short(&lock.key)),
            None => String::new(),
        };
        let (locks, it) = if group.count == 1 { ("lock", "it") } else { ("locks", "them") };
        troubles.push(format!(
            "{} {locks} of {schema} without TTL, until a retry gives {it} one{example}",
            group.count
        ));
    }
    let about = if health.sample.is_some() { "about " } else { "" };
    for (schema, own, foreign) in &health.outnumbered {
        let keys = words::counted(*foreign, "key");
        let do_not = if *foreign == 1 { "does not" } else { "do not" };
        let do_match = if *own == 1 { "does" } else { "do" };
        troubles.push(format!(
            "{about}{keys} under {schema}'s prefix {do_not} match schema {schema}, {about}{own} \
            {do_match}"
        ));
    }
    if health.too_large > 0 {
        let values = words::counted(health.too_large, "value");
        let are = if health.too_large == 1 { "is a lock" } else { "are locks" };
        troubles.push(format!(
            "idemctl does not read enough of {values} without expiry to tell whether {} {are}",
            if health.too_large == 1 { "it" } else { "they" },
        ));
    }
    troubles
}

fn locks(code: FindingCode, count: u64) -> String {
    let locks = if count == 1 { "lock" } else { "locks" };
    match code {
        FindingCode::NoExpiry => format!("{count} orphaned {locks}"),
        FindingCode::ExcessTtl => {
            format!("{count} {locks} with more time left than the configured lock TTL")
        }
        FindingCode::Overdue => format!("{count} overdue {locks}"),
        FindingCode::LeftoverLock => format!("{count} {locks} beside a result"),
        FindingCode::Unreadable => {
            format!("{count} unreadable {}", if count == 1 { "value" } else { "values" })
        }
        code => format!("{count} {} {locks}", code.as_str()),
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
            "IDEMCTL OK - no orphaned locks among 7 records in 9 keys | orphaned=0;0;4 records=7 foreign=0 keys=9 no_expiry=0;0;4\n"
        );
        found.add(FindingCode::NoExpiry, &chi(CHI_LOCK, TimeLeft::NoExpiry));
        let lenient = Limits { warning: None, critical: 2, ..Limits::default() };
        let few = super::health(&found, &lenient);
        assert!(
            few.starts_with(
                "IDEMCTL OK - 1 orphaned lock (go-chi 1), e.g. k, below the thresholds | "
            ),
            "{few}"
        );
        found.outnumbered.push(("express".to_owned(), 1, 8));
        found.foreign = 8;
        let troubles = "1 orphaned lock (go-chi 1), e.g. k; 8 keys under express's prefix do not \
            match schema express, 1 does";
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
        let limits = Limits { warning: None, critical: 1, alarms: alarms.into() };
        let mut found = Health { records: 7, keys: 9, ..Health::default() };
        let measures =
            "orphaned=0;;0 records=7 foreign=0 keys=9 no_expiry=0;;0 excess_ttl=0;;0 overdue=0;0;";
        let nothing = "no orphaned, excess-ttl or overdue locks among 7 records in 9 keys";
        assert_eq!(health(&found, &limits), format!("IDEMCTL OK - {nothing} | {measures}\n"));
        found.sample = Some(5);
        let sampled = health(&found, &limits);
        assert!(
            sampled.contains("overdue locks in 9 keys (about 7 records, counted by sample) |"),
            "{sampled}"
        );
        assert!(sampled.contains(" keys=9 sampled=5 no_expiry=0"), "{sampled}");
        found.add(FindingCode::ExcessTtl, &chi(CHI_LOCK, TimeLeft::Millis(600_000)));
        let line = health(&found, &limits);
        assert!(line.starts_with(
            "IDEMCTL CRITICAL - 1 lock with more time left than the configured lock TTL (go-chi 1), \
            e.g. k |"
        ));
        assert!(line.contains("excess_ttl=1;;0 overdue=0;0;"), "{line}");
        assert_eq!(health_json(&found, &limits)["findings"][1]["schemas"]["go-chi"], 1);
    }
}
