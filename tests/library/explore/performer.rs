//! Calls performed on a server of the test's own, apart from the way in which the binary performs
//! them.

use std::convert::Infallible;
use std::rc::Rc;

use crate::support::Server;
use crate::support::wire::{ask, schema, words};
use idemctl::domain::exploration::{KeysState, ResponseAuthor, StoredKey, WorkerProgram};
use idemctl::domain::step::StepKind;

use idemctl::domain::record::observation::Content;
use idemctl::domain::record::response::Response;
use idemctl::domain::schema::{Action, Meaning, Schema};
use idemctl::domain::step::inputs::StepInputs;
use idemctl::domain::step::reply::StepReply;
use idemctl::explore::{CallEffect, Callers, StateServer};
use redis::Connection;

pub const KEY: &[u8] = b"order-1";

/// A clock that stands still at this time, before a script's first line.
fn frozen(now_ms: u64) -> String {
    let (seconds, micros) = (now_ms / 1_000, now_ms % 1_000 * 1_000);
    format!(
        "local redis=setmetatable({{call=function(c,...) \
         if c=='TIME' then return {{'{seconds}','{micros}'}} end \
         return redis.call(c,...) end}},{{__index=redis}}) "
    )
}

/// Performs the calls of a schema's workers.
pub struct Performer {
    pub program: Rc<WorkerProgram>,
    pub connection: Connection,
    pub redis_keys: Vec<Vec<u8>>,
    workers: u8,
    /// True if scripts and clients see the time of the exploration.
    pub ticks: bool,
    /// True if the last worker requests another operation.
    pub has_other_payload: bool,
    /// The time that scripts and clients see, in milliseconds since the epoch.
    now_ms: u64,
    _server: Server,
}

impl Performer {
    /// The workers of a built-in schema.
    pub fn of(name: &str, workers: u8) -> Self {
        Self::with(schema(name), workers)
    }

    pub fn with(schema: Schema, workers: u8) -> Self {
        let server = Server::start();
        let connection = server.connect();
        let redis_keys = schema.redis_keys(KEY);
        let program = Rc::new(WorkerProgram::new(vec![schema.into()]).unwrap());
        Self {
            program,
            connection,
            redis_keys,
            workers,
            ticks: false,
            has_other_payload: false,
            now_ms: KeysState::absent(0).now_ms(),
            _server: server,
        }
    }

    pub fn schema(&self) -> &Schema {
        &self.program.services[0]
    }

    /// What a worker answers: 201, or a failure.
    fn response(caller: u8, fails: bool) -> Response {
        let body = if fails { Vec::new() } else { format!("made by {caller}").into_bytes() };
        Response {
            status: Some(if fails { 500 } else { 201 }),
            headers: Vec::new(),
            body,
            whole: true,
        }
    }

