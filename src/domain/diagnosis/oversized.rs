//! `oversized`: a value so large that it slows Redis and every replay.

use super::finding::{Finding, FindingCode, Severity};
use super::input::DiagnosisInput;
use crate::domain::record::Evidence;

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    let size = input.record.size_bytes()?;
    if size <= input.thresholds.oversized_bytes {
        return None;
    }
    Some(Finding {
        code: FindingCode::Oversized,
        severity: Severity::Info,
        evidence: Evidence::Known,
        message: format!(
            "the value has {size} bytes; while Redis sends it to a client, it serves no other"
        ),
        advice: "store large responses elsewhere, and only a pointer in Redis".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::input::Thresholds;
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, chi};

    #[test]
    fn fires_above_the_limit_alone() {
        let size = CHI_LOCK.len() as u64;
        for (oversized_bytes, fires) in [(size - 1, true), (size, false)] {
            let thresholds = Thresholds { overdue_ms: None, oversized_bytes };
            let found = check(&DiagnosisInput {
                thresholds: &thresholds,
                ..DiagnosisInput::of(&chi(CHI_LOCK, TimeLeft::NoExpiry))
            });
            assert_eq!(found.is_some(), fires, "{oversized_bytes}");
        }
    }
}
