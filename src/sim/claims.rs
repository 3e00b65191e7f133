//! Tests on a temporary local Redis whether the steps check the owner as the schema claims, and
//! which Redis keys they write beside those of a record.

use crate::domain::record::Content;
use crate::domain::schema::{Call, Meaning, Schema, Step};
use crate::domain::self_check::sample_response;
use crate::domain::step::{ExecutedStep, StepInputs, StepKind, execute};
use crate::sim::service::{read_content, set_content, unnamed, unnamed_keys};
use crate::sim::trial::{KEY, LIVES_MS, OWNER, StrayReply, sample_inputs};
use crate::store::{Connection, StoreError, pack};

/// Owners that differ from [`OWNER`] in one byte, because a script may compare only a part: at the
/// start, in the middle and at the end.
const OTHERS: [&str; 3] = [
    "8b0e2c1a-5d0f-4a6e-9a57-0b7f3a3f6f11",
    "7b0e2c1a-5d0f-4a6f-9a57-0b7f3a3f6f11",
    "7b0e2c1a-5d0f-4a6e-9a57-0b7f3a3f6f12",
];

/// Executes each step against the lock of another owner, and with the lock gone. Returns what
/// contradicts `checks_owner`, at most one problem for each step, and a warning for each Redis key
/// that `[keys]` does not name.
pub(super) async fn try_claims(
    schema: &Schema,
    connection: &mut Connection,
) -> Result<Vec<StrayReply>, StoreError> {
    let response = sample_response(schema, false);
    let inputs = sample_inputs(schema, &response, None, connection).await?;
    let mut kinds = vec![StepKind::Begin, StepKind::Renew, StepKind::Complete, StepKind::Release];
    if schema.write.failed_value.is_some() {
        kinds.push(StepKind::StoreFailure);
    }
    let mut found: Vec<StrayReply> = Vec::new();
    let mut unnamed = Vec::new();
    for kind in kinds {
        let Some(step) = kind.described_in(schema) else { continue };
        let error = if kind == StepKind::StoreFailure { Some("declined") } else { None };
        let inputs = StepInputs { error, ..inputs.clone() };
        let mut trial = ClaimTrial { kind, step, inputs, connection: &mut *connection };
        if !trial.is_done_by_owner().await? {
            continue;
        }
        found.extend(trial.unnamed_keys(&mut unnamed).await?);
        if kind != StepKind::Begin
            && let Some(wrong) = trial.wrong_claim().await?
            && !found.contains(&wrong)
        {
            found.push(wrong);
        }
    }
    Ok(found)
}

/// One step, executed by the worker with [`OWNER`].
struct ClaimTrial<'a> {
    kind: StepKind,
    step: &'a Step,
    inputs: StepInputs<'a>,
    connection: &'a mut Connection,
}

impl<'a> ClaimTrial<'a> {
    /// Executes the step for the worker that holds the lock; false if it does not succeed, which
    /// other checks report.
    async fn is_done_by_owner(&mut self) -> Result<bool, StoreError> {
        if !self.hold(OWNER).await? {
            return Ok(false);
        }
        if self.kind == StepKind::Begin {
            return Ok(true);
        }
        Ok(self.send(&self.step.calls).await?.meaning() == Some(self.kind.wanted()))
    }

    /// Warnings about the Redis keys that are neither the record's nor already `known`.
    async fn unnamed_keys(
        &mut self,
        known: &mut Vec<String>,
    ) -> Result<Vec<StrayReply>, StoreError> {
        let named = self.inputs.schema.redis_keys(KEY);
        let mut found = Vec::new();
        for redis_key in unnamed_keys(self.connection, &named).await? {
            if known.contains(&redis_key) {
                continue;
            }
            let template = redis_key.replace("order-1", "{key}");
            known.push(redis_key);
            found.push(self.problem(0, false, &format!("writes {}", unnamed(&template))));
        }
        Ok(found)
    }

