//! From which step of a history its violation follows.

use crate::domain::exploration::{Invariant, NextAction, ProgramCall, WorkerProgram};
use crate::domain::step::StepKind;
use crate::explore::TracedStep;

/// The invariants that a worker's call violates by changing a lock or a result. What goes wrong
/// later in the same history follows from that call.
const ROOTS: [&str; 3] = ["result-kept", "result-not-replaced", "owner-only"];

/// Whether the step of the call that violates the invariant claims to check the owner; `None` for a
/// call of begin, and for an invariant that is not about what another worker owns.
pub(super) fn is_fenced(
    program: &WorkerProgram,
    steps: &[TracedStep],
    invariant: &Invariant,
) -> Option<bool> {
    let call = call_of(program, steps.last()?)?;
    if call.step == StepKind::Begin || !ROOTS.contains(&invariant.name) {
        return None;
    }
    Some(program.step(call)?.checks_owner)
}

/// The first invariant that the history violates and from which the violation follows.
pub(super) fn root<'a>(steps: &[TracedStep], invariant: &'a Invariant) -> &'a Invariant {
    for step in steps {
        for violated in &step.violated {
            if violated.name == invariant.name || ROOTS.contains(&violated.name) {
                return violated;
            }
        }
    }
    invariant
}

fn call_of(program: &WorkerProgram, step: &TracedStep) -> Option<ProgramCall> {
    match step.action {
        NextAction::Call { number, .. } => Some(program.calls[usize::from(number)]),
        _ => None,
    }
}
