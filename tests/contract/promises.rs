//! `complete` promises that clients get the response that it was given. The installed libraries are asked: each body is either
//! refused, or the library replays it.
//!
//! `make libraries` runs this, because the libraries come from registries. A library that is not installed is skipped.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::Server;

/// A response that an operator gives to `complete`.
struct Given {
    status: u16,
    headers: &'static [&'static str],
    body: Vec<u8>,
}

/// What the library's handler returned comes back as this.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replays {
    /// The value alone, as JSON.
    Json,
    /// An object with `statusCode`, `body` and the headers.
    Response,
    /// The status, a space and the text of the body.
    Text,
}

const JSON: &[&str] = &["content-type: application/json"];

fn responses() -> Vec<Given> {
    let mut all = Vec::new();
    let mut add =
        |status, headers, body: &[u8]| all.push(Given { status, headers, body: body.to_vec() });
    for body in [
        "{}",
        "[]",
        "null",
        "true",
        "false",
        "0",
        "-1",
        "\"\"",
        "\"hello\"",
        "\"caf\u{e9} \u{2713} \u{1f600}\"",
        r#"{"id":1}"#,
        r#"{"items":[],"meta":{}}"#,
        r#"{"a":{"b":{"c":[1,[2,[3]]]}}}"#,
        r#"[{"id":1},{"id":2}]"#,
        r#"{"big":12345678901234567890}"#,
        r#"{"big":9007199254740993}"#,
        r#"{"big":9007199254740991}"#,
        r#"{"long":0.1234567890123456789}"#,
        r#"{"small":1e-7}"#,
        r#"{"huge":1e400}"#,
        r#"{"half":0.5}"#,
        r#"{"price":10.00}"#,
        r#"{"exponent":1.5e3}"#,
        r#"{"minus":-0}"#,
        r#"{"text":"a\"b\\c\nd\te"}"#,
        r#"{"slash":"a\/b"}"#,
        r#"{"unicode":"\u00fc\ud83d\ude00"}"#,
        r#"{"zero":"\u0000"}"#,
        r#"{"html":"<a href='x'>&amp;</a>"}"#,
        r#"{"":"empty name"}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"status":"COMPLETED"}"#,
        r#"{"__proto__":{"x":1}}"#,
        "{ \"pretty\" : [ 1,\n 2 ] }",
        r#"{"null":null,"list":[null]}"#,
        r#"{"number":"12345678901234567890"}"#,
    ] {
        add(201, JSON, body.as_bytes());
    }
    for body in
        ["", "hello world", "{not json", "caf\u{e9}", " padded ", "line\nline", "<html></html>"]
    {
        add(200, &["content-type: text/plain"], body.as_bytes());
    }
    add(204, &[], b"");
    add(201, &["x-a: 1", "x-a: 2"], br#"{"id":1}"#);
    add(201, &["X-Mixed-Case: Yes", "content-type: application/json"], br#"{"id":1}"#);
    add(200, &["content-type: application/octet-stream"], b"\xff\xfe\x00binary");
    add(404, JSON, br#"{"error":"none"}"#);
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20));
    add(201, JSON, long.as_bytes());
    let many: Vec<String> = (0..5_000).map(|number| number.to_string()).collect();
    add(201, JSON, format!("[{}]", many.join(",")).as_bytes());
    all
}

#[test]
#[ignore = "asks a library that `make libraries` installs"]
fn express_idempotency_replays_what_complete_stored() {
    replays_what_complete_stored("express-idempotency", Replays::Text);
}

#[test]
#[ignore = "asks a library that `make libraries` installs"]
fn idempotency_kit_replays_what_complete_stored() {
    replays_what_complete_stored("idempotency-kit", Replays::Json);
}

#[test]
#[ignore = "asks a library that `make libraries` installs"]
fn node_idempotency_replays_what_complete_stored() {
    replays_what_complete_stored("node-idempotency", Replays::Response);
}

#[test]
#[ignore = "asks a library that `make libraries` installs"]
fn powertools_python_replays_what_complete_stored() {
    replays_what_complete_stored("powertools-python", Replays::Json);
}

#[test]
#[ignore = "asks a library that `make libraries` installs"]
fn powertools_typescript_replays_what_complete_stored() {
    replays_what_complete_stored("powertools-typescript", Replays::Json);
}

#[expect(clippy::print_stderr, reason = "prints the libraries that were asked or skipped")]
fn replays_what_complete_stored(library: &str, replays: Replays) {
    if !Path::new(".libraries").join(library).join("pinned").exists() {
        eprintln!("{library}: skipped, it is not installed");
        return;
    }
    let server = Server::start();
    let responses = responses();
    let mut refused = Vec::new();
    let mut wrong = String::new();
    for (index, given) in responses.iter().enumerate() {
        let key = format!("body-{index:02}");
        asked(&server, library, "begin", &key);
        let redis_key = the_new_lock(&server, library, &refused);
        let why = complete(&server, library, &redis_key, given);
        if why.is_some() {
            refused.push(redis_key);
        }
        let answer = asked(&server, library, "answer", &key);
        let told = match (&why, &answer["answer"]) {
            // Nothing was changed, so the library still finds its lock.
            (Some(_), Value::String(word)) if word == "conflict" => continue,
            (None, Value::String(word)) if word == "replay" => {
                difference(replays, given, answer["text"].as_str().unwrap())
            }
            _ => Some(answer.to_string()),
        };
        if let Some(told) = told {
            let body = String::from_utf8_lossy(&given.body[..given.body.len().min(60)]);
            let told: String = told.chars().take(200).collect();
            writeln!(wrong, "{library}: {body}: {told} (refused: {why:?})").unwrap();
        }
    }
    eprintln!("{library}: {} responses, {} refused", responses.len(), refused.len());
    assert!(wrong.is_empty(), "{wrong}");
}

/// The answer of the library's driver.
fn asked(server: &Server, library: &str, mode: &str, key: &str) -> Value {
    let output = Command::new("scripts/libraries.sh")
        .args(["run", library, mode, key])
        .env("IDEMCTL_LIBRARY_SOCKET", server.socket())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{library} {mode} {key}: {error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    })
}

