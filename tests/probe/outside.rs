//! What `probe` refuses, what it never prints, and the forms of its output.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

use crate::stage::{PAYMENT, Stage, verdicts, with_verdict};
use crate::support::probe_service::Variant;
use crate::support::{Home, Run, Server};
use crate::validator::faults;

/// A service that answers every request in one way, and counts its connections.
pub struct FixedService {
    pub url: String,
    connections: Arc<AtomicUsize>,
}

impl FixedService {
    /// Starts one. `answer` is the whole answer to the request with this number.
    pub fn start(answer: impl Fn(usize) -> String + Send + Sync + 'static) -> Self {
        Self::answering(move |number, _| answer(number))
    }

    /// The same if the answer depends on the request.
    pub fn answering(answer: impl Fn(usize, &str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/payments", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let number = counted.fetch_add(1, Ordering::SeqCst);
                let answer = Arc::clone(&answer);
                thread::spawn(move || {
                    let request = whole_request(&mut stream);
                    let _ = stream.write_all(answer(number, &request).as_bytes());
                });
            }
        });
        Self { url, connections }
    }

    /// How many connections it had.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// A request with its body, whose parts idemctl sends one after the other.
fn whole_request(stream: &mut TcpStream) -> String {
    let mut request = String::new();
    let mut part = [0; 4096];
    loop {
        if let Some((head, body)) = request.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return request;
            }
        }
        match stream.read(&mut part) {
            Ok(length) if length > 0 => request += &String::from_utf8_lossy(&part[..length]),
            _ => return request,
        }
    }
}

/// A 201 with this body.
pub fn created(body: &str) -> String {
    answer("201 Created", body)
}

/// An answer with this status.
pub fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
}

pub fn probe(words: &[&str]) -> Run {
    Home::with("").run(&[&["probe"], words].concat())
}

#[test]
fn another_machine_has_to_be_named_twice() {
    let url = "http://probe.invalid/payments";
    let refused = probe(&[url, "-d", PAYMENT]).exits(2);
    refused.says("another machine").says("add --yes probe.invalid");
    let wrong = probe(&[url, "-d", PAYMENT, "--yes", "other.invalid"]).exits(2);
    wrong.says("nothing was sent");
    // It is confirmed, and the name cannot be resolved.
    probe(&[url, "-d", PAYMENT, "--yes", "probe.invalid"]).exits(5);
}

/// `--effects` is a second URL, so its host has to be confirmed as well.
#[test]
fn another_machine_that_counts_effects_has_to_be_named_too() {
    let service = FixedService::start(|_| created("{}"));
    let words = [&service.url, "-d", PAYMENT, "--effects", "http://counts.invalid/n"];
    probe(&words).exits(2).says("add --yes counts.invalid");
    assert_eq!(service.connections(), 0);
    let confirmed = [&words[..], &["--yes", "counts.invalid", "--only", "replay-status"]].concat();
    // It is confirmed, and the name cannot be resolved.
    let run = probe(&confirmed).exits(2);
    assert!(!run.stderr.contains("add --yes"), "{}", run.all());
}

/// With -p and --schema, the protection of a context that has this server applies.
#[test]
fn a_protected_context_has_to_be_named() {
    let stage = Stage::new("express", None);
    let config = format!("[contexts.prod]\nurl = \"{}\"\nprotected = true\n", stage.server.url());
    stage.server.configure(&config);
    let url = stage.service.url("/payments");
    let words = ["probe", &url, "-d", PAYMENT, "--schema", "express", "--only", "replay-status"];
    let by_context = [&words[..], &["--context", "prod"]].concat();
    stage.server.unnamed(&by_context).exits(2).says("pass --confirm prod");
    stage.server.idemctl(&words).exits(2).says("--confirm prod");
    let wrong = [&by_context[..], &["--confirm", "other"]].concat();
    stage.server.unnamed(&wrong).exits(2).says("--confirm must be `prod` here");
    assert_eq!(stage.service.effects(), 0);
    let right = [&by_context[..], &["--confirm", "prod", "--faults"]].concat();
    stage.server.unnamed(&right).exits(0).says("removed from Redis");
    assert_eq!(stage.server.keys(), [""; 0]);
}

#[test]
fn a_dry_run_sends_nothing_and_shows_each_request() {
    let service = FixedService::start(|_| created("{}"));
    let run = probe(&[&service.url, "-d", PAYMENT, "--dry-run"]).exits(0);
    run.shows("# concurrent-answers").shows("for i in $(seq 20); do curl -i -X POST");
    assert_eq!(service.connections(), 0);
}

