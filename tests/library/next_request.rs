//! What idemctl foresees is what happens: every state a record can be in, and the services' own steps played on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use idemctl::domain::record::decode::Reading;
use idemctl::domain::schema::{Meaning, Reply, Schema, Step};
use idemctl::domain::step::fencing;
use idemctl::domain::step::inputs::StepInputs;
use idemctl::domain::step::next_request::{self, Answer};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use redis::Connection;

use crate::states::{Case, HOLDER, Held, NEXT, cases, record_states, response};
use crate::support::Server;
use crate::support::library::Library;
use crate::support::wire::{self, Played};

fn play<'a>(
    connection: &mut Connection,
    schema: &Schema,
    step: &'a Step,
    key: &[u8],
    owner: &str,
) -> Played<'a> {
    let response = response();
    wire::play(connection, step, &StepInputs::new(schema, key, owner, &response))
}

/// What a played begin step answered, in the words of the prediction.
fn answered(played: &Played<'_>) -> Option<(Answer, Option<Arc<str>>)> {
    let known = played.known?;
    let answer = match known.means {
        Meaning::Acquired => Answer::Execute,
        Meaning::Conflict => Answer::Conflict,
        Meaning::Replay => Answer::Replay,
        _ => Answer::Fail,
    };
    Some((answer, known.client.clone()))
}

/// What is foreseen and what happens differ: both, and in which state. `None` when they are the same.
fn difference(connection: &mut Connection, schema: &Schema, case: &Case) -> Option<String> {
    let foreseen = next_request::of(schema, &case.readings, &case.seen);
    // Nothing is foreseen of a value that lacks a field, because the client may refuse what the
    // script returns.
    if foreseen.unknown_because.is_some() {
        let lacks_field = case.readings.iter().any(|reading| reading.lacks_field().is_some());
        assert!(lacks_field && foreseen.answer == Answer::Unknown, "{:?}", case.state);
        return None;
    }
    let played = play(connection, schema, schema.begin.as_ref().unwrap(), &case.key, NEXT);
    let happened = answered(&played);
    let expected = Some((foreseen.answer, foreseen.client));
    (happened != expected).then(|| {
        format!("{:?}: foreseen {expected:?}, got {:?}", case.state, wire::line(&played.reply))
    })
}

fn assert_none(schema: &Schema, differences: &[String]) {
    let count = differences.len();
    assert!(
        differences.is_empty(),
        "{}, {count} times:\n{}",
        schema.name,
        differences[..count.min(12)].join("\n")
    );
}

#[test]
fn begin_answers_what_is_foreseen_in_every_state() {
    let server = Server::start();
    let library = Library::on(&server);
    let mut connection = server.connect();
    for schema in wire::built_in() {
        let cases = cases(&server, &library, &schema, record_states(&schema));
        let differences: Vec<_> =
            cases.iter().filter_map(|case| difference(&mut connection, &schema, case)).collect();
        assert_none(&schema, &differences);
        let read: BTreeSet<_> = cases
            .iter()
            .flat_map(|case| &case.readings)
            .filter_map(|reading| Some(reading.decoded()?.format))
            .collect();
        assert_eq!(
            read.len(),
            schema.values.len(),
            "{}: a form of its values was never tried",
            schema.name
        );
    }
}

/// The first reply of a step whose condition holds: what complete and release are foreseen to say.
fn foreseen<'a>(step: &'a Step, readings: &[Reading]) -> Option<&'a Reply> {
    let holds = |reply: &&Reply| {
        reply
            .when
            .iter()
            .any(|condition| condition.keys.iter().all(|(role, asked)| readings[*role].is(asked)))
    };
    step.calls.iter().flat_map(|call| &call.replies).find(holds)
}

#[test]
fn the_steps_of_an_owner_do_what_is_foreseen_in_every_state() {
    let server = Server::start();
    let library = Library::on(&server);
    let mut connection = server.connect();
    for schema in wire::built_in() {
        for step in schema.steps().skip(1) {
            let mut differences = Vec::new();
            for case in cases(&server, &library, &schema, record_states(&schema)) {
                // A lock of another: what is foreseen speaks of the lock's own worker.
                let owner = case.readings[0].decoded().and_then(|decoded| decoded.owner.as_deref());
                let fenced = step.checks_owner && owner != Some(HOLDER.as_bytes());
                let expected = foreseen(step, &case.readings)
                    .map(|reply| reply.means)
                    .filter(|means| !fenced || *means == Meaning::Refused)
                    .unwrap_or(Meaning::Refused);
                let played = play(&mut connection, &schema, step, &case.key, HOLDER);
                if played.known.map(|known| known.means) != Some(expected) {
                    differences.push(format!(
                        "{:?}: foreseen {expected:?}, got {:?}",
                        case.state,
                        wire::line(&played.reply)
                    ));
                }
            }
            assert_none(&schema, &differences);
        }
    }
}

