//! Tries on a temporary local Redis whether `idemctl complete` can ever work with a schema.

use std::sync::Arc;

use super::rehearsal::{RehearsedAnswer, rehearse_on};
use super::trial::{KEY, OWNER, StrayReply, errors, observed, sample_inputs};
use crate::domain::manual_step;
use crate::domain::record::{Content, Record, decode};
use crate::domain::schema::{Schema, State};
use crate::domain::self_check::sample_response;
use crate::domain::step::StepInputs;
use crate::store::{Connection, StoreError, pack};

/// Completes a lock of the schema, as a success and as a failure, as far as the schema stores them.
/// Returns why `complete` would refuse or miss each of them.
pub(super) async fn try_complete(
    schema: &Schema,
    connection: &mut Connection,
) -> Result<Vec<StrayReply>, StoreError> {
    let mut found = Vec::new();
    // Without a lock of the service there is nothing that an operator usually completes.
    if schema.complete.is_none() || schema.write.lock_value.is_none() {
        return Ok(found);
    }
    let schema = Arc::new(schema.clone());
    for error in errors(&schema) {
        let Some(why) = obstacle(&schema, error, connection).await? else { continue };
        let what = if error.is_some() { "`complete --error`" } else { "`complete`" };
        found.push(StrayReply {
            step: "complete",
            call: 0,
            message: format!("{what} can never store a response: {why}"),
            is_error: true,
        });
    }
    Ok(found)
}

/// Why a lock cannot be completed with a response that has all parts that the schema stores.
async fn obstacle(
    schema: &Arc<Schema>,
    error: Option<&str>,
    connection: &mut Connection,
) -> Result<Option<String>, StoreError> {
    let Some(complete) = &schema.complete else { return Ok(None) };
    let response = sample_response(schema, error.is_some());
    let begun = sample_inputs(schema, &response, error, connection).await?;
    let lock = begun.lock();
    let mut contents = vec![Content::Absent; schema.keys.len()];
    contents[schema.lock_key_index()] = lock.clone();
    let seen = observed(schema, &contents, begun.now_ms);
    let readings = decode::decode_all(schema, &seen);
    let record = Record::new(Arc::clone(schema), KEY.to_vec(), seen, readings);
    // The checks of the file itself report a lock that is not read as one.
    if record.state != State::InProgress {
        return Ok(None);
    }
    for key in &record.seen.keys {
        connection.ask(&pack([b"DEL", &key.redis_key[..]])).await?;
    }
    let before = if schema.has_separate_result() { None } else { Some(&lock) };
    let owner = record.owner().unwrap_or_default();
    let request = StepInputs {
        owner: if complete.checks_owner { OWNER.as_bytes() } else { owner },
        before,
        // Later than the lock, so that a time of the lock that the result replaces counts as lost.
        now_ms: begun.now_ms + 1_000,
        ..begun.clone()
    };
    let lost = manual_step::lost_fields(&record, &request);
    if !lost.is_empty() {
        let lost = lost.join(", ");
        return Ok(Some(format!("the result would lose the lock's {lost}; add it to the result")));
    }
    if let Some(why) = manual_step::unwritten_result(&record, &request) {
        return Ok(Some(format!("the result cannot be written ({why})")));
    }
    if let Some(why) = manual_step::unread_result(&record, &request) {
        return Ok(Some(format!("the result over a lock would not be read as a result ({why})")));
    }
    let Some(rehearsal) = rehearse_on(&record, complete, &request, None, connection).await? else {
        return Ok(None);
    };
    if rehearsal.then == RehearsedAnswer::NotStored {
        return Ok(Some("the step does not store the result of a lock's own holder".to_owned()));
    }
    if let Some(why) = manual_step::no_result(schema, &rehearsal.stored) {
        return Ok(Some(format!("what the step stores is not read as a result ({why})")));
    }
    let Some(delivered) = rehearsal.delivered else { return Ok(None) };
    let keeps = schema.write.keeps_of(error.is_some());
    Ok(manual_step::difference(&response, &delivered, keeps)
        .map(|difference| format!("clients would get another response: {difference}")))
}
