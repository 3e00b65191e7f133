//! A schema's steps run on a private server, in every state that its Redis keys can be in: whether the replies are those that
//! the schema lists, and what it foretells.

use crate::domain::record::{Content, Deadline, Expiry, Observation, Response, SeenKey, decode};
use crate::domain::schema::{Meaning, Schema, Step};
use crate::domain::self_check::headers;
use crate::domain::step::next_request::foreseen;
use crate::domain::step::{Request, StepReply};
use crate::sim::service::{server_ms, words};
use crate::store::{Connection, StoreError, pack, set_words};

/// Longer than a trial takes.
const LIVES_MS: u64 = 60_000;

const OWNER: &str = "7b0e2c1a-5d0f-4a6e-9a57-0b7f3a3f6f11";
const NEXT: &str = "0d3f6f2e-58f5-4c0b-9d6c-1f1f8f2a7b11";
const FINGERPRINT: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const KEY: &[u8] = b"order-1";

/// What a step does that the schema does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Strayed {
    pub(crate) step: &'static str,
    /// The index of the call whose reply it is.
    pub(crate) call: usize,
    pub(crate) message: String,
    /// False where what stands there is another program's, and in format 1.
    pub(crate) is_error: bool,
}

/// What stands at one Redis key, in words, and whether the schema's service writes it.
#[derive(Clone)]
struct Thing {
    name: &'static str,
    content: Content,
    is_own: bool,
}

