//! Results that were accepted before: the known failures, for comparison.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::probe_check::{CheckedService, ProbeVerdict};

/// The ids of the checks whose failure was accepted.
#[derive(Debug, Clone)]
pub(crate) struct AcceptedChecks(BTreeSet<String>);

/// A failure that was not accepted, or one that was accepted and is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProbeDifference {
    pub(crate) id: &'static str,
    /// True if the failure is new.
    pub(crate) is_new: bool,
}

#[derive(Deserialize)]
struct ProbeDocument {
    format: u64,
    checks: Vec<DocumentedCheck>,
}

#[derive(Deserialize)]
struct DocumentedCheck {
    id: String,
    verdict: String,
}

impl AcceptedChecks {
    /// Reads a document that `--output json` wrote.
    ///
    /// # Errors
    /// The text is not such a document, or it has another format.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, String> {
        let document: ProbeDocument =
            serde_json::from_slice(json).map_err(|why| why.to_string())?;
        if document.format != 1 {
            return Err(format!(
                "format {} is not known: this idemctl reads format 1",
                document.format
            ));
        }
        let mut failed = BTreeSet::new();
        for check in document.checks {
            if check.verdict == ProbeVerdict::Fail.as_str() {
                failed.insert(check.id);
            }
        }
        Ok(Self(failed))
    }

    /// The differences from the accepted failures, the new ones first. A failure is gone only if its
    /// check passes now: an inconclusive check does not show a repair.
    pub(crate) fn differences(&self, checked: &[CheckedService]) -> Vec<ProbeDifference> {
        let mut new = Vec::new();
        let mut gone = Vec::new();
        for checked in checked {
            let id = checked.check.id;
            let was_failed = self.0.contains(id);
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
