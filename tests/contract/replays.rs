//! `complete` promises that clients get the response that it was given. Of libraries that cannot be installed here, a reader written
//! from the source is asked: each response is either refused, or replayed as it was given.

use std::fmt::Write as _;

use super::given::{self, Given, Replayed};
use super::readers;
use crate::support::Server;

/// A library and a record for each response.
struct Asked {
    schema: &'static str,
    /// The Redis key of a lock, if there is one in Redis, and its value.
    lock: Option<(&'static str, &'static str)>,
    /// The key for idemctl, and that of the result in Redis. `KEY` stands for the record.
    key: &'static str,
    result: &'static str,
    more: &'static [&'static str],
    /// False if the library keeps the body alone.
    keeps_all: bool,
    read: fn(&[u8]) -> Result<Replayed, String>,
    /// At least so many of the responses are stored.
    stored: usize,
}

/// Asks for each response.
#[track_caller]
fn all_are_replayed_or_refused(asked: &Asked, responses: &[Given]) {
    let server = Server::start();
    let mut stored = 0;
    let mut wrong = String::new();
    for (index, given) in responses.iter().enumerate() {
        let named = |text: &str| text.replace("KEY", &format!("{index:04}"));
        if let Some((lock, value)) = asked.lock {
            server.set(&named(lock), named(value), 200_000);
        }
        let key = named(asked.key);
        let record = [&[&key, "--schema", asked.schema], asked.more].concat();
        let why = given.complete(&server, &record, asked.keeps_all);
        let result = named(asked.result);
        if let Some(why) = why {
            let lock = asked.lock.map(|(lock, value)| (named(lock), named(value)));
            let left = lock.as_ref().and_then(|(lock, _)| server.get(lock));
            let value = lock.as_ref().map(|(_, value)| value.as_bytes());
            assert_eq!(left.as_deref(), value, "{}: {why}", given.shown());
            continue;
        }
        stored += 1;
        let kind: String = server.send(&[b"TYPE", result.as_bytes()]);
        let value = if kind == "hash" {
            server.send(&[b"HGET", result.as_bytes(), b"data"])
        } else {
            server.get(&result).unwrap()
        };
        let told = match (asked.read)(&value) {
            Ok(replayed) => given.difference(&replayed),
            Err(why) => Some(why),
        };
        if let Some(told) = told {
            let told: String = told.chars().take(200).collect();
            writeln!(wrong, "{}: {told}", given.shown()).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}:\n{wrong}", asked.schema);
    assert!(stored >= asked.stored, "{}: only {stored} are stored", asked.schema);
}

const HONO: Asked = Asked {
    schema: "hono-idempotency",
    lock: Some((
        "POST:/pay:KEY",
        r#"{"key":"KEY","fingerprint":"f","status":"processing","createdAt":1767225600000}"#,
    )),
    key: "POST:/pay:KEY",
    result: "POST:/pay:KEY",
    more: &[],
    keeps_all: true,
    read: readers::hono,
    stored: 7,
};

const FIBER: Asked = Asked {
    schema: "gofiber",
    lock: None,
    key: "00000000-0000-0000-0000-00000000KEY",
    result: "00000000-0000-0000-0000-00000000KEY",
    more: &["--create"],
    keeps_all: true,
    read: readers::fiber,
    stored: 10,
};

const IDEMPO: Asked = Asked {
    schema: "idempo",
    lock: Some(("idempo:lock:KEY", "the owner")),
    key: "KEY",
    result: "idempo:response:KEY",
    more: &["--owner", "the owner"],
    keeps_all: true,
    read: readers::idempo,
    stored: 7,
};

const LARAVEL: Asked = Asked {
    schema: "laravel-square1",
    lock: Some(("laravel_database_laravel_cache_:lock:idempotency:42:KEY", "Zk3uJ9aQw1XyBv7T")),
    key: "42:KEY",
    result: "laravel_database_laravel_cache_:idempotency:42:KEY",
    more: &["--fingerprint", "api/pay"],
    keeps_all: true,
    read: |value| readers::laravel(value, "api/pay"),
    stored: 9,
};

const IDEMPOTENT_API: Asked = Asked {
    schema: "idempotent-api",
    lock: None,
    key: "KEY",
    result: "IdempAPI_KEY",
    more: &["--create", "--fingerprint", "1c80075d"],
    keeps_all: true,
    read: |data| readers::idempotent_api(data, "1c80075d"),
    stored: 4,
};

const MIDAZ: Asked = Asked {
    schema: "midaz",
    lock: Some(("idempotency:crm:holder:org:KEY", "")),
    key: "holder:org:KEY",
    result: "idempotency:crm:holder:org:KEY",
    more: &[],
    keeps_all: false,
    read: readers::midaz_holder,
    stored: 1,
};

/// What Midaz stores of a holder, and two of which Midaz would make something else.
fn holders() -> Vec<Given> {
    let holder = r#"{"id":"01912f4a-0000-7000-8000-000000000001","type":"NATURAL_PERSON","name":"Ada","document":"1","metadata":{"a":1},"createdAt":"2026-11-22T19:50:00Z","updatedAt":"2026-11-22T19:50:00.123Z","deletedAt":null}"#;
    let never_updated = holder.replace(r#""updatedAt":"2026-11-22T19:50:00.123Z","#, "");
    let never_deleted = holder.replace(r#","deletedAt":null"#, "");
    let mut holders = Vec::new();
    for body in [holder, &never_updated, &never_deleted] {
        holders.push(Given { status: 201, headers: &[], body: body.into() });
    }
    holders
}

#[test]
fn hono_replays_what_complete_stored() {
    all_are_replayed_or_refused(&HONO, &given::telling_responses());
}

#[test]
fn fiber_replays_what_complete_stored() {
    all_are_replayed_or_refused(&FIBER, &given::telling_responses());
}

#[test]
fn idempo_replays_what_complete_stored() {
    all_are_replayed_or_refused(&IDEMPO, &given::telling_responses());
}

#[test]
fn laravel_replays_what_complete_stored() {
    all_are_replayed_or_refused(&LARAVEL, &given::telling_responses());
}

#[test]
fn idempotent_api_replays_what_complete_stored() {
    all_are_replayed_or_refused(&IDEMPOTENT_API, &given::telling_responses());
}

#[test]
fn midaz_replays_what_complete_stored() {
    all_are_replayed_or_refused(&MIDAZ, &holders());
}

#[test]
#[ignore = "takes a minute; `make libraries` runs it"]
fn all_promises_are_kept() {
    for asked in [HONO, FIBER, IDEMPO, LARAVEL, IDEMPOTENT_API] {
        all_are_replayed_or_refused(&asked, &given::responses());
    }
    let mut responses = given::responses();
    responses.extend(holders());
    all_are_replayed_or_refused(&MIDAZ, &responses);
}
