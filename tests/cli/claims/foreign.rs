//! What other programs keep under the Redis keys of a schema is counted and left alone.

use std::fs;

use idemctl::domain::record::response::Response;
use idemctl::domain::schema::Meaning;
use idemctl::domain::step::inputs::StepInputs;

use crate::support::wire;
use crate::support::{FOREVER, Run, Server};

const HOUR: u64 = 3_600_000;

/// What other libraries keep, as they write it; the Redis key of each stands under a prefix that a schema has as well.
const OTHERS: &[(&str, &str)] = &[
    // idempotency-kit.
    (
        "idempotency:payment.create:k0",
        r#"{"operation":"payment.create","idempotency_key":"k0","result":{"id":0,"ok":true},"created_at":"2026-11-21T01:11:44.246377Z","expires_at":"2026-11-21T02:11:44.246377Z","status":"completed","fingerprint":"0000000000000000000000000000000000000000000000000000000000000000"}"#,
    ),
    (
        "idempotency:payment.create:run0",
        r#"{"operation":"payment.create","idempotency_key":"run0","result":null,"created_at":"2026-11-21T01:11:44.251355Z","expires_at":"2026-11-21T01:12:14.251355Z","status":"pending","fingerprint":null}"#,
    ),
    // @node-idempotency/core, with the prefix `idem` and with `idempotency:orders`.
    (
        "idem:POST:/payments:done-0",
        r#"{"status":"COMPLETE","fingerPrint":"fd56f11bc1883551dd277b29b1cb048c","response":{"statusCode":201,"body":{"id":0},"additional":{"headers":{"content-type":"application/json"}}}}"#,
    ),
    (
        "idem:POST:/payments:crashed-0",
        r#"{"status":"IN_PROGRESS","fingerPrint":"fd56f11bc1883551dd277b29b1cb048c3b1a740ae4e9708592e0b57dc4512d75"}"#,
    ),
    (
        "idempotency:orders:POST:/payments:crashed-0",
        r#"{"status":"IN_PROGRESS","fingerPrint":"fd56f11b"}"#,
    ),
    // aws-lambda-powertools in Python and TypeScript, with a key prefix of the deployment's.
    (
        "idempotency:orders.handler#29e18cb356200b53e267423c5f99dece",
        r#"{"data": "{\"message\": \"success\", \"statusCode\": 200}", "status": "COMPLETED", "expiration": 1795227099}"#,
    ),
    (
        "idempotency:ts.handler#0tXET60XEBZ+v+9jUIdm9A==",
        r#"{"status":"COMPLETED","expiration":1795227100,"data":{"paymentId":"done-2","statusCode":200}}"#,
    ),
    (
        "idempotency:ts.handler#1Hm90PTc6XzLhLf/0NqzxA==",
        r#"{"status":"INPROGRESS","expiration":1795227100,"in_progress_expiration":1795224100227}"#,
    ),
    // hono-idempotency.
    (
        "idem:POST:/payments:dead-0",
        r#"{"key":"dead-0","fingerprint":"00000000","status":"processing","createdAt":1795219914280}"#,
    ),
    // midaz: the entity as JSON.
    ("idempotency:crm:holder:org:k", r#"{"id":"01","status":"ACTIVE","name":"Ann"}"#),
];

/// The same under bare Redis keys, which go-chi's may be.
const BARE: &[(&str, &str)] = &[
    // express-idempotency.
    (
        "c0ffee00-0000-4000-8000-000000000000",
        r#"{"request":{"body":{"n":0},"headers":{"host":"127.0.0.1"},"method":"POST","query":{},"url":"/pay"},"response":{"statusCode":201,"body":"{\"id\":0}","headers":{}}}"#,
    ),
    ("user:42", r#"{"status":0,"name":"Ann"}"#),
    ("job:7", r#"{"status":1,"result":"x"}"#),
    ("counter", "7"),
    ("note", "text"),
];

fn put(server: &Server, values: &[(&str, &str)], expires: bool) {
    server.fill(values.iter().copied(), if expires { 80_000_000 } else { 0 });
}

fn left(server: &Server, words: &[&str]) -> Run {
    let before = server.keys();
    let run = server.idemctl(words).exits(0);
    assert_eq!(server.keys(), before, "{words:?}: {}", run.all());
    run
}

/// Rule: a value of a form that the schema does not write is not listed, swept or purged, and is counted.
#[test]
fn records_of_other_libraries_are_left_alone() {
    for expires in [false, true] {
        let server = Server::start();
        put(&server, OTHERS, expires);
        let listed = left(&server, &["list", "-o", "json"]).json();
        assert_eq!(listed["records"], serde_json::json!([]), "{listed}");
        assert_eq!(
            listed["foreign"],
            serde_json::json!({ "express": 3, "go-middleware": 7 }),
            "{listed}"
        );
        assert_eq!(
            (&listed["keys_walked"], &listed["complete"]),
            (&10.into(), &true.into()),
            "{listed}"
        );
        assert_eq!(listed["left_out"][0]["schema"], "go-chi", "{listed}");
        for schema in [&[][..], &["--schema", "go-middleware,express", "--match", "*p*"]] {
            for words in [
                &["sweep", "--orphaned", "--grace", "0", "--older-than", "1ms"][..],
                &["purge", "--all"],
            ] {
                let run = left(&server, &[words, &["--yes", "-o", "json"], schema].concat());
                assert_eq!(
                    (&run.json()["total"], &run.json()["done"]),
                    (&0.into(), &0.into()),
                    "{}",
                    run.all()
                );
                assert!(
                    run.json()["foreign"]["go-middleware"].as_u64().is_some_and(|count| count > 0),
                    "{}",
                    run.all()
                );
            }
        }
        let chosen = ["--schema", "go-middleware,express", "--match", "*p*", "--yes"];
        left(
            &server,
            &[&["purge", "--state", "in-progress,completed,unreadable"][..], &chosen].concat(),
        );
        left(
            &server,
            &[&["sweep", "--include", "unreadable", "--grace", "0"][..], &chosen].concat(),
        );
        let every = OTHERS.iter().map(|(key, _)| format!("{key}\n")).collect::<String>();
        let run = server.idemctl_fed(
            &["purge", "--key-file", "-", "--state", "in-progress,completed", "--yes"],
            every.as_bytes(),
        );
        assert_eq!(server.keys().len(), OTHERS.len(), "{}", run.exits(3).all());
    }
}

/// Rule: a list ends with what it left out.
#[test]
fn a_list_says_what_it_met_and_left_out() {
    let server = Server::start();
    put(&server, OTHERS, true);
    let run = server.idemctl(&["-v", "list"]).exits(0);
    run.says("values that match no format of their schema: express 3, go-middleware 7");
    run.says("not read: schema go-chi (no fixed prefix");
}

/// Rule: a schema without a fixed prefix is walked only when it is named, and claims then what its forms say.
#[test]
fn bare_keys_of_others_are_no_records_of_a_schema_without_prefix() {
    let server = Server::start();
    put(&server, BARE, false);
    for words in [
        &["sweep", "--orphaned", "--grace", "0", "--match", "*o*"][..],
        &["sweep", "--orphaned", "--grace", "0", "--match", "*u*"],
        &["purge", "--match", "*o*", "--state", "in-progress,completed"],
        &["purge", "--match", "*u*", "--state", "in-progress,completed,unreadable"],
    ] {
        left(&server, &[words, &["--schema", "go-chi", "--yes"]].concat());
    }
    let listed = left(&server, &["list", "--schema", "go-chi", "-o", "json"]).json();
    assert_eq!(
        (&listed["records"], &listed["foreign"]),
        (&serde_json::json!([]), &serde_json::json!({ "go-chi": 5 }))
    );
}

/// Rule: one predicate for what is walked and what is claimed. A schema of the operator's own whose prefix is another widens
/// the walk to all Redis keys, and does not make them anybody's.
#[test]
fn an_own_schema_does_not_lead_to_bare_keys() {
    let server = Server::start();
    let toml = fs::read_to_string(wire::lua().join("go-middleware-v1/schema.toml")).unwrap();
    let toml = toml
        .replace("older_release_of = \"go-middleware\"\n", "")
        .replace("go-middleware-v1", "orders");
    server
        .describe("orders", &[("schema.toml", &toml.replace("idempotency:{key}", "orders:{key}"))]);
    server.put("job:1", r#"{"status":0}"#);
    server.put("job:2", r#"{"status":1,"response":{"StatusCode":1,"Header":{},"Body":""}}"#);
    left(&server, &["sweep", "--orphaned", "--yes", "--grace", "0"]);
    left(&server, &["purge", "--all", "--yes"]);
    let listed = left(&server, &["list", "-o", "json"]).json();
    assert_eq!((&listed["records"], &listed["keys_walked"]), (&serde_json::json!([]), &2.into()));
    // One key that only such a schema claims goes with its name alone.
    server.idemctl(&["force-unlock", "job:1", "--yes"]).exits(2).says("--schema go-chi");
    server.idemctl(&["force-unlock", "job:1", "--yes", "--schema", "go-chi"]).exits(0);
}

/// Rule: what is claimed differs from what is foretold: a service replays what only has a `status` that its script knows.
#[test]
fn inspect_shows_and_foretells_what_is_nobodys() {
    let server = Server::start();
    let mut connection = server.connect();
    let completed = r#"{"status":"COMPLETED","code":200,"headers":{},"body":"","data":{}}"#;
    let pending =
        r#"{"operation":"a","status":"PENDING","pad":"PAD"}"#.replace("PAD", &"x".repeat(100_000));
    for (schema, redis_key, value, answer) in [
        ("go-middleware", "idempotency:k", completed, "replay"),
        ("go-middleware", "idempotency:k", r#"{"status":"WHO"}"#, "fail"),
        ("go-middleware", "idempotency:k", &pending, "conflict"),
        ("express", "idem:k", r#"{"status":"IN_PROGRESS","fingerPrint":"f"}"#, "conflict"),
        (
            "go-chi",
            "k",
            r#"{"status":1,"response":{"StatusCode":200,"Header":{},"Body":""},"x":1}"#,
            "replay",
        ),
        ("event-driven", "idem:result:k", r#"{"statusCode":200,"other":1}"#, "replay"),
        ("event-consumer", "idem:lock:k", "somebody", "conflict"),
        (
            "reference",
            "idemkey:k",
            r#"{"state":"in-progress","owner":"a","fingerprint":"","created_at":1,"x":1}"#,
            "fail",
        ),
        // The service's scripts read a field of another type as they read any other value.
        (
            "reference",
            "idemkey:k",
            r#"{"state":"in-progress","owner":7,"fingerprint":"","created_at":1}"#,
            "fail",
        ),
        (
            "reference",
            "idemkey:k",
            r#"{"state":"in-progress","owner":"a","fingerprint":"","created_at":"1"}"#,
            "fail",
        ),
    ] {
        server.set(redis_key, value, HOUR);
        let record = server
            .idemctl(&["inspect", "k", "--schema", schema, "-o", "json"])
            .exits(0)
            .json()["records"][0]
            .clone();
        assert_eq!(record["next_request"]["answer"], answer, "{schema}: {record}");
        assert!(record["foreign_because"].is_string(), "{schema}: {record}");
        let text = server.idemctl(&["inspect", "k", "--schema", schema]).exits(0).text();
        assert!(text.contains(&format!("does not match schema {schema} (")), "{text}");
        let (schema, response) = (wire::schema(schema), Response::default());
        let played = wire::play(
            &mut connection,
            schema.begin.as_ref().unwrap(),
            &StepInputs::new(&schema, b"k", "w", &response),
        );
        let happened = match played.means() {
            Meaning::Conflict => "conflict",
            Meaning::Replay => "replay",
            Meaning::Fail => "fail",
            other => panic!("{other:?}"),
        };
        assert_eq!(happened, answer, "{}", schema.name);
        server.send::<()>(&[b"DEL", redis_key.as_bytes()]);
    }
}

/// Rule: what another loaded schema's closed form reads as a result is nobody's lock, and the report says whose result.
#[test]
fn a_result_whose_key_looks_like_a_lock_is_spared() {
    let result = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":{"id":7}}"#;
    let server = Server::holding(&[("idem:started:front-door", result, FOREVER)]);
    server.put("idem:lock:front-door", result);
    let run =
        left(&server, &["sweep", "--orphaned", "--older-than", "1ms", "--yes", "--grace", "0"]);
    run.says("values that look like locks and are completed results of express: 2");
    let json =
        left(&server, &["sweep", "--orphaned", "--yes", "--grace", "0", "-o", "json"]).json();
    assert_eq!(
        (&json["total"], &json["spared"]),
        (&0.into(), &serde_json::json!({ "express": 2 })),
        "{json}"
    );
    left(&server, &["purge", "--state", "in-progress", "--all", "--yes"]);
    for (key, schema) in
        [("idem:started:front-door", "event-driven"), ("idem:lock:front-door", "event-consumer")]
    {
        let records =
            server.idemctl(&["inspect", key, "-o", "json"]).exits(0).json()["records"].clone();
        let both: Vec<_> = records
            .as_array()
            .unwrap()
            .iter()
            .map(|record| record["schema"].as_str().unwrap())
            .collect();
        assert_eq!(both, [schema, "express"], "{records}");
        assert_eq!(records[0]["foreign_because"], "express reads it as a completed result");
        assert_eq!(
            (&records[1]["state"], &records[1]["next_request"]["answer"]),
            (&"completed".into(), &"replay".into())
        );
        let refused = server.idemctl(&["force-unlock", key, "--schema", schema, "--yes"]).exits(2);
        refused.says("express reads it as a record of its own");
    }
}

/// Rule: the last look before a change judges the whole value, of which a walk read the beginning.
#[test]
fn a_field_at_the_end_of_a_long_value_spares_it() {
    let server = Server::start();
    let value = |bytes: usize, end: &str| {
        format!(
            r#"{{"status":"COMPLETED","code":201,"headers":{{}},"body":"{}"{end}}}"#,
            "A".repeat(bytes)
        )
    };
    for bytes in [500, 5_000, 200_000] {
        server.set(&format!("idempotency:own-{bytes}"), value(bytes, ""), HOUR);
        server.set(&format!("idempotency:other-{bytes}"), value(bytes, r#","expiration":1"#), HOUR);
    }
    let json = server.idemctl(&["purge", "--all", "--yes", "-o", "json"]).exits(3).json();
    assert_eq!(json["done"], 3, "{json}");
    let left = ["idempotency:other-200000", "idempotency:other-500", "idempotency:other-5000"];
    assert_eq!(server.keys(), left, "{json}");
    assert_eq!(json["left_foreign"], 3, "{json}");
}

/// Rule: a deployment's extra fields are its own, and only there.
#[test]
fn a_deployment_states_its_extra_fields() {
    let server =
        Server::holding(&[("idempotency:k", r#"{"status":"PENDING","traceId":"t"}"#, FOREVER)]);
    left(&server, &["sweep", "--orphaned", "--yes", "--grace", "0"]);
    let config = "default_context = \"p\"\n[contexts.p.deployment.go-middleware]\nextra_fields = [\"/traceId\"]\n";
    server.configure(config);
    server.idemctl(&["config", "show"]).exits(0).shows("deployment.go-middleware.extra_fields");
    server.idemctl(&["sweep", "--orphaned", "--yes", "--grace", "0"]).exits(0);
    assert!(server.keys().is_empty());
    server.configure(&config.replace("/traceId", "traceId"));
    server.idemctl(&["list"]).exits(2).says("is not a JSON pointer to a field");
}

/// Rule: what a dry run promises is done. A value that is never read whole is left alone, and both runs say why.
#[test]
fn a_value_beyond_what_is_read_is_left_alone_and_said_to_be() {
    let server = Server::start();
    let value = |bytes: usize| {
        format!(
            r#"{{"status":"COMPLETED","statusCode":200,"headers":{{}},"body":"{}"}}"#,
            "x".repeat(bytes)
        )
    };
    server.set("idem:big", value(17 << 20), HOUR);
    server.set("idem:small", value(1 << 20), HOUR);
    let keys = ["purge", "big", "small", "--schema", "express"];
    let dry = server.idemctl(&[&keys[..], &["--dry-run"]].concat()).exits(0);
    dry.says("Skipped, because a value is larger than 16 MiB: 1 record");
    let run = server.idemctl(&[&keys[..], &["--yes"]].concat()).exits(3);
    run.says(
        "Left unchanged: 1 record with a value larger than 16 MiB, which was not read completely",
    );
    assert!(
        !run.stderr.contains("with a value that matches no format of the schema"),
        "{}",
        run.all()
    );
    assert_eq!(server.keys(), ["idem:big"], "{}", run.all());
    let json = server
        .idemctl(&["purge", "big", "--schema", "express", "--yes", "-o", "json"])
        .exits(3)
        .json();
    assert_eq!(
        (&json["done"], &json["left_too_large"], &json["left_foreign"]),
        (&0.into(), &1.into(), &0.into())
    );
}

/// Rule: what another loaded schema's closed format reads as a lock is nobody's opaque result. The lock is that schema's, in a
/// scan as well as by its name, and a purge of results leaves it alone.
#[test]
fn a_lock_whose_key_looks_like_a_result_belongs_to_the_schema_that_wrote_it() {
    let lock = r#"{"status":"IN_PROGRESS"}"#;
    for (expiry, status) in [(25_000, 0), (FOREVER, 2)] {
        let server = Server::holding(&[
            ("idem:done:2026-11", lock, expiry),
            ("idem:done:plain", r#"{"id":1}"#, HOUR),
        ]);
        server.idemctl(&["check"]).exits(status);
        server.idemctl(&["check", "--schema", "express"]).exits(status);
        let listed = |words: &[&str]| {
            let json = server.idemctl(&[&["list", "-o", "json"], words].concat()).exits(0).json();
            let mut names = Vec::new();
            for record in json["records"].as_array().unwrap() {
                names.push(
                    format!("{}/{} {}", record["schema"], record["key"], record["state"])
                        .replace('"', ""),
                );
            }
            names.sort();
            (names, json["foreign"].clone())
        };
        let (express, plain) =
            ("express/done:2026-11 in-progress", "event-consumer/plain completed");
        assert_eq!(listed(&[]), (vec![plain.into(), express.into()], serde_json::json!({})));
        assert_eq!(listed(&["--schema", "express"]), (vec![express.into()], serde_json::json!({})));
        assert_eq!(listed(&["--match", "done:*"]), (vec![express.into()], serde_json::json!({})));
        assert_eq!(listed(&["--match", "2026*"]).0, Vec::<String>::new());
        let alone = (vec![plain.to_owned()], serde_json::json!({ "event-consumer": 1 }));
        assert_eq!(listed(&["--schema", "event-consumer"]), alone);
        let inspected = server.idemctl(&["inspect", "done:2026-11", "-o", "json"]).exits(0).json();
        assert_eq!(
            (&inspected["records"][0]["schema"], inspected["records"].as_array().unwrap().len()),
            (&"express".into(), 1)
        );
        let both = server.idemctl(&["inspect", "idem:done:2026-11", "-o", "json"]).exits(0).json();
        let told: Vec<_> = both["records"]
            .as_array()
            .unwrap()
            .iter()
            .map(|record| &record["foreign_because"])
            .collect();
        assert_eq!(
            told,
            [&serde_json::json!("express reads it as a lock"), &serde_json::Value::Null]
        );
        server.idemctl(&["purge", "--all", "--yes"]).exits(0).says("1 of 1 record purged");
        assert_eq!(server.keys(), ["idem:done:2026-11"]);
        let purge = server
            .idemctl(&["purge", "idem:done:2026-11", "--schema", "event-consumer", "--yes"])
            .exits(3);
        purge.says("express reads it as a lock");
        server.idemctl(&["force-unlock", "done:2026-11", "--yes"]).exits(0);
        assert_eq!(server.size(), 0);
    }
}

/// Rule: what the most specific schema does not write, and a less specific one does, is that one's, in a scan as well as by its
/// key.
#[test]
fn a_record_whose_key_begins_like_another_schemas_lock_belongs_to_the_schema_that_wrote_it() {
    let lock = r#"{"status":"IN_PROGRESS"}"#;
    let server = Server::holding(&[("idem:lock:x", lock, FOREVER)]);
    server.idemctl(&["check"]).exits(2);
    server.idemctl(&["check", "--schema", "express"]).exits(2);
    let names = server.idemctl(&["list", "-o", "name"]).exits(0);
    assert_eq!(names.stdout, b"express/\"lock:x\"\n");
    let inspected = server.idemctl(&["inspect", "lock:x", "-o", "json"]).exits(0).json();
    assert_eq!(inspected["records"].as_array().unwrap().len(), 1, "{inspected}");
    assert_eq!(inspected["records"][0]["schema"], "express");
    server.idemctl(&["force-unlock", "event-consumer/x", "--yes"]).exits(2);
    server.idemctl(&["sweep", "--orphaned", "--yes", "--grace", "0"]).exits(0);
    assert_eq!(server.size(), 0);

    let result = r#"{"status":"COMPLETED","statusCode":503,"headers":{},"body":{"id":7}}"#;
    let long = result.replace("7", &format!("\"{}\"", "x".repeat(5_000)));
    server.put("idem:lock:x", result);
    server.put("idem:started:y", &long);
    // Any bytes there are a result of event-consumer.
    server.put("idem:done:z", result);
    for more in [&[][..], &["--schema", "express"]] {
        let words = ["list", "--status", "5xx", "--schema", "express", "-o", "name"];
        let names = server.idemctl(&words).exits(0);
        let names: Vec<_> = names.stdout.split(|byte| *byte == b'\n').collect();
        assert!(names.contains(&&b"express/\"lock:x\""[..]), "{names:?}");
        assert!(names.contains(&&b"express/\"started:y\""[..]), "{names:?}");
        assert_eq!(names.len(), 3, "{names:?}");
        let found =
            server.idemctl(&[&["purge", "lock:x", "--dry-run", "-o", "json"], more].concat());
        assert_eq!(found.exits(0).json()["total"], 1);
    }
    server.idemctl(&["purge", "--all", "--schema", "express", "--yes"]).exits(0);
    assert_eq!(server.keys(), ["idem:done:z"]);
    server.send::<()>(&[b"DEL", b"idem:done:z"]);

    // The lock of event-driven has any bytes. Beside a result of express, it looks like a leftover.
    server.put("idem:started:x", lock);
    let inspected = server.idemctl(&["inspect", "started:x", "-o", "json"]).exits(0).json();
    assert_eq!(inspected["records"][0]["schema"], "express");
    server.idemctl(&["check"]).exits(2);
    server.put("idem:result:x", result);
    let names = server.idemctl(&["list", "--state", "in-progress", "-o", "name"]).exits(0);
    assert_eq!(names.stdout, b"express/\"started:x\"\n");
    let advised = server.idemctl(&["inspect", "event-driven/x"]);
    assert!(!String::from_utf8_lossy(&advised.stdout).contains("force-unlock"));
    server.idemctl(&["force-unlock", "event-driven/x", "--yes"]).exits(2);
    server.idemctl(&["sweep", "--include", "leftover-lock", "--yes", "--grace", "0"]);
    assert!(server.keys().contains(&"idem:started:x".to_owned()));
}

/// Rule: a lock is known by its bytes, also if a scan reads only the beginning of each value and its state is behind that.
#[test]
fn a_long_lock_whose_key_looks_like_a_result_belongs_to_the_schema_that_wrote_it() {
    let schema = r#"
format = 2
name = "tasks"
summary = "Locks that name their owner before their state"
[keys]
record = "idem:do{key}"
[ttl]
lock = "30s"
result = "1h"
[[value]]
name = "held"
where = { "/status" = "LOCKED" }
required = ["/owner", "/status"]
state = "in-progress"
[[value]]
name = "done"
where = { "/status" = "DONE" }
required = ["/status"]
state = "completed"
"#;
    let owner = "w".repeat(3_000);
    let lock = format!(r#"{{"owner":"{owner}","status":"LOCKED"}}"#);
    let other = format!(r#"{{"owner":"{owner}","status":"OPEN"}}"#);
    let server = Server::holding(&[
        ("idem:done:held", lock.as_str(), FOREVER),
        ("idem:done:other", other.as_str(), HOUR),
    ]);
    server.describe("tasks", &[("schema.toml", schema)]);
    server.idemctl(&["check"]).exits(2).shows("1 stuck lock");
    server.idemctl(&["check", "--schema", "tasks"]).exits(2);
    let list = server.idemctl(&["list", "-o", "json"]).exits(0).json();
    let mut names: Vec<_> = list["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| format!("{}/{} {}", record["schema"], record["key"], record["state"]))
        .map(|name| name.replace('"', ""))
        .collect();
    names.sort();
    assert_eq!(names, ["event-consumer/other completed", "tasks/ne:held in-progress"], "{list:#}");
    server.idemctl(&["purge", "--all", "--yes"]).exits(0).says("1 of 1 record purged");
    assert_eq!(server.keys(), ["idem:done:held"]);
    server.idemctl(&["sweep", "--orphaned", "--grace", "0s", "--yes"]).exits(0);
    assert_eq!(server.size(), 0);
}

/// Rule: a text that does not begin as a value of the schema does, and a Redis key of another type, were written by another
/// program. A scan counts them and gives them no finding; `inspect` shows each and predicts how the service treats it.
#[test]
fn text_and_other_types_under_a_prefix_are_unrecognised_in_scans() {
    for millis in [0, 80_000_000] {
        let server = Server::start();
        server.fill([("idem:note", "PENDING"), ("idempotency:empty", "")], millis);
        server.fill([("idempotency:number", "17 items")], millis);
        server.send::<()>(&[b"HSET", b"idempotency:hash", b"status", b"PENDING"]);
        server.send::<()>(&[b"RPUSH", b"idem:list", b"v"]);
        server.send::<()>(&[b"SADD", b"idem:result:set", b"v"]);
        let counts = serde_json::json!({ "event-driven": 1, "express": 2, "go-middleware": 3 });

        let listed = left(&server, &["list", "-o", "json"]).json();
        assert_eq!((&listed["records"], &listed["foreign"]), (&serde_json::json!([]), &counts));
        let stats = left(&server, &["stats", "-o", "json"]).json();
        assert_eq!((&stats["rows"], &stats["foreign"]), (&serde_json::json!([]), &counts));
        let checked = server.idemctl(&["check", "-o", "json"]).exits(1).json();
        assert_eq!(checked["foreign"], 6, "{checked}");
        assert_eq!(checked["findings"][0]["count"], 0, "{checked}");
        let narrow = ["--schema", "go-middleware", "--match", "*u*", "--yes"];
        for words in [
            &["sweep", "--orphaned", "--grace", "0", "--yes"][..],
            &["purge", "--all", "--yes"],
            &[&["sweep", "--include", "unreadable", "--grace", "0"][..], &narrow].concat(),
            &[&["purge", "--state", "unreadable"][..], &narrow].concat(),
        ] {
            left(&server, words);
        }

        for (key, schema, code) in [
            ("note", "express", "unreadable"),
            ("empty", "go-middleware", "unreadable"),
            ("hash", "go-middleware", "wrong-type"),
        ] {
            let words = ["inspect", key, "-o", "json"];
            let document = server.idemctl(&words).exits(1).json();
            assert_eq!(document["records"], serde_json::json!([]), "{document}");
            let words = [&words[..], &["--schema", schema]].concat();
            let document = server.idemctl(&words).exits(0).json();
            let record = &document["records"][0];
            assert_eq!(record["findings"][0]["code"], code, "{record}");
            assert!(record["foreign_because"].is_string(), "{record}");
        }
    }
}

/// Rule: a value that begins as one of the schema does and cannot be decoded may be a damaged one.
#[test]
fn what_begins_as_json_and_does_not_end_so_is_unreadable() {
    let server = Server::start();
    server.set("idempotency:cut", " {\"status\":\"COMPLETED\",\"co", 80_000_000);
    server.set("idem:list", "[1,", 80_000_000);
    let listed = server.idemctl(&["list", "-o", "json", "--state", "unreadable"]).exits(0).json();
    assert_eq!(listed["records"].as_array().map(Vec::len), Some(2), "{listed}");
    assert_eq!(listed["foreign"], serde_json::json!({}), "{listed}");
}

/// Rule: the good result of another library is no damaged record of this schema. Revert: if `inspect` reads it under the schema whose
/// prefix it has, it prints a `force-unlock` after which the operation executes twice.
#[test]
fn the_value_of_another_library_is_unrecognised_and_no_command_changes_it() {
    let server = Server::start();
    server.fill(OTHERS.iter().copied(), HOUR);
    let before = values(&server);
    let key = "payment.create:k0";
    let run = server.idemctl(&["inspect", key]).exits(1);
    run.says("unrecognised: not a value of go-middleware").says("it fits idempotency-kit");
    for word in ["force-unlock", "purge", "retry", "unreadable"] {
        assert!(!run.all().contains(word), "{word}: {}", run.all());
    }
    let json = server.idemctl(&["inspect", key, "-o", "json"]).exits(1).json();
    assert_eq!(json["unclaimed"][0]["fits"], serde_json::json!(["idempotency-kit"]), "{json}");
    let name = format!("go-middleware/{key:?}");
    for key in [key, name.as_str()] {
        for words in [
            &["force-unlock"][..],
            &["extend", "--for", "1h"],
            &["purge"],
            &["complete", "--status", "200", "--replace"],
            &["release"],
        ] {
            let run = server.idemctl(&[words, &[key, "--yes"]].concat());
            assert!(run.code != 0, "{words:?} {key}: {}", run.all());
            assert!(!run.all().contains("force-unlock "), "{words:?} {key}: {}", run.all());
            assert_eq!(values(&server), before, "{words:?} {key}");
        }
    }
    // The operator says whose it is.
    let words = ["inspect", key, "--schema", "go-middleware"];
    server.idemctl(&words).exits(0).shows("unreadable");
}

/// Rule: a value that begins as the schema writes it and breaks off is a damaged one of the schema, and what is no such text at all
/// is not, whichever command reads it.
#[test]
fn what_breaks_off_is_unreadable_and_other_text_is_unrecognised() {
    let server = Server::start();
    server.set("idempotency:torn", r#"{"status":"COMPLE"#, HOUR);
    server.set("idempotency:note", "not json", HOUR);
    server.set("idempotency:pickle", "\u{80}\u{4}}.", HOUR);
    let run = server.idemctl(&["inspect", "torn"]).exits(0);
    run.shows("unreadable");
    for key in ["note", "pickle"] {
        server.idemctl(&["inspect", key]).exits(1).says("unrecognised");
    }
    let listed = server.idemctl(&["list", "--state", "unreadable", "-o", "name"]).exits(0);
    assert_eq!(listed.text(), "go-middleware/\"torn\"\n");
    let json = server.idemctl(&["list", "-o", "json"]).exits(0).json();
    assert_eq!(json["foreign"]["go-middleware"], 2, "{json}");
}

/// Every Redis key with its value.
fn values(server: &Server) -> Vec<(String, Vec<u8>)> {
    let mut values = Vec::new();
    for key in server.keys() {
        let value = server.get(&key).unwrap_or_default();
        values.push((key, value));
    }
    values
}