/// Runs every step in every state; what strays, once for each call and meaning.
///
/// # Errors
/// The server's.
pub(crate) async fn try_steps(schema: &Schema, connection: &mut Connection) -> Result<Vec<Strayed>, StoreError> {
    let response =
        Response { status: Some(201), headers: headers(schema), body: br#"{"id":"order-1"}"#.to_vec(), whole: true };
    let now_ms = server_ms(&connection.ask(&pack(["TIME"])).await?);
    let request = Request { fingerprint: FINGERPRINT, now_ms, ..Request::new(schema, KEY, OWNER, &response) };
    let steps = [
        ("begin", &schema.begin),
        ("renew", &schema.renew),
        ("complete", &schema.complete),
        ("release", &schema.release),
    ];
    let mut found: Vec<Strayed> = Vec::new();
    for state in states(schema, &request) {
        for (name, step) in steps {
            let Some(step) = step else { continue };
            put_there(schema, &state, connection).await?;
            // Whoever begins is another worker than the one that holds the lock.
            let owner = if name == "begin" { NEXT } else { OWNER };
            let strayed =
                play(name, step, &state, &Request { owner: owner.as_bytes(), ..request.clone() }, connection).await?;
            let is_new =
                |strayed: &Strayed| !found.iter().any(|known| (known.step, known.call) == (strayed.step, strayed.call));
            found.extend(strayed.filter(is_new));
        }
    }
    Ok(found)
}

/// Every combination of what can stand at the Redis keys, those that the service itself writes first.
fn states(schema: &Schema, request: &Request<'_>) -> Vec<Vec<Thing>> {
    let mut states = vec![Vec::new()];
    for role in 0..schema.keys.len() {
        let with = |state: &Vec<Thing>| {
            things(schema, role, request).into_iter().map(|thing| [&state[..], &[thing]].concat()).collect::<Vec<_>>()
        };
        states = states.iter().flat_map(with).collect();
    }
    states.sort_by_key(|state: &Vec<Thing>| !state.iter().all(|thing| thing.is_own));
    states
}

fn things(schema: &Schema, role: usize, request: &Request<'_>) -> Vec<Thing> {
    let own = |name, content| Thing { name, content, is_own: true };
    let other = |name, content| Thing { name, content, is_own: false };
    let write = &schema.write;
    let mut things = vec![own("nothing", Content::Absent)];
    if role == schema.lock_role() && write.lock_value.is_some() {
        things.push(own("a lock", request.lock()));
    }
    if role == schema.result_role() && write.result_value.is_some() {
        things.push(own("a result", request.result_over_lock()));
    }
    if role == schema.result_role() && write.failed_value.is_some() {
        let failed = Request { error: Some("declined"), ..request.clone() }.result();
        things.push(own("a failed result", failed));
    }
    things.push(other("a hash of nobody's fields", Content::Other("hash".to_owned())));
    things
}

async fn put_there(schema: &Schema, state: &[Thing], connection: &mut Connection) -> Result<(), StoreError> {
    for (redis_key, thing) in schema.redis_keys(KEY).iter().zip(state) {
        connection.ask(&pack([b"DEL", &redis_key[..]])).await?;
        let content = match &thing.content {
            Content::Other(_) => Content::hash([b"a".to_vec(), b"b".to_vec()]),
            known => known.clone(),
        };
        for words in set_words(redis_key, &content, Some(LIVES_MS)) {
            connection.ask(&pack(words)).await?;
        }
    }
    Ok(())
}

/// Makes the calls of a step in a state, and says what strays.
async fn play(
    name: &'static str,
    step: &Step,
    state: &[Thing],
    request: &Request<'_>,
    connection: &mut Connection,
) -> Result<Option<Strayed>, StoreError> {
    // Nobody checked what the steps of a file of format 1 answer when it was written, so that such a fault is a warning there.
    let is_error = !request.schema.from_format_1 && state.iter().all(|thing| thing.is_own);
    let strayed = |call, message| Some(Strayed { step: name, call, message, is_error });
    for (index, call) in step.calls.iter().enumerate() {
        let reply = connection.ask(&pack(request.words(call))).await?;
        let there = there(request.schema, state);
        let Some(known) = request.listener().recognise(call, &reply) else {
            let message = format!(
                "with {there} the call answers {}, which none of its replies lists: add that reply",
                shown(&reply)
            );
            return Ok(strayed(index, message));
        };
        if known.means == Meaning::Next {
            continue;
        }
        let foretold = foretold(name, step, state, request);
        return Ok(foretold.filter(|means| *means != known.means).and_then(|means| {
            let (got, means) = (known.means.as_str(), means.as_str());
            let answer = shown(&reply);
            let message = format!(
                "with {there} the call answers {answer}, {got}, but the replies' `when` foretell {means}: mend `when`"
            );
            strayed(index, message)
        }));
    }
    let message =
        format!("with {} no reply decides: the last call cannot leave that to another", there(request.schema, state));
    Ok(strayed(step.calls.len().saturating_sub(1), message))
}

/// What the conditions of the replies foretell; `None` where they foretell nothing. What begin does not foretell fails.
fn foretold(name: &str, step: &Step, state: &[Thing], request: &Request<'_>) -> Option<Meaning> {
    let schema = request.schema;
    let seen = |(redis_key, thing): (Vec<u8>, &Thing)| {
        SeenKey::new(&redis_key, thing.content.clone(), Expiry::In(LIVES_MS), Deadline::Unknown)
    };
    let keys = schema.redis_keys(KEY).into_iter().zip(state).map(seen).collect();
    let seen = Observation { server_ms: Some(request.now_ms), keys, atomic: true };
    let readings = decode::read_all(schema, &seen);
    let foreseen = foreseen(step, &readings, false).map(|(reply, _)| reply.means);
    if name == "begin" { foreseen.or(Some(Meaning::Fail)) } else { foreseen }
}

fn there(schema: &Schema, state: &[Thing]) -> String {
    if let [thing] = state {
        return format!("{} there", thing.name);
    }
    let things = schema.keys.iter().zip(state).map(|(key, thing)| format!("{} at {}", thing.name, key.role.as_str()));
    things.collect::<Vec<_>>().join(" and ")
}

/// A reply in words, without the digest that an error of a script ends with.
fn shown(reply: &StepReply) -> String {
    words(reply).split(" script: ").next().unwrap_or_default().to_owned()
}
