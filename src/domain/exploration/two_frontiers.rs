//! Two frontiers of the same workers and faults: one under all assumptions, and one without any.

use super::exploration::{AssumedSearch, Exploration, Violation, ViolationCause};
use super::invariants;

impl Exploration {
    /// The exploration with the violations of both frontiers, each with its cause. `self` was made
    /// without an assumption and `assumed` with all of them. Only the violations under the
    /// assumptions count, unless `is_strict`. If the search under the assumptions is incomplete, the
    /// cause of the others is unknown, and they count.
    pub(crate) fn with_causes(mut self, assumed: Self, is_strict: bool) -> Self {
        let free = std::mem::take(&mut self.violations);
        for invariant in &invariants::ALL {
            for violation in &assumed.violations {
                if violation.invariant.name == invariant.name {
                    let cause = Some(ViolationCause::Schema);
                    self.violations.push(Violation { cause, counts: true, ..violation.clone() });
                }
            }
            for violation in &free {
                if violation.invariant.name != invariant.name {
                    continue;
                }
                // The same faults are enough under the assumptions, so this says nothing new.
                if assumed.has_within(violation) {
                    continue;
                }
                // An incomplete search may have missed it under the assumptions.
                let (cause, counts) = if assumed.covered.complete {
                    (Some(ViolationCause::Environment), is_strict)
                } else {
                    (None, true)
                };
                self.violations.push(Violation { cause, counts, ..violation.clone() });
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
