//! Two frontiers of the same workers and faults, one under all assumptions and one without any, and
//! the cause of each violation.

use super::exploration::{AssumedSearch, Exploration, Violation, ViolationCause};
use super::invariants;

impl Exploration {
    /// The exploration with the violations of both frontiers, each with its cause. `self` was made
    /// without an assumption and `assumed` with all of them. If the search under the assumptions is
    /// incomplete, the cause of what only the other one found is unknown, and counts.
    pub(crate) fn with_causes(mut self, assumed: Self, is_strict: bool) -> Self {
        let mut judged = Vec::new();
        for violation in &assumed.violations {
            let cause = Some(ViolationCause::Schema);
            judged.push(Violation { cause, counts: true, ..violation.clone() });
        }
        for violation in std::mem::take(&mut self.violations) {
            let (cause, counts) = match violation.is_fenced {
                Some(true) => (Some(ViolationCause::Schema), true),
                _ if !assumed.covered.complete => (None, true),
                Some(false) => (Some(ViolationCause::NotFenced), is_strict),
                None => (Some(ViolationCause::Environment), false),
            };
            judged.push(Violation { cause, counts, ..violation });
        }
        judged.sort_by_key(|violation| {
            (violation.cause.is_none(), violation.cause, violation.faults.total())
        });
        for invariant in &invariants::ALL {
            for violation in &judged {
                // With an earlier cause, the same or fewer faults are enough.
                if violation.invariant.name == invariant.name && !self.has_within(violation) {
                    self.violations.push(violation.clone());
                }
            }
        }
        self.assumed =
            Some(AssumedSearch { assumptions: assumed.assumptions, covered: assumed.covered });
        self.wall_ms += assumed.wall_ms;
        if self.unsteady.is_none() {
            self.unsteady = assumed.unsteady;
        }
        self
    }

    /// True if the same or fewer faults violate the same invariant.
    fn has_within(&self, violation: &Violation) -> bool {
        self.violations.iter().any(|known| {
            known.invariant.name == violation.invariant.name
                && known.faults.is_within(violation.faults)
        })
    }
}
