//! The four reference scripts together: any response comes back as it was given, and any order of steps by two owners
//! does what a small model of the state machine says.

use std::cell::RefCell;

use idemctl::domain::record::response::Response;
use idemctl::domain::step::inputs::StepInputs;
use idemctl::domain::step::reply::StepReply;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use redis::Connection;

use crate::support::Server;
use crate::support::wire;

const KEY: &str = "idemkey:order-1";

/// The scripts on a server of their own.
struct Reference {
    _server: Server,
    // A property is tried by a closure that may not change what it holds.
    connection: RefCell<Connection>,
    scripts: [(&'static str, String); 4],
}

impl Reference {
    fn start() -> Self {
        let server = Server::start();
        let scripts = ["begin", "renew", "complete", "release"]
            .map(|name| (name, wire::script(&format!("reference/{name}"))));
        Self { connection: RefCell::new(server.connect()), _server: server, scripts }
    }

    fn run(&self, script: &str, args: &[&[u8]]) -> StepReply {
        let (_, text) = self.scripts.iter().find(|(name, _)| *name == script).unwrap();
        wire::eval(&mut self.connection.borrow_mut(), text, &[KEY], args)
    }

    fn forget(&self) {
        wire::ask(&mut self.connection.borrow_mut(), &["DEL", KEY]);
    }
}

#[test]
fn the_schema_writes_what_the_scripts_write() {
    let reference = Reference::start();
    let schema = wire::schema("reference");
    let response = Response { status: Some(201), body: b"{}".to_vec(), ..Response::default() };
    let request =
        StepInputs { fingerprint: "print", ..StepInputs::new(&schema, b"order-1", "a", &response) };
    for error in [None, Some("card declined")] {
        let request = StepInputs { error, ..request.clone() };
        reference.forget();
        let connection = &mut reference.connection.borrow_mut();
        let mut stored = |step| {
            wire::play(connection, step, &request);
            String::from_utf8(wire::ask(connection, &["GET", KEY]).stored().unwrap().to_vec())
                .unwrap()
        };
        assert_eq!(
            without_times(&stored(schema.begin.as_ref().unwrap())).into_bytes(),
            request.lock_value()
        );
        assert_eq!(
            without_times(&stored(schema.complete.as_ref().unwrap())).into_bytes(),
            request.result_value()
        );
    }
}

/// A record as it would stand there at the beginning of time.
fn without_times(record: &str) -> String {
    let mut parts = record.split("_at\":");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "_at\":0" + part.trim_start_matches(|c: char| c.is_ascii_digit())
    })
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

/// Bytes without restriction, and among them what a record is made of.
fn response() -> impl Strategy<Value = Vec<u8>> {
    let pieces =
        r#"} { " \ ,"response": {"state":"in-progress" %"#.split_whitespace().chain(["\n", "\0"]);
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..40),
        prop::sample::select(pieces.collect::<Vec<_>>()).prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat())
}

#[test]
fn any_response_comes_back_byte_for_byte() {
    let reference = Reference::start();
    runner(300)
        .run(&(response(), any::<bool>()), |(response, failed)| {
            reference.forget();
            reference.run("begin", &[b"a", b"", b"30", b"retry"]);
            let outcome: &[u8] = if failed { b"failed" } else { b"completed" };
            prop_assert_eq!(
                wire::line(&reference.run("complete", &[b"a", outcome, &response, b"30"])),
                "STORED"
            );
            let replay = reference.run("begin", &[b"b", b"", b"30", b"replay"]);
            prop_assert_eq!(
                replay,
                StepReply::Array(vec![
                    StepReply::Text(b"REPLAY".to_vec()),
                    StepReply::Text(response)
                ])
            );
            Ok(())
        })
        .unwrap();
}

