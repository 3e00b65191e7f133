//! What a read did not tell, as sentences and as JSON.

use serde_json::{Map, Value, json};

use crate::domain::contradiction::Contradiction;
use crate::domain::coverage::Coverage;
use crate::domain::duration;
use crate::domain::schema::TtlOf;
use crate::domain::unproven::Missing;

/// Everything that may be missing, in the order of the JSON.
const MISSING: [Missing; 3] = [Missing::Ttl(TtlOf::Lock), Missing::Ttl(TtlOf::Result), Missing::Age];

/// A line for each thing that was left out or does not hold.
pub fn lines(coverage: &Coverage) -> Vec<String> {
    let unproven = coverage.unproven.counts().map(|(missing, count)| left_out(missing, count));
    let contradicted = coverage.contradictions.iter().map(|(schema, of, found)| contradicted(schema, of, found));
    unproven.chain(contradicted).collect()
}

/// Adds the fields of the contract to a report.
pub fn add_to(report: &mut Map<String, Value>, coverage: &Coverage) {
    let count = |sought: Missing| {
        coverage.unproven.counts().find(|(missing, _)| *missing == sought).map_or(0, |(_, count)| count)
    };
    let unproven: Map<_, _> =
        MISSING.iter().map(|missing| (missing.word().to_owned(), json!(count(*missing)))).collect();
    let contradicted = coverage.contradictions.iter().map(|(schema, of, found)| {
        json!({
            "schema": schema,
            "ttl": of.word(),
            "default_ms": found.default_ms,
            "most_ms": found.most_ms,
            "records": found.records,
        })
    });
    report.insert("unproven".to_owned(), Value::Object(unproven));
    report.insert("contradicted_defaults".to_owned(), contradicted.collect());
}

fn left_out(missing: Missing, count: u64) -> String {
    let records = if count == 1 { "record" } else { "records" };
    match missing {
        Missing::Ttl(of) => format!(
            "{count} {records} left out: the schema's default {} TTL proves nothing of this deployment; state its own with {} (and --schema), or in the context",
            of.word(),
            of.option()
        ),
        Missing::Age => format!(
            "{count} {records} of unknown age left out: no expiry, or more time left than the TTL, tells no age"
        ),
    }
}

fn contradicted(schema: &str, of: TtlOf, found: Contradiction) -> String {
    let (name, count) = (of.word(), found.records);
    let (s, have) = if count == 1 { ("", "has") } else { ("s", "have") };
    format!(
        "{schema}: {count} {name}{s} {have} more time left (up to {}) than the schema's default {name} TTL gives ({}): this deployment's is another, {} states it",
        duration::short(found.most_ms),
        duration::short(found.default_ms),
        of.option()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::observation::Expiry;
    use crate::domain::samples::{CHI_LOCK, chi};

    #[test]
    fn says_what_is_missing_and_which_default_does_not_hold() {
        let mut coverage = Coverage::default();
        assert!(lines(&coverage).is_empty());
        coverage.unproven.add(Missing::Ttl(TtlOf::Result));
        coverage.unproven.add(Missing::Age);
        coverage.contradictions.note(&chi(CHI_LOCK, Expiry::In(600_000)));
        assert_eq!(
            lines(&coverage),
            [
                "1 record left out: the schema's default result TTL proves nothing of this deployment; state its own with --result-ttl (and --schema), or in the context",
                "1 record of unknown age left out: no expiry, or more time left than the TTL, tells no age",
                "go-chi: 1 lock has more time left (up to 10m) than the schema's default lock TTL gives (1m): this deployment's is another, --lock-ttl states it",
            ]
        );
        let mut report = Map::new();
        add_to(&mut report, &coverage);
        assert_eq!(report["unproven"], json!({ "lock_ttl": 0, "result_ttl": 1, "age": 1 }));
        assert_eq!(report["contradicted_defaults"][0]["most_ms"], json!(600_000));
    }
}
