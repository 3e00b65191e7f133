//! `lua/reference/vectors.json` as `lua/reference/README.md` describes it: every case on a server, and no reply of the
//! scripts' headers without a case.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

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
    key: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    before: Option<Before>,
    steps: Vec<Step>,
    after: Option<After>,
}

/// What is put there; nothing where it is `null`.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Before {
    Text { value: String, ttl_ms: Option<u64> },
    List { list: Vec<String> },
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Step {
    Run { script: String, args: Vec<String>, reply: Expected },
    Wait { wait_ms: u64 },
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Expected {
    Text(String),
    Error { error: String },
    Between { between: [i64; 2] },
    Array(Vec<Expected>),
}

/// What must be there; nothing where it is `null`.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum After {
    Text { value: String, ttl_ms: Option<[i64; 2]> },
    List { list: Vec<String> },
}

fn vectors() -> Vectors {
    let text = std::fs::read_to_string(wire::lua().join("reference/vectors.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// One case on a server.
struct Play<'a> {
    connection: Connection,
    key: &'a str,
}

impl Play<'_> {
    fn ask(&mut self, words: &[&str]) -> StepReply {
        wire::ask(&mut self.connection, words)
    }

    fn put(&mut self, before: Option<&Before>) {
        let key = self.key;
        self.ask(&["DEL", key]);
        match before {
            None => {}
            Some(Before::Text { value, ttl_ms: None }) => drop(self.ask(&["SET", key, value])),
            Some(Before::Text { value, ttl_ms: Some(ms) }) => {
                self.ask(&["SET", key, value, "PX", &ms.to_string()]);
            }
            Some(Before::List { list }) => {
                for item in list {
                    self.ask(&["RPUSH", key, item]);
                }
            }
        }
    }

    /// Plays a step; what differs from the expected reply.
    fn step(&mut self, step: &Step) -> Option<String> {
        match step {
            Step::Wait { wait_ms } => {
                std::thread::sleep(Duration::from_millis(*wait_ms));
                None
            }
            Step::Run { script, args, reply } => {
                let text = wire::script(&format!("reference/{script}"));
                let got = wire::eval(&mut self.connection, &text, &[self.key], args);
                (!reply.fits(&got))
                    .then(|| format!("{script} {args:?} answered {}", wire::line(&got)))
            }
        }
    }

    /// The server's clock in milliseconds.
    fn now(&mut self) -> i64 {
        let StepReply::Array(parts) = self.ask(&["TIME"]) else { panic!("TIME answers an array") };
        let parts: Vec<i64> = parts.iter().map(|part| wire::line(part).parse().unwrap()).collect();
        parts[0] * 1_000 + parts[1] / 1_000
    }

    /// What differs from what must be there.
    fn difference(&mut self, after: Option<&After>, times: &RangeInclusive<i64>) -> Option<String> {
        let key = self.key;
        let ttl: i64 = wire::line(&self.ask(&["PTTL", key])).parse().unwrap();
        match after {
            None => (ttl != -2).then(|| "something is left".to_owned()),
            Some(After::List { list }) => {
                let items =
                    list.iter().map(|item| StepReply::Text(item.clone().into_bytes())).collect();
                (self.ask(&["LRANGE", key, "0", "-1"]) != StepReply::Array(items))
                    .then(|| "another list".to_owned())
            }
            Some(After::Text { value, ttl_ms }) => {
                let stored = wire::line(&self.ask(&["GET", key]));
                let lives = ttl_ms.map_or(ttl == -1, |[least, most]| (least..=most).contains(&ttl));
                let fits = lives && holds(&stored, value, times);
                (!fits).then(|| format!("there is {stored} for {ttl} ms"))
            }
        }
    }
}

impl Expected {
    fn fits(&self, got: &StepReply) -> bool {
        match (self, got) {
            (Self::Text(text), StepReply::Text(got)) => text.as_bytes() == got,
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
            Self::Text(text) => text.clone(),
            Self::Error { error } => format!("error {error}"),
            Self::Array(items) => items[0].word(),
            Self::Between { .. } => panic!("no script answers a bare number"),
        }
    }
}

/// True when a value is the wanted one, with a server's time of the run for each `{time}`.
fn holds(stored: &str, wanted: &str, times: &RangeInclusive<i64>) -> bool {
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
    let Vectors { format, key, cases } = vectors();
    assert_eq!(format, 1);
    let mut play = Play { connection: server.connect(), key: &key };
    let mut wrong = Vec::new();
    for case in &cases {
        play.put(case.before.as_ref());
        let begun = play.now();
        let replies: Vec<_> = case.steps.iter().filter_map(|step| play.step(step)).collect();
        let times = begun..=play.now();
        let left = play.difference(case.after.as_ref(), &times);
        wrong.extend(replies.into_iter().chain(left).map(|what| format!("{}: {what}", case.name)));
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
                Step::Run { script, reply, .. } if script == name => Some(reply.word()),
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
    assert!(holds(r#"{"a":1500,"b":2000}"#, r#"{"a":{time},"b":{time}}"#, &times));
    for stored in
        [r#"{"a":999,"b":2000}"#, r#"{"a":,"b":2000}"#, r#"{"a":1500,"b":2000} "#, r#"{"a":1500}"#]
    {
        assert!(!holds(stored, r#"{"a":{time},"b":{time}}"#, &times), "{stored}");
    }
}
