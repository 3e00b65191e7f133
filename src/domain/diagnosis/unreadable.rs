//! `unreadable`: a value that the schema cannot decode.

use super::finding::{Finding, FindingCode, Severity};
use super::input::{DEVIATION_ADVICE, DiagnosisInput};
use crate::domain::change::unlock;
use crate::domain::record::{Evidence, Record, TimeLeft};
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
    let record = input.record;
    let unread = record.readings.iter().position(|reading| reading.mismatch().is_some());
    let retries = match record.next_request.answer {
        Answer::Fail => "every retry fails",
        Answer::Unknown => "the effect on retries is unknown",
        Answer::Conflict => "every retry is rejected",
        Answer::Replay if unread == Some(record.schema.result_key_index()) => {
            "retries get it as their response"
        }
        Answer::Replay => "retries get the stored response",
        Answer::Execute => "the next request executes",
    };
    Some(Finding {
        code: FindingCode::Unreadable,
        severity: Severity::Error,
        evidence: Evidence::Known,
        message: match record.next_request.answer {
            Answer::Execute | Answer::Unknown => {
                format!("the value cannot be read ({why}); {retries}")
            }
            _ => format!("the value cannot be read ({why}); {retries} {}", how_long(input, unread)),
        },
        advice: advice(record, unread).to_owned(),
    })
}

/// How long retries get this answer, as the end of a sentence. Another Redis key than the one at
/// `unread` may decide it.
fn how_long(input: &DiagnosisInput<'_>, unread: Option<usize>) -> String {
    let next = &input.record.next_request;
    let schema = &input.record.schema;
    let what = match next.until_key {
        Some(index) if Some(index) == unread => "it",
        Some(index) if index == schema.lock_key_index() => "the lock",
        Some(index) if index == schema.result_key_index() => "the result",
        Some(_) | None => "it",
    };
    match next.until {
        Some(TimeLeft::NoExpiry) => format!("indefinitely, because {what} never expires"),
        Some(TimeLeft::Millis(_)) => format!("until {what} expires"),
        None => input.how_long().to_owned(),
    }
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
    use crate::domain::record::Content;
    use crate::domain::samples::{CHI_LOCK, chi, record, text};

    fn message(record: &Record, other_schema: Option<&OtherSchema>) -> Option<String> {
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
