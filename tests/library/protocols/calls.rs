//! Calls on a real server: it gets the keys of a state, executes one call, and shows the keys
//! afterwards.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use redis::{Connection, Value};

use super::format::{Content, Format, field};
use super::protocol::{Call, Means, Protocol};
use super::request::{BEGINNING, Request, Told};
use crate::support::Server;

/// What took longer would show in the TTLs, which are whole seconds.
const SLOWEST: Duration = Duration::from_millis(400);

/// The Redis keys with their TTLs, and the time since the beginning.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Keys {
    pub stored: Vec<Option<Stored>>,
    pub clock_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stored {
    pub content: Content,
    /// In milliseconds; nothing where the key has no TTL.
    pub ttl: Option<i64>,
}

/// What a state of the keys reads as.
pub struct Reading {
    pub keys: Keys,
    /// The first format that each key fits, as an index.
    pub formats: Vec<Option<usize>>,
    /// The same, also if the value's own expiry has passed.
    pub forms: Vec<Option<usize>>,
    /// How long until each key's TTL ends, and until the expiry in its value.
    pub ends: Vec<Vec<i64>>,
    /// The owner in the lock's value.
    pub owner: Option<String>,
}

/// What a call does.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub means: Option<Means>,
    /// What a replay brings: whose responses it may be.
    pub brings: Option<Authors>,
    pub after: usize,
    /// The call wrote the lock's key, perhaps as it was.
    pub wrote_lock: bool,
}

/// The requests whose response a text may be, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Authors {
    pub effect: u8,
    pub failure: u8,
}

/// Who calls, in which step, and with which position in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Which {
    pub step: Step,
    pub call: usize,
    pub number: u8,
    pub is_other: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    Begin,
    Renew,
    Complete,
    StoreFailure,
    Release,
}

/// Executes calls, and remembers what each did in each state of the keys.
pub struct Caller<'a> {
    protocol: &'a Protocol,
    workers: u8,
    connection: Connection,
    /// Watches the lock's key, to see what is written.
    watcher: Connection,
    states: Vec<Reading>,
    numbers: HashMap<Keys, usize>,
    done: HashMap<(usize, Which), Outcome>,
}

impl<'a> Caller<'a> {
    pub fn new(protocol: &'a Protocol, workers: u8, server: &Server) -> Self {
        let (connection, watcher) = (server.connect(), server.connect());
        let (states, numbers, done) = (Vec::new(), HashMap::new(), HashMap::new());
        Self { protocol, workers, connection, watcher, states, numbers, done }
    }

    /// The number of a state of the keys.
    pub fn number(&mut self, keys: Keys) -> usize {
        if let Some(number) = self.numbers.get(&keys) {
            return *number;
        }
        self.states.push(self.reading(&keys));
        self.numbers.insert(keys, self.states.len() - 1);
        self.states.len() - 1
    }

    /// The state of the keys of this number.
    pub fn state(&self, number: usize) -> &Reading {
        &self.states[number]
    }

    fn reading(&self, keys: &Keys) -> Reading {
        let now_ms = BEGINNING + keys.clock_ms;
        let mut reading = Reading {
            keys: keys.clone(),
            formats: Vec::new(),
            forms: Vec::new(),
            ends: Vec::new(),
            owner: None,
        };
        for (role, stored) in keys.stored.iter().enumerate() {
            let Some(stored) = stored else {
                reading.formats.push(None);
                reading.forms.push(None);
                reading.ends.push(Vec::new());
                continue;
            };
            let fits = |format: &Format| format.at == role && format.fits(&stored.content, now_ms);
            let format = self.protocol.formats.iter().position(fits);
            let mut ends = Vec::from_iter(stored.ttl);
            if let Some(format) = format.map(|format| &self.protocol.formats[format]) {
                ends.extend(format.expires_in(&stored.content, now_ms));
                if role == self.protocol.lock && !format.is_completed {
                    let pointer = format.owner.as_ref();
                    let owner = pointer.and_then(|pointer| field(&stored.content, pointer));
                    reading.owner = owner.map(|owner| format.without_prefix(owner));
                }
            }
            let has_form = |format: &Format| format.at == role && format.has_form(&stored.content);
            reading.forms.push(self.protocol.formats.iter().position(has_form));
            reading.formats.push(format);
            reading.ends.push(ends);
        }
        reading
    }

    /// What a call does in a state of the keys.
    pub fn outcome(&mut self, before: usize, which: Which) -> Outcome {
        if let Some(outcome) = self.done.get(&(before, which)) {
            return outcome.clone();
        }
        let outcome = loop {
            let since = Instant::now();
            let outcome = self.execute(before, which);
            if since.elapsed() < SLOWEST {
                break outcome;
            }
        };
        self.done.insert((before, which), outcome.clone());
        outcome
    }

    fn execute(&mut self, before: usize, which: Which) -> Outcome {
        let keys = self.states[before].keys.clone();
        self.put(&keys);
        let protocol = self.protocol;
        let lock = &protocol.redis_keys[protocol.lock];
        ask(&mut self.watcher, &["WATCH", lock]);
        let request = Request {
            protocol,
            number: which.number,
            fails: matches!(which.step, Step::StoreFailure | Step::Release),
            is_other: which.is_other,
            now_ms: BEGINNING + keys.clock_ms,
        };
        let call = call_of(protocol, which);
        let mut words = request.words(call);
        if words[0] == "EVAL" {
            words[1].insert_str(0, &clock(request.now_ms));
        }
        let told = ask(&mut self.connection, &words);
        ask(&mut self.watcher, &["MULTI"]);
        ask(&mut self.watcher, &["PING"]);
        let wrote_lock = ask(&mut self.watcher, &["EXEC"]) == Told::Nil;
        let (means, text) = request.understand(call, &told);
        let brings = text.map(|text| self.authors(&text, &request));
        let after = self.read(keys.clock_ms);
        Outcome { means, brings, after: self.number(after), wrote_lock }
    }