#[test]
fn more_requests_than_the_limit_are_refused() {
    let service = FixedService::start(|_| created("{}"));
    let run = probe(&[&service.url, "-d", PAYMENT, "--max-requests", "100"]).exits(2);
    run.says("--max-requests allows 100");
    assert_eq!(service.connections(), 0);
}

#[test]
fn a_redirect_is_not_followed() {
    let target = FixedService::start(|_| created("{}"));
    let location = target.url.clone();
    let service = FixedService::start(move |_| {
        format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: {location}\r\nConnection: close\r\n\
             Content-Length: 0\r\n\r\n"
        )
    });
    probe(&[&service.url, "-d", PAYMENT]).exits(3).says("answered the first request with 307");
    assert_eq!(target.connections(), 0);
}

#[test]
fn a_service_that_does_not_speak_http_is_an_error() {
    let service = FixedService::start(|_| "SSH-2.0-OpenSSH\r\n".to_owned());
    probe(&[&service.url, "-d", PAYMENT]).exits(5).says("gave no answer");
}

#[test]
fn answers_that_are_always_equal_are_inconclusive() {
    let service = FixedService::start(|_| created("{}"));
    let run = probe(&[&service.url, "-d", PAYMENT, "-o", "json", "--only", "replay-body"]);
    assert_eq!(with_verdict(&run.exits(3), "inconclusive"), ["replay-body"]);
}

/// Rule: only a key that was sent can have a record. This service accepts every request, and stores
/// nothing.
/// Revert: if a request without a key counts, the run says that the record of a fifth key is not in
/// Redis, which no request had.
#[test]
fn a_request_without_its_key_lacks_no_record() {
    let server = Server::start();
    let service = FixedService::start(|number| created(&format!("{{\"id\":\"pay-{number}\"}}")));
    for place in [&["--key-header", "Idempotency-Key"], &["--key-field", "/key"]] {
        let words = ["probe", &service.url, "-d", PAYMENT, "--schema", "express", "-o", "json"];
        let only = ["--only", "key-missing"];
        let run = server.idemctl(&[&words[..], &only, place].concat());
        let not_found = run.json()["records"]["not_found"].clone();
        assert_eq!(not_found.as_array().map(Vec::len), Some(4), "{}", run.all());
    }
}

#[test]
fn a_number_of_effects_that_drifts_fails_nothing() {
    let stage = Stage::new("express", Some(Variant::NoLock));
    let drifting = FixedService::start(|number| created(&number.to_string()));
    let words = ["--only", "concurrent-one-effect"];
    let run = stage.probe_counting(&drifting.url, "json", &words);
    assert_eq!(with_verdict(&run, "fail"), [""; 0], "{}", run.all());
    assert_eq!(run.code, 3, "{}", run.all());
}

#[test]
fn credentials_are_never_printed() {
    let stage = Stage::new("express", Some(Variant::AnyCaller));
    let file = stage.server.folder().join("junit.xml");
    let junit = file.to_str().unwrap();
    for output in ["json", "jsonl", "table"] {
        let words = ["-H", "X-Api-Key: sesame-1", "-H", "Cookie: sesame-2"];
        let run = stage.probe_as(output, &[&words[..], &["--junit", junit, "--verbose"]].concat());
        let report = std::fs::read_to_string(&file).unwrap();
        let all = format!("{}{report}", run.all());
        assert!(!all.contains("sesame") && !all.contains("Bearer"), "{all}");
        assert!(all.contains("${AUTHORIZATION:?}"), "the failure shows how to repeat it: {all}");
    }
}

