//! Results that were accepted before: the known failures, for comparison.

use serde::Deserialize;

use super::probe_check::{CheckedService, ProbeVerdict};

/// The accepted results: a document that `--output json` wrote.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AcceptedChecks {
    checks: Vec<AcceptedCheck>,
}

#[derive(Debug, Clone, Deserialize)]
struct AcceptedCheck {
    id: String,
    verdict: String,
}

/// A failure that was not accepted, or one that was accepted and is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProbeDifference {
    pub(crate) id: &'static str,
    /// True if the failure is new.
    pub(crate) is_new: bool,
}

impl AcceptedChecks {
    /// True if the failure of this check was accepted.
    fn has_failure(&self, id: &str) -> bool {
        let mut of_check = self.checks.iter().filter(|check| check.id == id);
        of_check.any(|check| check.verdict == ProbeVerdict::Fail.as_str())
    }

    /// The differences from the accepted failures, the new ones first. A failure is gone only if its
    /// check passes now: an inconclusive check does not show a repair.
    pub(crate) fn differences(&self, checked: &[CheckedService]) -> Vec<ProbeDifference> {
        let mut new = Vec::new();
        let mut gone = Vec::new();
        for checked in checked {
            let id = checked.check.id;
            let was_failed = self.has_failure(id);
            if checked.is_failed() && !was_failed {
                new.push(ProbeDifference { id, is_new: true });
            }
            if checked.judgement.verdict == ProbeVerdict::Pass && was_failed {
                gone.push(ProbeDifference { id, is_new: false });
            }
        }
        new.extend(gone);
        new
    }
}
