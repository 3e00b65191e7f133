//! What workers of other releases leave behind, with plain commands.

use std::time::{Duration, Instant};

use super::abort::Played;
use super::worker::Worker;
use crate::domain::schema::Schema;
use crate::domain::step::Request;
use crate::sim::service::words;
use crate::sim::test_keys::TEST_KEYS_LIVE;
use crate::store::pack;

impl Worker<'_> {
    /// Takes the lock as SET NX does, and sets no TTL.
    pub(super) async fn leaves_a_lock_for_ever(&self) -> Played {
        let reply = self.sets(Schema::lock_role, &self.request().lock_value(), &[b"NX"]).await?;
        self.calls.note("takes the lock with SET NX", Some(reply), None);
        Ok(())
    }

    /// Takes the lock as a service of another schema does that shares the Redis keys.
    pub(super) async fn takes_lock_of(&self, other: &Schema) -> Played {
        let request = Request { schema: other, ..self.request() };
        let since = Instant::now();
        let reply = self.sets(Schema::lock_role, &request.lock_value(), &[b"EX", self.job.lock_ttl.as_bytes()]).await?;
        self.holds_the_lock(since);
        self.calls.note(&format!("takes the lock as {} does", other.name), Some(reply), None);
        Ok(())
    }

    /// Makes the operation and leaves a result as a service of another schema does that shares the Redis keys.
    pub(super) async fn leaves_result_of(&mut self, other: &Schema) -> Played {
        self.works();
        let request = Request { schema: other, ..self.request() };
        let (value, response) = (request.result_value(), request.replayed());
        if let Some(execution) = self.calls.run.history.borrow_mut().executions.last_mut() {
            execution.response = response;
        }
        let lives = seconds(other.result_ttl.min(TEST_KEYS_LIVE));
        let reply = self.sets(Schema::result_role, &value, &[b"EX", &lives]).await?;
        self.calls.run.has_result_of(other);
        self.calls.note(&format!("sets the result of {}", other.name), Some(reply), None);
        Ok(())
    }

    /// Stores its result with a plain SET, and leaves the lock where that has a Redis key of its own.
    pub(super) async fn sets_its_result(&self) -> Played {
        let value = self.request().result_value();
        let reply =
            self.sets(Schema::result_role, &value, &[b"EX", &seconds(self.calls.run.schema().result_ttl)]).await?;
        self.calls.note("sets its result", Some(reply), None);
        Ok(())
    }

    /// Sets one of the record's Redis keys; the reply in words.
    async fn sets(&self, role: fn(&Schema) -> usize, value: &[u8], options: &[&[u8]]) -> Played<String> {
        let schema = self.calls.run.schema();
        let redis_key = schema.keys[role(schema)].template.redis_key(&self.calls.run.key);
        let set = [b"SET", &redis_key[..], value].into_iter().chain(options.iter().copied());
        Ok(words(&self.calls.run.ask(&pack(set)).await?))
    }
}

fn seconds(ttl: Duration) -> Vec<u8> {
    ttl.as_secs().to_string().into_bytes()
}
