//! Tries a completion in advance: executes the service's own steps on a temporary local Redis, with
//! a copy of the record.

use uuid::Uuid;

use crate::domain::manual_step::{self, Delivered};
use crate::domain::record::{Content, KeyState, Record, Response, TimeLeft, age};
use crate::domain::schema::{Meaning, Step, TtlOf};
use crate::domain::step::{ExecutedStep, StepInputs, StepReply, execute};
use crate::sim::service::{read_content, set_content};
use crate::sim::simulate::LocalServers;
use crate::store::{Connection, Sandbox, SandboxError, StoreError, pack};

/// In milliseconds; longer than a step takes.
const LONGEST_STEP_MS: u64 = 5_000;

/// The reply to PTTL for an absent Redis key.
const ABSENT: i64 = -2;

/// The result of a rehearsed completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rehearsal {
    pub(crate) then: RehearsedAnswer,
    /// How long the result stays after the step; `None` if it was not stored.
    pub(crate) time_left: Option<TimeLeft>,
    /// The response that clients get; `None` if the stored result has none.
    pub(crate) delivered: Option<Delivered>,
    /// The content of the result's Redis key after the complete step.
    pub(crate) stored: Content,
    /// The reply of a complete step that did not store the response.
    pub(crate) refusal: Option<StepReply>,
}

/// The answer to the next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RehearsedAnswer {
    /// The reply to the begin step of the next request has this meaning.
    Answers(Meaning),
    /// The complete step did not store the response.
    NotStored,
    /// The begin step of the next request gets no decisive reply that the schema lists.
    Unknown,
}

