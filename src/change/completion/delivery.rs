//! Whether clients get the response that is about to be stored.

use super::rehearsal::RehearsalOutcome;
use crate::domain::manual_step;
use crate::domain::record::Record;
use crate::domain::schema::Meaning;
use crate::domain::step::{Answer, StepInputs};
use crate::exit::CommandError;
use crate::render::{escape, words};

/// Checks that clients get the response that the operator gave: according to the rehearsal,
/// otherwise according to the schema. `predicted_record` is the record after the step.
///
/// # Errors
/// Usage: the service's steps change the response, or store no result that the schema reads.
pub(crate) fn check_delivery(
    predicted_record: &Record,
    inputs: &StepInputs<'_>,
    rehearsal: &RehearsalOutcome,
) -> Result<(), CommandError> {
    let schema = &predicted_record.schema;
    let name = &schema.name;
    let refuse = |why: String| Err(CommandError::usage(why).changed_nothing());
    // A script may delete fields of the lock although the schema assumes that they stay.
    if schema.sends_result_value()
        && let Some(stored) = rehearsal.stored()
        && let Some(why) = manual_step::no_result(schema, stored)
    {
        let why = format!("{name} would store no result that can be read back ({why})");
        return refuse(why);
    }
    // The service's step may store a success, whatever the operator asks for.
    if let Some(stored) = rehearsal.stored()
        && let Some(difference) = manual_step::other_outcome(predicted_record, stored)
    {
        let asked = if inputs.error.is_some() { "the error" } else { "the response" };
        let why = format!(
            "on a temporary local Redis, {name} did not store {asked} as its schema says: \
            {difference}"
        );
        return refuse(why);
    }
    let next = &predicted_record.next_request;
    // A value that keeps the time of an expired one has expired, too.
    let has_expired =
        predicted_record.contained_expiry().is_some_and(|(value, _)| value.past_expiry.is_some());
    if has_expired && inputs.error.is_none() {
        let redis_key = &predicted_record.seen.keys[schema.result_key_index()].redis_key;
        let why = format!(
            "no retry would get this response, because it would keep the time of the expired value \
            at {}",
            escape::text(redis_key)
        );
        return refuse(why);
    }
    let client = match &next.client {
        Some(client) => format!(" ({client})"),
        None => String::new(),
    };
    let stored = predicted_record.fingerprint().unwrap_or_default();
    let same_payload = manual_step::predict_begin(predicted_record, stored);
    if inputs.fingerprint.is_empty() && same_payload == Some(Meaning::Mismatch) {
        let why = format!(
            "no retry would get this response{client}, because it would be stored with an empty \
            fingerprint (--fingerprint)"
        );
        return refuse(why);
    }
    let fails = next.answer == Answer::Fail || rehearsal.next_meaning() == Some(Meaning::Fail);
    // Nor is a response stored if its replay is not even predicted.
    let is_lost = fails || next.answer == Answer::Execute;
    if is_lost && let Some(reply) = rehearsal.refusal() {
        let why = format!(
            "{name} would not store this response: on a temporary local Redis, its complete step \
            replied {}",
            words::reply(reply)
        );
        return refuse(why);
    }
    // A stored failure may be meant to fail.
    if fails && inputs.error.is_none() {
        let why = format!(
            "every retry would fail with this response{client}, because {name} cannot replay it"
        );
        return refuse(why);
    }
    let result = &predicted_record.seen.keys[schema.result_key_index()];
    let predicted = manual_step::delivered(schema, &result.content);
    let Some(delivered) = rehearsal.delivered().or(predicted.as_ref()) else { return Ok(()) };
    let keeps = schema.write.keeps_of(inputs.error.is_some());
    match manual_step::difference(inputs.response, delivered, keeps) {
        None => Ok(()),
        Some(difference) => {
            refuse(format!("clients would get another response from {name}: {difference}"))
        }
    }
}
