//! `foreign-schema`: the value is that of another schema which shares the Redis key, e.g. an older release's.

use super::case::{Case, Foreign};
use super::finding::{Finding, FindingCode, Severity};
use crate::domain::record::evidence::Evidence;
use crate::domain::step::next_request::Answer;

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let own = &case.record.schema.name;
    Some(match case.foreign? {
        Foreign::WrittenBy(writer) => {
            let retries = match case.record.next_request.answer {
                Answer::Fail => "fails on it with every retry",
                _ => "does not understand it",
            };
            Finding {
                code: FindingCode::ForeignSchema,
                severity: Severity::Error,
                evidence: Evidence::Known,
                message: format!("the value was written by {writer}: a service on {own} {retries} until it expires"),
                advice: format!(
                    "see it as what it is with --schema {writer}, and find out why both run on the same keys"
                ),
            }
        }
        Foreign::OlderReleaseOf(newer) => Finding {
            code: FindingCode::ForeignSchema,
            severity: Severity::Warning,
            evidence: Evidence::Known,
            message: format!(
                "written by the older release ({own}): a service on the newer one ({newer}) fails on it with every retry until it expires"
            ),
            advice: format!(
                "if {newer} serves this key now, `idemctl force-unlock` it once its worker is done; if {own} still does, say --schema {own}"
            ),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::case::Thresholds;
    use super::*;
    use crate::domain::record::observation::Expiry;
    use crate::domain::samples::{chi, record, text};

    #[test]
    fn fires_on_anothers_value_and_says_what_retries_get() {
        let foreign = Foreign::WrittenBy("go-middleware-v1".to_owned());
        let broken = record("go-middleware", &[(text("in-progress"), Expiry::Never)]);
        let case = Case { record: &broken, thresholds: &Thresholds::default(), foreign: Some(&foreign) };
        let found = check(&case).expect("a finding");
        assert!(found.message.contains("written by go-middleware-v1") && found.message.contains("fails on it"));
        assert_eq!(found.severity, Severity::Error);
    }

    #[test]
    fn fires_on_the_older_releases_value_as_a_warning() {
        let foreign = Foreign::OlderReleaseOf("go-middleware".to_owned());
        let older = record("go-middleware-v1", &[(text("in-progress"), Expiry::Never)]);
        let case = Case { record: &older, thresholds: &Thresholds::default(), foreign: Some(&foreign) };
        assert_eq!(check(&case).expect("a finding").severity, Severity::Warning);
    }

    #[test]
    fn is_silent_where_no_other_schema_is_involved() {
        let record = chi("not json", Expiry::Never);
        assert_eq!(check(&Case { record: &record, thresholds: &Thresholds::default(), foreign: None }), None);
    }
}
