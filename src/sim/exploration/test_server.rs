//! Executes single calls on a server: sets the Redis keys to a state, sends the call, and reads the
//! keys.

use std::ptr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::workers::Workers;
use crate::domain::exploration::{KeysState, StoredKey};
use crate::domain::record::Content;
use crate::domain::schema::{Call, Meaning};
use crate::domain::step::{
    CallPerformer, ExecutedStep, ReplyMatch, StepCall, StepInputs, StepReply, execute,
};
use crate::explore::{CallEffect, StateServer};
use crate::interrupt::Interrupt;
use crate::sim::service::{read_content, words};
use crate::sim::stopped_clock::words_at;
use crate::store::{Connection, StoreError, pack};

/// A call that took longer is executed again, because its duration would show in the TTLs.
const QUICK: Duration = Duration::from_millis(50);

/// How often a call is executed, at most, until it is quick enough.
const MOST_TRIES: usize = 200;

/// A server on which the exploration may set and delete the Redis keys of one record.
pub(crate) struct TestServer<'a> {
    pub(super) workers: Workers,
    connection: Connection,
    redis_keys: Vec<Vec<u8>>,
    interrupt: &'a Interrupt,
}

impl<'a> TestServer<'a> {
    pub(super) fn new(workers: Workers, connection: Connection, interrupt: &'a Interrupt) -> Self {
        let redis_keys = workers.program.services[0].redis_keys(&workers.key);
        Self { workers, connection, redis_keys, interrupt }
    }

    async fn set(&mut self, keys: &KeysState) -> Result<(), StoreError> {
        let mut requests = Vec::new();
        for (redis_key, stored) in self.redis_keys.iter().zip(&keys.stored) {
            // RESTORE sets the exact bytes and TTL in one command, for every type of key.
            requests.push(pack([b"DEL", &redis_key[..]]));
            if let Some(stored) = stored {
                let ttl = stored.ttl_ms.unwrap_or(0).to_string();
                requests.push(pack([b"RESTORE", &redis_key[..], ttl.as_bytes(), &stored.dump]));
            }
        }
        // All in one write, because round trips take most of the time of an exploration.
        self.connection.ask_all(&requests).await?;
        Ok(())
    }

    async fn read(&mut self, clock_ms: u64) -> Result<KeysState, StoreError> {
        // All TTLs are read before the values, so that less time passes until the last TTL is read.
        let mut requests = Vec::new();
        for command in [&b"PTTL"[..], b"DUMP", b"GET"] {
            for redis_key in &self.redis_keys {
                requests.push(pack([command, &redis_key[..]]));
            }
        }
        let replies = self.connection.ask_all(&requests).await?;
        let keys = self.redis_keys.len();
        let mut stored = Vec::new();
        for key_index in 0..keys {
            // The replies come in the order of the requests: all TTLs, all dumps, all values.
            let StepReply::Text(dump) = &replies[keys + key_index] else {
                stored.push(None);
                continue;
            };
            let pttl = match &replies[key_index] {
                StepReply::Integer(pttl) => *pttl,
                _ => -2,
            };
            let content = match &replies[2 * keys + key_index] {
                StepReply::Text(text) => Content::text(text.clone()),
                // The value is not a string.
                _ => read_content(&mut self.connection, &self.redis_keys[key_index]).await?,
            };
            stored.push(Some(StoredKey::new(dump.clone(), content, pttl)));
        }
        Ok(KeysState { stored, clock_ms })
    }

    /// True if calls that leave a Redis key as it was write it nevertheless: the same value with
    /// the same TTL.
    ///
    /// EXEC of an empty transaction fails if a watched key was written since, even by this
    /// connection.
    async fn rewrites(
        &mut self,
        before: &KeysState,
        key_index: usize,
        request: &StepInputs<'_>,
        calls: &[Call],
    ) -> Result<bool, StoreError> {
        self.set(before).await?;
        self.connection.ask(&pack([b"WATCH", &self.redis_keys[key_index][..]])).await?;
        let mut performer = StoppedClock {
            connection: &mut self.connection,
            ticks: self.workers.ticks,
            listed: Err("nothing".to_owned()),
        };
        execute(request, calls, &mut performer).await?;
        self.connection.ask(&pack([b"MULTI"])).await?;
        Ok(self.connection.ask(&pack([b"EXEC"])).await? == StepReply::Nil)
    }

    /// Deletes the Redis keys.
    pub(crate) async fn clear(&mut self) -> Result<(), StoreError> {
        let absent = KeysState::absent(self.redis_keys.len());
        self.set(&absent).await
    }
}

impl StateServer for TestServer<'_> {
    type Error = StoreError;

    async fn execute_in(
        &mut self,
        before: &KeysState,
        caller: u8,
        call: u8,
    ) -> Result<CallEffect, StoreError> {
        let program = Rc::clone(&self.workers.program);
        let call = program.calls[usize::from(call)];
        let calls: &[Call] = match program.step(call) {
            Some(step) => &step.calls[call.index..=call.index],
            None => &[],
        };
        let job = self.workers.job(caller, call);
        let key = self.workers.key.clone();
        let request = job.request(&program.services[call.service], &key, before.now_ms());
        let mut tries = 0;
        // On a machine that is never quick, the last try counts. When all calls are repeated, an
        // unsteady result is noticed.
        loop {
            let since = Instant::now();
            self.set(before).await?;
            let mut performer = StoppedClock {
                connection: &mut self.connection,
                ticks: self.workers.ticks,
                listed: Err("nothing".to_owned()),
            };
            let executed = execute(&request, calls, &mut performer).await?;
            let listed = performer.listed;
            let keys = self.read(before.clock_ms).await?;
            tries += 1;
            if since.elapsed() < QUICK || tries == MOST_TRIES {
                let mut response = None;
                if let ExecutedStep::Decided { reply, matched, .. } = &executed {
                    response = request.carried_response(*matched, reply);
                }
                let meaning = executed.meaning();
                let key_index = program.services[call.service].lock_key_index();
                let wrote_lock = if before.stored[key_index] != keys.stored[key_index] {
                    true
                } else {
                    // No other reply makes the worker the holder of a lock that looks as before.
                    meaning == Some(Meaning::Acquired)
                        && keys.stored[key_index].is_some()
                        && self.rewrites(before, key_index, &request, calls).await?
                };
                return Ok(CallEffect { meaning, listed, response, keys, wrote_lock });
            }
        }
    }

    async fn is_interrupted(&mut self) -> bool {
        // Another task receives Ctrl-C, and needs a turn to do so.
        tokio::task::yield_now().await;
        self.interrupt.is_raised()
    }
}

/// Sends each call with its whole script, and stops the script's clock.
struct StoppedClock<'c> {
    connection: &'c mut Connection,
    ticks: bool,
    /// The index of the listed reply that matched, or the reply in words.
    listed: Result<usize, String>,
}

impl CallPerformer for StoppedClock<'_> {
    type Error = StoreError;

    async fn perform(&mut self, call: StepCall<'_>) -> Result<StepReply, StoreError> {
        let words = if self.ticks { words_at(call, call.request.now_ms) } else { call.words() };
        self.connection.ask(&pack(words)).await
    }

    fn note(&mut self, call: StepCall<'_>, reply: &StepReply, matched: Option<ReplyMatch<'_>>) {
        self.listed = match matched {
            Some(matched) => {
                call.call.replies.iter().position(|entry| ptr::eq(entry, matched.entry))
            }
            None => None,
        }
        .ok_or_else(|| words(reply));
    }
}
