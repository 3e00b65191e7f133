//! Every state a record can be in, put on a server and read as idemctl reads it.

use std::fmt;

use idemctl::domain::record::decode::{self, Reading};
use idemctl::domain::record::observation::Observation;
use idemctl::domain::record::response::Response;
use idemctl::domain::schema::Schema;
use idemctl::domain::step::inputs::StepInputs;

use crate::support::Server;
use crate::support::library::Library;
use crate::support::wire;

/// The worker that wrote the record, and the one that comes next.
pub(crate) const HOLDER: &str = "0d3f6f2e-58f5-4c0b-9d6c-1f1f8f2a7b11";

pub(crate) const NEXT: &str = "7f8f3f5c-97a9-4d2e-8a37-2b8b7a0c4c22";

/// Strings that someone may have left at any Redis key of any schema, besides those that are no record of any; a space between
/// them.
const STRINGS: &str = r#"
    1 0 OK LOCKED PROCEED CONFLICT completed 12.5e3 [1] {"status": {"status":true} {"status":["PENDING"]}
    {"Status":"PENDING"} {"status":"PENDING"} {"st\u0061tus":"PENDIN\u0047"} {"status":"PENDING",}
    {"status":"PENDING","status":"COMPLETED"} {"status":"COMPLETED","status":"PENDING"}
    {"status":"COMPLETED","status":null} {"status":"COMPLETED"} {"status":"IN_PROGRESS"} {"status":0} {"status":-0}
    {"status":0.0} {"status":1} {"status":1.0} {"status":10e-1} {"status":1.0000000000000000001} {"status":"1"}
    {"state":"in-progress"} {"state":"completed","response":{}}
    {"state":"started","owner":"a","fingerprint":"","created_at":1} {"status":1e400} {"status":12345678901234567890}
    {"status":"PENDING","note":"\ud83d"} {"storage":"s3","bucket":"results","key":"2024/11/a"}
"#;

/// The same with spaces in them, or bytes that are no text.
const ODD_STRINGS: &[&[u8]] = &[
    b" ",
    b"completed ",
    b" {\n\t\"status\" : \"PENDING\" }\r\n",
    b"{\"status\":\"COMPLETED\",\"body\":\"caf\xe9\"}",
    b"{\"status\":\"PENDING\",\"note\":\"two\nlines\"}",
    b"{\"status\":\"PENDING\",\"note\":\"zero\0byte\"}",
    b"{\"status\":\"PENDING\",\"note\":\"\\\n\"}",
    b"{\"status\":\"PENDING\",\"\xff\xfe\":1}",
    b"{\"status\":\"PENDING\"\xff}",
    b"\xef\xbb\xbf{\"status\":\"PENDING\"}",
    b"{\"statusCode\":500,\"body\":\"\",\"error\":\"card declined\"}",
    b"{\"statusCode\":200,\"body\":\"caf\xe9\"}",
];

/// What stands at a Redis key before the step is played.
#[derive(Clone, PartialEq)]
pub(crate) enum Held {
    Nothing,
    Text(Vec<u8>),
    Type(&'static str),
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Text(text) => write!(f, "`{}`", text.escape_ascii()),
            Self::Type(kind) => write!(f, "a {kind}"),
        }
    }
}

impl Held {
    fn put(&self, pipeline: &mut redis::Pipeline, redis_key: &[u8]) {
        match self {
            Self::Nothing => {}
            Self::Text(text) => {
                pipeline.cmd("SET").arg(redis_key).arg(&text[..]).ignore();
            }
            Self::Type("hash") => {
                pipeline.cmd("HSET").arg(redis_key).arg("status").arg("PENDING").ignore();
            }
            Self::Type("list") => {
                pipeline.cmd("RPUSH").arg(redis_key).arg("PENDING").ignore();
            }
            Self::Type(_) => {
                pipeline.cmd("XADD").arg(redis_key).arg("*").arg("status").arg("PENDING").ignore();
            }
        }
    }
}

