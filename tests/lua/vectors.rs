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
    after: BTreeMap<String, After>,
}

/// Text as UTF-8, or bytes.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Bytes {
    Text(String),
    Base64 { base64: String },
}

/// The value that a Redis key has before the steps.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Before {
    Text { value: Bytes, ttl_ms: Option<u64> },
    List { list: Vec<Bytes> },
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Step {
    Call { call: String, keys: Vec<String>, args: Vec<Bytes>, reply: Expected },
    Wait { wait_ms: u64 },
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Expected {
    Bytes(Bytes),
    Error { error: String },
    Between { between: [i64; 2] },
    Array(Vec<Expected>),
}

/// The value that a Redis key must have after the steps.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum After {
    Text { value: Bytes, ttl_ms: Option<[i64; 2]> },
    List { list: Vec<Bytes> },
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

impl Case {
    /// Every Redis key that the case names.
    fn keys(&self) -> BTreeSet<&String> {
        let mut keys: BTreeSet<_> = self.before.keys().chain(self.after.keys()).collect();
        for step in &self.steps {
            if let Step::Call { keys: called, .. } = step {
                keys.extend(called);
            }
        }
        keys
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
        for key in case.keys() {
            self.ask(&["DEL", key]);
        }
        for (key, before) in &case.before {
            self.put(key, before);
        }
        let begun = self.now();
        let mut wrong: Vec<_> = case.steps.iter().filter_map(|step| self.step(step)).collect();
        let times = begun..=self.now();
        for key in case.keys() {
            wrong.extend(self.difference(key, case.after.get(key), &times));
        }
        wrong
    }

    fn put(&mut self, key: &str, before: &Before) {
        let key = key.as_bytes();
        match before {
            Before::Text { value, ttl_ms } => {
                self.ask(&[b"SET", key, &value.bytes()]);
                if let Some(ms) = ttl_ms {
                    self.ask(&[b"PEXPIRE", key, ms.to_string().as_bytes()]);
                }
            }
            Before::List { list } => {
                for item in list {
                    self.ask(&[b"RPUSH", key, &item.bytes()]);
                }
            }
        }
    }

    /// Runs a step and returns what differs from the expected reply.
    fn step(&mut self, step: &Step) -> Option<String> {
        match step {
            Step::Wait { wait_ms } => {
                std::thread::sleep(Duration::from_millis(*wait_ms));
                None
            }
            Step::Call { call, keys, args, reply } => {
                let text = wire::script(&format!("reference/{call}"));
                let args: Vec<_> = args.iter().map(Bytes::bytes).collect();
                let got = wire::eval(&mut self.connection, &text, keys, &args);
                (!reply.fits(&got)).then(|| format!("{call} replied {}", wire::line(&got)))
            }
        }
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
        match after {
            None => (ttl != -2).then(|| format!("{key} still exists")),
            Some(After::List { list }) => {
                let items = list.iter().map(|item| StepReply::Text(item.bytes())).collect();
                (self.ask(&["LRANGE", key, "0", "-1"]) != StepReply::Array(items))
                    .then(|| format!("{key} has another list"))
            }
            Some(After::Text { value, ttl_ms }) => {
                let StepReply::Text(stored) = self.ask(&["GET", key]) else {
                    return Some(format!("{key} is not a string"));
                };
                let lives = ttl_ms.map_or(ttl == -1, |[least, most]| (least..=most).contains(&ttl));
                let fits = lives && holds(&stored, &value.bytes(), times);
                let stored = String::from_utf8_lossy(&stored);
                (!fits).then(|| format!("{key} is {stored} for {ttl} ms"))
            }
        }
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
        let met: BTreeSet<_> = steps
            .filter_map(|step| match step {
                Step::Call { call, reply, .. } if call == name => Some(reply.word()),
                _ => None,
            })
            .collect();
        assert_eq!(met, listed, "{name}: vectors left, header right");
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