#[test]
fn a_late_worker_stores_exactly_when_foreseen() {
    let server = Server::start();
    let mut connection = server.connect();
    for schema in wire::built_in() {
        let late = fencing::of(&schema).unwrap();
        let key = b"late";
        let stores = |connection: &mut Connection| {
            play(connection, &schema, schema.complete.as_ref().unwrap(), key, HOLDER).means()
                == Meaning::Stored
        };
        let forget = |connection: &mut Connection| {
            for redis_key in schema.redis_keys(key) {
                wire::ask(connection, &[b"DEL", &redis_key[..]]);
            }
        };
        forget(&mut connection);
        assert_eq!(stores(&mut connection), late.stores_when_absent, "{} when absent", schema.name);
        forget(&mut connection);
        assert_eq!(
            play(&mut connection, &schema, schema.begin.as_ref().unwrap(), key, NEXT).means(),
            Meaning::Acquired
        );
        assert_eq!(
            stores(&mut connection),
            late.stores_when_retaken,
            "{} when retaken",
            schema.name
        );
    }
}

/// A JSON text as a careless program writes it: any bytes in strings, members that occur twice.
fn json_text() -> impl Strategy<Value = Vec<u8>> {
    let number = prop::sample::select(vec![
        "0", "1", "-0", "1.0", "0.0e5", "1e0", "2", "1.5", "1e-400", "9e999",
    ]);
    let word = prop::sample::select(vec!["PENDING", "COMPLETED", "IN_PROGRESS", "completed", ""]);
    let leaf = prop_oneof![
        Just(b"null".to_vec()),
        Just(b"true".to_vec()),
        number.prop_map(|number| number.as_bytes().to_vec()),
        word.prop_map(|word| quoted(word.as_bytes())),
        prop::collection::vec(any::<u8>(), 0..6).prop_map(|bytes| quoted(&bytes)),
    ];
    let name = prop_oneof![
        5 => prop::sample::select(vec!["status", "statusCode", "response", "storage", "bucket", "key"])
            .prop_map(|name| quoted(name.as_bytes())),
        1 => prop::collection::vec(any::<u8>(), 0..4).prop_map(|bytes| quoted(&bytes)),
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(|items| enclosed(b'[', &items, b']')),
            4 => prop::collection::vec((name.clone(), inner), 0..4).prop_map(|members| {
                let members: Vec<_> = members.into_iter().map(|(name, value)| [name, value].join(&b':')).collect();
                enclosed(b'{', &members, b'}')
            }),
        ]
    })
}

fn enclosed(open: u8, items: &[Vec<u8>], close: u8) -> Vec<u8> {
    [&[open], &items.join(&b',')[..], &[close]].concat()
}

/// A JSON string of these bytes; only what would end it is escaped.
fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut text = vec![b'"'];
    for byte in bytes {
        if b"\"\\".contains(byte) {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text.push(b'"');
    text
}

#[test]
fn begin_answers_what_is_foreseen_on_any_json_or_a_part_of_it() {
    let server = Server::start();
    let library = Library::on(&server);
    let schemas = wire::built_in();
    let strategy = prop::collection::vec(
        (json_text(), any::<prop::sample::Index>(), prop::bool::weighted(0.1)),
        40,
    );
    let mut runner = TestRunner::new(Config {
        cases: 24,
        max_shrink_iters: 40,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&strategy, |texts| {
            let texts: Vec<_> = texts
                .into_iter()
                .map(
                    |(text, cut, is_cut)| {
                        if is_cut { text[..cut.index(text.len())].to_vec() } else { text }
                    },
                )
                .collect();
            for schema in &schemas {
                let state = |text: &Vec<u8>| {
                    schema.keys.iter().map(|_| (Held::Text(text.clone()), true)).collect()
                };
                let cases = cases(&server, &library, schema, texts.iter().map(state).collect());
                let mut connection = server.connect();
                for case in &cases {
                    let difference = difference(&mut connection, schema, case);
                    prop_assert!(
                        difference.is_none(),
                        "{}: {}",
                        schema.name,
                        difference.unwrap_or_default()
                    );
                }
            }
            Ok(())
        })
        .unwrap();
}

/// Rule: what cjson, in the scripts, takes for JSON is JSON to idemctl too, though no service writes any of this.
#[test]
fn what_only_cjson_takes_for_json_is_foretold() {
    let server = Server::start();
    let library = Library::on(&server);
    let deep = format!(r#"{{"status":"PENDING","body":{}{}}}"#, "[".repeat(900), "]".repeat(900));
    let texts: [&[u8]; 5] = [
        deep.as_bytes(),
        br#"{"status":"PENDING","code":0x10}"#,
        br#"{"status":"PENDING","code":nan}"#,
        br#"{"code":01,"status":"COMPLETED"}"#,
        // A zero byte ends the text.
        b"{\"status\":\"PENDING\"}\0 and more",
    ];
    let mut connection = server.connect();
    for schema in ["go-middleware", "go-chi", "express"].map(wire::schema) {
        let states = texts.iter().map(|text| vec![(Held::Text(text.to_vec()), true)]).collect();
        for case in cases(&server, &library, &schema, states) {
            let difference = difference(&mut connection, &schema, &case);
            assert!(difference.is_none(), "{}: {}", schema.name, difference.unwrap_or_default());
            assert!(!matches!(case.readings[0], Reading::Unreadable(_)), "{:?}", case.state);
        }
    }
}
