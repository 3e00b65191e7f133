//! `oversized`: a value so large that it slows Redis and every replay.

use super::finding::{Case, Finding, Severity};

pub(super) const CODE: &str = "oversized";

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let size = case.record.size_bytes();
    (size > case.thresholds.oversized_bytes).then(|| Finding {
        code: CODE,
        severity: Severity::Info,
        message: format!(
            "the value has {size} bytes: every replay sends them all, and Redis serves nobody else meanwhile"
        ),
        advice: "keep large responses elsewhere and store a pointer".to_owned(),
    })
}
