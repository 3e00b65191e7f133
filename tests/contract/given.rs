//! The responses that an operator may give to `complete`, and how a replay differs from them.

use std::fs;

use serde_json::Value;

use crate::support::Server;

/// A response that an operator gives to `complete`.
pub struct Given {
    pub status: u16,
    pub headers: &'static [&'static str],
    pub body: Vec<u8>,
}

/// What a client gets instead of another execution. A library that keeps only the body says nothing of the rest.
pub struct Replayed {
    pub status: Option<u16>,
    /// Names and values, a repeated header several times.
    pub headers: Option<Vec<(String, String)>>,
    pub body: ReplayedBody,
}

/// The body, as far as the library decides about it.
pub enum ReplayedBody {
    /// These bytes.
    Bytes(Vec<u8>),
    /// JSON, which the framework may write in its own way.
    Json(Value),
    /// A value, which the framework sends as JSON, or as it is if it is a text.
    Value(Value),
}

const JSON: &[&str] = &["content-type: application/json"];
const TEXT: &[&str] = &["content-type: text/plain"];

/// The responses of which each is told apart by some library, for a quick run.
pub fn telling_responses() -> Vec<Given> {
    let mut all = Vec::new();
    for body in [
        "null",
        "\"hello\"",
        r#"{"big":12345678901234567890}"#,
        r#"{"text":"caf\u00e9 \ud83d\ude00 \u0000","":[],"o":{}}"#,
        r#"{"at":"2026-11-22T19:50:00+02:00"}"#,
    ] {
        all.push(given(201, JSON, body.as_bytes()));
    }
    all.push(given(201, TEXT, b" not JSON\n"));
    all.push(given(204, &[], b""));
    all.push(given(200, &["content-type: application/octet-stream"], b"\xff\xfe\x00binary"));
    all.push(given(201, &["x-a: 1", "X-A: 2", "x-a: 1"], br#"{"id":1}"#));
    all.push(given(201, &["x-check: \u{2713}"], br#"{"id":1}"#));
    let nested = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    all.push(given(201, JSON, nested.as_bytes()));
    all
}

/// These, and many others in which languages and encodings differ.
pub fn responses() -> Vec<Given> {
    let mut all = telling_responses();
    for body in BODIES {
        all.push(given(201, JSON, body.as_bytes()));
    }
    for body in ["", "hello world", "{not json", "caf\u{e9}", "line\nline", "<html></html>"] {
        all.push(given(201, TEXT, body.as_bytes()));
    }
    all.push(given(204, &["x-a: 1"], b""));
    all.push(given(205, &[], b""));
    all.push(given(404, JSON, br#"{"error":"none"}"#));
    for headers in [
        &["x-a: 1", "x-a: 2"][..],
        &["set-cookie: a=1; Path=/", "set-cookie: b=2; Path=/"],
        &["X-Mixed-Case: Yes", "content-type: application/json"],
        &["x-empty:"],
        &["x-quoted: \"a\\b\"", "location: /orders/1?a=b&c=%20"],
        &["x-at: 2026-11-22T19:50:00+02:00"],
        &["x-name: caf\u{e9}"],
    ] {
        all.push(given(201, headers, br#"{"id":1}"#));
    }
    let many: Vec<String> = (0..5_000).map(|number| number.to_string()).collect();
    all.push(given(201, JSON, format!("[{}]", many.join(",")).as_bytes()));
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20));
    all.push(given(201, JSON, long.as_bytes()));
    all
}

fn given(status: u16, headers: &'static [&'static str], body: &[u8]) -> Given {
    Given { status, headers, body: body.to_vec() }
}

const BODIES: &[&str] = &[
    "{}",
    "[]",
    "true",
    "false",
    "0",
    "-1",
    "\"\"",
    "\"caf\u{e9} \u{2713} \u{1f600}\"",
    r#"{"id":1}"#,
    r#"{"items":[],"meta":{}}"#,
    r#"{"a":{"b":{"c":[1,[2,[3]]]}}}"#,
    r#"[{"id":1},{"id":2}]"#,
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
    r#"{"html":"<a href='x'>&amp;</a>"}"#,
    r#"{"a":1,"a":2}"#,
    r#"{"status":"COMPLETED"}"#,
    r#"{"__proto__":{"x":1}}"#,
    "{ \"pretty\" : [ 1,\n 2 ] }",
    r#"{"null":null,"list":[null]}"#,
    r#"{"number":"12345678901234567890"}"#,
    r#"{"at":"2026-11-22T19:50:00Z"}"#,
    r#"{"at":"2026-11-22T19:50:00.120Z"}"#,
    r#"["2026-11-22T19:50:00+02:00"]"#,
    r#"[1,"/Date(1763841000000)/"]"#,
];

impl Given {
    /// Why `complete` refuses this response for the record that the words name; `None` if it stored it. Some services keep
    /// the body alone, and get nothing else.
    pub fn complete(&self, server: &Server, record: &[&str], keeps_all: bool) -> Option<String> {
        let file = server.folder().join("body");
        fs::write(&file, &self.body).unwrap();
        let body = format!("@{}", file.display());
        let mut words = [&["complete", "--yes", "--body", &body], record].concat();
        let status = self.status.to_string();
        if keeps_all {
            words.extend(["--status", &status]);
            for header in self.headers {
                words.extend(["--header", *header]);
            }
        }
        let run = server.idemctl(&words);
        match run.code {
            0 => None,
            2 => Some(run.all()),
            _ => panic!("{record:?}: {}", run.all()),
        }
    }

    /// How the replay differs from this; `None` if it does not.
    pub fn difference(&self, replayed: &Replayed) -> Option<String> {
        if let Some(status) = replayed.status
            && status != self.status
        {
            return Some(format!("status {status}"));
        }
        if let Some(headers) = &replayed.headers
            && let Some(name) = self.missing_header(headers)
        {
            return Some(format!("another header {name}: {headers:?}"));
        }
        match &replayed.body {
            ReplayedBody::Bytes(body) if *body == self.body => None,
            ReplayedBody::Json(value) | ReplayedBody::Value(value)
                if is_same_json(value, &self.body) =>
            {
                None
            }
            ReplayedBody::Value(Value::String(text)) if text.as_bytes() == self.body => None,
            ReplayedBody::Bytes(body) => {
                Some(format!("another body: {}", String::from_utf8_lossy(body)))
            }
            ReplayedBody::Json(value) | ReplayedBody::Value(value) => {
                Some(format!("another body: {value}"))
            }
        }
    }

    /// The name of a given header whose values are not all in these headers, in their order; `None` if there is none. Names
    /// are compared without case.
    fn missing_header(&self, headers: &[(String, String)]) -> Option<String> {
        for header in self.headers {
            let (name, _) = header.split_once(':').unwrap();
            let mut wanted = Vec::new();
            for other in self.headers {
                let (other, value) = other.split_once(':').unwrap();
                if other.eq_ignore_ascii_case(name) {
                    wanted.push(value.trim());
                }
            }
            let mut found = Vec::new();
            for (other, value) in headers {
                if other.eq_ignore_ascii_case(name) {
                    found.push(value.as_str());
                }
            }
            if wanted != found {
                return Some(name.to_owned());
            }
        }
        None
    }

    /// The beginning of the body, for messages.
    pub fn shown(&self) -> String {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(60)]).into_owned();
        format!("{} {:?} {body}", self.status, self.headers)
    }
}

/// The headers of a JSON object of texts and lists of texts.
pub fn headers_of(object: &Value) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (name, values) in object.as_object().into_iter().flatten() {
        let single = std::slice::from_ref(values);
        for value in values.as_array().map_or(single, Vec::as_slice) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            headers.push((name.clone(), text));
        }
    }
    headers
}

/// True for the same JSON value. Numbers are compared as Rust reads them, and by their digits if they have more than a double
/// keeps.
fn is_same_json(one: &Value, other: &[u8]) -> bool {
    serde_json::from_slice(other).is_ok_and(|other| is_same(one, &other))
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
