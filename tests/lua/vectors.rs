//! `lua/reference/vectors.json` in the format of `contrib/vectors/README.md`: every case on a server, and no reply of the
//! scripts' headers without a case.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use idemctl::domain::step::reply::StepReply;
use redis::Connection;
use serde::Deserialize;

use crate::support::Server;
use crate::support::header::Script;
use crate::support::wire;

const SCRIPTS: [&str; 4] = ["begin", "complete", "release", "renew"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    format: u32,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    before: BTreeMap<String, Before>,
    steps: Vec<Step>,
    /// Every Redis key of the case; `None` for one that must not exist.
    after: BTreeMap<String, Option<After>>,
}

/// Text as UTF-8, or bytes.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Bytes {
    Text(String),
    Base64 { base64: String },
}

/// The value of a string, or the items of a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Text(Bytes),
    List(Vec<Bytes>),
}

/// What a Redis key holds before the steps.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Before {
    value: Value,
    ttl_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// The time to wait before the call.
    #[serde(default)]
    wait_ms: u64,
    call: String,
    keys: Vec<String>,
    args: Vec<Bytes>,
    reply: Expected,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Expected {
    Bytes(Bytes),
    Error { error: String },
    Between { between: [i64; 2] },
    Array(Vec<Expected>),
}

/// What a Redis key must hold after the steps.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct After {
    value: Value,
    ttl_ms: Option<[i64; 2]>,
}

