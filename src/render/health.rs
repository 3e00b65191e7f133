//! The line of `check`, as monitoring plugins write it: words for people, then `label=value;warn;crit`.

use crate::domain::diagnosis::health::{Health, Limits, Status};
use crate::render::escape;

/// What was found, in one line.
pub fn line(health: &Health, limits: Limits) -> String {
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

/// That nobody knows, and why, in one line.
pub fn unknown(why: &str) -> String {
    format!("IDEMCTL {} - {}\n", Status::Unknown.as_str(), one_line(why))
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

/// What separates the words from the measures, or ends the line, is no part of the words.
fn one_line(words: &str) -> String {
    words.replace(['\n', '\r'], " ").replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::observation::Expiry;
    use crate::domain::samples::{CHI_LOCK, chi};

    const LIMITS: Limits = Limits { warning: Some(1), critical: 5 };

    #[test]
    fn every_status_is_one_line_with_every_measure() {
        let mut health = Health { records: 7, keys: 9, ..Health::default() };
        assert_eq!(
            line(&health, LIMITS),
            "IDEMCTL OK - no orphaned locks among 7 records in 9 keys | orphaned=0;0;4 records=7 foreign=0 keys=9\n"
        );
        health.add_orphan(&chi(CHI_LOCK, Expiry::Never));
        health.outnumbered.push(("express".to_owned(), 1, 8));
        health.foreign = 8;
        let troubles =
            "1 orphaned lock (go-chi 1), e.g. k; 8 records under express's prefix have other forms, 1 are express's";
        let measures = "orphaned=1;0;4 records=7 foreign=8 keys=9\n";
        assert_eq!(line(&health, LIMITS), format!("IDEMCTL WARNING - {troubles} | {measures}"));
        health.gap = Some("down\nand out | gone".to_owned());
        assert_eq!(line(&health, LIMITS), format!("IDEMCTL UNKNOWN - down and out / gone; {troubles} | {measures}"));
        assert_eq!(unknown("a\nb"), "IDEMCTL UNKNOWN - a b\n");
    }
}