/// A step of one of two owners. No time passes between the steps, so that no lock is ever lost.
#[derive(Debug, Clone, Copy)]
enum Move {
    Begin { owner: &'static str, print: &'static str, on_failed: &'static str },
    Renew { owner: &'static str },
    Complete { owner: &'static str, outcome: &'static str, response: &'static str },
    Release { owner: &'static str },
}

impl Move {
    fn play(self, reference: &Reference) -> String {
        let reply = match self {
            Self::Begin { owner, print, on_failed } => reference
                .run("begin", &[owner.as_bytes(), print.as_bytes(), b"3600", on_failed.as_bytes()]),
            Self::Renew { owner } => reference.run("renew", &[owner.as_bytes(), b"3600"]),
            Self::Complete { owner, outcome, response } => reference.run(
                "complete",
                &[owner.as_bytes(), outcome.as_bytes(), response.as_bytes(), b"3600"],
            ),
            Self::Release { owner } => reference.run("release", &[owner.as_bytes()]),
        };
        let line = wire::line(&reply);
        // How long the lock has left is no part of the model.
        if line.starts_with("[IN_PROGRESS ") { "[IN_PROGRESS]".to_owned() } else { line }
    }
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let owner = || prop::sample::select(vec!["a", "b"]);
    let begin = (
        owner(),
        prop::sample::select(vec!["p", "p", "p", "q"]),
        prop::sample::select(vec!["retry", "replay"]),
    );
    let complete = (
        owner(),
        prop::sample::select(vec!["completed", "failed"]),
        prop::sample::select(vec!["1", "{\"a\":{}}"]),
    );
    let one = prop_oneof![
        3 => begin.prop_map(|(owner, print, on_failed)| Move::Begin { owner, print, on_failed }),
        1 => owner().prop_map(|owner| Move::Renew { owner }),
        2 => complete.prop_map(|(owner, outcome, response)| Move::Complete { owner, outcome, response }),
        1 => owner().prop_map(|owner| Move::Release { owner }),
    ];
    prop::collection::vec(one, 1..30)
}

/// The state machine: nothing, a lock, or a result.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Model {
    Nothing,
    Lock {
        owner: &'static str,
        print: &'static str,
    },
    Result {
        owner: &'static str,
        print: &'static str,
        outcome: &'static str,
        response: &'static str,
    },
}

impl Model {
    /// What a step answers, and what there is after it.
    fn step(self, step: Move) -> (String, Self) {
        match step {
            Move::Begin { owner, print, on_failed } => self.begin(owner, print, on_failed),
            Move::Complete { owner, outcome, response } => self.complete(owner, outcome, response),
            Move::Renew { owner } => (self.held_by(owner, "RENEWED"), self),
            Move::Release { owner } => {
                let held = matches!(self, Self::Lock { owner: holder, .. } if holder == owner);
                (self.held_by(owner, "RELEASED"), if held { Self::Nothing } else { self })
            }
        }
    }

    fn held_by(self, owner: &str, yes: &str) -> String {
        match self {
            Self::Nothing => "LOST".to_owned(),
            Self::Lock { owner: holder, .. } if holder == owner => yes.to_owned(),
            _ => "FENCED".to_owned(),
        }
    }

    fn begin(self, owner: &'static str, print: &'static str, on_failed: &str) -> (String, Self) {
        let taken = ("[ACQUIRED]".to_owned(), Self::Lock { owner, print });
        match self {
            Self::Nothing => taken,
            Self::Lock { print: held, .. } | Self::Result { print: held, .. } if held != print => {
                ("[MISMATCH]".to_owned(), self)
            }
            Self::Lock { .. } => ("[IN_PROGRESS]".to_owned(), self),
            Self::Result { outcome: "failed", .. } if on_failed == "retry" => taken,
            Self::Result { response, .. } => (format!("[REPLAY {response}]"), self),
        }
    }

    fn complete(
        self,
        owner: &str,
        outcome: &'static str,
        response: &'static str,
    ) -> (String, Self) {
        match self {
            Self::Lock { owner: holder, print } if holder == owner => {
                ("STORED".to_owned(), Self::Result { owner: holder, print, outcome, response })
            }
            Self::Result { owner: author, .. } if author == owner => ("ALREADY".to_owned(), self),
            _ => (self.held_by(owner, ""), self),
        }
    }
}

#[test]
fn any_order_of_steps_does_what_the_model_says() {
    let reference = Reference::start();
    runner(200)
        .run(&moves(), |moves| {
            reference.forget();
            let mut model = Model::Nothing;
            for (index, step) in moves.iter().enumerate() {
                let (expected, next) = model.step(*step);
                prop_assert_eq!(
                    step.play(&reference),
                    expected,
                    "{:?} on {:?}, step {}",
                    step,
                    model,
                    index
                );
                model = next;
                let ttl =
                    wire::line(&wire::ask(&mut reference.connection.borrow_mut(), &["TTL", KEY]));
                let expires = ttl.parse::<i64>().is_ok_and(|left| left > 3_500);
                prop_assert!(
                    expires || (model == Model::Nothing && ttl == "-2"),
                    "{:?}: TTL {}",
                    model,
                    ttl
                );
            }
            Ok(())
        })
        .unwrap();
}
