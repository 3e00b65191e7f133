//! A protocol as its `schema.toml` describes it, read by this test alone: it shares no judgement
//! with the program.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::calls::Step;
use super::format::Format;

/// The key of every request.
pub const KEY: &str = "order-1";

/// So many workers have a place in a state.
pub const MAX_WORKERS: usize = 3;

/// The folder of the protocols.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocols")
}

/// The folder of the locks without results.
pub fn mutexes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutexes")
}

/// The names of the protocols.
pub fn names() -> Vec<String> {
    names_in(&folder())
}

/// The names of the protocols in a folder.
pub fn names_in(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        names.push(entry.unwrap().file_name().into_string().unwrap());
    }
    names.sort();
    names
}

/// A schema folder, as far as the naive checker needs it.
pub struct Protocol {
    pub name: String,
    /// The Redis keys, the lock's first; both roles are one key where there is only a record.
    pub redis_keys: Vec<String>,
    pub lock: usize,
    pub result: usize,
    pub formats: Vec<Format>,
    pub write: Table,
    pub on_failure: OnFailure,
    /// The system that has the effect refuses old tokens. No schema can say so; a test does.
    pub is_fenced: bool,
    pub begin: Vec<Call>,
    pub renew: Vec<Call>,
    pub complete: Vec<Call>,
    pub release: Vec<Call>,
    /// It is a lock without a result: a worker is inside from its effect to its release.
    pub is_lock_alone: bool,
    /// The steps that say that they check the owner.
    pub claims: Vec<String>,
    pub lock_ttl: i64,
    pub result_ttl: i64,
    pub sends_fingerprint: bool,
    /// A call sends the fingerprint by itself, or a reply compares it.
    pub compares_fingerprint: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    Store,
    Release,
    Keep,
}

/// One call of a step.
pub struct Call {
    /// The words that are sent, with placeholders; a script begins with EVAL, its text and the
    /// number of its keys.
    pub words: Vec<String>,
    /// How many of the words are the call itself, without placeholders.
    pub fixed: usize,
    pub replies: Vec<Reply>,
    /// It names the lock's Redis key.
    pub touches_lock: bool,
    /// It names the result's Redis key.
    pub touches_result: bool,
}

/// One pattern of a call's replies.
pub struct Reply {
    pub pattern: Table,
    pub means: Means,
    /// The alternatives of `when`; none where the reply is never predicted.
    pub when: Vec<Table>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    Acquired,
    Conflict,
    Replay,
    Mismatch,
    Fail,
    Next,
    Renewed,
    Stored,
    Released,
    Refused,
}

impl Protocol {
    /// Reads the folder of a schema.
    pub fn read(folder: &Path) -> Self {
        let text = std::fs::read_to_string(folder.join("schema.toml")).unwrap();
        let schema: Table = text.parse().unwrap_or_else(|error| panic!("{folder:?}: {error}"));
        let keys = table(&schema["keys"]);
        let redis_key = |role: &str| text_of(&keys[role]).replace("{key}", KEY);
        let (redis_keys, lock, result) = if keys.contains_key("record") {
            (vec![redis_key("record")], 0, 0)
        } else if !keys.contains_key("result") {
            (vec![redis_key("lock")], 0, 0)
        } else {
            (vec![redis_key("lock"), redis_key("result")], 0, 1)
        };
        let mut formats = Vec::new();
        for value in schema["value"].as_array().unwrap() {
            formats.push(Format::read(table(value), lock, result));
        }
        let ttl = |name: &str| seconds(table(&schema["ttl"]).get(name).map_or("none", text_of));
        let calls = |step: &str| calls(&schema, step, folder);
        let compares = |call: &Call| {
            let sends = call.words.iter().any(|word| word == "{fingerprint}");
            let judges =
                |reply: &Reply| reply.when.iter().any(|when| when.contains_key("fingerprint"));
            sends || call.replies.iter().any(judges)
        };
        Self {
            name: text_of(&schema["name"]).to_owned(),
            write: schema.get("write").map(|write| table(write).clone()).unwrap_or_default(),
            on_failure: match text_of(&table(&schema["service"])["on_failure"]) {
                "store" => OnFailure::Store,
                "release" => OnFailure::Release,
                "keep" => OnFailure::Keep,
                other => panic!("{other} is not something that a service does"),
            },
            is_fenced: false,
            begin: calls("begin"),
            renew: calls("renew"),
            complete: calls("complete"),
            release: calls("release"),
            is_lock_alone: !schema.contains_key("complete"),
            claims: claims(&schema),
            lock_ttl: ttl("lock"),
            result_ttl: ttl("result"),
            compares_fingerprint: calls("begin").iter().any(compares),
            sends_fingerprint: text.contains("{fingerprint}"),
            redis_keys,
            lock,
            result,
            formats,
        }
    }

