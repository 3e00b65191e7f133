//! What a service's worker sends for each step, and what the replies mean: by the schema, or by a naive strategy.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::domain::race::{Answer, Strategy};
use crate::domain::record::{Content, Reading, age, decode};
use crate::domain::schema::{Action, Call, Meaning, Schema, State};
use crate::domain::step::{Listener, Request, StepReply};
use crate::store::{Connection, Packed, StoreError, pack};

/// A service that plays one strategy. The server knows the service's scripts.
pub(super) struct Service<'a> {
    pub(super) schema: &'a Schema,
    strategy: Strategy,
    /// The digests of the scripts that could be loaded ahead.
    digests: BTreeMap<&'a str, Vec<u8>>,
    /// The server's time in milliseconds since 1970 at `started`; 0 if the user may not ask for it.
    started_ms: u64,
    started: Instant,
}

/// A request ready to be sent.
pub(super) struct Prepared<'a> {
    pub(super) request: Packed,
    /// The hash of the payload that the worker has, to compare with the stored one.
    fingerprint: String,
    now_ms: u64,
    reads: Reads<'a>,
    script: Option<Script<'a>>,
}

/// What a request calls by its digest.
struct Script<'a> {
    text: &'a str,
    /// The number of keys, the keys, the arguments.
    words: Vec<Vec<u8>>,
}

impl<'a> Prepared<'a> {
    /// A command without a payload to compare.
    fn own(request: Packed, reads: Reads<'a>) -> Self {
        Self { request, fingerprint: String::new(), now_ms: 0, reads, script: None }
    }

    /// The schema's call that the request makes; `None` for a strategy's own request.
    pub(super) fn call(&self) -> Option<&'a Call> {
        match self.reads {
            Reads::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Who hears the reply.
    pub(super) fn listener<'l>(&'l self, schema: &'l Schema) -> Listener<'l> {
        Listener { schema, fingerprint: &self.fingerprint, now_ms: self.now_ms }
    }

    /// The same request with the script's text, for a server that has forgotten the digest.
    pub(super) fn whole(&self) -> Option<Packed> {
        let script = self.script.as_ref()?;
        Some(pack(eval(script.text.as_bytes()).into_iter().chain(script.words.iter().map(Vec::as_slice))))
    }
}

/// How the reply to a request is read.
enum Reads<'a> {
    /// As the schema says.
    Call(&'a Call),
    /// As a GET of the Redis key of this role.
    Key(usize),
    /// As a SET or SET NX that may take the lock.
    Lock,
    /// As a DEL of the lock.
    Gone,
}

impl<'a> Service<'a> {
    /// Makes the schema's scripts known to the server.
    pub(super) async fn introduce(
        schema: &'a Schema,
        strategy: Strategy,
        connection: &mut Connection,
    ) -> Result<Self, StoreError> {
        let mut digests = BTreeMap::new();
        for (name, script) in &schema.scripts {
            match connection.ask(&pack(["SCRIPT", "LOAD", &script.text])).await {
                Ok(StepReply::Text(digest)) => _ = digests.insert(name.as_str(), digest),
                // Where scripts may not be loaded ahead they are sent whole each time.
                Err(error) if !error.is_permission() => return Err(error),
                _ => {}
            }
        }
        let started = Instant::now();
        let started_ms = match connection.ask(&pack(["TIME"])).await {
            Ok(time) => server_ms(&time),
            Err(error) if error.is_permission() => 0,
            Err(error) => return Err(error),
        };
        Ok(Self { schema, strategy, digests, started_ms, started })
    }

    /// The server's time, in milliseconds since 1970: what a worker on a machine with the right time sends.
    pub(super) fn now_ms(&self) -> u64 {
        self.started_ms.saturating_add(age::millis(self.started.elapsed()))
    }

    pub(super) fn begin(&self, request: &Request) -> Vec<Prepared<'a>> {
        // The result is read first: a reader of the lock first would miss a completion in between.
        let roles: Vec<usize> = (0..self.schema.keys.len()).rev().collect();
        let gets = |roles: &[usize]| roles.iter().map(|role| self.get(request, *role)).collect::<Vec<_>>();
        match self.strategy {
            Strategy::Schema => self.calls(self.schema.begin_calls(), request),
            Strategy::CheckThenAct => {
                let mut step = gets(&roles);
                step.push(self.set(request, false));
                step
            }
            Strategy::SetNx => {
                // A result of its own is looked up first, as the older releases of such layouts did.
                let mut step = gets(&roles[..roles.len() - 1]);
                step.push(self.set(request, true));
                step.extend(gets(&roles));
                step
            }
        }
    }

