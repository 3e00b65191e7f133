//! `unreadable`: a value that the schema cannot decode.

use super::finding::{Finding, FindingCode, Severity};
use super::input::DiagnosisInput;
use crate::domain::record::{Evidence, TimeLeft};
use crate::domain::step::Answer;

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    let why = input.record.unreadable_because().filter(|_| input.other_schema.is_none())?;
    if input.record.is_undecided() {
        return Some(Finding {
            code: FindingCode::Unreadable,
            severity: Severity::Info,
            evidence: Evidence::Known,
            message: format!(
                "idemctl read only the beginning of the value, which is not enough to decode it: \
                {why}"
            ),
            advice: "`idemctl inspect --full KEY` reads the whole value".to_owned(),
        });
    }
    let retries = match input.record.next_request.answer {
        Answer::Fail => "every retry fails",
        Answer::Unknown => "the effect on retries is unknown",
        Answer::Conflict => "every retry is rejected",
        Answer::Replay => "retries get it as their response",
        Answer::Execute => "the next request executes",
    };
    // Any Redis key may be a record of a schema without a prefix, also one of a cache.
    let schema = &input.record.schema;
    let advice = if input.record.lock_deviation().is_some() {
        "find out which program wrote it; if a release of the service did, describe its fields in \
        schema.toml"
    } else if schema.members.is_some() {
        "find out which program wrote it; idemctl does not change the members of a Redis key"
    } else if !schema.has_fixed_prefix() {
        "find out which program wrote it before you remove it; the schema has no prefix, so the \
        key may belong to another program"
    } else if !schema.answers_by_record() {
        "find out which program wrote it; `idemctl force-unlock KEY` removes it"
    } else {
        "find out which program wrote it; `idemctl force-unlock KEY` removes it, and the next \
        request executes"
    };
    Some(Finding {
        code: FindingCode::Unreadable,
        severity: Severity::Error,
        evidence: Evidence::Known,
        message: match input.record.next_request.answer {
            Answer::Execute | Answer::Unknown => {
                format!("the value cannot be read ({why}); {retries}")
            }
            _ => format!("the value cannot be read ({why}); {retries} {}", how_long(input)),
        },
        advice: advice.to_owned(),
    })
}

/// How long retries get this answer, as the end of a sentence. Another Redis key of the record may
/// last longer than the one that decides it.
fn how_long(input: &DiagnosisInput<'_>) -> &'static str {
    match input.record.next_request.until {
        Some(TimeLeft::NoExpiry) => "indefinitely, because it never expires",
        Some(TimeLeft::Millis(_)) => "until it expires",
        None => input.how_long(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::OtherSchema;
    use super::*;
    use crate::domain::record::Content;
    use crate::domain::samples::{CHI_LOCK, chi, record, text};

    fn message(
        record: &crate::domain::record::Record,
        other_schema: Option<&OtherSchema>,
    ) -> Option<String> {
        check(&DiagnosisInput { other_schema, ..DiagnosisInput::of(record) })
            .map(|found| found.message)
    }

    #[test]
    fn fires_on_what_does_not_decode_and_says_what_retries_get() {
        let turned_away = chi("not json", TimeLeft::NoExpiry);
        assert!(
            message(&turned_away, None).expect("a finding").contains("every retry is rejected")
        );
        let fails = record("go-middleware", &[(text("{}"), TimeLeft::NoExpiry)]);
        let message = message(&fails, None).expect("a finding");
        assert!(
            message.contains("every retry fails") && message.contains("JSON of another shape"),
            "{message}"
        );
    }

    #[test]
    fn is_silent_on_what_decodes_on_anothers_value_and_on_another_type() {
        assert_eq!(message(&chi(CHI_LOCK, TimeLeft::NoExpiry), None), None);
        let other_schema = OtherSchema::WrittenBy("express".to_owned());
        assert_eq!(message(&chi("not json", TimeLeft::NoExpiry), Some(&other_schema)), None);
        assert_eq!(
            message(
                &record("go-chi", &[(Content::Other("hash".into()), TimeLeft::NoExpiry)]),
                None
            ),
            None
        );
    }
}
