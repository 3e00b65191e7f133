//! The wire as a service uses it: commands, scripts, and the steps of a schema, with replies as
//! schemas speak of them.

use std::path::{Path, PathBuf};

use idemctl::domain::schema::{Action, Call, Meaning, Reply, Schema, Step};
use idemctl::domain::step::inputs::StepInputs;
use idemctl::domain::step::reply::StepReply;
use idemctl::schemas::{self, Deployment};
use redis::{Connection, ConnectionLike as _, Value};

/// Strings that are no record of any service: other text, other JSON, no JSON, other bytes.
pub const STRAY: &[&[u8]] = &[
    b"",
    b"in-progress",
    b"{",
    b"{\"status\":\"PENDING\"",
    b"{\"status\":\"PENDING\"} x",
    b"null",
    b"true",
    b"7",
    b"\"PENDING\"",
    b"[]",
    b"[\"PENDING\"]",
    b"{}",
    b"{\"status\":null}",
    b"{\"status\":[]}",
    b"{\"status\":\"pending\"}",
    b"{\"status\":2}",
    b"\xff\xfe\x00",
];

/// The schemas, as they are compiled in.
pub fn built_in() -> Vec<Schema> {
    schemas::load(None, |_| Deployment::default()).unwrap().schemas
}

/// The schema of this name.
pub fn schema(name: &str) -> Schema {
    built_in().into_iter().find(|schema| schema.name == name).unwrap()
}

/// The folder of the scripts and schemas.
pub fn lua() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("lua")
}

/// The file of a script, e.g. `admin/read_records`.
pub fn source(name: &str) -> String {
    std::fs::read_to_string(lua().join(name).with_extension("lua"))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The text of a script as it is sent: behind the parts that it shares with others.
pub fn script(name: &str) -> String {
    let source = source(name);
    let parts = [
        (&["deadline_of(", "read_clock("][..], "admin/shared/deadline"),
        (&["fields_of("], "admin/shared/fields"),
    ];
    let calls_any = |calls: &[&str]| calls.iter().any(|call| source.contains(call));
    let parts =
        parts.into_iter().filter(|(calls, _)| calls_any(calls)).map(|(_, part)| self::source(part));
    let part: String = parts.collect();
    part + &source
}

/// Sends a command and gives its reply, an error reply too.
pub fn ask<W: AsRef<[u8]>>(connection: &mut Connection, words: &[W]) -> StepReply {
    try_ask(connection, words).unwrap_or_else(|error| panic!("no reply: {error}"))
}

/// The same where the connection may be lost, which is the error.
pub fn try_ask<W: AsRef<[u8]>>(
    connection: &mut Connection,
    words: &[W],
) -> redis::RedisResult<StepReply> {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word.as_ref());
    }
    // `Cmd::query` gives an error inside an array in place of the array.
    Ok(step_reply(connection.req_command(&command)?))
}

/// Sends a script as a service does.
pub fn eval<K: AsRef<[u8]>, A: AsRef<[u8]>>(
    connection: &mut Connection,
    script: &str,
    keys: &[K],
    args: &[A],
) -> StepReply {
    let mut words =
        vec![b"EVAL".to_vec(), script.as_bytes().to_vec(), keys.len().to_string().into_bytes()];
    words.extend(keys.iter().map(|key| key.as_ref().to_vec()));
    words.extend(args.iter().map(|arg| arg.as_ref().to_vec()));
    ask(connection, &words)
}

/// A reply on one line: `PROCEED`, `nil`, `1`, `[2]`, `error LOCKED`.
pub fn line(reply: &StepReply) -> String {
    match reply {
        StepReply::Nil => "nil".to_owned(),
        StepReply::Integer(number) => number.to_string(),
        StepReply::Text(text) => String::from_utf8_lossy(text).into_owned(),
        StepReply::Array(items) => {
            format!("[{}]", items.iter().map(line).collect::<Vec<_>>().join(" "))
        }
        // Redis 6.2 wraps what a script raises, and the code stands inside.
        StepReply::Error { message, .. } if message.contains("WRONGTYPE") => {
            "error WRONGTYPE".to_owned()
        }
        StepReply::Error { code, .. } => format!("error {code}"),
    }
}

fn step_reply(value: Value) -> StepReply {
    match value {
        Value::Nil => StepReply::Nil,
        Value::Int(number) => StepReply::Integer(number),
        Value::BulkString(bytes) => StepReply::Text(bytes),
        Value::SimpleString(text) => StepReply::Text(text.into_bytes()),
        Value::Okay => StepReply::Text(b"OK".to_vec()),
        Value::Array(items) => StepReply::Array(items.into_iter().map(step_reply).collect()),
        Value::ServerError(error) => StepReply::Error {
            code: error.code().to_owned(),
            message: error.details().unwrap_or_default().to_owned(),
        },
        other => panic!("a reply no schema can speak of: {other:?}"),
    }
}

/// What is sent for a call of a request.
pub fn words(call: &Call, request: &StepInputs<'_>) -> Vec<Vec<u8>> {
    match &call.action {
        Action::Command(command) => command.iter().map(|word| request.word(word)).collect(),
        Action::Script { name, keys, args } => {
            let text = request.schema.scripts[name].text.as_bytes().to_vec();
            let mut words = vec![b"EVAL".to_vec(), text, keys.len().to_string().into_bytes()];
            words.extend(keys.iter().chain(args).map(|word| request.word(word)));
            words
        }
    }
}

/// How a step went: its last reply, and the schema's entry for it.
pub struct Played<'a> {
    pub reply: StepReply,
    pub known: Option<&'a Reply>,
}

impl Played<'_> {
    /// What the last reply means; panics when the schema does not know it.
    #[track_caller]
    pub fn means(&self) -> Meaning {
        self.known.unwrap_or_else(|| panic!("the schema does not know {:?}", self.reply)).means
    }
}

/// Plays a step on the server: call after call, until one's reply decides.
pub fn play<'a>(
    connection: &mut Connection,
    step: &'a Step,
    request: &StepInputs<'_>,
) -> Played<'a> {
    let mut calls = step.calls.iter();
    loop {
        let call = calls.next().expect("no call decides");
        let reply = ask(connection, &words(call, request));
        let known = request.matcher().match_reply(call, &reply);
        if known.is_none_or(|known| known.meaning() != Meaning::Next) {
            return Played { reply, known: known.map(|known| known.entry) };
        }
    }
}
