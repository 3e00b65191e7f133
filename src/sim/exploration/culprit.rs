//! The advice for a violation, from its history: which call did it, and what happened before.

use crate::domain::exploration::{
    BEGIN_IN_ONE_SCRIPT, Culprit, FAILED_AFTER_EFFECT, Fault, Invariant, KeysState, LeftLock,
    NextAction, ProgramCall, WorkerProgram, has_result, held_at, invariants,
};
use crate::domain::schema::{Call, Meaning, Role, Schema};
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

/// The advice for a history that violates an invariant. `services` has the index of the service of
/// each worker.
pub(super) fn remedy(
    program: &WorkerProgram,
    services: &[usize],
    steps: &[TracedStep],
    invariant: &Invariant,
) -> String {
    if begin_was_interrupted(program, steps) {
        return BEGIN_IN_ONE_SCRIPT.to_owned();
    }
    if let Some(renew) = renewed_without_lock(program, steps) {
        return format!("let renew ({renew}) refuse if the worker's own lock is gone");
    }
    let fails_late = steps.iter().any(|step| step.act.fault() == Some(Fault::LateFail));
    if fails_late && invariant.name == invariants::ONE_EFFECT.name {
        return FAILED_AFTER_EFFECT.to_owned();
    }
    let (number, root) = root(steps, invariant);
    let (to_violation, service) = match number {
        Some(number) => (&steps[..=number], service_of(services, &steps[number])),
        None => (steps, services.first().copied().unwrap_or(0)),
    };
    let schema = &program.services[service];
    let mut culprit = Culprit {
        schema,
        kind: None,
        call: None,
        author: None,
        taken: taken(schema, to_violation),
        left: left_lock(program, schema, steps),
    };
    if let Some(last) = to_violation.last() {
        culprit.author = last.reply.map(|reply| reply.author);
        if let Some(call) = call_of(program, last) {
            culprit.kind = Some(call.step);
            culprit.call = described(program, call);
        }
    }
    (root.remedy)(&culprit)
}

/// The name of the call that renewed a lock which its worker no longer held. What goes wrong later in
/// the same history follows from that call.
fn renewed_without_lock(program: &WorkerProgram, steps: &[TracedStep]) -> Option<String> {
    let mut holder = None;
    for step in steps {
        let is_renewed = step.reply.is_some_and(|reply| reply.meaning == Some(Meaning::Renewed));
        if is_renewed && holder != step.act.worker() {
            return Some(described(program, call_of(program, step)?)?.name());
        }
        holder = step.holder;
    }
    None
}

/// The first step that violates the invariant, or an earlier one from which the violation follows,
/// with the invariant that it violates.
fn root<'a>(steps: &[TracedStep], invariant: &'a Invariant) -> (Option<usize>, &'a Invariant) {
    for (number, step) in steps.iter().enumerate() {
        for violated in &step.violated {
            if violated.name == invariant.name {
                return (Some(number), invariant);
            }
        }
        for violated in &step.violated {
            if ROOTS.contains(&violated.name) {
                return (Some(number), violated);
            }
        }
    }
    (None, invariant)
}

fn service_of(services: &[usize], step: &TracedStep) -> usize {
    let of_worker = step.act.worker().and_then(|worker| services.get(usize::from(worker)));
    of_worker.or(services.first()).copied().unwrap_or(0)
}

fn call_of(program: &WorkerProgram, step: &TracedStep) -> Option<ProgramCall> {
    match step.action {
        NextAction::Call { number, .. } => Some(program.calls[usize::from(number)]),
        _ => None,
    }
}

fn described(program: &WorkerProgram, call: ProgramCall) -> Option<&Call> {
    program.step(call)?.calls.get(call.index)
}

/// The last fault that took a lock or a result away.
fn taken(schema: &Schema, steps: &[TracedStep]) -> Option<(Fault, Role)> {
    let mut taken = None;
    for step in steps {
        let Some(fault) = step.act.fault() else { continue };
        if step.act.worker().is_some() {
            continue;
        }
        if has_result(schema, &step.before) && !has_result(schema, &step.after) {
            taken = Some((fault, Role::Result));
        } else if is_locked(schema, &step.before) && !is_locked(schema, &step.after) {
            taken = Some((fault, Role::Lock));
        }
    }
    taken
}

/// True if the lock's Redis key holds a lock that has not expired by its own time.
fn is_locked(schema: &Schema, keys: &KeysState) -> bool {
    let key_index = schema.lock_key_index();
    held_at(schema, keys, key_index) == Some(Role::Lock)
        && keys.reading(schema, key_index).past_expiry().is_none()
}

/// The lock at the end of a history, and why it never expires.
fn left_lock(program: &WorkerProgram, schema: &Schema, steps: &[TracedStep]) -> LeftLock {
    let key_index = schema.lock_key_index();
    let is_endless = |keys: &KeysState| {
        held_at(schema, keys, key_index).is_some()
            && keys.ttl_ms(key_index).is_none()
            && keys.own_ttl_ms(schema, key_index).is_none()
    };
    let Some(last) = steps.last() else { return LeftLock::Absent };
    if held_at(schema, &last.after, key_index).is_none() {
        return LeftLock::Absent;
    }
    if !is_endless(&last.after) {
        return LeftLock::Expiring;
    }
    let mut by = None;
    for step in steps {
        if is_endless(&step.after) && !is_endless(&step.before) {
            by = call_of(program, step).map(|call| call.step);
        }
    }
    LeftLock::Endless(by)
}

/// True if a later call of begin acquired the lock although another worker held it, or a result
/// was stored. Until then only the workers' own calls changed the keys. An earlier call of the
/// same begin therefore saw another state.
fn begin_was_interrupted(program: &WorkerProgram, steps: &[TracedStep]) -> bool {
    let mut holder = None;
    for step in steps {
        if step.act.fault().is_some() && step.act.worker().is_none() {
            // Such a fault changes the keys without a call, so that begin may not be the cause.
            return false;
        }
        if let Some(reply) = step.reply
            && reply.meaning == Some(Meaning::Acquired)
            && let Some(call) = call_of(program, step)
        {
            let schema = &program.services[call.service];
            let mut has_result = false;
            for key_index in 0..schema.keys.len() {
                has_result |= held_at(schema, &step.before, key_index) == Some(Role::Result);
            }
            let is_anothers = holder.is_some() && holder != step.act.worker();
            if call.index > 0 && (has_result || is_anothers) {
                return true;
            }
        }
        holder = step.holder;
    }
    false
}
