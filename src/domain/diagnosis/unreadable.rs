//! `unreadable`: a value that the schema cannot decode.

use super::finding::{Finding, FindingCode, Severity};
use super::input::{DEVIATION_ADVICE, DiagnosisInput};
use crate::domain::change::unlock;
use crate::domain::record::{Evidence, Record};

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
    let record = input.record;
    let unread = record.readings.iter().position(|reading| reading.mismatch().is_some());
    Some(Finding {
        code: FindingCode::Unreadable,
        severity: Severity::Error,
        evidence: Evidence::Known,
        message: format!("the value cannot be read ({why})"),
        advice: advice(record, unread).to_owned(),
    })
}

/// What to do about the unreadable value at the Redis key with this index.
fn advice(record: &Record, unread: Option<usize>) -> &'static str {
    let schema = &record.schema;
    if record.lock_deviation().is_some() {
        return DEVIATION_ADVICE;
    }
    // Without a fixed prefix, any Redis key may be a record of the schema, also one of a cache.
    let may_be_removed = !record.author.is_foreign() && schema.has_fixed_prefix();
    match unlock::removable(record) {
        Ok(index)
            if may_be_removed
                && Some(index) == unread
                && unlock::unreadable_beside(record, index).is_none() =>
        {
            "find out which program wrote it; `idemctl force-unlock KEY` removes it"
        }
        _ => "find out which program wrote it",
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::OtherSchema;
    use super::*;
    use crate::domain::record::{Content, TimeLeft};
    use crate::domain::samples::{CHI_LOCK, chi, record, text};

    fn message(record: &Record, other_schema: Option<&OtherSchema>) -> Option<String> {
        check(&DiagnosisInput { other_schema, ..DiagnosisInput::of(record) })
            .map(|found| found.message)
    }

    #[test]
    fn fires_on_what_does_not_decode_and_says_why() {
        let record = record("go-middleware", &[(text("{}"), TimeLeft::NoExpiry)]);
        let message = message(&record, None).expect("a finding");
        assert!(message.contains("JSON of another shape"), "{message}");
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