/// The state of a Redis key: what it holds, and for how long.
pub(crate) type KeyState = (Held, bool);

/// Everything a Redis key of this schema may hold.
fn key_states(schema: &Schema) -> Vec<Held> {
    let response = response();
    let writer = StepInputs::new(schema, b"any", HOLDER, &response);
    let mut texts: Vec<_> =
        wire::STRAY.iter().chain(ODD_STRINGS).map(|text| text.to_vec()).collect();
    texts.extend(STRINGS.split_whitespace().map(Vec::from));
    let failed = StepInputs { error: Some("card declined"), ..writer.clone() };
    texts.extend([
        writer.lock_value(),
        writer.result_value(),
        failed.result_value(),
        HOLDER.into(),
        NEXT.into(),
    ]);
    let types = ["hash", "list", "stream"].map(Held::Type);
    [Held::Nothing].into_iter().chain(texts.into_iter().map(Held::Text)).chain(types).collect()
}

/// Every state a record of this schema may be in: all that its Redis keys may hold, each with each, with and without TTL.
pub(crate) fn record_states(schema: &Schema) -> Vec<Vec<KeyState>> {
    let each = key_states(schema);
    if schema.keys.len() == 1 {
        return [true, false]
            .iter()
            .flat_map(|expires| each.iter().map(|held| vec![(held.clone(), *expires)]))
            .collect();
    }
    let mut states = Vec::new();
    for (i, lock) in each.iter().enumerate() {
        for (j, result) in each.iter().enumerate() {
            // Each with each would be four times as many: so all four kinds of expiry in turn.
            states.push(vec![(lock.clone(), (i + j) % 2 == 0), (result.clone(), (i + j) % 4 < 2)]);
        }
    }
    states
}

pub(crate) fn response() -> Response {
    Response {
        status: Some(201),
        headers: vec![("Content-Type".into(), "application/json".into())],
        body: br#"{"id":"a<b"}"#.to_vec(),
        whole: true,
    }
}

/// One record in one state on the server, as idemctl reads it.
pub(crate) struct Case {
    pub(crate) key: Vec<u8>,
    pub(crate) state: Vec<KeyState>,
    pub(crate) seen: Observation,
    pub(crate) readings: Vec<Reading>,
}

/// Puts every state on the server, each under a key of its own, and reads it through the library.
pub(crate) fn cases(
    server: &Server,
    library: &Library,
    schema: &Schema,
    states: Vec<Vec<KeyState>>,
) -> Vec<Case> {
    let keys: Vec<_> =
        (0..states.len()).map(|index| format!("case-{index}").into_bytes()).collect();
    let mut connection = server.connect();
    for (keys, states) in keys.chunks(500).zip(states.chunks(500)) {
        let mut pipeline = redis::pipe();
        for (key, state) in keys.iter().zip(states) {
            put(&mut pipeline, schema, key, state);
        }
        pipeline.query::<()>(&mut connection).unwrap();
    }
    let records: Vec<_> = keys.iter().map(|key| schema.redis_keys(key)).collect();
    let seen = library.observe(&records);
    let case = |((key, state), seen): ((Vec<u8>, Vec<KeyState>), Observation)| {
        let readings = seen
            .keys
            .iter()
            .enumerate()
            .map(|(role, seen)| decode::decode_value(schema, role, &seen.content))
            .collect();
        Case { key, state, seen, readings }
    };
    keys.into_iter().zip(states).zip(seen).map(case).collect()
}

fn put(pipeline: &mut redis::Pipeline, schema: &Schema, key: &[u8], state: &[KeyState]) {
    for ((held, expires), redis_key) in state.iter().zip(schema.redis_keys(key)) {
        pipeline.cmd("DEL").arg(&redis_key).ignore();
        held.put(pipeline, &redis_key);
        if *expires {
            pipeline.cmd("PEXPIRE").arg(&redis_key).arg(60_000).ignore();
        }
    }
}
