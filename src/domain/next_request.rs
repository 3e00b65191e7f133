//! What the next request with a key gets, derived from the replies of the schema's begin step.

use crate::domain::observation::{Content, Expiry, Observation};
use crate::domain::schema::{Condition, Meaning, Reply, Schema, SlotIs, Step};
use crate::domain::value::Reading;

/// What the next request gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextRequest {
    /// The answer.
    pub answer: Answer,
    /// Until when it gets that; `None` when it executes, for then the answer changes with the request itself.
    pub until: Option<Expiry>,
    /// What the client is told, where the schema says so.
    pub client: Option<String>,
}

/// The answers a begin step can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It takes the lock and the operation runs.
    Execute,
    /// It is turned away: another request holds the lock.
    Conflict,
    /// It gets the stored response.
    Replay,
    /// The service fails on the record.
    Fail,
}

impl Answer {
    /// The stable word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Execute => "execute",
            Self::Conflict => "conflict",
            Self::Replay => "replay",
            Self::Fail => "fail",
        }
    }
}

/// Walks the begin step's replies in order; the first one that comes in this state of the slots is the answer. A
/// state that no reply is foreseen for makes the service fail.
pub fn of(schema: &Schema, readings: &[Reading], seen: &Observation) -> NextRequest {
    let Some((reply, condition)) = foreseen(&schema.begin, readings) else {
        return NextRequest { answer: Answer::Fail, until: Some(first_expiry(seen)), client: None };
    };
    let answer = match reply.means {
        Meaning::Acquired => Answer::Execute,
        Meaning::Conflict => Answer::Conflict,
        Meaning::Replay => Answer::Replay,
        _ => Answer::Fail,
    };
    let until = (answer != Answer::Execute).then(|| decider(condition, seen));
    NextRequest { answer, until, client: reply.client.clone() }
}

/// The reply of a step that is foreseen for these slots, and the condition that holds.
pub(super) fn foreseen<'a>(step: &'a Step, readings: &[Reading]) -> Option<(&'a Reply, &'a Condition)> {
    let holds = |condition: &Condition| condition.0.iter().all(|(slot, asked)| readings[*slot].is(asked));
    step.calls
        .iter()
        .flat_map(|call| &call.replies)
        .find_map(|reply| reply.when.iter().find(|condition| holds(condition)).map(|condition| (reply, condition)))
}

/// The expiry of the Redis key that decides the answer: the first one the condition asks to be there.
fn decider(condition: &Condition, seen: &Observation) -> Expiry {
    let slot = condition.0.iter().find(|(_, asked)| *asked != SlotIs::Absent).map(|(slot, _)| *slot);
    slot.map_or_else(|| first_expiry(seen), |slot| seen.slots[slot].expiry)
}

fn first_expiry(seen: &Observation) -> Expiry {
    seen.slots.iter().find(|slot| slot.content != Content::Absent).map_or(Expiry::In(0), |slot| slot.expiry)
}
