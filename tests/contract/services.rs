//! The six services as their contract describes them: which commands they send, which bytes they store, and what they
//! make of what they find. Their scripts' effects are played in plain commands.

use idemctl::domain::step::reply::StepReply;
use redis::Connection;
use serde_json::Value;

use crate::support::wire;

/// What a service learns when it begins.
#[derive(Debug, PartialEq)]
pub enum Begun {
    /// It holds the lock.
    Took,
    /// Another does.
    Held,
    /// Here is the stored result.
    Stored(Vec<u8>),
    /// It fails on what is there.
    Fails,
}

/// One service library.
pub struct Service {
    pub schema: &'static str,
    pub begin: fn(&mut Connection, key: &str, worker: &str) -> Begun,
    /// Stores its result; false when it may not.
    pub complete: fn(&mut Connection, key: &str, worker: &str) -> bool,
    /// Gives the lock up without a result, where it ever does.
    pub release: Option<fn(&mut Connection, key: &str)>,
    /// The bytes `complete` stores.
    pub result: &'static str,
}

pub const SERVICES: [Service; 6] = [
    Service {
        schema: "go-middleware",
        begin: |redis, key, _| {
            begin_by_status(redis, &format!("idempotency:{key}"), "PENDING", 300)
        },
        complete: |redis, key, _| {
            let redis_key = format!("idempotency:{key}");
            let pending =
                get(redis, &redis_key).and_then(|stored| status(&stored)) == Some("PENDING".into());
            pending && set(redis, &redis_key, GO_MIDDLEWARE, 86_400)
        },
        release: None,
        result: GO_MIDDLEWARE,
    },
    Service {
        schema: "go-middleware-v1",
        begin: |redis, key, _| {
            let redis_key = format!("idempotency:{key}");
            if set_nx(redis, &redis_key, "in-progress", 300) {
                return Begun::Took;
            }
            match get(redis, &redis_key) {
                Some(stored) if stored == b"completed" => Begun::Stored(stored),
                Some(_) => Begun::Held,
                None => Begun::Fails,
            }
        },
        complete: |redis, key, _| set(redis, &format!("idempotency:{key}"), "completed", 86_400),
        release: None,
        result: "completed",
    },
    Service {
        schema: "go-chi",
        begin: |redis, key, _| {
            let Some(stored) = get(redis, key) else {
                return took(set_nx(redis, key, r#"{"status":0}"#, 60));
            };
            match status(&stored) {
                Some(status) if status == 1 => Begun::Stored(stored),
                _ => Begun::Held,
            }
        },
        complete: |redis, key, _| set(redis, key, GO_CHI, 86_400),
        release: Some(del),
        result: GO_CHI,
    },
    Service {
        schema: "event-driven",
        begin: |redis, key, worker| {
            if let Some(stored) = get(redis, &format!("idem:result:{key}")) {
                return Begun::Stored(stored);
            }
            took(set_nx(redis, &format!("idem:started:{key}"), worker, 30))
        },
        complete: |redis, key, worker| {
            let lock = format!("idem:started:{key}");
            let own = get(redis, &lock).as_deref() == Some(worker.as_bytes());
            own && set(redis, &format!("idem:result:{key}"), EVENT_DRIVEN, 86_400) && {
                del(redis, &lock);
                true
            }
        },
        release: None,
        result: EVENT_DRIVEN,
    },
    Service {
        schema: "express",
        begin: |redis, key, _| begin_by_status(redis, &format!("idem:{key}"), "IN_PROGRESS", 30),
        complete: |redis, key, _| {
            let redis_key = format!("idem:{key}");
            get(redis, &redis_key).is_some() && set(redis, &redis_key, EXPRESS, 86_400)
        },
        release: Some(|redis, key| del(redis, &format!("idem:{key}"))),
        result: EXPRESS,
    },
    Service {
        schema: "event-consumer",
        begin: |redis, key, _| match get(redis, &format!("idem:done:{key}")) {
            Some(done) => Begun::Stored(done),
            None => took(set_nx(redis, &format!("idem:lock:{key}"), "1", 60)),
        },
        complete: |redis, key, _| {
            set(redis, &format!("idem:done:{key}"), r#"{"id":7}"#, 86_400) && {
                del(redis, &format!("idem:lock:{key}"));
                true
            }
        },
        release: Some(|redis, key| del(redis, &format!("idem:lock:{key}"))),
        result: r#"{"id":7}"#,
    },
];

// The same response in each service's own form: status 201 (200 where the form is an operation's), a body of {"id":7}.
pub const GO_MIDDLEWARE: &str = r#"{"status":"COMPLETED","code":201,"headers":{"Content-Type":["application/json"]},"body":"eyJpZCI6N30="}"#;
pub const GO_CHI: &str = r#"{"status":1,"response":{"StatusCode":201,"Header":{"Content-Type":["application/json"]},"Body":"eyJpZCI6N30="}}"#;
pub const EVENT_DRIVEN: &str = r#"{"statusCode":201,"body":"{\"id\":7}"}"#;
pub const EXPRESS: &str = r#"{"status":"COMPLETED","statusCode":201,"headers":{"content-type":"application/json"},"body":{"id":7}}"#;

/// Begins as a service does whose value says in a word whether it is a lock, which has this word, or a result.
fn begin_by_status(redis: &mut Connection, redis_key: &str, held: &str, seconds: u32) -> Begun {
    let Some(stored) = get(redis, redis_key) else {
        return took(set_nx(redis, redis_key, &format!(r#"{{"status":"{held}"}}"#), seconds));
    };
    match status(&stored) {
        Some(Value::String(status)) if status == held => Begun::Held,
        Some(Value::String(status)) if status == "COMPLETED" => Begun::Stored(stored),
        _ => Begun::Fails,
    }
}

fn took(set: bool) -> Begun {
    if set { Begun::Took } else { Begun::Held }
}

fn status(stored: &[u8]) -> Option<Value> {
    serde_json::from_slice::<Value>(stored).ok()?.get("status").cloned()
}

fn get(redis: &mut Connection, redis_key: &str) -> Option<Vec<u8>> {
    match wire::ask(redis, &["GET", redis_key]) {
        StepReply::Text(text) => Some(text),
        _ => None,
    }
}

fn set(redis: &mut Connection, redis_key: &str, value: &str, seconds: u32) -> bool {
    wire::line(&wire::ask(redis, &["SET", redis_key, value, "EX", &seconds.to_string()])) == "OK"
}

fn set_nx(redis: &mut Connection, redis_key: &str, value: &str, seconds: u32) -> bool {
    wire::line(&wire::ask(redis, &["SET", redis_key, value, "NX", "EX", &seconds.to_string()]))
        == "OK"
}

fn del(redis: &mut Connection, redis_key: &str) {
    wire::ask(redis, &["DEL", redis_key]);
}