    /// Gives the server the keys of a state.
    fn put(&mut self, keys: &Keys) {
        for (redis_key, stored) in self.protocol.redis_keys.iter().zip(&keys.stored) {
            ask(&mut self.connection, &["DEL", redis_key]);
            let Some(stored) = stored else { continue };
            match &stored.content {
                Content::Text(text) => _ = ask(&mut self.connection, &["SET", redis_key, text]),
                Content::Hash(fields) => {
                    for (name, value) in fields {
                        ask(&mut self.connection, &["HSET", redis_key, name, value]);
                    }
                }
            }
            if let Some(ttl) = stored.ttl {
                ask(&mut self.connection, &["PEXPIRE", redis_key, &ttl.to_string()]);
            }
        }
    }

    fn read(&mut self, clock_ms: i64) -> Keys {
        let mut stored = Vec::new();
        for redis_key in &self.protocol.redis_keys {
            stored.push(read_key(&mut self.connection, redis_key));
        }
        Keys { stored, clock_ms }
    }

    /// Whose responses a text may be. The bodies name their makers; a text without a body is
    /// compared with what each would store.
    fn authors(&self, text: &str, request: &Request<'_>) -> Authors {
        let mut named = Authors::default();
        let mut same = Authors::default();
        for number in 0..self.workers {
            let bit = 1 << number;
            if text.contains(&format!("paid-by-{number}.")) {
                named.effect |= bit;
            }
            let is_failure = |word: &str| text.contains(&format!("{word}-by-{number}."));
            if is_failure("failed") || is_failure("broken") {
                named.failure |= bit;
            }
            let part = if self.protocol.write.contains_key("response") {
                "{response}"
            } else {
                "{result_value}"
            };
            let made = |fails| Request { number, fails, is_other: false, ..*request }.fill(part);
            if made(false) == text {
                same.effect |= bit;
            }
            if made(true) == text {
                same.failure |= bit;
            }
        }
        if named == Authors::default() { same } else { named }
    }
}

fn call_of(protocol: &Protocol, which: Which) -> &Call {
    let step = match which.step {
        Step::Begin => &protocol.begin,
        Step::Renew => &protocol.renew,
        Step::Complete | Step::StoreFailure => &protocol.complete,
        Step::Release => &protocol.release,
    };
    &step[which.call]
}

fn read_key(connection: &mut Connection, redis_key: &str) -> Option<Stored> {
    let content = match ask(connection, &["TYPE", redis_key]) {
        Told::Text(kind) if kind == "none" => return None,
        Told::Text(kind) if kind == "string" => match ask(connection, &["GET", redis_key]) {
            Told::Text(text) => Content::Text(text),
            other => panic!("{other:?} is not a string"),
        },
        Told::Text(kind) if kind == "hash" => {
            let Told::List(items) = ask(connection, &["HGETALL", redis_key]) else {
                panic!("{redis_key} is not a hash");
            };
            let mut fields = BTreeMap::new();
            for pair in items.chunks(2) {
                let (Told::Text(name), Told::Text(value)) = (&pair[0], &pair[1]) else {
                    panic!("{pair:?} is not a field");
                };
                fields.insert(name.clone(), value.clone());
            }
            Content::Hash(fields)
        }
        other => panic!("{redis_key} is {other:?}"),
    };
    let Told::Number(pttl) = ask(connection, &["PTTL", redis_key]) else {
        panic!("{redis_key} has no TTL to read");
    };
    // Every TTL is set in whole seconds, and a part of the last one has passed.
    let ttl = (pttl >= 0).then(|| (pttl + 999) / 1_000 * 1_000);
    Some(Stored { content, ttl })
}

/// Lets a script's `TIME` give this time.
fn clock(now_ms: i64) -> String {
    let (seconds, micros) = (now_ms / 1_000, now_ms % 1_000 * 1_000);
    format!(
        "local real = redis; local redis = setmetatable({{call = function(name, ...) \
         if string.upper(name) == 'TIME' then return {{'{seconds}', '{micros}'}} end \
         return real.call(name, ...) end}}, {{__index = real}}) "
    )
}

/// Sends a command, and gives its reply, an error reply too.
fn ask<W: AsRef<str>>(connection: &mut Connection, words: &[W]) -> Told {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word.as_ref());
    }
    match command.query::<Value>(connection) {
        Ok(value) => told(value),
        Err(error) => {
            let code = error.code().unwrap_or_else(|| panic!("no reply: {error}"));
            Told::Error(format!("{code} {}", error.detail().unwrap_or_default()))
        }
    }
}

fn told(value: Value) -> Told {
    match value {
        Value::Nil => Told::Nil,
        Value::Int(number) => Told::Number(number),
        Value::BulkString(bytes) => Told::Text(String::from_utf8(bytes).unwrap()),
        Value::SimpleString(text) => Told::Text(text),
        Value::Okay => Told::Text("OK".to_owned()),
        Value::Array(items) => Told::List(items.into_iter().map(told).collect()),
        other => panic!("{other:?} is a reply that no protocol has"),
    }
}