/// The Redis key of the only lock besides these.
fn the_new_lock(server: &Server, library: &str, others: &[String]) -> String {
    let run =
        server.idemctl(&["list", "--schema", library, "--state", "in-progress", "-o", "jsonl"]);
    let mut found = Vec::new();
    for line in run.exits(0).text().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let redis_key = record["redis_keys"][0].as_str().unwrap().to_owned();
        if !others.contains(&redis_key) {
            found.push(redis_key);
        }
    }
    assert_eq!(found.len(), 1, "{library}: {found:?}");
    found.remove(0)
}

/// Why `complete` refuses this response; `None` if it stored it.
fn complete(server: &Server, library: &str, redis_key: &str, given: &Given) -> Option<String> {
    let file = server.folder().join("body");
    fs::write(&file, &given.body).unwrap();
    let body = format!("@{}", file.display());
    let mut words = vec!["complete", redis_key, "--schema", library, "--yes", "--body", &body];
    let status = given.status.to_string();
    // The other libraries keep the body alone.
    if ["express-idempotency", "node-idempotency"].contains(&library) {
        words.extend(["--status", &status]);
        for header in given.headers {
            words.extend(["--header", *header]);
        }
    }
    let run = server.idemctl(&words);
    match run.code {
        0 => None,
        2 => Some(run.all()),
        _ => panic!("{library}: {}", run.all()),
    }
}

/// How the replay differs from what was given; `None` if it does not.
fn difference(replays: Replays, given: &Given, text: &str) -> Option<String> {
    let shown: String = text.chars().take(200).collect();
    let (status, body) = match replays {
        Replays::Json => (None, text.to_owned()),
        Replays::Response => {
            let response: Value = serde_json::from_str(text).unwrap();
            let status = response["statusCode"].to_string();
            if let Some(name) = missing_header(given, &response["additional"]["headers"]) {
                return Some(format!("{name} is missing or another: {shown}"));
            }
            let body = response.get("body").map(Value::to_string).unwrap_or_default();
            (Some(status), body)
        }
        Replays::Text => {
            let (status, body) = text.split_once(' ').unwrap();
            (Some(status.to_owned()), body.to_owned())
        }
    };
    if status.is_some_and(|status| status != given.status.to_string()) {
        return Some(format!("another status: {shown}"));
    }
    let is_same = match replays {
        Replays::Text => body.as_bytes() == given.body,
        Replays::Json => is_same_json(&body, &given.body),
        // A text that is not JSON comes back as the text that the handler returned.
        Replays::Response => {
            is_same_json(&body, &given.body)
                || serde_json::from_str::<String>(&body)
                    .is_ok_and(|text| text.as_bytes() == given.body)
        }
    };
    if is_same { None } else { Some(format!("another body: {shown}")) }
}

/// The name of a given header whose values are not all in these headers, in their order; `None` if
/// there is none. Names are compared without case, and a single value may be a text.
fn missing_header(given: &Given, headers: &Value) -> Option<String> {
    for header in given.headers {
        let (name, _) = header.split_once(": ").unwrap();
        let is_it = |other: &str| other.eq_ignore_ascii_case(name);
        let mut wanted = Vec::new();
        for other in given.headers {
            let (other, value) = other.split_once(": ").unwrap();
            if is_it(other) {
                wanted.push(Value::from(value));
            }
        }
        let members = headers.as_object().into_iter().flatten();
        let found = members.filter(|(other, _)| is_it(other)).map(|(_, value)| value).next();
        let is_same = match found {
            Some(Value::Array(values)) => *values == wanted,
            Some(single) => wanted.len() == 1 && *single == wanted[0],
            None => false,
        };
        if !is_same {
            return Some(name.to_owned());
        }
    }
    None
}

/// True for the same JSON value. Numbers are compared as Rust reads them, and by their digits if they have more than a double
/// keeps.
fn is_same_json(one: &str, other: &[u8]) -> bool {
    let one: Result<Value, _> = serde_json::from_str(one);
    let other: Result<Value, _> = serde_json::from_slice(other);
    matches!((one, other), (Ok(one), Ok(other)) if is_same(&one, &other))
}

fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.to_string(), other.to_string());
            let is_long = |text: &str| text.bytes().filter(u8::is_ascii_digit).count() > 15;
            one == other
                || (!is_long(&one)
                    && !is_long(&other)
                    && one.parse::<f64>() == other.parse::<f64>())
        }
        (Value::Array(ones), Value::Array(others)) => {
            ones.len() == others.len()
                && ones.iter().zip(others).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(ones), Value::Object(others)) => {
            ones.len() == others.len()
                && ones
                    .iter()
                    .all(|(name, one)| others.get(name).is_some_and(|other| is_same(one, other)))
        }
        (one, other) => one == other,
    }
}
