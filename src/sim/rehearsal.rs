//! A completion tried beforehand: the service's own steps on a private server, on what stands at the record's Redis keys.

use uuid::Uuid;

use crate::domain::record::{Content, Expiry, Record, Response, age};
use crate::domain::schema::{Meaning, Step, TtlOf};
use crate::domain::step::{Request, StepReply};
use crate::sim::simulate::Servers;
use crate::store::{Connection, Sandbox, SandboxError, StoreError, pack, set_words};

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
) -> Result<Option<Rehearsed>, NotRehearsed> {
    let Some(begin) = &record.schema.begin else { return Ok(None) };
    let sandbox = Sandbox::start(&servers.path, &servers.temp_dir).await?;
    let mut connection = Connection::connect(&sandbox.first_database(&servers.like)).await?;
    put_there(record, hold, &mut connection).await?;
    if play(complete, request, &mut connection).await? != Some(Meaning::Stored) {
        return Ok(Some(Rehearsed::NotStored));
    }
    let (owner, response) = (Uuid::new_v4().to_string(), Response::default());
    let again = Request { owner: owner.as_bytes(), response: &response, error: None, before: None, ..request.clone() };
    let means = play(begin, &again, &mut connection).await?;
    Ok(Some(means.map_or(Rehearsed::Unknown, Rehearsed::Answers)))
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
    // What is about to end shall not end in between.
    let lives = expiry.millis().map(|ms| ms.max(60_000));
    for words in set_words(redis_key, content, lives) {
        connection.ask(&pack(words)).await?;
    }
    Ok(())
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
