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
    CallSender, ExecutedStep, ReplyMatch, StepCall, StepInputs, StepReply, execute,
};
use crate::explore::{CallEffect, StateServer};
use crate::interrupt::Interrupt;
use crate::sim::service::{read_content, unnamed, unnamed_keys, words};
use crate::sim::stopped_clock::words_at;
use crate::store::{Connection, Packed, StoreError, pack};

/// A call that took longer is executed again, because its duration would show in the TTLs.
const QUICK: Duration = Duration::from_millis(50);

/// How often a call is executed, at most, until it is quick enough.
const MAX_TRIES: usize = 200;

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

    /// The commands that set the Redis keys to a state.
    fn setting(&self, keys: &KeysState) -> Vec<Packed> {
        let mut requests = Vec::new();
        for (redis_key, stored) in self.redis_keys.iter().zip(&keys.stored) {
            // RESTORE sets the exact bytes and TTL in one command, for every type of key.
            requests.push(pack([b"DEL", &redis_key[..]]));
            if let Some(stored) = stored {
                let ttl = stored.ttl_ms.unwrap_or(0).to_string();
                requests.push(pack([b"RESTORE", &redis_key[..], ttl.as_bytes(), &stored.dump]));
            }
        }
        requests
    }

    /// The commands that read the Redis keys.
    fn reading(&self) -> Vec<Packed> {
        // All TTLs are read before the values, so that less time passes until the last TTL is read.
        let mut requests = Vec::new();
        for command in [&b"PTTL"[..], b"DUMP", b"GET"] {
            for redis_key in &self.redis_keys {
                requests.push(pack([command, &redis_key[..]]));
            }
        }
        requests
    }

    /// The state of the Redis keys from the replies to [`TestServer::reading`].
    async fn read(
        &mut self,
        replies: &[StepReply],
        clock_ms: u64,
    ) -> Result<KeysState, StoreError> {
        let keys = self.redis_keys.len();
        let mut stored = Vec::new();
        for key_index in 0..keys {
            // The replies come in the order of the requests: all TTLs, all dumps, all values.
            let Some(StepReply::Text(dump)) = replies.get(keys + key_index) else {
                stored.push(None);
                continue;
            };
            let pttl = match replies.get(key_index) {
                Some(StepReply::Integer(pttl)) => *pttl,
                _ => -2,
            };
            let content = match replies.get(2 * keys + key_index) {
                Some(StepReply::Text(text)) => Content::text(text.clone()),
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
        inputs: &StepInputs<'_>,
        calls: &[Call],
    ) -> Result<bool, StoreError> {
        let mut first = self.setting(before);
        first.push(pack([b"WATCH", &self.redis_keys[key_index][..]]));
        let mut sender = StoppedClock::new(self, first, Vec::new());
        execute(inputs, calls, &mut sender).await?;
        self.connection.ask(&pack([b"MULTI"])).await?;
        Ok(self.connection.ask(&pack([b"EXEC"])).await? == StepReply::Nil)
    }

    /// Why a call can have different effects in the same state. Only on a temporary local Redis is
    /// every other Redis key one that the steps wrote.
    pub(super) async fn unsteady_because(
        &mut self,
        is_private: bool,
    ) -> Result<String, StoreError> {
        let mut others = Vec::new();
        if is_private {
            others = unnamed_keys(&mut self.connection, &self.redis_keys).await?;
        }
        Ok(match others.first() {
            Some(redis_key) => format!("because of {}", unnamed(redis_key)),
            None if is_private => "by chance or time".to_owned(),
            None => "for an unknown reason".to_owned(),
        })
    }

    /// Deletes the Redis keys.
    pub(crate) async fn clear(&mut self) -> Result<(), StoreError> {
        let absent = KeysState::absent(self.redis_keys.len());
        self.connection.ask_packed(&self.setting(&absent)).await?;
        Ok(())
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
        let inputs = job.request(&program.services[call.service], &key, before.now_ms());
        let mut tries = 0;
        // On a machine that is never quick, the last try counts. When all calls are repeated, an
        // unsteady result is noticed.
        loop {
            let since = Instant::now();
            let (first, then) = (self.setting(before), self.reading());
            let mut sender = StoppedClock::new(self, first, then);
            let executed = execute(&inputs, calls, &mut sender).await?;
            let (listed, read) = (sender.listed, sender.read);
            let keys = self.read(&read, before.clock_ms).await?;
            tries += 1;
            if since.elapsed() < QUICK || tries == MAX_TRIES {
                let mut response = None;
                let mut hides_response = false;
                if let ExecutedStep::Decided { reply, matched, .. } = &executed {
                    response = inputs.carried_response(*matched, reply);
                    hides_response = response.is_none() && inputs.may_carry(*matched, reply);
                }
                let meaning = executed.meaning();
                let key_index = program.services[call.service].lock_key_index();
                let wrote_lock = if before.stored[key_index] != keys.stored[key_index] {
                    true
                } else {
                    // No other reply makes the worker the holder of a lock that looks as before.
                    meaning == Some(Meaning::Acquired)
                        && keys.stored[key_index].is_some()
                        && self.rewrites(before, key_index, &inputs, calls).await?
                };
                return Ok(CallEffect {
                    meaning,
                    listed,
                    response,
                    hides_response,
                    keys,
                    wrote_lock,
                });
            }
        }
    }

    async fn is_interrupted(&mut self) -> bool {
        // Another task receives Ctrl-C, and needs a turn to do so.
        tokio::task::yield_now().await;
        self.interrupt.is_raised()
    }
}

/// Sends one call with its whole script, and stops the script's clock.
///
/// The commands before and after the call are in the same write, because round trips take most of
/// the time of an exploration.
struct StoppedClock<'c> {
    connection: &'c mut Connection,
    ticks: bool,
    first: Vec<Packed>,
    then: Vec<Packed>,
    /// The replies to the commands after the call.
    read: Vec<StepReply>,
    /// The index of the listed reply that matched, or the reply in words.
    listed: Result<usize, String>,
}

impl<'c> StoppedClock<'c> {
    fn new(server: &'c mut TestServer<'_>, first: Vec<Packed>, then: Vec<Packed>) -> Self {
        Self {
            connection: &mut server.connection,
            ticks: server.workers.ticks,
            first,
            then,
            read: Vec::new(),
            listed: Err("nothing".to_owned()),
        }
    }
}

impl CallSender for StoppedClock<'_> {
    type Error = StoreError;

    async fn send_call(&mut self, call: StepCall<'_>) -> Result<StepReply, StoreError> {
        let words = if self.ticks { words_at(call, call.inputs.now_ms) } else { call.words() };
        let mut requests = std::mem::take(&mut self.first);
        let number = requests.len();
        requests.push(pack(words));
        requests.append(&mut self.then);
        let mut replies = self.connection.ask_packed(&requests).await?;
        self.read = replies.split_off(number + 1);
        Ok(replies.pop().unwrap_or(StepReply::Nil))
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
