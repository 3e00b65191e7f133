//! `complete` promises that clients get the response that it was given. The installed libraries are asked: each body is either
//! refused, or the library replays it.
//!
//! `make libraries` runs this, because the libraries come from registries. A library that is not installed is skipped.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::given::{self, Given, Replayed, ReplayedBody};
use crate::support::Server;

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
    let responses = given::responses();
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
                given.difference(&replayed(replays, answer["text"].as_str().unwrap()))
            }
            _ => Some(answer.to_string()),
        };
        if let Some(told) = told {
            let told: String = told.chars().take(200).collect();
            writeln!(wrong, "{library}: {}: {told} (refused: {why:?})", given.shown()).unwrap();
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
    // The other libraries keep the body alone.
    let keeps_all = ["express-idempotency", "node-idempotency"].contains(&library);
    given.complete(server, &[redis_key, "--schema", library], keeps_all)
}

/// What a driver's text says that a client gets.
fn replayed(replays: Replays, text: &str) -> Replayed {
    match replays {
        Replays::Json => {
            let body = match serde_json::from_str(text) {
                Ok(value) => ReplayedBody::Json(value),
                Err(_) => ReplayedBody::Bytes(text.into()),
            };
            Replayed { status: None, headers: None, body }
        }
        Replays::Response => {
            let response: Value = serde_json::from_str(text).unwrap();
            Replayed {
                status: Some(response["statusCode"].to_string().parse().unwrap()),
                headers: Some(given::headers_of(&response["additional"]["headers"])),
                body: ReplayedBody::Value(response["body"].clone()),
            }
        }
        Replays::Text => {
            let (status, body) = text.split_once(' ').unwrap();
            let body = ReplayedBody::Bytes(body.into());
            Replayed { status: Some(status.parse().unwrap()), headers: None, body }
        }
    }
}