fn vectors() -> Vectors {
    let text = std::fs::read_to_string(wire::lua().join("reference/vectors.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

impl Bytes {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Base64 { base64 } => STANDARD.decode(base64).unwrap(),
        }
    }
}

/// The server on which the cases run.
struct Play {
    connection: Connection,
}

impl Play {
    fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> StepReply {
        wire::ask(&mut self.connection, words)
    }

    /// Runs a case and returns what differs from it.
    fn case(&mut self, case: &Case) -> Vec<String> {
        for key in case.after.keys() {
            self.ask(&["DEL", key]);
        }
        for (key, before) in &case.before {
            self.put(key, before);
        }
        let begun = self.now();
        let mut wrong: Vec<_> = case.steps.iter().filter_map(|step| self.step(step)).collect();
        let times = begun..=self.now();
        for (key, after) in &case.after {
            wrong.extend(self.difference(key, after.as_ref(), &times));
        }
        wrong
    }

    fn put(&mut self, key: &str, before: &Before) {
        let key = key.as_bytes();
        match &before.value {
            Value::Text(value) => _ = self.ask(&[b"SET", key, &value.bytes()]),
            Value::List(items) => {
                for item in items {
                    self.ask(&[b"RPUSH", key, &item.bytes()]);
                }
            }
        }
        if let Some(ms) = before.ttl_ms {
            self.ask(&[b"PEXPIRE", key, ms.to_string().as_bytes()]);
        }
    }

    /// Runs a step and returns what differs from the expected reply.
    fn step(&mut self, step: &Step) -> Option<String> {
        std::thread::sleep(Duration::from_millis(step.wait_ms));
        let text = wire::script(&format!("reference/{}", step.call));
        let args: Vec<_> = step.args.iter().map(Bytes::bytes).collect();
        let got = wire::eval(&mut self.connection, &text, &step.keys, &args);
        (!step.reply.fits(&got)).then(|| format!("{} replied {}", step.call, wire::line(&got)))
    }

    /// The server's clock in milliseconds.
    fn now(&mut self) -> i64 {
        let StepReply::Array(parts) = self.ask(&["TIME"]) else { panic!("TIME answers an array") };
        let parts: Vec<i64> = parts.iter().map(|part| wire::line(part).parse().unwrap()).collect();
        parts[0] * 1_000 + parts[1] / 1_000
    }

    /// What differs from the expected value of a Redis key.
    fn difference(
        &mut self,
        key: &str,
        after: Option<&After>,
        times: &RangeInclusive<i64>,
    ) -> Option<String> {
        let ttl: i64 = wire::line(&self.ask(&["PTTL", key])).parse().unwrap();
        let Some(After { value, ttl_ms }) = after else {
            return (ttl != -2).then(|| format!("{key} still exists"));
        };
        let lives = ttl_ms.map_or(ttl == -1, |[least, most]| (least..=most).contains(&ttl));
        let (stored, fits) = match value {
            Value::List(items) => {
                let items = items.iter().map(|item| StepReply::Text(item.bytes())).collect();
                let stored = self.ask(&["LRANGE", key, "0", "-1"]);
                let fits = stored == StepReply::Array(items);
                (stored, fits)
            }
            Value::Text(value) => {
                let stored = self.ask(&["GET", key]);
                let fits = match &stored {
                    StepReply::Text(stored) => holds(stored, &value.bytes(), times),
                    _ => false,
                };
                (stored, fits)
            }
        };
        (!fits || !lives).then(|| format!("{key} is {} for {ttl} ms", wire::line(&stored)))
    }
}

impl Expected {
    fn fits(&self, got: &StepReply) -> bool {
        match (self, got) {
            (Self::Bytes(bytes), StepReply::Text(got)) => bytes.bytes() == *got,
            (Self::Between { between: [least, most] }, StepReply::Integer(got)) => {
                (least..=most).contains(&got)
            }
            (Self::Error { error }, got) => wire::line(got) == format!("error {error}"),
            (Self::Array(items), StepReply::Array(got)) => {
                items.len() == got.len() && items.iter().zip(got).all(|(item, got)| item.fits(got))
            }
            _ => false,
        }
    }

    /// What a header calls it by: its word, an array's first, or `error` and the code.
    fn word(&self) -> String {
        match self {
            Self::Bytes(bytes) => String::from_utf8(bytes.bytes()).unwrap(),
            Self::Error { error } => format!("error {error}"),
            Self::Array(items) => items[0].word(),
            Self::Between { .. } => panic!("no script answers a bare number"),
        }
    }
}

/// True if a value is the wanted one, with a time of the server during the case for each `{time}`.
fn holds(stored: &[u8], wanted: &[u8], times: &RangeInclusive<i64>) -> bool {
    // In Latin-1 each byte is one character, so that text functions work on bytes.
    let latin_1 = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect::<String>();
    let (stored, wanted) = (latin_1(stored), latin_1(wanted));
    let mut parts = wanted.split("{time}");
    let Some(mut rest) = parts.next().and_then(|first| stored.strip_prefix(first)) else {
        return false;
    };
    for part in parts {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (time, behind) = rest.split_at(digits);
        if !time.parse().is_ok_and(|time| times.contains(&time)) {
            return false;
        }
        let Some(next) = behind.strip_prefix(part) else { return false };
        rest = next;
    }
    rest.is_empty()
}

#[test]
fn every_vector_holds() {
    let server = Server::start();
    let Vectors { format, cases } = vectors();
    assert_eq!(format, 2);
    let mut play = Play { connection: server.connect() };
    let mut wrong = Vec::new();
    for case in &cases {
        wrong.extend(play.case(case).into_iter().map(|what| format!("{}: {what}", case.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_reply_of_the_headers_occurs_and_no_other() {
    let vectors = vectors();
    for name in SCRIPTS {
        let listed: BTreeSet<_> = Script::read(&format!("reference/{name}"))
            .replies
            .iter()
            .map(|reply| reply.trim_start_matches('{').split([',', '}']).next().unwrap().to_owned())
            .collect();
        let steps = vectors.cases.iter().flat_map(|case| &case.steps);
        let met: BTreeSet<_> =
            steps.filter(|step| step.call == name).map(|step| step.reply.word()).collect();
        assert_eq!(met, listed, "{name}: vectors left, header right");
    }
}

/// Rule: a program that deletes and reads the Redis keys in `after` leaves out none.
#[test]
fn every_redis_key_of_a_case_is_in_its_after() {
    for case in vectors().cases {
        let called = case.steps.iter().flat_map(|step| &step.keys);
        for key in called.chain(case.before.keys()) {
            assert!(case.after.contains_key(key), "{}: {key}", case.name);
        }
    }
}

#[test]
fn no_two_vectors_have_one_name() {
    let vectors = vectors();
    let names: BTreeSet<_> = vectors.cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), vectors.cases.len());
}

#[test]
fn a_time_of_another_run_and_other_text_are_noticed() {
    let times = 1_000..=2_000;
    let wanted = br#"{"a":{time},"b":{time}}"#;
    assert!(holds(br#"{"a":1500,"b":2000}"#, wanted, &times));
    for stored in
        [r#"{"a":999,"b":2000}"#, r#"{"a":,"b":2000}"#, r#"{"a":1500,"b":2000} "#, r#"{"a":1500}"#]
    {
        assert!(!holds(stored.as_bytes(), wanted, &times), "{stored}");
    }
}