    /// The step says that it checks the owner.
    pub fn claims(&self, step: Step) -> bool {
        let name = match step {
            Step::Begin => return false,
            Step::Renew => "renew",
            Step::Complete | Step::StoreFailure => "complete",
            Step::Release => "release",
        };
        self.claims.iter().any(|claim| claim == name)
    }

    /// Begin replays a completed value of this format: no reply that is predicted for it, with no
    /// lock beside it, says otherwise.
    pub fn replays(&self, format: &Format) -> bool {
        let mut replays_any = false;
        for reply in self.begin.iter().flat_map(|call| &call.replies) {
            let mut holds = reply.when.iter().any(|when| self.when_holds(when, format));
            if let (Some(value), true) = (reply.pattern.get("value"), reply.when.is_empty()) {
                holds = text_of(value) == format.name;
            }
            if holds {
                return reply.means == Means::Replay;
            }
            replays_any |= reply.means == Means::Replay;
        }
        replays_any
    }

    /// These conditions are about the result's key, and hold where it has a value of this format
    /// and the lock's own key nothing.
    fn when_holds(&self, when: &Table, format: &Format) -> bool {
        let is_about_result = when.contains_key("record") || when.contains_key("result");
        is_about_result
            && when.iter().all(|(role, condition)| match role.as_str() {
                "lock" => text_of(condition) == "absent",
                "record" | "result" => {
                    text_of(condition) == "present" || text_of(condition) == format.name
                }
                // The payload is the same.
                "fingerprint" => false,
                other => panic!("{other} is not a role"),
            })
    }
}

fn claims(schema: &Table) -> Vec<String> {
    let mut claims = Vec::new();
    for step in ["renew", "complete", "release"] {
        let described = schema.get(step).map(table);
        let claim = described.and_then(|step| step.get("checks_owner")).and_then(Value::as_bool);
        if claim == Some(true) {
            claims.push(step.to_owned());
        }
    }
    claims
}

/// The calls of a step; none where the service does not have the step.
fn calls(schema: &Table, step: &str, folder: &Path) -> Vec<Call> {
    let Some(step) = schema.get(step) else { return Vec::new() };
    let mut calls = Vec::new();
    for call in table(step)["call"].as_array().unwrap() {
        calls.push(read_call(table(call), folder));
    }
    calls
}

fn read_call(call: &Table, folder: &Path) -> Call {
    let (mut words, mut fixed) = (Vec::new(), 1);
    if let Some(script) = call.get("script") {
        let file = folder.join(text_of(script)).with_extension("lua");
        let script =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        let keys = texts(&call["keys"]);
        words.extend(["EVAL".to_owned(), script, keys.len().to_string()]);
        words.extend(keys);
        words.extend(texts(&call["args"]));
        fixed = 3;
    } else {
        words.extend(texts(&call["command"]));
    }
    let mut replies = Vec::new();
    for reply in call["replies"].as_array().unwrap() {
        replies.push(read_reply(table(reply)));
    }
    let names_lock = |word: &String| word.contains("{lock}") || word.contains("{record}");
    let names_result = |word: &String| word.contains("{result}") || word.contains("{record}");
    let touches_lock = words[fixed..].iter().any(names_lock);
    let touches_result = words[fixed..].iter().any(names_result);
    Call { touches_lock, touches_result, words, fixed, replies }
}

fn read_reply(reply: &Table) -> Reply {
    let when = match reply.get("when") {
        None => Vec::new(),
        Some(Value::Array(alternatives)) => alternatives.iter().map(table).cloned().collect(),
        Some(when) => vec![table(when).clone()],
    };
    let mut pattern = reply.clone();
    for no_pattern in ["means", "when", "client"] {
        pattern.remove(no_pattern);
    }
    let means = match text_of(&reply["means"]) {
        "acquired" => Means::Acquired,
        "conflict" => Means::Conflict,
        "replay" => Means::Replay,
        "mismatch" => Means::Mismatch,
        "fail" => Means::Fail,
        "next" => Means::Next,
        "renewed" => Means::Renewed,
        "stored" => Means::Stored,
        "released" => Means::Released,
        "refused" => Means::Refused,
        other => panic!("{other} is not a meaning"),
    };
    Reply { pattern, means, when }
}

/// A duration in milliseconds: whole seconds or hours, or none, which no call then sends.
pub fn seconds(duration: &str) -> i64 {
    if duration == "none" {
        return 0;
    }
    let (number, unit) = duration.split_at(duration.len() - 1);
    let number: i64 = number.parse().unwrap_or_else(|_| panic!("{duration} is not a duration"));
    match unit {
        "s" => number * 1_000,
        "h" => number * 3_600_000,
        _ => panic!("{duration} is not a duration"),
    }
}

pub fn table(value: &Value) -> &Table {
    value.as_table().unwrap_or_else(|| panic!("{value:?} is not a table"))
}

pub fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value:?} is not a text"))
}

pub fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().unwrap_or_else(|| panic!("{value:?} is not a list"));
    texts.iter().map(|text| text_of(text).to_owned()).collect()
}
