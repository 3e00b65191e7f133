//! What a worker can still change after its lock expired or another worker acquired it, derived
//! from the schema's steps.

use super::next_request::{possible_meaning, predict_reply};
use crate::domain::record::{Decoded, Reading};
use crate::domain::schema::{Action, Call, KeyIs, Meaning, Schema, State, Step};

/// What the complete step of a late worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateWorker {
    /// True if it stores its result although the lock no longer exists.
    pub stores_when_absent: bool,
    /// True if it stores its result although another worker has acquired the lock.
    pub stores_when_retaken: bool,
}

impl LateWorker {
    /// True if the late worker cannot change the record.
    pub(crate) fn is_fenced_off(self) -> bool {
        !self.stores_when_absent && !self.stores_when_retaken
    }
}

/// What the complete step does for a worker that lost its lock; `None` if the schema does not
/// describe the step.
pub fn of(schema: &Schema) -> Option<LateWorker> {
    let complete = schema.complete.as_ref()?;
    let lock = schema.lock_key_index();
    // The two states in which a late worker can find the lock: expired, or acquired by another
    // worker.
    let absent = vec![Reading::Absent; schema.keys.len()];
    let mut retaken = absent.clone();
    for (index, format) in schema.values.iter().enumerate() {
        if format.key_index == lock && format.state == State::InProgress {
            retaken[lock] = Reading::Value(Box::new(Decoded::of_format(index)));
            break;
        }
    }
    // A step that checks the owner finds none if there is no lock. It stores there only if it says
    // so.
    let stores_when_absent = if complete.checks_owner {
        predict_reply(complete, &absent, false)
            .is_some_and(|(reply, _)| reply.means == Meaning::Stored)
    } else {
        stores_in(complete, &absent)
    };
    Some(LateWorker { stores_when_absent, stores_when_retaken: stores_in(complete, &retaken) })
}

/// True if a worker whose lock was released can store its result over the released record, because
/// the record still names it as the owner.
pub(crate) fn stores_after_release(schema: &Schema) -> bool {
    let Some(complete) = &schema.complete else { return false };
    if !complete.checks_owner {
        return false;
    }
    let mut readings = vec![Reading::Absent; schema.keys.len()];
    for (index, format) in schema.values.iter().enumerate() {
        if format.state != State::Released || format.fields.owner.is_none() {
            continue;
        }
        readings[format.key_index] = Reading::Value(Box::new(Decoded::of_format(index)));
        return possible_meaning(complete, &readings, false) == Some(Meaning::Stored);
    }
    false
}

/// True if the complete step stores its result in this state, in which the worker does not own the
/// lock.
fn stores_in(complete: &Step, readings: &[Reading]) -> bool {
    // A step that checks the owner changes nothing while another worker owns the lock.
    if complete.checks_owner {
        return false;
    }
    possible_meaning(complete, readings, false) == Some(Meaning::Stored)
}

/// True if no worker can hold a lock while a result exists.
///
/// Two conditions are necessary. The service never acquires a lock while a result exists, and it
/// never stores a result without deleting its own lock at the same time. Otherwise a worker whose
/// begin found no result may acquire the lock after the result was stored. The TTL of that lock
/// does not matter.
pub fn keeps_locks_from_results(schema: &Schema) -> bool {
    let Some(begin) = &schema.begin else { return false };
    let Some(complete) = &schema.complete else { return false };
    is_one_script(begin)
        && acquires_only_without_result(begin, schema.result_key_index())
        && is_one_script(complete)
        && complete.checks_owner
}

fn is_one_script(step: &Step) -> bool {
    matches!(step.calls[..], [Call { action: Action::Script { .. }, .. }])
}

/// True if begin acquires the lock only while no result exists, according to the conditions of its
/// replies.
fn acquires_only_without_result(begin: &Step, result: usize) -> bool {
    let mut acquires = false;
    for reply in begin.calls.iter().flat_map(|call| &call.replies) {
        if reply.means != Meaning::Acquired {
            continue;
        }
        acquires = true;
        // A reply without conditions is never predicted, because the schema does not say when it
        // occurs.
        if reply.when.is_empty() {
            return false;
        }
        for condition in &reply.when {
            if !condition.keys.contains(&(result, KeyIs::Absent)) {
                return false;
            }
        }
    }
    acquires
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::schema;

    /// Rule: each of these conditions is necessary. A result may be stored between two calls of a
    /// step. Without an owner check, the lock may belong to another worker. Without a condition
    /// that no result exists, begin may acquire a lock beside a result.
    #[test]
    fn every_condition_for_locks_apart_from_results_is_necessary() {
        let sound = schema("event-driven");
        assert!(keeps_locks_from_results(&sound));
        let without = |change: fn(&mut Schema)| {
            let mut schema = sound.clone();
            change(&mut schema);
            !keeps_locks_from_results(&schema)
        };
        fn twice(step: &mut Option<Step>) {
            let step = step.as_mut().unwrap();
            step.calls.push(step.calls[0].clone());
        }
        assert!(without(|schema| twice(&mut schema.begin)));
        assert!(without(|schema| twice(&mut schema.complete)));
        assert!(without(|schema| schema.complete.as_mut().unwrap().checks_owner = false));
        assert!(without(|schema| schema.complete = None));
        assert!(without(|schema| {
            for reply in &mut schema.begin.as_mut().unwrap().calls[0].replies {
                reply.when.clear();
            }
        }));
    }
}
