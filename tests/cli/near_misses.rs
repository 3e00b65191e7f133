//! Values that are near to a format of a schema, and have none.

use crate::support::Server;

const SHARED: &str = r#"
format = 2
name = "shared"
keys = { record = "pay:{key}" }
ttl = { lock = "30s", result = "24h" }
[[value]]
name = "done"
where = { "/v" = 1 }
required = ["/status", "/fp"]
optional = ["/body"]
state = "completed"
body_encoding = "json"
fields = { status = "/status", body = "/body", fingerprint = "/fp" }
[[value]]
name = "held"
opaque = true
state = "in-progress"
fields = { owner = "" }
[write]
lock_value = "{owner}"
result_value = '{"v":1,"status":{status},"body":{body_json},"fp":"{fingerprint}"}'
[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "PX", "{lock_ttl_ms}"]
replies = [{ word = "OK", means = "acquired", when = { record = "absent" } }, { nil = true, means = "next" }]
[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "done", means = "replay" },
  { value = "held", means = "conflict" },
  { text = true, means = "fail", when = { record = "unreadable" } },
]
[[release.call]]
command = ["DEL", "{record}"]
replies = [{ integer = 1, means = "released", when = { record = "present" } }, { integer = 0, means = "refused" }]
"#;

/// A lock with a token, and a result. Both are closed, and no field tells them apart.
const RUNNING: &str = r#"[[value]]
name = "running"
required = ["/token"]
optional = ["/host"]
state = "in-progress"
fields = { owner = "/token" }
"#;

const DONE: &str = r#"[[value]]
name = "done"
required = ["/result"]
state = "completed"
fields = { body = "/result" }
"#;

