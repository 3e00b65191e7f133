//! Executes a schema's steps on a temporary local Redis, in every state that its service leaves. It
//! checks that the schema lists and predicts every reply.

use crate::domain::record::{
    Content, Deadline, KeyState, Observation, Reading, Response, TimeLeft, decode,
};
use crate::domain::schema::{Call, Meaning, Role, Schema, Step};
use crate::domain::self_check::sample_response;
use crate::domain::step::next_request::{
    fails_without_prediction, predict_reply, why_field_is_lacking,
};
use crate::domain::step::{ExecutedStep, StepInputs, StepReply, execute};
use crate::sim::service::{server_ms, set_content, words};
use crate::store::{Connection, StoreError, pack};

/// The TTL of the keys, in milliseconds; longer than a trial takes.
pub(super) const LIVES_MS: u64 = 60_000;

/// The name of a lock whose contained expiry has passed.
const PAST_EXPIRY: &str = "a lock past its own expiry";

/// Ten years in milliseconds, which is longer than any lock lives.
const LONG_AGO_MS: u64 = 10 * 365 * 24 * 3_600_000;

/// The owner of the worker whose steps are tried.
pub(super) const OWNER: &str = "7b0e2c1a-5d0f-4a6e-9a57-0b7f3a3f6f11";
const NEXT_OWNER: &str = "0d3f6f2e-58f5-4c0b-9d6c-1f1f8f2a7b11";
const FINGERPRINT: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const OTHER_FINGERPRINT: &str = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752";
pub(super) const KEY: &[u8] = b"order-1";

/// A reply that the schema does not list, or does not predict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StrayReply {
    pub(crate) step: &'static str,
    /// The index of the call with this reply.
    pub(crate) call: usize,
    pub(crate) message: String,
    pub(crate) is_error: bool,
}

/// One content that the schema's service leaves in a Redis key, and its name.
type TrialContent = (&'static str, Content);

/// The request whose steps are tried, with this response or error of its handler.
pub(super) async fn sample_inputs<'a>(
    schema: &'a Schema,
    response: &'a Response,
    error: Option<&'a str>,
    connection: &mut Connection,
) -> Result<StepInputs<'a>, StoreError> {
    let now_ms = server_ms(&connection.ask(&pack(["TIME"])).await?);
    let inputs = StepInputs::new(schema, KEY, OWNER, response);
    Ok(StepInputs { fingerprint: FINGERPRINT, error, now_ms, ..inputs })
}

/// The errors of the handler that are tried: none, and one if the service stores failures.
pub(super) fn errors(schema: &Schema) -> Vec<Option<&'static str>> {
    let mut errors = vec![None];
    if schema.write.failed_value.is_some() {
        errors.push(Some("card declined"));
    }
    errors
}

/// The record with these contents of its Redis keys, as it would be read.
pub(super) fn observed<'c>(
    schema: &Schema,
    contents: impl IntoIterator<Item = &'c Content>,
    now_ms: u64,
) -> Observation {
    let mut keys = Vec::new();
    for (redis_key, content) in schema.redis_keys(KEY).iter().zip(contents) {
        let left = TimeLeft::Millis(LIVES_MS);
        keys.push(KeyState::new(redis_key, content.clone(), left, Deadline::Unknown));
    }
    Observation { server_ms: Some(now_ms), keys, atomic: true }
}

/// Executes every step in every state. Returns the wrong replies, at most one for each call.
pub(super) async fn try_steps(
    schema: &Schema,
    connection: &mut Connection,
) -> Result<Vec<StrayReply>, StoreError> {
    let response = sample_response(schema, false);
    let inputs = sample_inputs(schema, &response, None, connection).await?;
    let mut found: Vec<StrayReply> = Vec::new();
    for state in states(schema, &inputs) {
        for (name, step) in schema.named_steps() {
            // The worker that begins is not the worker that holds the lock.
            let owner = if name == "begin" { NEXT_OWNER } else { OWNER };
            let inputs = StepInputs { owner: owner.as_bytes(), ..inputs.clone() };
            let mut trials = vec![Trial { name, step, state: &state, inputs: &inputs }];
            let other = StepInputs { fingerprint: OTHER_FINGERPRINT, ..inputs.clone() };
            if name == "begin" && schema.compares_payloads() {
                trials.push(Trial { name, step, state: &state, inputs: &other });
            }
            for trial in trials {
                // Before each step, because the previous step may have changed the state.
                set_state(schema, &state, connection).await?;
                let Some(stray) = trial.run(connection).await? else { continue };
                // One wrong reply is enough to correct the entries of a call.
                let is_known =
                    |known: &StrayReply| known.step == stray.step && known.call == stray.call;
                if !found.iter().any(is_known) {
                    found.push(stray);
                }
            }
        }
    }
    Ok(found)
}

