//! The callers of an exploration: the workers, and the requests after them. Their scripts see the
//! time of the exploration, which does not advance by itself.

use std::rc::Rc;
use std::sync::Arc;

use crate::domain::exploration::{
    FaultBudget, KeysState, ProgramCall, ResponseAuthor, WorkerProgram,
};
use crate::domain::record::{Reading, decode};
use crate::domain::schema::{Action, Call, Schema, State};
use crate::domain::step::{StepInputs, StepKind};
use crate::explore::Callers;
use crate::sim::simulate::{ClientRequest, Job, OTHER_PAYMENT, PAYMENT, owner_of, unused_payment};

/// The workers of a program. A caller is the number of a worker, or of one of the two requests
/// after the workers.
pub(super) struct Workers {
    pub(super) program: Rc<WorkerProgram>,
    pub(super) count: u8,
    pub(super) key: Vec<u8>,
    /// True if the last worker requests another operation with the same key.
    has_other_payload: bool,
    /// True if scripts read the time, or clients depend on it.
    pub(super) ticks: bool,
}

impl Workers {
    pub(super) fn new(
        program: Rc<WorkerProgram>,
        count: u8,
        key: Vec<u8>,
        has_other_payload: bool,
    ) -> Self {
        let ticks =
            program.services.iter().any(|schema| sees_time(schema) || schema.contains_expiry());
        Self { program, count, key, has_other_payload, ticks }
    }

    fn name(worker: u8) -> String {
        format!("worker {}", worker + 1)
    }

    fn client_request(&self, caller: u8) -> ClientRequest {
        // The request with another payload, which comes after the workers.
        if caller == self.count + 1 {
            return unused_payment(self.has_other_payload);
        }
        if self.has_other_payload && caller + 1 == self.count { OTHER_PAYMENT } else { PAYMENT }
    }

    fn new_job(&self, schema: &Schema, caller: u8) -> Job {
        let seconds = schema.lock_ttl.as_millis().div_ceil(1_000).to_string();
        Job::new(&owner_of(caller), self.client_request(caller), seconds)
    }

    /// The job of a caller when it sends a call.
    pub(super) fn job(&self, caller: u8, call: ProgramCall) -> Job {
        let schema = &self.program.services[call.service];
        let mut job = self.new_job(schema, caller);
        match call.step {
            StepKind::Begin | StepKind::Renew => {}
            StepKind::Complete => job.succeed(schema, &Self::name(caller)),
            StepKind::Release | StepKind::StoreFailure => job.fail(),
        }
        job
    }

    /// What the search knows about the workers.
    pub(super) fn callers(&self) -> Callers {
        let mut owners = Vec::new();
        for worker in 0..self.count {
            owners.push(owner_of(worker).into_bytes());
        }
        Callers {
            responses: self.responses(),
            owners,
            ticks: self.ticks,
            has_other_payload: self.has_other_payload,
        }
    }

    /// The responses of all workers with every service.
    fn responses(&self) -> Vec<(Vec<u8>, ResponseAuthor)> {
        let beginning_ms = KeysState::absent(0).now_ms();
        let mut responses = Vec::new();
        for schema in &self.program.services {
            for worker in 0..self.count {
                let mut succeeded = self.new_job(schema, worker);
                succeeded.succeed(schema, &Self::name(worker));
                let response = succeeded.request(schema, &self.key, beginning_ms).replayed();
                responses.push((response, ResponseAuthor::Effect(worker)));
                let mut failed = self.new_job(schema, worker);
                failed.fail();
                let failure = failed.request(schema, &self.key, beginning_ms);
                // A client that gets what a success looks like does not learn of the failure.
                if !looks_like_success(schema, &failure) {
                    responses.push((failure.replayed(), ResponseAuthor::Failure(worker)));
                }
            }
        }
        responses
    }
}

/// The lowest status code of an error.
const FIRST_ERROR: i64 = 400;

/// True if the service of a failed handler stores a value with the status code of a success, and
/// without an error.
fn looks_like_success(schema: &Schema, failure: &StepInputs<'_>) -> bool {
    let reading = decode::decode_value(schema, schema.result_key_index(), &failure.result());
    let Reading::Value(value) = reading else { return false };
    let status = value.response.and_then(|response| response.status);
    value.error.is_none() && status.is_some_and(|status| status < FIRST_ERROR)
}

/// Why the workers cannot play the schema; `None` if they can.
///
/// A response that explore makes up may lack what the schema's own formats require of one, such as
/// a field of the JSON. Every replay would then fail, which says nothing about the service.
pub(super) fn unreadable_response(schema: &Schema) -> Option<String> {
    if !schema.sends_result_value() {
        return None;
    }
    let now_ms = KeysState::absent(0).now_ms();
    let mut job = Job::new(&owner_of(0), PAYMENT, "1".to_owned());
    job.succeed(schema, &Workers::name(0));
    let result = job.request(schema, b"order-1", now_ms).result();
    let key_index = schema.result_key_index();
    let reading = decode::decode_value(schema, key_index, &result);
    if let Reading::Value(value) = &reading
        && schema.values[value.format].state == State::Completed
    {
        return None;
    }
    let why = reading.mismatch().unwrap_or("it reads as another value").to_owned();
    Some(format!(
        "its value formats do not read the result that `[write]` makes of a response of idemctl's \
        workers: {why}; give the workers a body that they read with `sample_body` in `[service]`"
    ))
}

/// The faults that explore allows by default. A part of a TTL matters only if a lock is renewed, or if
/// a step sees the time.
pub(crate) fn usual_faults(services: &[Arc<Schema>]) -> FaultBudget {
    let is_timed = |schema: &Arc<Schema>| schema.renew.is_some() || sees_time(schema);
    if services.iter().any(is_timed) { FaultBudget::usual_with_delay() } else { FaultBudget::USUAL }
}

/// True if a script of the schema reads the time, or a call sends it. The same call in the same
/// state may then get another reply later.
fn sees_time(schema: &Schema) -> bool {
    for step in schema.steps() {
        for call in &step.calls {
            if call.sends_time() || runs_clock_script(schema, call) {
                return true;
            }
        }
    }
    false
}

fn runs_clock_script(schema: &Schema, call: &Call) -> bool {
    let Action::Script { name, .. } = &call.action else { return false };
    match schema.scripts.get(name) {
        Some(script) => asks_time(&script.text),
        None => false,
    }
}

/// True if the script seems to read the time. A script that only mentions the word costs the
/// exploration more states.
fn asks_time(script: &str) -> bool {
    let script = script.to_ascii_lowercase();
    script.contains("'time'") || script.contains("\"time\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_reads_the_time_is_recognised() {
        assert!(asks_time("redis.call('TIME')") && asks_time("redis.pcall(\"time\")"));
        assert!(!asks_time("-- the time of a lock"));
    }
}
