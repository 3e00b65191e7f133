//! What becomes of a worker that still runs after its lock was removed, derived from the complete step's replies.

use super::next_request::foreseen;
use crate::domain::record::decode::Form;
use crate::domain::record::{Decoded, Reading};
use crate::domain::schema::{Meaning, Schema, State};

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

/// What a schema's complete step does for a worker whose lock is gone.
pub fn of(schema: &Schema) -> LateWorker {
    let absent = vec![Reading::Absent; schema.slots.len()];
    let mut retaken = absent.clone();
    let held = schema.values.iter().position(|case| case.slot == schema.lock_slot() && case.state == State::InProgress);
    if let Some(case) = held {
        retaken[schema.lock_slot()] = Reading::Value(Box::new(Decoded {
            case,
            form: Form::Own,
            owner: None,
            fingerprint: None,
            created_ms: None,
            completed_ms: None,
            response: None,
            error: None,
            blob: None,
        }));
    }
    let stores = |readings: &[Reading]| {
        !schema.complete.checks_owner
            && foreseen(&schema.complete, readings).is_some_and(|(reply, _)| reply.means == Meaning::Stored)
    };
    LateWorker { stores_when_absent: stores(&absent), stores_when_retaken: stores(&retaken) }
}