/// Why a completion could not be rehearsed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRehearsed {
    #[error(transparent)]
    NoServer(#[from] SandboxError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Completes a copy of the record on a temporary local Redis, and begins again with the same
/// payload. `step_lock` is the lock that is acquired for the completion, if there is one. `None` if
/// the schema does not describe the begin step.
///
/// # Errors
/// The local server cannot be started, or it fails.
pub(crate) async fn rehearse(
    record: &Record,
    complete: &Step,
    inputs: &StepInputs<'_>,
    step_lock: Option<&Content>,
    servers: &LocalServers,
) -> Result<Option<Rehearsal>, NotRehearsed> {
    if record.schema.begin.is_none() {
        return Ok(None);
    }
    RehearsalServer::start(servers).await?.rehearse(record, complete, inputs, step_lock).await
}

/// A temporary local Redis on which completions are rehearsed, one after the other.
pub(crate) struct RehearsalServer {
    connection: Connection,
    /// It ends when this value is dropped.
    _sandbox: Sandbox,
}

impl RehearsalServer {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started, or it fails.
    pub(crate) async fn start(servers: &LocalServers) -> Result<Self, NotRehearsed> {
        let sandbox = Sandbox::start(&servers.path, &servers.temp_dir).await?;
        let connection = Connection::connect(&sandbox.first_database(&servers.like)).await?;
        Ok(Self { connection, _sandbox: sandbox })
    }

    /// As [`rehearse`]. Nothing of an earlier rehearsal is left.
    ///
    /// # Errors
    /// The local server fails.
    pub(crate) async fn rehearse(
        &mut self,
        record: &Record,
        complete: &Step,
        inputs: &StepInputs<'_>,
        step_lock: Option<&Content>,
    ) -> Result<Option<Rehearsal>, NotRehearsed> {
        self.connection.ask(&pack(["FLUSHALL"])).await?;
        Ok(rehearse_on(record, complete, inputs, step_lock, &mut self.connection).await?)
    }
}

/// Like [`rehearse`], on a server that is already running.
pub(super) async fn rehearse_on(
    record: &Record,
    complete: &Step,
    inputs: &StepInputs<'_>,
    step_lock: Option<&Content>,
    connection: &mut Connection,
) -> Result<Option<Rehearsal>, StoreError> {
    let Some(begin) = &record.schema.begin else { return Ok(None) };
    // A copy, because the operator has not confirmed the change yet.
    copy_record(record, step_lock, connection).await?;
    let completed = execute(inputs, &complete.calls, connection).await?;
    let key_index = record.schema.result_key_index();
    let stored = read_content(connection, &record.seen.keys[key_index].redis_key).await?;
    if completed.meaning() != Some(Meaning::Stored) {
        let then = RehearsedAnswer::NotStored;
        let refusal = match completed {
            ExecutedStep::Decided { reply, .. } | ExecutedStep::Unlisted { reply, .. } => {
                Some(reply)
            }
            ExecutedStep::Undecided => None,
        };
        return Ok(Some(Rehearsal { then, time_left: None, delivered: None, stored, refusal }));
    }
    let time_left = time_left_of(&record.seen.keys[key_index], connection).await?;
    // The next request comes from another worker, which has its own owner ID.
    let owner = Uuid::new_v4().to_string();
    let response = Response::default();
    let again = StepInputs {
        owner: owner.as_bytes(),
        response: &response,
        error: None,
        before: None,
        ..inputs.clone()
    };
    let (then, replayed) = match execute(&again, &begin.calls, connection).await? {
        ExecutedStep::Decided { matched, reply, .. } => {
            let mut text = None;
            if matched.meaning() == Meaning::Replay {
                text = reply.stored().map(|text| Content::text(text.to_vec()));
            }
            (RehearsedAnswer::Answers(matched.meaning()), text)
        }
        ExecutedStep::Unlisted { .. } | ExecutedStep::Undecided => (RehearsedAnswer::Unknown, None),
    };
    // A begin script may encode the result again. Other begin steps return a word, or only a part
    // of the result. A word may be mistaken for an opaque value.
    let schema = &record.schema;
    let mut delivered = replayed.and_then(|text| manual_step::delivered(schema, &text));
    if delivered.as_ref().is_none_or(|delivered| delivered.is_opaque) {
        delivered = manual_step::delivered(schema, &stored);
    }
    Ok(Some(Rehearsal { then, time_left, delivered, stored, refusal: None }))
}

/// How long a Redis key stays after the step; `None` if it is absent. A step that sets no expiry
/// keeps the expiry of the Redis key.
async fn time_left_of(
    key: &KeyState,
    connection: &mut Connection,
) -> Result<Option<TimeLeft>, StoreError> {
    let StepReply::Integer(left) = connection.ask(&pack([&b"PTTL"[..], &key.redis_key])).await?
    else {
        return Ok(Some(TimeLeft::NoExpiry));
    };
    if left == ABSENT {
        return Ok(None);
    }
    let Ok(left) = u64::try_from(left) else { return Ok(Some(TimeLeft::NoExpiry)) };
    // PTTL decreases while the steps run, so that a TTL which is a little shorter is the same
    // deadline. One that is longer was set by the step.
    if let Some(ms) = key.time_left.millis()
        && let Some(passed) = at_least(ms).checked_sub(left)
        && passed < LONGEST_STEP_MS
    {
        return Ok(Some(key.time_left));
    }
    // The step set a TTL, and part of a second has passed since.
    Ok(Some(TimeLeft::Millis(left.div_ceil(1_000).saturating_mul(1_000))))
}

/// Sets the record's Redis keys as they were read, and the lock that is acquired for the step.
async fn copy_record(
    record: &Record,
    step_lock: Option<&Content>,
    connection: &mut Connection,
) -> Result<(), StoreError> {
    for key in &record.seen.keys {
        set(&key.redis_key, &key.content, key.time_left, connection).await?;
    }
    if let Some(lock) = step_lock {
        let time_left = match record.schema.ttl(TtlOf::Lock) {
            Some(ttl) => TimeLeft::Millis(age::millis(ttl)),
            None => TimeLeft::NoExpiry,
        };
        // Set after the copies, because the lock replaces the value that was read at its Redis key.
        let lock_key = &record.seen.keys[record.schema.lock_key_index()];
        set(&lock_key.redis_key, lock, time_left, connection).await?;
    }
    Ok(())
}

async fn set(
    redis_key: &[u8],
    content: &Content,
    time_left: TimeLeft,
    connection: &mut Connection,
) -> Result<(), StoreError> {
    set_content(connection, redis_key, content, time_left.millis().map(at_least)).await
}

/// The TTL of a Redis key during the rehearsal. A key that is about to expire must not expire
/// during the rehearsal, and services do not set a TTL like this one.
fn at_least(millis: u64) -> u64 {
    millis.max(87_000)
}