    pub(super) fn complete(&self, request: &Request) -> Vec<Prepared<'a>> {
        self.calls(self.schema.complete_calls(), request)
    }

    pub(super) fn renew(&self, request: &Request) -> Option<Vec<Prepared<'a>>> {
        self.schema.renew.as_ref().map(|step| self.calls(&step.calls, request))
    }

    pub(super) fn release(&self, request: &Request) -> Option<Vec<Prepared<'a>>> {
        match (&self.schema.release, self.strategy) {
            (Some(step), _) => Some(self.calls(&step.calls, request)),
            (None, Strategy::Schema) => None,
            (None, _) => {
                let del = pack([b"DEL", &self.redis_key(request, self.schema.lock_role())[..]]);
                Some(vec![Prepared::own(del, Reads::Gone)])
            }
        }
    }

    /// What a reply means; `None` when the next call decides.
    pub(super) fn read(&self, prepared: &Prepared, reply: StepReply) -> Option<Answer> {
        match (&prepared.reads, reply) {
            (Reads::Call(call), reply) => answer(prepared.listener(self.schema), call, &reply),
            (Reads::Key(_) | Reads::Lock, StepReply::Nil) => None,
            (Reads::Key(role), StepReply::Text(bytes)) => Some(self.stored(*role, bytes)),
            (Reads::Lock, StepReply::Text(_)) => Some(Answer::Acquired),
            (Reads::Gone, StepReply::Integer(removed)) => {
                Some(if removed > 0 { Answer::Released } else { Answer::Refused })
            }
            (_, reply) => Some(unknown(&reply)),
        }
    }

    fn stored(&self, role: usize, bytes: Vec<u8>) -> Answer {
        let content = Content::text(bytes);
        match decode::read(self.schema, role, &content) {
            Reading::Value(decoded) => match (self.schema.values[decoded.case].state, content) {
                (State::Completed, Content::Text { head, .. }) => Answer::Replay(Some(head)),
                _ => Answer::Conflict,
            },
            Reading::Unreadable(why) | Reading::Foreign { why, .. } => Answer::Wrong(why),
            _ => Answer::Wrong("another type of value".to_owned()),
        }
    }

    fn calls(&self, calls: &'a [Call], request: &Request) -> Vec<Prepared<'a>> {
        calls.iter().map(|call| self.call(call, request)).collect()
    }

    fn call(&self, call: &'a Call, request: &Request) -> Prepared<'a> {
        let words =
            |templates: &'a [_]| templates.iter().flat_map(|template| request.spread(template)).collect::<Vec<_>>();
        match &call.action {
            Action::Command(command) => Prepared {
                fingerprint: request.fingerprint.to_owned(),
                now_ms: request.now_ms,
                ..Prepared::own(pack(words(command)), Reads::Call(call))
            },
            Action::Script { name, keys, args } => {
                let count = keys.len().to_string().into_bytes();
                let words: Vec<_> = [count].into_iter().chain(words(keys)).chain(words(args)).collect();
                let text = self.schema.scripts.get(name).map_or("", |script| &*script.text);
                let head = match self.digests.get(name.as_str()) {
                    Some(digest) => [&b"EVALSHA"[..], digest],
                    None => eval(text.as_bytes()),
                };
                let packed = pack(head.into_iter().chain(words.iter().map(Vec::as_slice)));
                let (fingerprint, script) = (request.fingerprint.to_owned(), Some(Script { text, words }));
                Prepared { request: packed, fingerprint, now_ms: request.now_ms, reads: Reads::Call(call), script }
            }
        }
    }

    /// The Redis keys by which a cluster's client finds the node for a call.
    pub(super) fn redis_keys(&self, call: &Call, request: &Request) -> Vec<Vec<u8>> {
        match &call.action {
            Action::Script { keys, .. } => keys.iter().map(|template| request.word(template)).collect(),
            Action::Command(command) => {
                let record = self.schema.redis_keys(request.key);
                let words = command.iter().map(|template| request.word(template));
                words.filter(|word| record.contains(word)).collect()
            }
        }
    }

    fn get(&self, request: &Request, role: usize) -> Prepared<'a> {
        let get = pack([b"GET", &self.redis_key(request, role)[..]]);
        Prepared::own(get, Reads::Key(role))
    }

    fn set(&self, request: &Request, only_if_absent: bool) -> Prepared<'a> {
        let seconds = self.schema.lock_ttl.as_millis().div_ceil(1000).to_string().into_bytes();
        let key = self.redis_key(request, self.schema.lock_role());
        let mut words = vec![b"SET".to_vec(), key, request.lock_value(), b"EX".to_vec(), seconds];
        if only_if_absent {
            words.push(b"NX".to_vec());
        }
        Prepared::own(pack(words), Reads::Lock)
    }

    fn redis_key(&self, request: &Request, role: usize) -> Vec<u8> {
        self.schema.keys[role].template.redis_key(request.key)
    }
}

fn eval(text: &[u8]) -> [&[u8]; 2] {
    [b"EVAL", text]
}

fn answer(listener: Listener<'_>, call: &Call, reply: &StepReply) -> Option<Answer> {
    let Some(known) = listener.recognise(call, reply) else { return Some(unknown(reply)) };
    Some(match known.means {
        Meaning::Next => return None,
        Meaning::Acquired => Answer::Acquired,
        Meaning::Conflict => Answer::Conflict,
        Meaning::Replay => Answer::Replay(listener.carried(known, reply).map(<[u8]>::to_vec)),
        Meaning::Fail | Meaning::Mismatch => Answer::Wrong(format!("the request fails on {}", words(reply))),
        Meaning::Stored | Meaning::Renewed => Answer::Stored,
        Meaning::Refused => Answer::Refused,
        Meaning::Released => Answer::Released,
    })
}

fn unknown(reply: &StepReply) -> Answer {
    Answer::Wrong(format!("the schema does not know {}", words(reply)))
}

pub(super) fn words(reply: &StepReply) -> String {
    match reply {
        StepReply::Nil => "nil".to_owned(),
        StepReply::Integer(number) => number.to_string(),
        StepReply::Text(bytes) => format!("\"{}\"", String::from_utf8_lossy(&bytes[..bytes.len().min(80)])),
        StepReply::Array(items) => format!("{{{}}}", items.iter().map(words).collect::<Vec<_>>().join(", ")),
        StepReply::Error { code, message } => format!("error {code} {message}"),
    }
}

/// The reply of TIME in milliseconds; 0 where the reply is no time.
pub(super) fn server_ms(reply: &StepReply) -> u64 {
    let StepReply::Array(items) = reply else { return 0 };
    let number = |index: usize| match items.get(index) {
        Some(StepReply::Text(text)) => String::from_utf8_lossy(text).parse().unwrap_or(0),
        _ => 0u64,
    };
    number(0) * 1_000 + number(1) / 1_000
}
