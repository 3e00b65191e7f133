//! What becomes of a worker that still runs when its lock, or the result, is not as it expects: derived from the steps.

use super::next_request::foreseen;
use crate::domain::record::decode::Form;
use crate::domain::record::{Decoded, Reading};
use crate::domain::schema::{Action, Call, Condition, KeyIs, Meaning, Schema, State, Step};

/// The fate of the old worker's completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateWorker {
    /// True when it stores its result although the lock is gone.
    pub stores_when_absent: bool,
    /// True when it stores its result over the lock that the next worker took.
    pub stores_when_retaken: bool,
}

impl LateWorker {
    /// True when nothing the old worker does later can reach the record.
    pub(crate) fn is_fenced_off(self) -> bool {
        !self.stores_when_absent && !self.stores_when_retaken
    }
}

/// What a schema's complete step does for a worker whose lock is gone; `None` where the schema does not describe the step.
pub fn of(schema: &Schema) -> Option<LateWorker> {
    let complete = schema.complete.as_ref()?;
    let absent = vec![Reading::Absent; schema.keys.len()];
    let mut retaken = absent.clone();
    let held = schema.values.iter().position(|case| case.role == schema.lock_role() && case.state == State::InProgress);
    if let Some(case) = held {
        retaken[schema.lock_role()] = Reading::Value(Box::new(Decoded {
            case,
            form: Form::Own,
            owner: None,
            fingerprint: None,
            created_ms: None,
            completed_ms: None,
            expires_ms: None,
            lapsed: None,
            response: None,
            error: None,
            blob: None,
        }));
    }
    let stores = |readings: &[Reading]| {
        !complete.checks_owner
            && foreseen(complete, readings, false).is_some_and(|(reply, _)| reply.means == Meaning::Stored)
    };
    Some(LateWorker { stores_when_absent: stores(&absent), stores_when_retaken: stores(&retaken) })
}

/// True when no worker can hold a lock while there is a result.
///
/// A lock beside a result has no live worker where the service neither takes a lock while there is a result, nor stores a
/// result without unlocking its own lock in the same moment. Elsewhere a worker that was told that there is no result may
/// take the lock after the result came, whatever TTL that lock has.
pub fn keeps_locks_from_results(schema: &Schema) -> bool {
    let (Some(begin), Some(complete)) = (&schema.begin, &schema.complete) else { return false };
    let is_one_script = |step: &Step| matches!(step.calls[..], [Call { action: Action::Script { .. }, .. }]);
    let result = schema.result_role();
    let needs_no_result = |condition: &Condition| condition.keys.contains(&(result, KeyIs::Absent));
    let acquired = begin.calls.iter().flat_map(|call| &call.replies);
    let mut acquired = acquired.filter(|reply| reply.means == Meaning::Acquired).peekable();
    let takes_none = acquired.peek().is_some()
        && acquired.all(|reply| !reply.when.is_empty() && reply.when.iter().all(needs_no_result));
    is_one_script(begin) && takes_none && is_one_script(complete) && complete.checks_owner
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::schema;

    /// Rule: between two calls a result may come, behind no check of the owner a lock may be another's, and where nothing says
    /// that there is no result a lock is taken beside one.
    #[test]
    fn each_condition_of_a_lock_apart_from_results_counts() {
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
