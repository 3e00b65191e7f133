//! `wrong-type`: the Redis key does not have the type that the schema stores there.

use super::finding::{Finding, FindingCode, Severity};
use super::input::DiagnosisInput;
use crate::domain::record::{Evidence, Reading};

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    let mut wrong = None;
    for (key_index, reading) in input.record.readings.iter().enumerate() {
        if let Reading::WrongType(kind) = reading {
            wrong = Some((key_index, kind));
            break;
        }
    }
    let (key_index, kind) = wrong?;
    let wanted = input.record.schema.type_at(key_index);
    Some(Finding {
        code: FindingCode::WrongType,
        severity: Severity::Error,
        evidence: Evidence::Known,
        message: format!("the Redis key holds a {kind}, not a {wanted}"),
        advice: "another program uses this Redis key; find that program before you remove anything"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Content, TimeLeft};
    use crate::domain::samples::{record, text};

    fn message(lock: Content, result: Content) -> Option<String> {
        let record =
            record("event-consumer", &[(lock, TimeLeft::NoExpiry), (result, TimeLeft::NoExpiry)]);
        check(&DiagnosisInput::of(&record)).map(|found| found.message)
    }

    #[test]
    fn fires_on_a_key_that_is_no_string() {
        let hash = || Content::Other("hash".to_owned());
        for (lock, result) in [(hash(), Content::Absent), (text("1"), hash())] {
            let message = message(lock, result).expect("a finding");
            assert!(message.contains("holds a hash, not a string"), "{message}");
        }
    }

    #[test]
    fn is_silent_on_strings_and_on_nothing() {
        assert_eq!(message(text("1"), Content::Absent), None);
    }
}