/// Every combination of contents of the Redis keys.
fn states(schema: &Schema, inputs: &StepInputs<'_>) -> Vec<Vec<TrialContent>> {
    let mut states = vec![Vec::new()];
    for key_index in 0..schema.keys.len() {
        let contents = contents(schema, key_index, inputs);
        let mut longer = Vec::new();
        for state in &states {
            for content in &contents {
                longer.push([&state[..], std::slice::from_ref(content)].concat());
            }
        }
        states = longer;
    }
    states
}

fn contents(schema: &Schema, key_index: usize, inputs: &StepInputs<'_>) -> Vec<TrialContent> {
    let write = &schema.write;
    let mut contents = vec![("nothing", Content::Absent)];
    if key_index == schema.lock_key_index() && write.lock_value.is_some() {
        contents.push(("a lock", inputs.lock()));
        if let Some(lock) = lock_past_expiry(schema, inputs) {
            contents.push((PAST_EXPIRY, lock));
        }
    }
    if key_index == schema.result_key_index() && write.result_value.is_some() {
        contents.push(("a result", inputs.result_over_lock()));
    }
    if key_index == schema.result_key_index() && write.failed_value.is_some() {
        let failed = StepInputs { error: Some("declined"), ..inputs.clone() }.result();
        contents.push(("a failed result", failed));
    }
    contents
}

/// A lock whose contained expiry has passed; `None` if the schema's locks hold none.
fn lock_past_expiry(schema: &Schema, inputs: &StepInputs<'_>) -> Option<Content> {
    let now_ms = inputs.now_ms.checked_sub(LONG_AGO_MS)?;
    let lock = StepInputs { now_ms, ..inputs.clone() }.lock();
    let at = schema.lock_key_index();
    let reading = decode::decode_at(schema, at, &lock, Some(inputs.now_ms));
    reading.past_expiry().is_some().then_some(lock)
}

async fn set_state(
    schema: &Schema,
    state: &[TrialContent],
    connection: &mut Connection,
) -> Result<(), StoreError> {
    // A step may also have left a Redis key that is none of the record. Nothing else is in the
    // temporary server.
    connection.ask(&pack(["FLUSHDB"])).await?;
    for (redis_key, (_, content)) in schema.redis_keys(KEY).iter().zip(state) {
        set_content(connection, redis_key, content, Some(LIVES_MS)).await?;
    }
    Ok(())
}

/// The servers that have a conditional command; `None` for a call that all servers know.
/// <https://redis.io/docs/latest/commands/delex/>, <https://valkey.io/commands/delifeq/> and SET.
fn servers_with(call: &Call) -> Option<&'static str> {
    match call.name().to_ascii_uppercase().as_str() {
        "DELEX" => Some("Redis 8.4"),
        "DELIFEQ" => Some("Valkey 9.0"),
        "SET" if call.words().any(|word| word.display().eq_ignore_ascii_case("IFEQ")) => {
            Some("Redis 8.4 and Valkey 8.1")
        }
        _ => None,
    }
}

/// What the conditions of a step's replies predict.
enum Prediction {
    /// The meaning of the reply; `None` if no condition holds.
    Of(Option<Meaning>),
    /// A value lacks a field, so that the service may read it in another way.
    Unknown,
}

/// One step in one state.
struct Trial<'a> {
    name: &'static str,
    step: &'a Step,
    state: &'a [TrialContent],
    inputs: &'a StepInputs<'a>,
}