    fn with_request<T>(
        &self,
        caller: u8,
        fails: bool,
        make: impl FnOnce(&StepInputs<'_>) -> T,
    ) -> T {
        let (owner, response) = (format!("owner-{caller}"), Self::response(caller, fails));
        let fingerprint = match caller {
            _ if caller > self.workers && self.has_other_payload => "unused",
            _ if caller > self.workers => "other",
            _ if caller + 1 == self.workers && self.has_other_payload => "other",
            _ => "same",
        };
        let error = fails.then_some("provider unavailable");
        make(&StepInputs {
            fingerprint,
            error,
            now_ms: self.now_ms,
            ..StepInputs::new(self.schema(), KEY, &owner, &response)
        })
    }

    /// What the search knows about the workers.
    pub fn callers(&self) -> Callers {
        let owners = (0..self.workers).map(|worker| format!("owner-{worker}").into_bytes());
        Callers {
            responses: self.responses(),
            owners: owners.collect(),
            ticks: self.ticks,
            has_other_payload: self.has_other_payload,
        }
    }

    /// Built-in schemas acquire a lock by writing it, and by nothing else.
    fn wrote_lock(&self, before: &KeysState, after: &KeysState, means: Option<Meaning>) -> bool {
        let lock = self.schema().lock_key_index();
        means == Some(Meaning::Acquired) || before.stored[lock] != after.stored[lock]
    }

    pub fn responses(&self) -> Vec<(Vec<u8>, ResponseAuthor)> {
        let of = |worker: u8, fails: bool| {
            self.with_request(worker, fails, |request| request.replayed())
        };
        let both = |worker: u8| {
            [
                (of(worker, false), ResponseAuthor::Effect(worker)),
                (of(worker, true), ResponseAuthor::Failure(worker)),
            ]
        };
        (0..self.workers).flat_map(both).collect()
    }

    /// Sends a call, and nothing else.
    pub fn send(&mut self, caller: u8, ask_number: u8) -> StepReply {
        let asks = self.program.calls[usize::from(ask_number)];
        let fails = matches!(asks.step, StepKind::Release | StepKind::StoreFailure);
        let call = &self.program.step(asks).unwrap().calls[asks.index];
        let mut words = self.with_request(caller, fails, |request| words(call, request));
        if matches!(call.action, Action::Script { .. }) {
            words[1] = [frozen(self.now_ms).as_bytes(), &words[1]].concat();
        }
        ask(&mut self.connection, &words)
    }

    /// What a reply means, and the response in it.
    fn understand(
        &self,
        caller: u8,
        call: u8,
        reply: &StepReply,
    ) -> (Option<Meaning>, Result<usize, String>, Option<Vec<u8>>) {
        let asks = self.program.calls[usize::from(call)];
        let call = &self.program.step(asks).unwrap().calls[asks.index];
        self.with_request(caller, false, |request| {
            let Some(matched) = request.matcher().match_reply(call, reply) else {
                return (None, Err(format!("{reply:?}")), None);
            };
            let response = request.matcher().response_in(matched, reply);
            let mut entries = call.replies.iter();
            let index = entries.position(|entry| std::ptr::eq(entry, matched.entry)).unwrap();
            (Some(matched.meaning()), Ok(index), response.map(<[u8]>::to_vec))
        })
    }

    fn number(&mut self, words: &[&[u8]]) -> i64 {
        match ask(&mut self.connection, words) {
            StepReply::Integer(number) => number,
            other => panic!("{other:?} is no number"),
        }
    }

    pub fn pttl(&mut self, role: usize) -> i64 {
        let redis_key = self.redis_keys[role].clone();
        self.number(&[b"PTTL", &redis_key])
    }

    fn read(&mut self, clock_ms: u64) -> KeysState {
        let mut stored = Vec::new();
        for redis_key in self.redis_keys.clone() {
            let pttl = self.number(&[b"PTTL", &redis_key]);
            let dump = ask(&mut self.connection, &[b"DUMP", &redis_key[..]]);
            let text = ask(&mut self.connection, &[b"GET", &redis_key[..]]);
            stored.push(match (dump, text) {
                (StepReply::Text(dump), StepReply::Text(text)) => {
                    Some(StoredKey::new(dump, Content::text(text), pttl))
                }
                (StepReply::Text(dump), _) => {
                    Some(StoredKey::new(dump, self.read_hash(&redis_key), pttl))
                }
                _ => None,
            });
        }
        KeysState { stored, clock_ms }
    }

    fn read_hash(&mut self, redis_key: &[u8]) -> Content {
        let StepReply::Array(items) = ask(&mut self.connection, &[b"HGETALL", redis_key]) else {
            panic!("neither a text nor a hash");
        };
        let words = items.into_iter().map(|item| match item {
            StepReply::Text(text) => text,
            other => panic!("{other:?} is not a text"),
        });
        Content::hash(words)
    }
}

impl StateServer for Performer {
    type Error = Infallible;

    async fn execute_in(
        &mut self,
        before: &KeysState,
        caller: u8,
        call: u8,
    ) -> Result<CallEffect, Infallible> {
        self.now_ms = before.now_ms();
        loop {
            let since = std::time::Instant::now();
            for (redis_key, stored) in self.redis_keys.clone().iter().zip(&before.stored) {
                ask(&mut self.connection, &[b"DEL", &redis_key[..]]);
                if let Some(stored) = stored {
                    let ttl = stored.ttl_ms.unwrap_or(0).to_string();
                    ask(
                        &mut self.connection,
                        &[b"RESTORE", &redis_key[..], ttl.as_bytes(), &stored.dump],
                    );
                }
            }
            let reply = self.send(caller, call);
            let keys = self.read(before.clock_ms);
            // What took longer would show in the TTLs.
            if since.elapsed().as_millis() < 50 {
                let (meaning, listed, response) = self.understand(caller, call, &reply);
                let wrote_lock = self.wrote_lock(before, &keys, meaning);
                let hides_response = false;
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
        false
    }
}
