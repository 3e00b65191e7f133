//! `foreign-schema`: another schema that shares the Redis key wrote the value, e.g. an older
//! release.

use super::finding::{Finding, FindingCode, Severity};
use super::input::{DiagnosisInput, OtherSchema};
use crate::domain::record::Evidence;

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    let own = &input.record.schema.name;
    Some(match input.other_schema? {
        OtherSchema::WrittenBy(writer) => Finding {
            code: FindingCode::ForeignSchema,
            severity: Severity::Error,
            evidence: Evidence::Known,
            message: format!("the value was written by {writer}, not by {own}"),
            advice: format!(
                "inspect it with --schema {writer}, and find out why both services use the \
                    same keys"
            ),
        },
        OtherSchema::OlderReleaseOf(newer) => Finding {
            code: FindingCode::ForeignSchema,
            severity: Severity::Warning,
            evidence: Evidence::Known,
            message: format!(
                "the value was written by the older release ({own}), and the newer one ({newer}) \
                cannot read it"
            ),
            advice: format!(
                "if {newer} serves this key now, remove the record once its worker has finished; \
                if {own} still serves it, pass --schema {own}"
            ),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{chi, record, text};

    #[test]
    fn fires_on_anothers_value_and_on_the_older_releases_as_a_warning() {
        for (schema, other_schema, severity, says) in [
            (
                "go-middleware",
                OtherSchema::WrittenBy("older".to_owned()),
                Severity::Error,
                "written by older, not by go-middleware",
            ),
            (
                "go-middleware-v1",
                OtherSchema::OlderReleaseOf("newer".to_owned()),
                Severity::Warning,
                "the newer one (newer) cannot read it",
            ),
        ] {
            let record = record(schema, &[(text("in-progress"), TimeLeft::NoExpiry)]);
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
        assert_eq!(check(&DiagnosisInput::of(&chi("not json", TimeLeft::NoExpiry))), None);
    }
}
