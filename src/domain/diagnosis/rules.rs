//! The rules in the order their findings are shown.

use super::finding::{Finding, FindingCode};
use super::input::{DiagnosisInput, OtherSchema, Thresholds};
use super::{
    excess_ttl, foreign_schema, leftover_lock, no_expiry, overdue, oversized, result_no_expiry,
    short_lock_ttl, short_result_ttl, unreadable, wrong_type,
};
use crate::domain::record::Record;

/// A rule. It returns the finding that applies to a record, if any.
type DiagnosisRule = fn(&DiagnosisInput<'_>) -> Option<Finding>;

const RULES: [DiagnosisRule; 11] = [
    no_expiry::check,
    excess_ttl::check,
    overdue::check,
    leftover_lock::check,
    unreadable::check,
    foreign_schema::check,
    wrong_type::check,
    result_no_expiry::check,
    short_lock_ttl::check,
    short_result_ttl::check,
    oversized::check,
];

/// The findings that call a value a lock, and advise to remove it. No command removes a value that
/// is not a lock of the schema. `no-expiry` stays, because the value rejects requests all the same,
/// and its advice says that no command removes it.
const ABOUT_LOCKS: [FindingCode; 4] = [
    FindingCode::ExcessTtl,
    FindingCode::Overdue,
    FindingCode::LeftoverLock,
    FindingCode::ShortLockTtl,
];

/// The findings of a record, in the order of the rules. `other_schema` is another schema that can,
/// or can no longer, read its value.
pub(crate) fn findings(
    record: &Record,
    thresholds: &Thresholds,
    other_schema: Option<&OtherSchema>,
) -> Vec<Finding> {
    let input = DiagnosisInput { record, thresholds, other_schema };
    let is_no_lock = record.lock_deviation().is_some();
    let mut findings = Vec::new();
    for rule in RULES {
        if let Some(finding) = rule(&input)
            && !(is_no_lock && ABOUT_LOCKS.contains(&finding.code))
        {
            findings.push(finding);
        }
    }
    findings
}

/// Adds the finding that depends only on the length of a value, for a record whose length became
/// known later.
pub(crate) fn add_oversized(record: &mut Record, thresholds: &Thresholds) {
    let is_known = record.findings.iter().any(|finding| finding.code == FindingCode::Oversized);
    if is_known {
        return;
    }
    let found = oversized::check(&DiagnosisInput { record, thresholds, other_schema: None });
    record.findings.extend(found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, chi};

    #[test]
    fn a_sound_record_has_no_findings_and_a_broken_one_all_that_apply() {
        let codes = |expiry| {
            let thresholds = Thresholds { overdue_ms: Some(1), oversized_bytes: 1 };
            let found = findings(&chi(CHI_LOCK, expiry), &thresholds, None);
            found.iter().map(|finding| finding.code.as_str()).collect::<Vec<_>>()
        };
        assert!(
            findings(&chi(CHI_LOCK, TimeLeft::Millis(59_000)), &Thresholds::default(), None)
                .is_empty()
        );
        assert_eq!(codes(TimeLeft::NoExpiry), ["no-expiry", "oversized"]);
        assert_eq!(codes(TimeLeft::Millis(1)), ["overdue", "oversized"]);
        assert_eq!(codes(TimeLeft::Millis(90_000)), ["excess-ttl", "oversized"]);
    }
}
