//! What a worker does about an operation when its time comes.

use std::time::{Duration, Instant};

use idemctl::domain::record::response::Response;
use idemctl::domain::schema::{Meaning, Schema, Step};
use idemctl::domain::step::inputs::StepInputs;
use idemctl::domain::step::reply::StepReply;

use crate::operation::{Ending, Operation, Phase};
use crate::worker::{self, Lost, Worker};

impl Worker {
    /// Does what is due; gives when to go on, nothing when it is over.
    pub(crate) fn step(
        &mut self,
        operation: &mut Operation,
        now: Instant,
    ) -> Result<Option<Instant>, Lost> {
        match operation.phase {
            Phase::Begins { .. } if operation.is_stillborn => {
                self.is_born_dead(operation).map(|()| None)
            }
            Phase::Begins { until } => self.begin(operation, until, now),
            Phase::Works { until, renews: Some(renews) } if now < until => {
                self.renew(operation, now + renews)
            }
            Phase::Works { .. } => self.finish(operation, now),
            Phase::StoresAgain => {
                self.play(operation, |schema| schema.complete.as_ref().unwrap(), None)?;
                Ok(None)
            }
        }
    }

    fn begin(
        &mut self,
        operation: &mut Operation,
        until: Instant,
        now: Instant,
    ) -> Result<Option<Instant>, Lost> {
        match self.play(operation, |schema| schema.begin.as_ref().unwrap(), None)? {
            Meaning::Acquired => {
                self.got(operation)?;
                self.shared.count("locks taken");
                self.shared.took(&self.deployment().schema.name, &operation.key);
                (operation.phase, operation.ending) = worker::planned(self, now);
                let Phase::Works { until, renews } = operation.phase else { return Ok(None) };
                Ok(Some(renews.map_or(until, |renews| until.min(now + renews))))
            }
            Meaning::Conflict => {
                self.shared.count("conflicts");
                // Who is turned away tries again at once.
                Ok((now < until).then(|| now + Duration::from_millis(self.rng.u64(4..25))))
            }
            Meaning::Replay => {
                self.shared.count("replays");
                Ok(None)
            }
            // The older release finds nothing any more where it was turned away.
            _ => Ok(None),
        }
    }

    /// Says, to whoever follows the stream, that it was the one.
    fn got(&mut self, operation: &Operation) -> Result<(), Lost> {
        let redis_key = self.redis_keys(&operation.key).remove(0);
        self.ask(&redis_key, &[b"ECHO", redis_key.as_bytes()]).map(drop)
    }

    /// As a service that sets the expiry in a second command, and crashes between the two.
    fn is_born_dead(&mut self, operation: &Operation) -> Result<(), Lost> {
        self.dies(operation);
        let value = self.lock_value(operation);
        let redis_key = self.redis_keys(&operation.key).remove(0);
        if self.ask(&redis_key, &[b"SET", redis_key.as_bytes(), &value, b"NX"])? != StepReply::Nil {
            self.shared.count("locks without expiry left");
            self.got(operation)?;
        }
        Ok(())
    }

    fn renew(&mut self, operation: &Operation, next: Instant) -> Result<Option<Instant>, Lost> {
        let renewed = match self.deployment().schema.renew.is_some() {
            true => self.play(operation, renewal, None)? == Meaning::Renewed,
            false => self.prolong(operation)?,
        };
        self.shared.count(if renewed { "renewals" } else { "renewals refused" });
        let Phase::Works { until, .. } = operation.phase else { return Ok(None) };
        // Who is refused by name stops; who is not told goes on.
        let goes_on = renewed || !self.deployment().names_owner();
        Ok(goes_on.then(|| next.min(until)))
    }

    /// The heartbeat of a service whose schema has none.
    fn prolong(&mut self, operation: &Operation) -> Result<bool, Lost> {
        let redis_key = self.redis_keys(&operation.key).remove(0);
        let value = self.lock_value(operation);
        if self.ask(&redis_key, &[b"GET", redis_key.as_bytes()])? != StepReply::Text(value) {
            return Ok(false);
        }
        let lock_ttl = self.deployment().schema.lock_ttl.as_millis();
        // Not every release of a service gives it the same time.
        let ttl = if self.rng.u8(0..3) == 0 { lock_ttl / 2 } else { lock_ttl }.to_string();
        let reply = self.ask(&redis_key, &[b"PEXPIRE", redis_key.as_bytes(), ttl.as_bytes()])?;
        Ok(reply == StepReply::Integer(1))
    }

    fn finish(&mut self, operation: &mut Operation, now: Instant) -> Result<Option<Instant>, Lost> {
        match operation.ending {
            Ending::Complete | Ending::CompleteTwice => {
                let meaning =
                    self.play(operation, |schema| schema.complete.as_ref().unwrap(), None)?;
                let is_stored = meaning == Meaning::Stored;
                self.shared.count(if is_stored { "completed" } else { "completions refused" });
                if is_stored && operation.ending == Ending::CompleteTwice {
                    operation.phase = Phase::StoresAgain;
                    // Made anew, the response ends in another way.
                    let last = operation.response.body.len() - 2;
                    operation.response.body[last] = b'-';
                    return Ok(Some(now + Duration::from_millis(self.rng.u64(100..2_500))));
                }
            }
            Ending::Fail => self.fail(operation)?,
            Ending::Crash => {
                self.shared.count("crashes");
                self.dies(operation);
            }
            Ending::CrashForEver => self.leave_for_ever(operation)?,
        }
        Ok(None)
    }

    /// Releases the lock, stores the failure, or leaves the lock to its expiry, as the service does.
    fn fail(&mut self, operation: &mut Operation) -> Result<(), Lost> {
        self.shared.count("failures");
        let schema = &self.deployment().schema;
        if schema.release.is_some() {
            self.play(operation, released, None)?;
        } else if schema.write.failed_value.is_some() {
            self.play(operation, |schema| schema.complete.as_ref().unwrap(), Some("declined"))?;
        } else {
            operation.ending = Ending::Crash;
            self.dies(operation);
        }
        Ok(())
    }

    fn leave_for_ever(&mut self, operation: &Operation) -> Result<(), Lost> {
        self.shared.count("crashes");
        self.dies(operation);
        let redis_key = self.redis_keys(&operation.key).remove(0);
        let own = self.lock_beginning(operation);
        let there = self.ask(&redis_key, &[b"GET", redis_key.as_bytes()])?;
        if matches!(there, StepReply::Text(value) if value.starts_with(&own)) {
            self.ask(&redis_key, &[b"PERSIST", redis_key.as_bytes()])?;
            self.shared.count("locks without expiry left");
        }
        Ok(())
    }

    fn lock_value(&self, operation: &Operation) -> Vec<u8> {
        let now_ms = crate::event::now() / 1_000;
        let Operation { key, owner, .. } = operation;
        let response = Response::default();
        StepInputs {
            now_ms,
            ..StepInputs::new(&self.deployment().schema, key.as_bytes(), owner, &response)
        }
        .lock_value()
    }

    /// Its lock's value, up to its owner where it names one: a time may follow.
    fn lock_beginning(&self, operation: &Operation) -> Vec<u8> {
        let mut value = self.lock_value(operation);
        let owner = operation.owner.as_bytes();
        let at = value.windows(owner.len()).position(|part| part == owner);
        value.truncate(at.map_or(value.len(), |at| at + owner.len()));
        value
    }
}

fn renewal(schema: &Schema) -> &Step {
    schema.renew.as_ref().expect("the schema has a step for it")
}

fn released(schema: &Schema) -> &Step {
    schema.release.as_ref().expect("the schema has a step for it")
}
