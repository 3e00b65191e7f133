//! One line as monitoring plugins print it: words for people, then the measures as `label=value;warn;crit`.

use crate::domain::diagnosis::health::{Health, Limits, Status};
use crate::domain::select::Tally;
use crate::render::{escape, words};

pub fn health(health: &Health, limits: Limits) -> String {
    let status = health.status(limits);
    let words = match status {
        Status::Critical | Status::Warning => troubles(health).join("; "),
        Status::Unknown => [health.gap.iter().cloned().collect(), troubles(health)].concat().join("; "),
        Status::Ok => format!("no orphaned locks among {} records in {} keys", health.records, health.keys),
    };
    // A plugin's range alerts above its bound: from N on is above N - 1.
    let warning = limits.warning.map_or_else(String::new, |warning| (warning - 1).to_string());
    format!(
        "IDEMCTL {} - {} | orphaned={};{warning};{} records={} foreign={} keys={}\n",
        status.as_str(),
        one_line(&words),
        health.orphaned.total(),
        limits.critical - 1,
        health.records,
        health.foreign,
        health.keys
    )
}

/// The line of `check` where nothing is known, and why.
pub fn unknown(why: &str) -> String {
    format!("IDEMCTL {} - {}\n", Status::Unknown.as_str(), one_line(why))
}

/// The line of `sweep --check`, with a measure for each finding that was sought.
pub fn orphans(tally: &Tally<&'static str>, sought: &[&'static str], keys: u64) -> String {
    let total = tally.total();
    let counts: Vec<_> = tally.groups().map(|(code, group)| format!("{} {code}", group.count)).collect();
    let words = if total == 0 {
        format!("OK - no orphaned locks among {keys} keys")
    } else {
        let oldest = tally.oldest().map_or_else(|| "unknown".to_owned(), words::short_age);
        format!("CRITICAL - {total} orphaned: {}; oldest {oldest}", counts.join(", "))
    };
    let count = |code: &str| tally.groups().find(|(found, _)| **found == code).map_or(0, |(_, group)| group.count);
    let labels: Vec<_> = sought.iter().map(|code| format!(" {}={}", code.replace('-', "_"), count(code))).collect();
    format!("IDEMCTL {words} | orphaned={total};0;0{}\n", labels.concat())
}

fn troubles(health: &Health) -> Vec<String> {
    let mut troubles = Vec::new();
    if health.orphaned.total() > 0 {
        let groups: Vec<_> =
            health.orphaned.groups().map(|(schema, group)| format!("{schema} {}", group.count)).collect();
        let first = health.orphaned.groups().find_map(|(_, group)| group.sample.first());
        let sample = first.map(|sample| format!(", e.g. {}", escape::text(&sample.key))).unwrap_or_default();
        let locks = if health.orphaned.total() == 1 { "lock" } else { "locks" };
        troubles.push(format!("{} orphaned {locks} ({}){sample}", health.orphaned.total(), groups.join(", ")));
    }
    for (schema, own, foreign) in &health.outnumbered {
        troubles.push(format!("{foreign} records under {schema}'s prefix have other forms, {own} are {schema}'s"));
    }
    troubles
}

/// The words without line ends, and without the `|` that separates words from measures.
fn one_line(words: &str) -> String {
    words.replace(['\n', '\r'], " ").replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Expiry;
    use crate::domain::samples::{CHI_LOCK, chi};

    const LIMITS: Limits = Limits { warning: Some(1), critical: 5 };

    #[test]
    fn every_status_is_one_line_with_every_measure() {
        let mut found = Health { records: 7, keys: 9, ..Health::default() };
        assert_eq!(
            health(&found, LIMITS),
            "IDEMCTL OK - no orphaned locks among 7 records in 9 keys | orphaned=0;0;4 records=7 foreign=0 keys=9\n"
        );
        found.add_orphan(&chi(CHI_LOCK, Expiry::Never));
        found.outnumbered.push(("express".to_owned(), 1, 8));
        found.foreign = 8;
        let troubles =
            "1 orphaned lock (go-chi 1), e.g. k; 8 records under express's prefix have other forms, 1 are express's";
        let measures = "orphaned=1;0;4 records=7 foreign=8 keys=9\n";
        assert_eq!(health(&found, LIMITS), format!("IDEMCTL WARNING - {troubles} | {measures}"));
        found.gap = Some("down\nand out | gone".to_owned());
        assert_eq!(health(&found, LIMITS), format!("IDEMCTL UNKNOWN - down and out / gone; {troubles} | {measures}"));
        assert_eq!(unknown("a\nb"), "IDEMCTL UNKNOWN - a b\n");
    }

    #[test]
    fn says_what_was_found_and_measures_every_finding_that_was_sought() {
        let mut tally = Tally::default();
        let line = orphans(&tally, &["no-expiry"], 7);
        assert_eq!(line, "IDEMCTL OK - no orphaned locks among 7 keys | orphaned=0;0;0 no_expiry=0\n");
        tally.add("no-expiry", &chi(CHI_LOCK, Expiry::Never), None);
        assert!(orphans(&tally, &["no-expiry"], 7).contains("1 orphaned: 1 no-expiry; oldest unknown |"));
        let slow = chi(CHI_LOCK, Expiry::In(10_000));
        tally.add("overdue", &slow, slow.age);
        let line = orphans(&tally, &["no-expiry", "excess-ttl", "overdue"], 7);
        assert_eq!(
            line,
            "IDEMCTL CRITICAL - 2 orphaned: 1 no-expiry, 1 overdue; oldest ~50s | orphaned=2;0;0 no_expiry=1 excess_ttl=0 overdue=1\n"
        );
    }
}
