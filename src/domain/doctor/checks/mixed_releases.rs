//! Old and new values under one prefix, as a rolling deploy leaves them.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence};
use crate::domain::doctor::releases::{PlaceSample, WriterSample};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "mixed-releases",
    group: CheckGroup::Schema,
    title: "whether two releases or services write values under one prefix",
    reads: "up to 500 random keys: type, TTL, and the beginning of the value",
    rule: "A warning if the sampled values of one key template are of two schemas; a note if some of \
           them are of no known schema.",
    source: "docs/explore.md (--mix)",
    consequence: "One release may reject, misread or overwrite the records of the other one, as long \
                  as both run or the old records exist.",
    remedy: "If a deploy is not finished, finish it. Otherwise give each service a prefix of its \
             own. Until the old records have expired, retries need both prefixes.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let sample = match &facts.sample {
        Ok(sample) => sample,
        Err(refusal) => return vec![CheckJudgement::unknown(refusal.clone())],
    };
    let mut judgements = Vec::new();
    let mut alike = Vec::new();
    for place in &sample.places {
        if place.writers.len() > 1 {
            judgements.push(mixed(place));
        } else if place.unrecognised > 0 {
            judgements.push(unrecognised(place));
        } else {
            for writer in &place.writers {
                alike.push(format!("{} has {}", place.pattern, counts(writer)));
            }
        }
    }
    if judgements.is_empty()
        && let Some(unread) = sample.unread_because()
    {
        return vec![CheckJudgement::unknown(unread)];
    }
    if judgements.is_empty() && sample.schemas.is_empty() && alike.is_empty() {
        return vec![CheckJudgement::unknown(sample.without_schema())];
    }
    if !alike.is_empty() {
        let which = if judgements.is_empty() { "each prefix" } else { "each other prefix" };
        let fact = format!("{which} has values of one schema only: {}", alike.join("; "));
        let evidence = if sample.is_all { FactEvidence::Measured } else { FactEvidence::Estimated };
        judgements.push(CheckJudgement::ok(fact).with_evidence(evidence));
    }
    judgements
}

fn mixed(place: &PlaceSample) -> CheckJudgement {
    let mut writers = Vec::new();
    let mut schemas = Vec::new();
    for writer in &place.writers {
        writers.push(counts(writer));
        schemas.push(writer.schema.name.clone());
    }
    let keys = &place.pattern;
    let mut fact = format!("the keys {keys} have values of {}", writers.join(" and of "));
    if place.unrecognised > 0 {
        fact.push_str(&format!(", and {} of no known schema", place.unrecognised));
    }
    let judgement = CheckJudgement::warning(fact).for_schemas(schemas);
    match mixable(place) {
        Some((old, new)) => judgement.with_remedy(format!(
            "{} `idemctl explore --sandbox --mix {old},{new}` shows what the releases do to each \
             other.",
            CHECK.remedy
        )),
        None => judgement,
    }
}

/// The names of two schemas that `explore` can mix, the older release first.
fn mixable(place: &PlaceSample) -> Option<(&str, &str)> {
    let [one, other] = &place.writers[..] else { return None };
    if !one.schema.has_templates_of(&other.schema) {
        return None;
    }
    let (one, other) = (&one.schema, &other.schema);
    if other.older_release_of.as_deref() == Some(&one.name) {
        return Some((&other.name, &one.name));
    }
    Some((&one.name, &other.name))
}

fn unrecognised(place: &PlaceSample) -> CheckJudgement {
    let values = if place.unrecognised == 1 { "value" } else { "values" };
    let mut fact = format!(
        "the keys {} have {} {values} of no known schema",
        place.pattern, place.unrecognised
    );
    let mut schemas = Vec::new();
    for writer in &place.writers {
        fact.push_str(&format!(", beside those of {}", counts(writer)));
        schemas.push(writer.schema.name.clone());
    }
    CheckJudgement::note(fact)
        .for_schemas(schemas)
        .with_consequence(
            "Another program, or a release that idemctl does not know, uses the same Redis keys. A \
             request with such a key may fail.",
        )
        .with_remedy(
            "Find out who writes these values: `idemctl detect` shows what they look like. If it is \
             a release of your service, describe its format with `idemctl schema new`.",
        )
}

/// `express (3 completed, 1 in-progress)`.
fn counts(writer: &WriterSample) -> String {
    let mut formats = Vec::new();
    for (format, count) in &writer.formats {
        formats.push(format!("{count} {format}"));
    }
    format!("{} ({})", writer.schema.name, formats.join(", "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::doctor::RecordSample;
    use crate::domain::doctor::judgement::CheckSeverity::{Note, Ok as Fine, Unknown, Warning};
    use crate::domain::doctor::tests::deployment;
    use crate::domain::record::TimeLeft::NoExpiry;
    use crate::domain::samples::{record, schema, text};

    /// Judges records with these values, each of the schema that reads it.
    fn judged(values: &[(&str, &str)], unread: u64) -> Vec<CheckJudgement> {
        let mut sample = RecordSample { unread, ..RecordSample::default() };
        for (name, value) in values {
            sample.add_writer(&record(name, &[(text(value), NoExpiry)]), None);
        }
        let mut facts = deployment(Vec::new());
        facts.sample = Ok(sample);
        judge(&facts)
    }

    const NEW: (&str, &str) = ("go-middleware", r#"{"status":"PENDING"}"#);
    const OLD: (&str, &str) = ("go-middleware-v1", "completed");

    #[test]
    fn values_of_two_schemas_under_one_prefix_are_a_warning() {
        let one = judged(&[NEW, NEW, OTHER], 0);
        assert_eq!(one.len(), 1);
        assert_eq!(one[0].severity, Fine);
        assert!(one[0].fact.contains("idempotency:* has go-middleware (2 pending)"), "{one:?}");
        let two = judged(&[NEW, OLD, OLD], 0);
        assert_eq!(two[0].severity, Warning);
        let fact = "the keys idempotency:* have values of go-middleware (1 pending) and of \
                    go-middleware-v1 (2 completed)";
        assert_eq!(two[0].fact, fact);
        // The older release comes first, whichever was seen first.
        let remedy = two[0].remedy.as_deref().unwrap();
        assert!(remedy.contains("--mix go-middleware-v1,go-middleware`"), "{remedy}");
        assert_eq!(judged(&[OLD, NEW], 0)[0].remedy.as_deref(), Some(remedy));
    }

    const OTHER: (&str, &str) = ("express", r#"{"status":"IN_PROGRESS"}"#);

    #[test]
    fn unrecognised_values_are_a_note_and_what_was_not_read_is_unknown() {
        let strange = judged(&[OTHER, ("express", "strange")], 0);
        assert_eq!(strange[0].severity, Note);
        assert!(strange[0].fact.starts_with("the keys idem:* have 1 value of no known schema"));
        assert_eq!(judged(&[OTHER], 1)[0].severity, Unknown);
        assert_eq!(judged(&[], 0)[0].severity, Unknown);
    }

    #[test]
    fn a_value_counts_for_the_schema_that_wrote_it() {
        let mut sample = RecordSample::default();
        let found = record(NEW.0, &[(text(OLD.1), NoExpiry)]);
        sample.add_writer(&found, Some(Arc::new(schema(OLD.0))));
        assert_eq!(sample.places[0].writers[0].schema.name, OLD.0);
    }
}
