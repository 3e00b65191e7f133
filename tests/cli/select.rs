//! The options that choose records mean the same wherever records are chosen.

use crate::support::{FOREVER, Server};

const HOUR: u64 = 3_600_000;

fn result(status: u16, body: &str) -> String {
    format!(r#"{{"statusCode":{status},"body":"{body}"}}"#)
}

/// Results of event-driven, of which the schema's default TTL is a day, and locks of two owners.
fn seeded() -> Server {
    let server = Server::holding(&[("idem:result:ok", result(201, "paid"), 20 * HOUR)]);
    server.set("idem:result:bad", result(503, "try later"), 23 * HOUR);
    server.set("idem:result:odd", result(500, "boom"), 23 * HOUR);
    server.set("idem:started:a", "worker-7", 20_000);
    server.set("idem:started:b", "batch-1", 20_000);
    server
}

/// The TTLs of the deployment, without which no age is proven.
const STATED: [&str; 6] = ["--schema", "event-driven", "--lock-ttl", "30s", "--result-ttl", "24h"];

/// The idempotency keys that `list` shows.
fn listed(server: &Server, options: &[&str]) -> Vec<String> {
    let run = server.idemctl(&[&["list", "-o", "jsonl"], &STATED[..], options].concat()).exits(0);
    let mut keys: Vec<_> =
        run.json_lines().iter().map(|line| line["key"].as_str().unwrap().to_owned()).collect();
    keys.sort();
    keys
}

fn total(server: &Server, words: &[&str], options: &[&str]) -> u64 {
    let run =
        server.idemctl(&[words, &STATED[..], &["-o", "json"], options].concat()).exits(0).json();
    match run["rows"].as_array() {
        Some(rows) => rows.iter().map(|row| row["records"].as_u64().unwrap()).sum(),
        None => run["total"].as_u64().unwrap(),
    }
}

#[test]
fn list_stats_and_purge_choose_the_same() {
    let server = seeded();
    for (options, keys) in [
        (&["--status", "5xx"][..], &["bad", "odd"][..]),
        (&["--status", "503,201"], &["bad", "ok"]),
        (&["--body-contains", "try"], &["bad"]),
        (&["--body-contains", "nowhere"], &[]),
        (&["--newer-than", "2h", "--state", "completed"], &["bad", "odd"]),
        (&["--since", "2h", "--state", "completed", "--status", "500"], &["odd"]),
        (&["--older-than", "2h", "--state", "completed"], &["ok"]),
        (&["--ttl-above", "22h"], &["bad", "odd"]),
        (&["--ttl-below", "22h", "--state", "completed"], &["ok"]),
        (&["--owner", "worker-*", "--state", "in-progress"], &["a"]),
        (&["--match", "o*", "--state", "completed"], &["odd", "ok"]),
        (&["--no-expiry"], &[]),
    ] {
        assert_eq!(listed(&server, options), keys, "{options:?}");
        assert_eq!(total(&server, &["stats"], options), keys.len() as u64, "stats {options:?}");
        assert_eq!(
            total(&server, &["purge", "--dry-run"], options),
            keys.len() as u64,
            "purge {options:?}"
        );
    }
}

#[test]
fn a_fingerprint_chooses_the_requests_with_one_payload() {
    let server = Server::start();
    for (key, fingerprint) in [("one", "sha-1"), ("two", "sha-2")] {
        server
            .idemctl(&[
                "begin",
                key,
                "--schema",
                "reference",
                "--fingerprint",
                fingerprint,
                "--yes",
            ])
            .exits(0);
    }
    let run = server.idemctl(&["list", "--fingerprint", "*-2", "-o", "jsonl"]).exits(0);
    assert_eq!(run.json_lines().iter().map(|line| &line["key"]).collect::<Vec<_>>(), ["two"]);
    server
        .idemctl(&["list", "--fingerprint", "sha", "-o", "jsonl"])
        .exits(0)
        .says("no such records");
}

#[test]
fn sweep_and_check_leave_out_what_the_options_leave_out() {
    let server = Server::holding(&[
        ("idem:started:a", "worker-7", FOREVER),
        ("idem:started:b", "batch-1", FOREVER),
    ]);
    for (options, count) in
        [(&["--owner", "worker-*"][..], 1), (&["--match", "b"], 1), (&["--ttl-below", "1h"], 0)]
    {
        let swept = server
            .idemctl(&[&["sweep", "--orphaned", "--dry-run", "-o", "json"], options].concat())
            .exits(0);
        assert_eq!(swept.json()["total"], count, "{options:?}");
        let code = if count > 0 { 2 } else { 0 };
        server
            .idemctl(&[&["check"], options].concat())
            .exits(code)
            .shows(format!("orphaned={count};"));
    }
    // Nothing tells the age of a lock without expiry whose value has no time.
    let run = server
        .idemctl(&["sweep", "--orphaned", "--newer-than", "1h", "--dry-run", "-o", "json"])
        .exits(3)
        .json();
    assert_eq!((&run["total"], &run["unproven"]["age"]), (&0.into(), &2.into()));
}

/// Rule: what only a schema's default TTL tells selects nothing for a change.
#[test]
fn a_purge_of_new_records_needs_a_stated_ttl() {
    let server = seeded();
    let words =
        ["purge", "--schema", "event-driven", "--newer-than", "2h", "--dry-run", "-o", "json"];
    let run = server.idemctl(&words).exits(3).json();
    assert_eq!((&run["total"], &run["unproven"]["result_ttl"]), (&0.into(), &3.into()));
}

#[test]
fn a_body_is_searched_whole() {
    let long = format!("{}needle", "x".repeat(300_000));
    let server = Server::holding(&[("idem:result:long", result(200, &long), HOUR)]);
    server.set("idem:result:short", result(200, "xx"), HOUR);
    assert_eq!(listed(&server, &["--body-contains", "needle"]), ["long"]);
    let words = ["purge", "--schema", "event-driven", "--body-contains", "needle", "--yes"];
    server.idemctl(&words).exits(0).says("1 record purged");
    assert_eq!(listed(&server, &[]), ["short"]);
}

#[test]
fn a_pattern_that_seems_to_mean_something_else_is_told() {
    let server = seeded();
    let said = |pattern: &str| server.idemctl(&["list", "--match", pattern]).exits(0).stderr;
    assert!(
        said("idem:result:o*").contains("--match 'o*' has its idempotency key"),
        "{}",
        said("idem:result:o*")
    );
    assert!(said("ok").contains("no wildcard"));
    assert!(!said("o?").contains("--match"));
}

#[test]
fn what_is_no_status_or_glob_is_a_usage_error() {
    let server = Server::start();
    server.idemctl(&["list", "--status", "5x"]).exits(2).says("201");
    server.idemctl(&["stats", "--owner", "[a"]).exits(2).says("--owner");
    server.idemctl(&["check", "--fingerprint", "[a"]).exits(3);
}

/// Rule: a variable that is not set chooses nothing.
#[test]
fn an_empty_text_chooses_nothing() {
    let server = seeded();
    let before = server.keys();
    for empty in [
        "--body-contains",
        "--match",
        "--owner",
        "--fingerprint",
        "--state",
        "--status",
        "--finding",
    ] {
        for command in [&["purge", "--yes"][..], &["list"], &["stats"]] {
            server.idemctl(&[command, &[empty, ""]].concat()).exits(2);
        }
    }
    server
        .idemctl(&["purge", "--yes", "--body-contains", " \t\n"])
        .exits(2)
        .says("--body-contains: the text is empty");
    server.idemctl(&["inspect", "--find", ""]).exits(2).says("--find: the text is empty");
    for empty in
        ["--older-than", "--newer-than", "--ttl-below", "--ttl-above", "--schema", "--key-file"]
    {
        server.idemctl(&["purge", "--yes", empty, ""]).exits(2);
    }
    assert_eq!(server.keys(), before);
}

/// Rule: a filter by a field that no schema describes selects nothing, which does not mean that
/// there are no such records.
#[test]
fn a_filter_by_a_field_that_no_schema_describes_is_refused() {
    let server = Server::start();
    server.set("idempotency:m-1", "completed", 60_000);
    server.set(
        "idem:x-1",
        r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":1}"#,
        60_000,
    );
    for (option, value, field) in [
        ("--status", "2xx", "status"),
        ("--fingerprint", "ab*", "fingerprint"),
        ("--owner", "w-*", "owner"),
        ("--body-contains", "ch_1", "body"),
    ] {
        for command in [&["list"][..], &["stats"], &["purge", "--yes"], &["duplicates"]] {
            let schema = ["--schema", "go-middleware-v1", option, value];
            let run = server.idemctl(&[command, &schema[..]].concat());
            let because = format!(
                "{option} can select no record, because no schema has a field `{field}` \
                (go-middleware-v1)"
            );
            run.exits(2).says(&because);
        }
    }
    for (command, exit) in [(&["check"][..], 3), (&["sweep", "--orphaned"], 2)] {
        let run =
            server.idemctl(&[command, &["--schema", "go-middleware-v1", "--owner", "w"]].concat());
        assert!(run.exits(exit).all().contains("no schema has a field `owner`"));
    }
    // One of the named schemas has the field.
    let run = server.idemctl(&[
        "list",
        "--schema",
        "express,go-middleware-v1",
        "--status",
        "201",
        "-o",
        "name",
    ]);
    run.exits(0)
        .shows("x-1")
        .says("--status selects no record of go-middleware-v1, whose schema has no field `status`");
    // Without names, most schemas are not in use, but those of the operator's own folder are.
    let list = ["list", "--status", "201", "-o", "name"];
    assert!(!server.idemctl(&list).exits(0).stderr.contains("has no field"));
    let own = "format = 2\nname = \"own\"\nkeys = { record = \"own:{key}\" }\n\
        ttl = { result = \"1h\" }\n[[value]]\nname = \"done\"\nencoding = \"pickle\"\n\
        state = \"completed\"\n";
    server.describe("own", &[("schema.toml", own)]);
    let run = server.idemctl(&list).exits(0);
    run.says("--status selects no record of own, whose schema has no field `status`");
    assert_eq!(server.send::<i64>(&[b"EXISTS", b"idempotency:m-1"]), 1);
}
