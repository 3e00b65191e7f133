//! A completion tried beforehand: the service's own steps on a private server, on what stands at the record's Redis keys.

use uuid::Uuid;

use crate::domain::record::{Content, Expiry, Record, Response, age};
use crate::domain::schema::{Meaning, Step, TtlOf};
use crate::domain::step::{Request, StepReply};
use crate::sim::simulate::Servers;
use crate::store::{Connection, Sandbox, SandboxError, StoreError, pack, set_words};

/// Longer than a step takes, in milliseconds.
const MOMENT: u64 = 5_000;

/// What became of a completion that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rehearsal {
    pub(crate) then: Rehearsed,
    /// How long the result lives after the step; `None` where it was not stored.
    pub(crate) lives: Option<Expiry>,
}

/// What a request gets that comes after the completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rehearsed {
    /// Its begin step answers so.
    Answers(Meaning),
    /// The complete step did not store the response there.
    NotStored,
    /// Its begin step answers what the schema does not know.
    Unknown,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRehearsed {
    #[error(transparent)]
    NoServer(#[from] SandboxError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Completes the record on a private server, with a lock taken for it where there is one in `hold`, and begins once more with
/// the same payload; `None` where the schema does not describe the begin step.
///
/// # Errors
/// No private server, or one that fails.
pub(crate) async fn rehearse(
    record: &Record,
    complete: &Step,
    request: &Request<'_>,
    hold: Option<&Content>,
    servers: &Servers,
) -> Result<Option<Rehearsal>, NotRehearsed> {
    let Some(begin) = &record.schema.begin else { return Ok(None) };
    let sandbox = Sandbox::start(&servers.path, &servers.temp_dir).await?;
    let mut connection = Connection::connect(&sandbox.first_database(&servers.like)).await?;
    put_there(record, hold, &mut connection).await?;
    if play(complete, request, &mut connection).await? != Some(Meaning::Stored) {
        return Ok(Some(Rehearsal { then: Rehearsed::NotStored, lives: None }));
    }
    let lives = result_lives(record, &mut connection).await?;
    let (owner, response) = (Uuid::new_v4().to_string(), Response::default());
    let again = Request { owner: owner.as_bytes(), response: &response, error: None, before: None, ..request.clone() };
    let means = play(begin, &again, &mut connection).await?;
    Ok(Some(Rehearsal { then: means.map_or(Rehearsed::Unknown, Rehearsed::Answers), lives: Some(lives) }))
}

/// How long the result lives that the step stored. A step that sets no expiry leaves the Redis key the one it had.
async fn result_lives(record: &Record, connection: &mut Connection) -> Result<Expiry, StoreError> {
    let key = &record.seen.keys[record.schema.result_role()];
    let StepReply::Integer(left) = connection.ask(&pack([&b"PTTL"[..], &key.redis_key])).await? else {
        return Ok(Expiry::Never);
    };
    let Ok(left) = u64::try_from(left) else { return Ok(Expiry::Never) };
    let was_given = key.expiry.millis().map(at_least);
    match was_given.filter(|given| given.abs_diff(left) < MOMENT) {
        Some(_) => Ok(key.expiry),
        // Some of it went by since the step.
        None => Ok(Expiry::In(left.div_ceil(1_000).saturating_mul(1_000))),
    }
}

/// Puts what was seen at the record's Redis keys there, and the lock that is taken for the step.
async fn put_there(record: &Record, hold: Option<&Content>, connection: &mut Connection) -> Result<(), StoreError> {
    for key in &record.seen.keys {
        set(&key.redis_key, &key.content, key.expiry, connection).await?;
    }
    if let Some(lock) = hold {
        let lives = record.schema.ttl(TtlOf::Lock).map_or(Expiry::Never, |ttl| Expiry::In(age::millis(ttl)));
        set(&record.seen.keys[record.schema.lock_role()].redis_key, lock, lives, connection).await?;
    }
    Ok(())
}

async fn set(
    redis_key: &[u8],
    content: &Content,
    expiry: Expiry,
    connection: &mut Connection,
) -> Result<(), StoreError> {
    let lives = expiry.millis().map(at_least);
    for words in set_words(redis_key, content, lives) {
        connection.ask(&pack(words)).await?;
    }
    Ok(())
}

/// The time that a Redis key gets for the trial: what is about to end shall not end in between.
fn at_least(millis: u64) -> u64 {
    millis.max(60_000)
}

/// Makes a step's calls until a reply decides; `None` where none that the schema knows does.
async fn play(step: &Step, request: &Request<'_>, connection: &mut Connection) -> Result<Option<Meaning>, StoreError> {
    for call in &step.calls {
        let reply: StepReply = connection.ask(&pack(request.words(call))).await?;
        let known = request.listener().recognise(call, &reply).map(|known| known.means);
        if known != Some(Meaning::Next) {
            return Ok(known);
        }
    }
    Ok(None)
}
