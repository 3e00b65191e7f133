//! Tries on a temporary local Redis which values the steps of a schema store without a TTL, so that
//! they stay in Redis until someone deletes them, and whether begin gives a lock without TTL one.

use crate::domain::record::{Content, decode};
use crate::domain::schema::{Meaning, Schema, State, Step, TtlOf};
use crate::domain::self_check::sample_response;
use crate::domain::step::{ExecutedStep, StepInputs, StepReply, execute};
use crate::sim::service::{read_content, set_content};
use crate::sim::trial::{KEY, LIVES_MS, StrayReply, errors, sample_inputs};
use crate::store::{Connection, StoreError, pack};

/// Begins a request and completes it, as a success and as a failure, as far as the schema describes
/// this. Returns a warning for each step that stores a value without a TTL, unless the value is a
/// lock and the schema defines no TTL for locks.
pub(super) async fn try_ttls(
    schema: &Schema,
    connection: &mut Connection,
) -> Result<Vec<StrayReply>, StoreError> {
    let mut found: Vec<StrayReply> = Vec::new();
    for error in errors(schema) {
        let response = sample_response(schema, error.is_some());
        let inputs = sample_inputs(schema, &response, error, connection).await?;
        connection.ask(&pack(["FLUSHDB"])).await?;
        let lock_key = &schema.redis_keys(KEY)[schema.lock_key_index()];
        match &schema.begin {
            Some(begin) => {
                let Some(call) = decided(begin, Meaning::Acquired, &inputs, connection).await?
                else {
                    continue;
                };
                // Begin does not depend on what the handler will do.
                if error.is_none() {
                    found.extend(without_ttl("begin", call, &inputs, connection).await?);
                    found.extend(given_ttl(begin, lock_key, &inputs, connection).await?);
                }
            }
            None if schema.write.lock_value.is_some() => {
                set_content(connection, lock_key, &inputs.lock(), Some(LIVES_MS)).await?;
            }
            None => {}
        }
        let Some(complete) = &schema.complete else { continue };
        let before = read_content(connection, lock_key).await?;
        let inputs = StepInputs {
            before: if schema.has_separate_result() { None } else { Some(&before) },
            ..inputs.clone()
        };
        if let Some(call) = decided(complete, Meaning::Stored, &inputs, connection).await? {
            found.extend(without_ttl("complete", call, &inputs, connection).await?);
        }
    }
    // The step of a failure often leaves the same as that of a success.
    found.dedup();
    Ok(found)
}

/// Executes a step, and returns the index of the call that decided; `None` if the step did not have
/// this outcome, which other checks report.
async fn decided(
    step: &Step,
    wanted: Meaning,
    inputs: &StepInputs<'_>,
    connection: &mut Connection,
) -> Result<Option<usize>, StoreError> {
    match execute(inputs, &step.calls, connection).await? {
        ExecutedStep::Decided { matched, index, .. } if matched.meaning() == wanted => {
            Ok(Some(index))
        }
        _ => Ok(None),
    }
}

/// Takes the TTL of the lock that begin has just taken away, and sends the same request again. What
/// the schema says of that in `gives_ttl` has to be true, because it decides whether such a lock
/// ends. A warning that it is missing, because older files do not have it.
async fn given_ttl(
    begin: &Step,
    lock_key: &[u8],
    inputs: &StepInputs<'_>,
    connection: &mut Connection,
) -> Result<Option<StrayReply>, StoreError> {
    let lock = read_content(connection, lock_key).await?;
    connection.ask(&pack([b"PERSIST", lock_key])).await?;
    let Some(call) = decided(begin, Meaning::Conflict, inputs, connection).await? else {
        return Ok(None);
    };
    let left = connection.ask(&pack([b"PTTL", lock_key])).await?;
    // The next step meets the lock as begin left it.
    set_content(connection, lock_key, &lock, Some(LIVES_MS)).await?;
    let StepReply::Integer(left) = left else { return Ok(None) };
    let message = match (begin.gives_ttl, left) {
        (false, 0..) => "begin gives a lock without TTL one; write `gives_ttl = true` in [begin]",
        (true, -1) => "begin leaves a lock without TTL as it is; remove `gives_ttl`",
        _ => return Ok(None),
    };
    Ok(Some(StrayReply {
        step: "begin",
        call,
        message: message.to_owned(),
        is_error: begin.gives_ttl,
    }))
}

/// A warning for each Redis key that this step left without a TTL.
async fn without_ttl(
    step: &'static str,
    call: usize,
    inputs: &StepInputs<'_>,
    connection: &mut Connection,
) -> Result<Vec<StrayReply>, StoreError> {
    let schema = inputs.schema;
    let mut contents = Vec::new();
    for redis_key in schema.redis_keys(KEY) {
        contents.push((read_content(connection, &redis_key).await?, redis_key));
    }
    let mut found = Vec::new();
    for (key_index, (content, redis_key)) in contents.iter().enumerate() {
        // PTTL is -1 for a key without TTL, and -2 for an absent one.
        let left = connection.ask(&pack([b"PTTL", &redis_key[..]])).await?;
        if left != StepReply::Integer(-1) {
            continue;
        }
        let Some(warning) = warning(schema, step, key_index, content) else { continue };
        found.push(StrayReply { step, call, message: warning, is_error: false });
    }
    Ok(found)
}

/// The warning about a value that this step left without a TTL; `None` if the schema defines no TTL
/// for such a lock, or if another step stored the value.
fn warning(schema: &Schema, step: &str, key_index: usize, content: &Content) -> Option<String> {
    let reading = decode::decode_value(schema, key_index, content);
    let format = &schema.values[reading.decoded()?.format];
    let (what, of) = match format.state {
        State::InProgress => ("lock", TtlOf::Lock),
        State::Failed => ("failure", TtlOf::Result),
        _ => ("result", TtlOf::Result),
    };
    if (of == TtlOf::Lock) != (step == "begin") {
        return None;
    }
    let name = &format.name;
    let although = match schema.ttl(of) {
        Some(_) => {
            ", although the file states a TTL for it; send the TTL in the call, or write \"none\" \
            for it"
        }
        None if of == TtlOf::Lock => return None,
        None => "",
    };
    Some(format!(
        "{step} stores the {what} `{name}` without a TTL, so it stays in Redis until someone \
        deletes it{although}"
    ))
}