/// Rule: a service can send a credential back in any form, also in the answer to another caller, so
/// nothing of such an answer is printed. Revert: with bodies or header values shown, both are found.
#[test]
fn credentials_that_come_back_in_another_form_are_not_printed() {
    let first = std::sync::Mutex::new(String::new());
    let service = FixedService::answering(move |_, request| {
        let sent = request.lines().find_map(|line| line.strip_prefix("Authorization: "));
        let reversed: String = sent.unwrap_or_default().chars().rev().collect();
        let mut first = first.lock().unwrap();
        if first.is_empty() {
            first.clone_from(&reversed);
        }
        let body = format!(r#"{{"one":"{first}","other":"{reversed}"}}"#);
        answer(&format!("201 Created\r\nETag: {reversed}"), &body)
    });
    for output in ["json", "table"] {
        let words = ["-H", "Authorization: sesame-one", "--as", "Authorization: sesame-two"];
        let words = [&[&service.url, "-d", PAYMENT, "-o", output, "--verbose"], &words[..]];
        let run = probe(&words.concat());
        assert!(!run.all().contains("emases"), "{}", run.all());
        run.shows(" bytes, sha256 ");
    }
}

#[test]
fn known_failures_are_accepted_and_new_ones_are_not() {
    let stage = Stage::new("express", Some(Variant::IgnoresPayload));
    let only = ["--only", "mismatch-payload,replay-status"];
    let before = stage.probe(&only).exits(1);
    let file = stage.server.folder().join("accepted.json");
    std::fs::write(&file, before.text()).unwrap();
    let path = file.to_str().unwrap();
    let same = stage.probe(&[&only[..], &["--expect", path]].concat()).exits(0);
    assert_eq!(same.json()["differences"], Value::Array(Vec::new()));
    let changed = before.text().replace("mismatch-payload", "replay-status");
    std::fs::write(&file, changed).unwrap();
    let new = stage.probe(&[&only[..], &["--expect", path]].concat()).exits(1);
    assert_eq!(new.json()["differences"][0]["id"], "mismatch-payload");
    assert_eq!(new.json()["differences"][1]["new"], false);
}

#[test]
fn the_document_is_as_its_schema_says() {
    let stage = Stage::new("express", Some(Variant::NoLock));
    let run = stage.probe(&["--rounds", "1"]).exits(1);
    let found = faults("probe.json", &[run.json()]);
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!(verdicts(&run).len(), 26);
}

#[test]
fn a_key_can_be_in_the_body_or_in_the_query() {
    let service = FixedService::start(|_| created("{}"));
    for (words, expected) in [
        (&["--key-field", "/key"][..], r#""key":"'"$K1"'""#),
        (&["--key-parameter", "idem"], "?idem='\"$K1\"'"),
        (&["-H", "X-Request-Id: {{key}}"], "X-Request-Id: \"'\"$K1\"'\""),
        (&["--profile", "square"], "\"idempotency_key\":\"'\"$K1\"'\""),
        (&["--profile", "stripe"], "Idempotency-Key: '\"$K1\"''"),
    ] {
        let given = [&service.url, "-d", PAYMENT, "--dry-run", "--only", "replay-status"];
        probe(&[&given[..], words].concat()).exits(0).shows(expected);
    }
}

#[test]
fn bad_requests_are_usage_errors() {
    for (words, message) in [
        (&["ftp://127.0.0.1/"][..], "must begin with http://"),
        (&["http://user:sesame@127.0.0.1/"], "contains a user name or a password"),
        (&["http://127.0.0.1/", "-H", "sesame"], "write a header as"),
        (&["http://127.0.0.1/", "--as", "sesame"], "write a header as"),
        (&["http://127.0.0.1/", "--key-field", "/a", "-d", "x"], "the body is not JSON"),
        (&["http://127.0.0.1/", "--profile", "none"], "--profile: none"),
        (&["http://127.0.0.1/", "-X", "A B"], "invalid HTTP method"),
        (&["http://127.0.0.1/", "--schema", "express"], "named together"),
        (&["http://127.0.0.1/", "-p", "1"], "named together"),
        (&["http://127.0.0.1/", "--effects", "http://u:sesame@127.0.0.1/"], "--effects contains"),
        (&["http://127.0.0.1/", "-H", "X-A: a\u{1}b"], "a character that HTTP forbids"),
        (&["http://u:sesame@127.0.0.1:99999/", "--key-parameter", "k"], "URL: "),
        (&["http://127.0.0.1/", "--sandbox"], "your service does not use"),
        (&["http://127.0.0.1/", "--later", "0s"], "longer than zero"),
        (&["http://127.0.0.1/a", "--other-path", "refunds"], "must be a path such as /refunds"),
        (&["http://127.0.0.1/a", "--other-path", "//other/x"], "must be a path such as /refunds"),
        (&["http://127.0.0.1/a", "--other-path", "/x?sesame"], "must be a path such as /refunds"),
        (&["http://127.0.0.1/a?b=1", "--other-path", "/a"], "is the path of the request"),
        (&["http://127.0.0.1/{{key}}", "--other-path", "/{{key}}"], "is the path of the request"),
        (&["http://127.0.0.1/", "-d", "@/none"], "--data: cannot read /none"),
        (&["http://127.0.0.1/", "--expect", "/none"], "--expect: /none"),
    ] {
        let run = probe(words).exits(2);
        run.says(message);
        assert!(!run.all().contains("sesame"), "{}", run.all());
    }
}
