//! `idemctl log` from the outside: a line an operation.

use serde_json::Value;

use crate::support::{PENDING, Runs, Server, audit};

/// What go-middleware stores of the body `secret`.
const COMPLETED: &str = r#"{"status":"COMPLETED","code":201,"headers":{},"body":"c2VjcmV0"}"#;

/// Two operations: two locks were extended, one of them was unlocked then.
fn changed() -> Server {
    let server =
        Server::holding(&[("idempotency:a", PENDING, 50_000), ("idempotency:b", PENDING, 50_000)]);
    server.idemctl(&["extend", "a", "b", "--for", "1h", "--yes", "--reason", "INC-1"]).exits(0);
    let unlock = ["force-unlock", "a", "--yes"];
    server.command().args(unlock).env("USER", "root").env("SUDO_USER", "ana").run().exits(0);
    server
}

fn operations(server: &Server, words: &[&str]) -> Vec<Value> {
    server.idemctl(&[&["log", "-o", "jsonl"], words].concat()).exits(0).json_lines()
}

#[test]
fn an_operation_is_a_line_with_who_where_what_how_many_and_why() {
    let server = changed();
    let all = operations(&server, &[]);
    assert_eq!(all.len(), 2);
    let field = |index: usize, name: &str| all[index][name].clone();
    assert_eq!([field(0, "command"), field(0, "reason")], ["extend", "INC-1"]);
    assert_eq!((field(0, "redis_keys"), field(0, "backup_is_there")), (2.into(), Value::Null));
    assert_eq!([field(1, "who"), field(1, "sudo_user")], ["root", "ana"]);
    assert_eq!(field(1, "backup_is_there"), true);
    assert_eq!(field(0, "op").as_str().unwrap().len(), 16);
    let run = server.idemctl(&["log"]).exits(0);
    let text = run.text();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("OP") && lines.len() == 3, "{text}");
    for word in ["tester", "extend", " 2 ", "INC-1"] {
        assert!(lines[1].contains(word), "{word}: {text}");
    }
    assert!(lines[2].contains("ana as root") && lines[2].contains("kept"), "{text}");
}

#[test]
fn operations_are_chosen_by_command_key_time_and_number() {
    let server = changed();
    let commands = |words: &[&str]| {
        let all = operations(&server, words);
        all.iter()
            .map(|operation| operation["command"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(commands(&["--only", "a"]), ["extend", "force-unlock"]);
    assert_eq!(commands(&["--only", "idempotency:b"]), ["extend"]);
    assert_eq!(commands(&["--command", "force-unlock"]), ["force-unlock"]);
    assert_eq!(commands(&["--limit", "1"]), ["force-unlock"]);
    assert_eq!(commands(&["--since", "1h"]).len(), 2);
    server.idemctl(&["log", "--limit", "1"]).exits(0).says("1 of 2 shown");
    server
        .idemctl(&["log", "--only", "z"])
        .exits(0)
        .says("No operation was found in the audit log");
}

#[test]
fn one_operation_is_shown_with_its_records_and_what_was_left_of_them() {
    let server = changed();
    let op = operations(&server, &[])[0]["op"].as_str().unwrap().to_owned();
    let run = server.idemctl(&["log", "show", &op]).exits(0);
    run.shows("Changes     2").shows("idempotency:b").shows("until 20").shows("INC-1");
    let json = server.idemctl(&["log", "show", &op[..7], "-o", "json"]).exits(0).json();
    assert_eq!(json["changes"].as_array().unwrap().len(), 2);
    assert_eq!(json["changes"][1]["after"]["type"], "string");
    server.idemctl(&["log", "show", &op, "--limit", "1"]).exits(0).says("1 of 2 shown");
    let last = server.idemctl(&["log", "show"]).exits(0);
    assert_eq!(
        last.text(),
        server
            .idemctl(&[
                "log",
                "show",
                operations(&server, &[]).last().unwrap()["op"].as_str().unwrap()
            ])
            .text()
    );
    server.idemctl(&["log", "show", "zz"]).exits(1).says("no operation zz");
    server.idemctl(&["log", "show", ""]).exits(2).says("several operations");
}

/// Rule: the log shows which filters an operation used, and a user id that no environment variable can change.
#[test]
fn an_operation_tells_its_filters_and_the_number_of_its_user() {
    let server = Server::holding(&[("idempotency:a", COMPLETED, 50_000)]);
    let chosen = [
        "--schema",
        "go-middleware",
        "--state",
        "completed",
        "--match",
        "a*",
        "--body-contains",
        "secret",
    ];
    let purge =
        [&["purge", "--yes", "--reason", "INC-2", "--result-ttl", "1m"], &chosen[..]].concat();
    server.command().args(purge).env("USER", "maria").run().exits(0);
    let operation = operations(&server, &[]).pop().unwrap();
    let filters = operation["filters"].as_str().unwrap();
    for option in [
        "--schema go-middleware",
        "--state completed",
        "--match 'a*'",
        "--result-ttl 1m",
        "'(6 bytes)'",
    ] {
        assert!(filters.contains(option), "{option}: {filters}");
    }
    assert!(!filters.contains("INC-2") && !filters.contains("secret"), "{filters}");
    assert_eq!(
        (&operation["who"], &operation["uid"]),
        (&"maria".into(), &rustix::process::getuid().as_raw().into())
    );
    let page = server.idemctl(&["log", "show"]).exits(0);
    page.shows("Filters     --")
        .shows(format!("maria (uid {}) on ", rustix::process::getuid().as_raw()));
}

/// Rule: no byte of a value is in the log.
#[test]
fn the_log_tells_what_was_left_without_the_value() {
    let server = Server::holding(&[("idempotency:a", PENDING, 50_000)]);
    let body = ["--status", "201", "--body", "secret"];
    server
        .idemctl(&[&["complete", "a", "--schema", "go-middleware", "--yes"], &body[..]].concat())
        .exits(0);
    assert_eq!(server.get("idempotency:a").unwrap(), COMPLETED.as_bytes());
    let log = audit::text(&server.audit());
    assert!(
        log.contains("sha256") && !log.contains("secret") && !log.contains("c2VjcmV0"),
        "{log}"
    );
}

#[test]
fn nothing_changed_yet_is_no_error() {
    let server = Server::start();
    server.idemctl(&["log"]).exits(0).says("No operation was found in the audit log");
    server.idemctl(&["log", "show", "a"]).exits(1);
    server.idemctl(&["log", "show"]).exits(1).says("the audit log has no operation");
}