impl Trial<'_> {
    /// Executes the step, and returns its wrong reply, if there is one.
    async fn run(&self, connection: &mut Connection) -> Result<Option<StrayReply>, StoreError> {
        // A schema describes the steps of workers in time.
        let is_expired = self.state.iter().any(|(name, _)| *name == PAST_EXPIRY);
        if is_expired && self.name != "begin" {
            return Ok(None);
        }
        let executed = execute(self.inputs, &self.step.calls, connection).await?;
        let state = self.describe_state();
        let (call, message) = match executed {
            ExecutedStep::Decided { reply, matched, index } => {
                let meaning = matched.meaning();
                let predicted = match self.predicted() {
                    Prediction::Unknown => return Ok(None),
                    Prediction::Of(predicted) => predicted,
                };
                let predicted = match predicted {
                    Some(predicted) if predicted == meaning => return Ok(None),
                    // A script may compare payloads where no `when` tells it.
                    Some(_) if meaning == Meaning::Mismatch && matched.entry.when.is_empty() => {
                        return Ok(None);
                    }
                    Some(predicted) => predicted.as_str(),
                    // Nothing says when the step sends a reply without `when`, and a refusal that
                    // was not predicted changes nothing.
                    None if matched.entry.when.is_empty() || meaning == Meaning::Refused => {
                        return Ok(None);
                    }
                    None => "nothing",
                };
                let message = format!(
                    "with {state} the call replies {} ({}), but the `when` of its replies predicts \
                    {predicted}; mend the call, or its `when`",
                    shown(&reply),
                    meaning.as_str(),
                );
                (index, message)
            }
            ExecutedStep::Unlisted { reply, index } => {
                (index, self.unlisted(&reply, &self.step.calls[index], &state))
            }
            ExecutedStep::Undecided => {
                let last = self.step.calls.len().saturating_sub(1);
                let message = format!(
                    "with {state} no reply decides the outcome, although this is the last call"
                );
                (last, message)
            }
        };
        Ok(Some(StrayReply { step: self.name, call, message, is_error: true }))
    }

    /// What to do about a reply that the schema does not list.
    fn unlisted(&self, reply: &StepReply, call: &Call, state: &str) -> String {
        let text = shown(reply);
        if let StepReply::Error { code, .. } = reply {
            if let Some(servers) = servers_with(call) {
                return format!(
                    "this server does not know the call ({text}); {servers} and later do"
                );
            }
            if code == "WRONGTYPE" && self.name == "begin" {
                let role = self.role_of_wrong_type().as_str();
                return format!(
                    "with {state} begin replies WRONGTYPE, and no reply covers that; add {{ error = \
                    \"WRONGTYPE\", means = \"fail\", when = {{ {role} = \"wrong-type\" }} }}"
                );
            }
        }
        format!("with {state} the call replies {text}, which none of its replies covers; add one")
    }

    /// The role of the first Redis key whose type is not the schema's.
    fn role_of_wrong_type(&self) -> Role {
        let schema = self.inputs.schema;
        for (key_index, (_, content)) in self.state.iter().enumerate() {
            let kind = content.other_type().unwrap_or("string");
            if !content.is_absent() && kind != schema.type_at(key_index) {
                return schema.keys[key_index].role;
            }
        }
        schema.keys[0].role
    }

    /// The meaning that the replies' conditions predict. A begin without a prediction fails, unless
    /// it has an answer without a condition.
    fn predicted(&self) -> Prediction {
        let schema = self.inputs.schema;
        let contents = self.state.iter().map(|(_, content)| content);
        let seen = observed(schema, contents, self.inputs.now_ms);
        let readings = decode::decode_all(schema, &seen);
        match predict_reply(self.step, &readings, self.has_other_payload(&readings)) {
            Some((_, condition)) if why_field_is_lacking(condition, &readings).is_some() => {
                Prediction::Unknown
            }
            Some((reply, _)) => Prediction::Of(Some(reply.means)),
            None if self.name == "begin" && fails_without_prediction(self.step, &readings) => {
                Prediction::Of(Some(Meaning::Fail))
            }
            None => Prediction::Of(None),
        }
    }

    /// True if a value has the fingerprint of another payload than the request's.
    fn has_other_payload(&self, readings: &[Reading]) -> bool {
        for reading in readings {
            if let Some(value) = reading.decoded()
                && let Some(stored) = &value.fingerprint
                && *stored != self.inputs.fingerprint
            {
                return true;
            }
        }
        false
    }

    fn describe_state(&self) -> String {
        let payload = match self.inputs.fingerprint {
            OTHER_FINGERPRINT => ", for another payload,",
            _ => "",
        };
        if let [(name, _)] = self.state {
            return format!("{name} there{payload}");
        }
        let mut contents = Vec::new();
        for (key, (name, _)) in self.inputs.schema.keys.iter().zip(self.state) {
            contents.push(format!("{name} at {}", key.role.as_str()));
        }
        contents.join(" and ") + payload
    }
}

/// A reply in words, without the digest at the end of a script's error.
fn shown(reply: &StepReply) -> String {
    words(reply).split(" script: ").next().unwrap_or_default().to_owned()
}
