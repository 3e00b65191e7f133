//! Coverage: what a read did not tell, beside what was found.

use crate::domain::contradiction::Contradictions;
use crate::domain::unproven::Unproven;

/// What was left out of a read, and which of its assumptions do not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Records that were left out, because nothing proves what was asked of them.
    pub unproven: Unproven,
    /// Default TTLs that the records contradict.
    pub contradictions: Contradictions,
}
