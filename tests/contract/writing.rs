//! What idemctl sends and stores when it plays a service: the service's own words and bytes.

use idemctl::domain::record::response::Response;
use idemctl::domain::schema::{Action, Schema, Step};
use idemctl::domain::step::inputs::StepInputs;
use redis::Connection;

use crate::services::{EVENT_DRIVEN, EXPRESS, GO_CHI, GO_MIDDLEWARE};
use crate::support::Server;
use crate::support::wire;

const OWNER: &str = "0d3f6f2e-58f5-4c0b-9d6c-1f1f8f2a7b11";

fn json_response() -> Response {
    Response {
        status: Some(201),
        headers: vec![("Content-Type".into(), "application/json".into())],
        body: br#"{"id":7}"#.to_vec(),
        whole: true,
    }
}

fn play(connection: &mut Connection, schema: &Schema, step: &Step) -> String {
    let response = json_response();
    let request = StepInputs::new(schema, b"order-1", OWNER, &response);
    wire::line(&wire::play(connection, step, &request).reply)
}

/// Asserts what stands at a Redis key, and that its TTL was set to these seconds a moment ago.
#[track_caller]
fn assert_held(
    connection: &mut Connection,
    (redis_key, value, seconds): (&str, &str, i64),
    schema: &str,
) {
    assert_eq!(wire::line(&wire::ask(connection, &["GET", redis_key])), value, "{schema}");
    let left: i64 = wire::line(&wire::ask(connection, &["PTTL", redis_key])).parse().unwrap();
    // A busy machine takes seconds between two commands; no two TTLs of the contract are that close.
    assert!(
        (seconds * 700..=seconds * 1_000).contains(&left),
        "{schema}: {left} ms of {seconds} s"
    );
}

/// What a service stores and is answered, from its contract.
struct Told {
    schema: &'static str,
    lock: (&'static str, &'static str, i64),
    result: (&'static str, &'static str, i64),
    took: &'static str,
    conflict: &'static str,
    stored: &'static str,
    replay: &'static str,
}