    /// The first contradiction between the step and its `checks_owner`.
    async fn wrong_claim(&mut self) -> Result<Option<StrayReply>, StoreError> {
        let claims = self.step.checks_owner;
        for other in OTHERS {
            if !self.hold(other).await? {
                return Ok(None);
            }
            let Some(call) = self.acting_call().await? else { continue };
            if !claims {
                return Ok(None);
            }
            return Ok(Some(self.false_claim(call, "changes another owner's record")));
        }
        if !claims {
            // What compares and changes in two calls must not claim it either.
            if self.wrong_between_calls().await?.is_some() {
                return Ok(None);
            }
            let why = "refuses other owners; write `checks_owner = true`";
            return Ok(Some(self.problem(0, false, why)));
        }
        self.hold(OWNER).await?;
        let lock_key = self.lock_key();
        self.connection.ask(&pack([b"DEL", &lock_key[..]])).await?;
        if let Some(call) = self.acting_call().await? {
            return Ok(Some(self.false_claim(call, "succeeds without its lock")));
        }
        self.wrong_between_calls().await
    }

    /// Lets another worker take the lock between two calls of the step.
    async fn wrong_between_calls(&mut self) -> Result<Option<StrayReply>, StoreError> {
        let lock_key = self.lock_key();
        for done in 1..self.step.calls.len() {
            self.hold(OTHERS[0]).await?;
            let lock = read_content(self.connection, &lock_key).await?;
            self.hold(OWNER).await?;
            let (first, rest) = self.step.calls.split_at(done);
            if self.send(first).await?.meaning() != Some(Meaning::Next) {
                break;
            }
            set_content(self.connection, &lock_key, &lock, Some(LIVES_MS)).await?;
            self.send(rest).await?;
            if read_content(self.connection, &lock_key).await? != lock {
                return Ok(Some(self.false_claim(done, "checks and changes separately")));
            }
        }
        Ok(None)
    }

    /// Lets this owner take the lock of a new record; false if begin does not take it.
    async fn hold(&mut self, owner: &str) -> Result<bool, StoreError> {
        self.connection.ask(&pack(["FLUSHDB"])).await?;
        let schema = self.inputs.schema;
        let inputs = StepInputs { owner: owner.as_bytes(), error: None, ..self.inputs.clone() };
        if let Some(begin) = &schema.begin {
            let begun = execute(&inputs, &begin.calls, self.connection).await?;
            return Ok(begun.meaning() == Some(Meaning::Acquired));
        }
        if schema.write.lock_value.is_none() {
            return Ok(false);
        }
        set_content(self.connection, &self.lock_key(), &inputs.lock(), Some(LIVES_MS)).await?;
        Ok(true)
    }

    /// Executes the step, and returns the index of the call that decided, if the step changed a
    /// Redis key or succeeded. A release without effect does no harm, whatever it replies.
    async fn acting_call(&mut self) -> Result<Option<usize>, StoreError> {
        let before = self.contents().await?;
        let executed = self.send(&self.step.calls).await?;
        let succeeds = executed.meaning() == Some(self.kind.wanted());
        let call = match executed {
            ExecutedStep::Decided { index, .. } | ExecutedStep::Unlisted { index, .. } => index,
            ExecutedStep::Undecided => self.step.calls.len().saturating_sub(1),
        };
        let acts = succeeds && self.kind != StepKind::Release || self.contents().await? != before;
        Ok(if acts { Some(call) } else { None })
    }

    async fn send(&mut self, calls: &'a [Call]) -> Result<ExecutedStep<'a>, StoreError> {
        let schema = self.inputs.schema;
        let lock = read_content(self.connection, &self.lock_key()).await?;
        let before = if schema.has_separate_result() { None } else { Some(&lock) };
        let inputs = StepInputs { before, ..self.inputs.clone() };
        execute(&inputs, calls, self.connection).await
    }

    async fn contents(&mut self) -> Result<Vec<Content>, StoreError> {
        let mut contents = Vec::new();
        for redis_key in self.inputs.schema.redis_keys(KEY) {
            contents.push(read_content(self.connection, &redis_key).await?);
        }
        Ok(contents)
    }

    fn lock_key(&self) -> Vec<u8> {
        let schema = self.inputs.schema;
        schema.redis_keys(KEY).swap_remove(schema.lock_key_index())
    }

    fn false_claim(&self, call: usize, what: &str) -> StrayReply {
        self.problem(call, true, &format!("{what}, although `checks_owner = true`"))
    }

    fn problem(&self, call: usize, is_error: bool, what: &str) -> StrayReply {
        let step = self.kind.described_step().as_str();
        StrayReply { step, call, message: format!("{step} {what}"), is_error }
    }
}
