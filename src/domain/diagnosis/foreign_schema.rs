//! `foreign-schema`: another schema that shares the Redis key wrote the value, e.g. an older
//! release.

use super::finding::{Finding, FindingCode, Severity};
use super::input::{DiagnosisInput, OtherSchema};
use crate::domain::record::Evidence;
use crate::domain::schema::State;
use crate::domain::step::Answer;

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    let own = &input.record.schema.name;
    Some(match input.other_schema? {
        OtherSchema::WrittenBy(writer) => {
            let retries = match input.record.next_request.answer {
                Answer::Fail => "fails on it with every retry",
                Answer::Unknown => "does with it what nobody knows",
                _ => "does not understand it",
            };
            Finding {
                code: FindingCode::ForeignSchema,
                severity: Severity::Error,
                evidence: Evidence::Known,
                message: format!(
                    "the value was written by {writer}: a service on {own} {retries} {}",
                    input.how_long()
                ),
                advice: format!(
                    "see it as what it is with --schema {writer}, and find out why both run on the same keys"
                ),
            }
        }
        OtherSchema::OlderReleaseOf(newer) => Finding {
            code: FindingCode::ForeignSchema,
            severity: Severity::Warning,
            evidence: Evidence::Known,
            message: format!(
                "written by the older release ({own}): a service on the newer one ({newer}) fails on it with every retry {}",
                input.how_long()
            ),
            advice: match input.record.state {
                // Unlocking never removes a stored result.
                State::Completed => format!(
                    "if {newer} serves this key now, `idemctl purge KEY` removes the result, and the next request executes; if {own} still does, say --schema {own}"
                ),
                _ => format!(
                    "if {newer} serves this key now, `idemctl force-unlock KEY` once its worker is done; if {own} still does, say --schema {own}"
                ),
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Expiry;
    use crate::domain::samples::{chi, record, text};

    #[test]
    fn fires_on_anothers_value_and_on_the_older_releases_as_a_warning() {
        for (schema, other_schema, severity, says) in [
            (
                "go-middleware",
                OtherSchema::WrittenBy("older".to_owned()),
                Severity::Error,
                "written by older: a service on go-middleware fails on it",
            ),
            (
                "go-middleware-v1",
                OtherSchema::OlderReleaseOf("newer".to_owned()),
                Severity::Warning,
                "(newer) fails on it",
            ),
        ] {
            let record = record(schema, &[(text("in-progress"), Expiry::Never)]);
            let found = check(&DiagnosisInput {
                other_schema: Some(&other_schema),
                ..DiagnosisInput::of(&record)
            })
            .expect("a finding");
            assert!(found.severity == severity && found.message.contains(says), "{found:?}");
        }
    }

    #[test]
    fn is_silent_where_no_other_schema_is_involved() {
        assert_eq!(check(&DiagnosisInput::of(&chi("not json", Expiry::Never))), None);
    }
}