const TOLD: [Told; 6] = [
    Told {
        schema: "go-middleware",
        lock: ("idempotency:order-1", r#"{"status":"PENDING"}"#, 300),
        result: ("idempotency:order-1", GO_MIDDLEWARE, 86_400),
        took: "PROCEED",
        conflict: "CONFLICT",
        stored: "OK",
        replay: GO_MIDDLEWARE,
    },
    Told {
        schema: "go-middleware-v1",
        lock: ("idempotency:order-1", "in-progress", 300),
        result: ("idempotency:order-1", "completed", 86_400),
        took: "OK",
        conflict: "in-progress",
        stored: "OK",
        replay: "completed",
    },
    Told {
        schema: "go-chi",
        lock: ("order-1", r#"{"status":0}"#, 60),
        result: ("order-1", GO_CHI, 86_400),
        took: "nil",
        conflict: "error LOCKED",
        stored: "OK",
        replay: GO_CHI,
    },
    Told {
        schema: "event-driven",
        lock: ("idem:started:order-1", OWNER, 30),
        result: ("idem:result:order-1", EVENT_DRIVEN, 86_400),
        took: "[2]",
        conflict: "[3]",
        stored: "1",
        replay: r#"[1 {"statusCode":201,"body":"{\"id\":7}"}]"#,
    },
    Told {
        schema: "express",
        lock: ("idem:order-1", r#"{"status":"IN_PROGRESS"}"#, 30),
        result: ("idem:order-1", EXPRESS, 86_400),
        took: "PROCEED",
        conflict: "CONFLICT",
        stored: "OK",
        replay: EXPRESS,
    },
    Told {
        schema: "event-consumer",
        lock: ("idem:lock:order-1", "1", 60),
        result: ("idem:done:order-1", r#"{"id":7}"#, 86_400),
        took: "OK",
        conflict: "nil",
        stored: "1",
        replay: "1",
    },
];

#[test]
fn stores_the_services_bytes_for_the_services_time() {
    let server = Server::start();
    for told in TOLD {
        let schema = wire::schema(told.schema);
        let connection = &mut server.connect();
        wire::ask(connection, &["DEL", told.lock.0, told.result.0]);
        assert_eq!(
            play(connection, &schema, schema.begin.as_ref().unwrap()),
            told.took,
            "{}",
            told.schema
        );
        assert_held(connection, told.lock, told.schema);
        assert_eq!(
            play(connection, &schema, schema.begin.as_ref().unwrap()),
            told.conflict,
            "{}",
            told.schema
        );
        assert_eq!(
            play(connection, &schema, schema.complete.as_ref().unwrap()),
            told.stored,
            "{}",
            told.schema
        );
        assert_held(connection, told.result, told.schema);
        if told.lock.0 != told.result.0 {
            let lock = wire::line(&wire::ask(connection, &["GET", told.lock.0]));
            assert_eq!(lock, "nil", "{}: the lock goes", told.schema);
        }
        assert_eq!(
            play(connection, &schema, schema.begin.as_ref().unwrap()),
            told.replay,
            "{}",
            told.schema
        );
    }
}

/// The words of every call, a script's text replaced by its name: what the contract lists for each service.
const SENT: [(&str, &[&[&str]]); 6] = [
    (
        "go-middleware",
        &[
            &["EVAL", "check_and_lock", "1", "idempotency:order-1", "300"],
            &["EVAL", "set_completed", "1", "idempotency:order-1", "RESULT", "86400"],
        ],
    ),
    (
        "go-middleware-v1",
        &[
            &["SET", "idempotency:order-1", "in-progress", "NX", "EX", "300"],
            &["GET", "idempotency:order-1"],
            &["SET", "idempotency:order-1", "completed", "EX", "86400"],
        ],
    ),
    (
        "go-chi",
        &[
            &["EVAL", "lock", "1", "order-1", "60"],
            &["SET", "order-1", "RESULT", "EX", "86400"],
            &["DEL", "order-1"],
        ],
    ),
    (
        "event-driven",
        &[
            &["EVAL", "idempotency", "1", "order-1", OWNER, "30", "86400"],
            &[
                "EVAL",
                "complete",
                "3",
                "order-1",
                "idem:result:order-1",
                "idem:started:order-1",
                OWNER,
                "RESULT",
                "86400",
            ],
        ],
    ),
    (
        "express",
        &[
            &["EVAL", "start_processing", "1", "idem:order-1", "30"],
            &["EVAL", "complete_processing", "1", "idem:order-1", "RESULT", "86400"],
            &["DEL", "idem:order-1"],
        ],
    ),
    (
        "event-consumer",
        &[
            &["EXISTS", "idem:done:order-1"],
            &["SET", "idem:lock:order-1", "1", "NX", "EX", "60"],
            &[
                "EVAL",
                "mark_completed_and_unlock",
                "2",
                "idem:done:order-1",
                "idem:lock:order-1",
                "RESULT",
                "86400",
            ],
            &["DEL", "idem:lock:order-1"],
        ],
    ),
];

#[test]
fn sends_the_services_commands_keys_and_arguments() {
    for (name, told) in SENT {
        let schema = wire::schema(name);
        let response = json_response();
        let request = StepInputs::new(&schema, b"order-1", OWNER, &response);
        let steps = [&schema.begin, &schema.complete, &schema.release].map(Option::as_ref);
        let calls = steps.into_iter().flatten().flat_map(|step| &step.calls);
        let sent: Vec<Vec<String>> = calls
            .map(|call| {
                let mut words: Vec<_> = wire::words(call, &request)
                    .into_iter()
                    .map(|word| String::from_utf8(word).unwrap())
                    .collect();
                if let Action::Script { name, .. } = &call.action {
                    words[1].clone_from(name);
                }
                let result = String::from_utf8(request.result_value()).unwrap();
                let is_result = |word: &String| *word == result && name != "go-middleware-v1";
                words
                    .into_iter()
                    .map(|word| if is_result(&word) { "RESULT".to_owned() } else { word })
                    .collect()
            })
            .collect();
        assert_eq!(sent, told, "{name}");
    }
}

#[test]
fn a_redis_key_with_the_deployments_prefix() {
    let deployment = |_: &str| idemctl::schemas::Deployment {
        prefix: Some("pay:".into()),
        ..Default::default()
    };
    let schemas = idemctl::schemas::load(None, deployment).unwrap().schemas;
    let response = json_response();
    for (name, redis_keys, sent) in [
        ("go-chi", &["pay:order-1"][..], "pay:order-1"),
        ("go-middleware", &["pay:idempotency:order-1"], "pay:idempotency:order-1"),
        // The script builds both Redis keys from the key that it is sent.
        ("event-driven", &["idem:started:pay:order-1", "idem:result:pay:order-1"], "pay:order-1"),
    ] {
        let schema = schemas.iter().find(|schema| schema.name == name).unwrap();
        let keys = schema.redis_keys(b"order-1");
        assert_eq!(
            keys.iter().map(|key| String::from_utf8_lossy(key)).collect::<Vec<_>>(),
            redis_keys,
            "{name}"
        );
        let request = StepInputs::new(schema, b"order-1", OWNER, &response);
        assert_eq!(
            wire::words(&schema.begin.as_ref().unwrap().calls[0], &request)[3],
            sent.as_bytes(),
            "{name}"
        );
    }
}

#[test]
fn ttls_are_sent_as_whole_seconds_rounded_up() {
    let millis = std::time::Duration::from_millis;
    let deployment = |_: &str| idemctl::schemas::Deployment {
        lock_ttl: Some(millis(1)),
        result_ttl: Some(millis(2_001)),
        ..Default::default()
    };
    let response = json_response();
    for schema in idemctl::schemas::load(None, deployment).unwrap().schemas {
        let request = StepInputs::new(&schema, b"order-1", OWNER, &response);
        let sends = |step: &Step, seconds: &[u8]| {
            step.calls
                .iter()
                .any(|call| wire::words(call, &request).iter().any(|word| word == seconds))
        };
        assert!(
            sends(schema.begin.as_ref().unwrap(), b"1")
                && sends(schema.complete.as_ref().unwrap(), b"3"),
            "{}",
            schema.name
        );
    }
}

/// A response with everything a form has to write in its own way.
fn difficult_response() -> Response {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Response {
        status: Some(200),
        headers: vec![
            header("Set-Cookie", "a=1"),
            header("Link", "</orders/1>; rel=\"next\"&"),
            header("Set-Cookie", "b=2"),
        ],
        body: "caf\u{e9} <b>\n\u{1}\u{2028}".into(),
        whole: true,
    }
}

#[test]
fn writes_difficult_responses_as_the_services_encoders_do() {
    for (name, told) in [
        (
            // Go sorts the names, keeps a header's values in one list, and escapes angle brackets and ampersands.
            "go-middleware",
            r#"{"status":"COMPLETED","code":200,"headers":{"Link":["\u003c/orders/1\u003e; rel=\"next\"\u0026"],"Set-Cookie":["a=1","b=2"]},"body":"Y2Fmw6kgPGI+CgHigKg="}"#,
        ),
        (
            "go-chi",
            r#"{"status":1,"response":{"StatusCode":200,"Header":{"Link":["\u003c/orders/1\u003e; rel=\"next\"\u0026"],"Set-Cookie":["a=1","b=2"]},"Body":"Y2Fmw6kgPGI+CgHigKg="}}"#,
        ),
        ("go-middleware-v1", "completed"),
        ("event-driven", "{\"statusCode\":200,\"body\":\"caf\u{e9} <b>\\n\\u0001\u{2028}\"}"),
        (
            // JavaScript keeps the order, has an array where a header was set more than once, and names in lower case.
            "express",
            "{\"status\":\"COMPLETED\",\"statusCode\":200,\"headers\":{\"set-cookie\":[\"a=1\",\"b=2\"],\"link\":\"</orders/1>; rel=\\\"next\\\"&\"},\"body\":\"caf\u{e9} <b>\\n\\u0001\u{2028}\"}",
        ),
        ("event-consumer", "caf\u{e9} <b>\n\u{1}\u{2028}"),
    ] {
        let schema = wire::schema(name);
        let response = difficult_response();
        let request = StepInputs::new(&schema, b"order-1", OWNER, &response);
        assert_eq!(String::from_utf8(request.result_value()).unwrap(), told, "{name}");
    }
}