const STEPS: &str = r#"[write]
lock_value = '{"token":"{owner}"}'
[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { nil = true, means = "next" },
  { value = "running", means = "conflict" },
  { value = "done", means = "replay" },
  { text = true, means = "fail", when = { record = "unreadable" } },
]
[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [{ word = "OK", means = "acquired", when = { record = "absent" } }, { nil = true, means = "conflict" }]
[[release.call]]
command = ["DEL", "{record}"]
replies = [{ integer = 1, means = "released", when = { record = "present" } }, { integer = 0, means = "refused" }]
"#;

fn told_apart_by_fields(formats: [&str; 2]) -> String {
    format!(
        "format = 2\nname = \"js\"\nkeys = {{ record = \"js:{{key}}\" }}\n\
        ttl = {{ lock = \"30s\", result = \"24h\" }}\n{}{STEPS}",
        formats.concat()
    )
}

/// Runs every command that removes locks, and checks that none of them removed the value.
fn is_removed_by_none(server: &Server, key: &str, redis_key: &str, schema: &str) {
    let named = ["--schema", schema, "--yes"];
    server.idemctl(&[&["force-unlock", key], &named[..]].concat()).exits(2);
    server.idemctl(&[&["release", key, "--owner", "o"], &named[..]].concat()).exits(2);
    let sweep =
        ["sweep", "--orphaned", "--grace", "0s", "--include", "excess-ttl", "--lock-ttl", "1s"];
    server.idemctl(&[&sweep, &named[..]].concat()).exits(0);
    let reconcile = ["reconcile", "--older-than", "0s", "--lock-ttl", "1s", "--ask", "/bin/false"];
    server.idemctl(&[&reconcile, &named[..]].concat());
    assert_eq!(server.send::<i64>(&[b"EXISTS", redis_key.as_bytes()]), 1, "{redis_key}");
}

/// Rule: a document of another format is not an opaque lock. Revert: without `begin_document`, a
/// result that lacks a field is "in-progress", and sweep removes it.
#[test]
fn a_damaged_document_is_not_an_opaque_lock() {
    let server = Server::start();
    server.describe("shared", &[("schema.toml", SHARED)]);
    server.idemctl(&["schema", "check", "shared"]).exits(0);
    for (value, state, next) in [
        (r#"{"v":1,"status":201,"body":{"x":1}}"#, "completed", "unknown"),
        (r#"{"v":1,"status":201,"body":null,"fp":"ff"}"#, "completed", "unknown"),
        (r#"{"v":1,"st"#, "unreadable", "fail"),
        ("[1]", "unreadable", "fail"),
        (r#"{"v":2}"#, "unreadable", "fail"),
    ] {
        server.send::<()>(&[b"SET", b"pay:k", value.as_bytes()]);
        let found = server.idemctl(&["inspect", "k", "--schema", "shared", "-o", "json"]).exits(0);
        let record = &found.json()["records"][0];
        assert_eq!(record["state"], state, "{value}");
        assert_eq!(record["next_request"]["answer"], next, "{value}");
        let page = server.idemctl(&["inspect", "k", "--schema", "shared"]).exits(0).text();
        assert!(!page.contains("the lock never expires"), "{page}");
        server.idemctl(&["check", "--schema", "shared"]).shows("orphaned=0;");
        let sweep = ["sweep", "--orphaned", "--grace", "0s", "--schema", "shared", "--yes"];
        server.idemctl(&sweep).exits(0);
        assert_eq!(server.send::<i64>(&[b"EXISTS", b"pay:k"]), 1, "{value}");
    }
    // A number, a quoted text and a word are tokens.
    for token in ["17", "\"a\"", "true", "w-1"] {
        server.set("pay:k", token, 20_000);
        server.idemctl(&["inspect", "k", "--schema", "shared"]).exits(0).shows("in-progress");
    }
}

/// Rule: a schema whose opaque locks are documents keeps them. Revert: without `writes_document`,
/// they are unreadable.
#[test]
fn an_opaque_lock_may_be_a_document_if_the_schema_writes_such() {
    let server = Server::start();
    let text = SHARED
        .replace("lock_value = \"{owner}\"", "lock_value = '{\"by\":\"{owner}\"}'")
        .replace("fields = { owner = \"\" }\n", "");
    server.describe("shared", &[("schema.toml", &text)]);
    server.set("pay:k", r#"{"by":"w"}"#, 20_000);
    server.idemctl(&["inspect", "k", "--schema", "shared"]).exits(0).shows("in-progress");
}

/// Rule: a value with deviations has the format that it fits best, in whichever order the schema
/// lists them, and no command removes it as a lock. Revert: with the first format, a result with
/// one more field is a lock.
#[test]
fn a_result_with_another_field_is_not_a_lock() {
    for formats in [[RUNNING, DONE], [DONE, RUNNING]] {
        let server = Server::start();
        server.describe("js", &[("schema.toml", &told_apart_by_fields(formats))]);
        for (value, state, next) in [
            (r#"{"result":{"id":1},"trace":"t"}"#, "completed", "replay"),
            (r#"{"token":"o","trace":"t"}"#, "in-progress", "conflict"),
            ("5", "unreadable", "unknown"),
            (r#"{"trace":1}"#, "unreadable", "unknown"),
            (r#"{"token":"o","result":1}"#, "unreadable", "unknown"),
        ] {
            server.send::<()>(&[b"SET", b"js:k", value.as_bytes()]);
            let found = server.idemctl(&["inspect", "k", "--schema", "js", "-o", "json"]).exits(0);
            let record = &found.json()["records"][0];
            assert_eq!(record["state"], state, "{value}");
            assert_eq!(record["next_request"]["answer"], next, "{value}");
            let page = server.idemctl(&["inspect", "k", "--schema", "js"]).exits(0);
            page.shows("does not match schema js");
            assert!(!page.text().contains("force-unlock"), "{}", page.text());
            is_removed_by_none(&server, "k", "js:k", "js");
        }
        // The lock itself is removed.
        server.send::<()>(&[b"SET", b"js:k", br#"{"token":"o","host":"h"}"#]);
        server.idemctl(&["force-unlock", "k", "--schema", "js", "--yes"]).exits(0);
        assert_eq!(server.send::<i64>(&[b"EXISTS", b"js:k"]), 0);
    }
}

/// Rule: a lock with a field that only results have is not a lock. Revert: without
/// `field_of_another_state`, it is "in-progress".
#[test]
fn a_lock_with_a_field_of_results_is_not_a_lock() {
    let server = Server::start();
    // The library takes `null` for a lock, and fails on an object.
    for response in ["null", "{}"] {
        let value = r#"{"request":{"body":{"a":1},"headers":{},"method":"POST","query":{},"url":"/pay"},"response":RESPONSE}"#;
        server.set("k2", value.replace("RESPONSE", response), 60_000);
        let page = server.idemctl(&["inspect", "k2", "--schema", "express-idempotency"]).exits(0);
        page.shows("unknown, because the value is unclear (`/response` is a field of `completed`");
    }
    server.set("k2", "garbage", 60_000);
    let page = server.idemctl(&["inspect", "k2", "--schema", "express-idempotency"]).exits(0);
    page.shows("fails (500, or no answer on Express 4)");
}

/// Rule: `--explain` finds no schedule for a value that no step writes. Revert: without the check of
/// `deviation`, the steps that store a result explain it.
#[test]
fn a_value_that_deviates_is_not_explained_by_the_steps() {
    let server = Server::start();
    let result = r#"{"status":"COMPLETED","statusCode":200,"headers":{},"body":"x""#;
    server.set("idem:a", format!("{result}}}"), 60_000);
    server.set("idem:b", format!("{result},\"x\":1}}"), 60_000);
    let explain = |key| server.idemctl(&["inspect", key, "--schema", "express", "--explain"]);
    explain("a").exits(0).shows("found among all schedules");
    explain("b").exits(0).shows("no schedule of").shows("another program");
}

/// Rule: a purge by a field counts the records that it leaves because their whole values have
/// something else, as a purge without this filter does. Revert: without `with_deviating`.
#[test]
fn a_purge_by_status_says_that_it_leaves_a_result_with_another_field() {
    let server = Server::holding(&[
        ("pay:a", r#"{"v":1,"status":500,"fp":"f","body":1,"x":1}"#, 60_000),
        ("pay:b", r#"{"v":1,"status":500,"fp":"f","body":1}"#, 60_000),
    ]);
    server.describe("shared", &[("schema.toml", SHARED)]);
    let purge =
        |words: &[&str]| server.idemctl(&[&["purge", "--schema", "shared"], words].concat());
    let left = "Not changed, because the whole value matches no format of the schema: 1 record";
    purge(&["--status", "5xx", "--dry-run"]).exits(3).says(left);
    purge(&["--body-contains", "1", "--dry-run"]).exits(3).says(left);
    purge(&["--status", "4xx", "--dry-run"]).exits(0);
    purge(&["--status", "5xx", "--yes"]).exits(3).says("Left unchanged: 1 record");
    assert!(server.get("pay:a").is_some() && server.get("pay:b").is_none());
    purge(&["--status", "5xx", "--yes"]).exits(3);
}

/// Rule: a filter by a field names the result that it leaves out because of the rest of the value,
/// which the same command without the filter counts. Revert: without `reporting_deviating`.
#[test]
fn a_list_by_status_names_a_result_with_another_field() {
    let server = Server::holding(&[
        ("pay:a", r#"{"v":1,"status":500,"fp":"f","body":1,"x":1}"#, 60_000),
        ("pay:b", r#"{"v":1,"status":500,"fp":"f","body":1}"#, 60_000),
    ]);
    server.describe("shared", &[("schema.toml", SHARED)]);
    let named = "Skipped 1 record (shared 1), e.g. shared/a: the whole value matches no format";
    for command in ["list", "stats"] {
        let run = |words: &[&str]| {
            let run = server.idemctl(&[&[command, "--schema", "shared"], words].concat());
            assert_eq!(
                run.code,
                if run.stderr.contains("Skipped ") { 3 } else { 0 },
                "{}",
                run.all()
            );
            run
        };
        run(&["--status", "5xx"]).says(named);
        assert!(!run(&["--status", "4xx"]).stderr.contains("Skipped"));
        assert!(!run(&[]).stderr.contains("Skipped"));
        let json = run(&["--status", "5xx", "-o", "json"]).json();
        assert_eq!(json["unproven"]["whole_format"], 1);
    }
    let purge = ["purge", "--schema", "shared", "--status", "5xx", "--yes"];
    server.idemctl(&purge).exits(3).says("matches no format of the schema, e.g. shared/a");
}

/// Rule: `inspect` and `list` have the same findings of a lock without expiry that has another
/// field. No command removes it, and none is advised.
#[test]
fn a_lock_with_another_field_and_without_expiry_has_that_finding() {
    let server = Server::start();
    server.describe("js", &[("schema.toml", &told_apart_by_fields([RUNNING, DONE]))]);
    server.put("js:k", r#"{"token":"o","trace":"t"}"#);
    let page = server.idemctl(&["inspect", "k", "--schema", "js"]).exits(0);
    page.shows("error no-expiry: the lock never expires").shows("find out which program wrote it");
    assert!(!page.text().contains("force-unlock"), "{}", page.text());
}

/// Rule: what differs from a schema by one field is counted and named, with the setting that accepts
/// it, and no change selects it until then.
#[test]
fn a_record_with_one_more_field_is_named_until_it_is_accepted() {
    let server = Server::start();
    let running =
        r#"{"request":{"headers":{},"method":"POST","query":{},"url":"/c"},"tenant":"a"}"#;
    server.put("cap-1", running);
    server.set("cap-2", running, 60_000);
    // Two fields more: another program's.
    server.set("cap-3", running.replace("\"tenant\"", "\"b\":1,\"tenant\""), 60_000);
    let schema = ["--schema", "express-idempotency", "--prefix", "cap-"];
    let run = |words: &[&str]| server.idemctl(&[words, &schema[..]].concat());
    let named =
        "2 records differ from express-idempotency only by /tenant; extra_fields = [\"/tenant\"]";
    let checked = run(&["check"]).exits(1);
    checked.shows("differ from their schema by one field: 1");
    checked.shows(named);
    run(&["list"]).exits(0).says(named);
    // A sweep reads only what never expires.
    let swept = run(&["sweep", "--orphaned", "--dry-run"]).exits(0);
    swept.says("1 record differs from express-idempotency only by /tenant");
    let json = run(&["list", "-o", "json"]).json();
    let near = serde_json::json!([
        {"schema": "express-idempotency", "field": "/tenant", "records": 2}
    ]);
    assert_eq!((&json["near_misses"], json["records"].as_array().unwrap().len()), (&near, 0));
    server
        .idemctl(&["detect"])
        .exits(0)
        .shows("some differ from express-idempotency only by /tenant");
    // Accepted, it is a stuck lock as any other.
    let accepted = "[contexts.own.deployment.express-idempotency]\nextra_fields = [\"/tenant\"]\n";
    let mut words = vec!["check"];
    words.extend(schema);
    server.in_context("own", accepted, &words).exits(2).shows("1 stuck lock");
}
