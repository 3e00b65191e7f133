//! The rules in the order their findings are shown.

use super::finding::{Case, Finding, Foreign, Thresholds};
use super::{
    excess_ttl, foreign_schema, leftover_lock, no_expiry, overdue, oversized, result_no_expiry, short_result_ttl,
    unreadable, wrong_type,
};
use crate::domain::record::Record;

type Rule = fn(&Case<'_>) -> Option<Finding>;

const RULES: &[(&str, Rule)] = &[
    (no_expiry::CODE, no_expiry::check),
    (excess_ttl::CODE, excess_ttl::check),
    (overdue::CODE, overdue::check),
    (leftover_lock::CODE, leftover_lock::check),
    (unreadable::CODE, unreadable::check),
    (foreign_schema::CODE, foreign_schema::check),
    (wrong_type::CODE, wrong_type::check),
    (result_no_expiry::CODE, result_no_expiry::check),
    (short_result_ttl::CODE, short_result_ttl::check),
    (oversized::CODE, oversized::check),
];

/// The codes of all findings.
pub const CODES: [&str; 10] = {
    let mut codes = [""; RULES.len()];
    let mut index = 0;
    while index < RULES.len() {
        codes[index] = RULES[index].0;
        index += 1;
    }
    codes
};

/// Everything that is wrong with a record.
pub fn findings(record: &Record, thresholds: &Thresholds, foreign: Option<&Foreign>) -> Vec<Finding> {
    let case = Case { record, thresholds, foreign };
    RULES.iter().filter_map(|(_, rule)| rule(&case)).collect()
}

/// The finding that the length of a value alone decides, for a record whose length came to be known after the others.
pub fn add_oversized(record: &mut Record, thresholds: &Thresholds) {
    let found = oversized::check(&Case { record, thresholds, foreign: None });
    let known = record.findings.iter().any(|finding| finding.code == oversized::CODE);
    record.findings.extend(found.filter(|_| !known));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::observation::Expiry;
    use crate::domain::samples::{CHI_LOCK, chi};

    #[test]
    fn codes_are_distinct_and_in_the_findings() {
        let mut codes = CODES.to_vec();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), RULES.len());
    }

    #[test]
    fn a_sound_record_has_no_findings_and_a_broken_one_all_that_apply() {
        let codes = |expiry| {
            let thresholds = Thresholds { overdue_ms: Some(1), oversized_bytes: 1 };
            let found = findings(&chi(CHI_LOCK, expiry), &thresholds, None);
            found.iter().map(|finding| finding.code).collect::<Vec<_>>()
        };
        assert!(findings(&chi(CHI_LOCK, Expiry::In(59_000)), &Thresholds::default(), None).is_empty());
        assert_eq!(codes(Expiry::Never), ["no-expiry", "oversized"]);
        assert_eq!(codes(Expiry::In(1)), ["overdue", "oversized"]);
        assert_eq!(codes(Expiry::In(90_000)), ["excess-ttl", "oversized"]);
    }
}
