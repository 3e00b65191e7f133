//! A schema of the operator's own works everywhere a built-in one does, its scripts included.

use std::fs;

use crate::support::{FOREVER, PENDING, Server, backup};
use serde_json::json;

/// A one-key JSON schema that keeps an owner, a payload's hash, times and an error, which no built-in one does.
const TOML: &str = r#"
format = 2
name = "orders"
summary = "The order service"

[keys]
record = "{prefix}orders:{{key}}:idem"

[ttl]
lock = "90s"
result = "1h"

[[value]]
name = "held"
at = "record"
encoding = "json"
where = { "/s" = "held" }
state = "in-progress"
fields = { owner = "/by", fingerprint = "/hash", created_at = "/at" }

[[value]]
name = "failed"
at = "record"
encoding = "json"
where = { "/s" = "done" }
has = ["/error"]
state = "completed"
fields = { error = "/error/text", created_at = "/at", completed_at = "/until" }

[[value]]
name = "done"
at = "record"
encoding = "json"
where = { "/s" = "done" }
state = "completed"
fields = { status = "/res/code", body = "/res/body", fingerprint = "/hash", completed_at = "/until" }
body_encoding = "base64"

[write]
lock_value = '{"s":"held","by":"{owner}","hash":"h","at":{now}}'
result_value = '{"s":"done","hash":{kept:/hash},"res":{"code":{status},"body":"{body_base64}"}}'

[[begin.call]]
script = "take"
keys = ["{record}"]
args = ["{lock_value}", "{lock_ttl}"]
replies = [
  { word = "TAKEN", means = "acquired", when = { record = "absent" } },
  { word = "BUSY_NOW", means = "conflict", when = { record = "held" }, client = "425 Too Early" },
  { text = true, means = "replay", when = [{ record = "done" }, { record = "failed" }] },
  { error = "*", means = "fail", when = { record = "present" } },
]

[complete]
checks_owner = true

[[complete.call]]
script = "finish"
keys = ["{record}"]
args = ["{owner}", "{result_value}", "{result_ttl}"]
replies = [
  { integer = 1, means = "stored", when = { record = "held" } },
  { integer = 0, means = "refused", when = {} },
]
"#;

/// Takes the lock, or says who has it.
const TAKE: &str = "local found = redis.call('GET', KEYS[1])
if not found then
  redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
  return 'TAKEN'
end
if cjson.decode(found).s == 'held' then
  return 'BUSY_NOW'
end
return found
";

/// Stores the result, if the lock is the caller's.
const FINISH: &str = "local found = redis.call('GET', KEYS[1])
if not found or cjson.decode(found).by ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
";

fn with_schema() -> Server {
    with(TOML)
}

/// A server, and the schema in these words.
fn with(toml: &str) -> Server {
    let server = Server::start();
    server.describe("orders", &[("schema.toml", toml), ("take.lua", TAKE), ("finish.lua", FINISH)]);
    server
}

#[test]
fn it_is_sound_and_listed() {
    let server = with_schema();
    server.idemctl(&["schema", "check", ".config/idemctl/schemas/orders"]).exits(0);
    server.idemctl(&["schema", "list"]).exits(0).shows("orders");
    server.idemctl(&["schema", "show", "orders"]).exits(0).shows("orders:{{key}}:idem");
}

#[test]
fn inspect_reads_every_field() {
    let server = with_schema();
    let now = backup::now_ms(&server);
    let (taken, ended) = (now - 40_000, now - 10_000);
    server.set(
        "orders:{a}:idem",
        format!(r#"{{"s":"held","by":"w-1","hash":"abc","at":{taken}}}"#),
        80_000,
    );
    server.set(
        "orders:{b}:idem",
        format!(r#"{{"s":"done","res":{{"code":202,"body":"aGk="}},"until":{ended}}}"#),
        60_000,
    );
    server.set("orders:{c}:idem", r#"{"s":"done","error":{"text":"declined"}}"#, 3_000_000);
    let record = |key: &str| {
        server.idemctl(&["inspect", key, "-o", "json"]).exits(0).json()["records"][0].clone()
    };
    let held = record("a");
    assert_eq!(held["owner"], "w-1");
    assert_eq!(held["fingerprint"], "abc");
    assert_eq!(held["age_source"], "record");
    assert!((40_000..50_000).contains(&held["age_ms"].as_u64().unwrap()), "{held}");
    assert_eq!(held["next_request"]["client"], "425 Too Early");
    let done = record("orders:{b}:idem");
    assert_eq!(done["key"], "b");
    assert_eq!(done["response"]["body"], "hi");
    assert_eq!(done["findings"][0]["code"], "short-result-ttl");
    assert_eq!(done["findings"][0]["severity"], "warning");
    let failed = record("c");
    assert_eq!(failed["error"], "declined");
    assert_eq!(failed["next_request"]["answer"], "replay");
}

#[test]
fn list_and_force_unlock_and_race_work_on_it() {
    let server = with_schema();
    server.set("orders:{a}:idem", r#"{"s":"held","by":"w-1","hash":"abc","at":1}"#, 80_000);
    let listed = server.idemctl(&["list", "-o", "jsonl", "--owner", "w-1"]).exits(0).json_lines();
    assert_eq!(listed[0]["schema"], "orders");
    server
        .idemctl(&["force-unlock", "a", "--yes", "--expect", "w-1"])
        .exits(0)
        .says("can no longer store a result");
    let words = [
        "race",
        "--schema",
        "orders",
        "--concurrency",
        "8",
        "--rounds",
        "5",
        "--strategy",
        "schema",
        "-o",
        "json",
    ];
    let race = server.idemctl(&words).exits(0).json();
    assert_eq!(race["runs"][0]["schema"], "orders");
    assert_eq!(race["runs"][0]["verdict"], "atomic");
    assert_eq!(race["runs"][0]["replays"], json!(35));
    assert_eq!(server.size(), 0);
}

/// What tells its form stands behind everything else, beyond what a scan reads of a value.
fn late(form: &str, bytes: usize) -> String {
    format!(r#"{{"at":1,"hash":"{}","by":"w-1","s":"{form}"}}"#, "x".repeat(bytes))
}

#[test]
fn what_a_value_is_may_stand_at_its_end() {
    let server = with_schema();
    for bytes in [600, 10_000] {
        server.put(&format!("orders:{{held-{bytes}}}:idem"), late("held", bytes));
        server.set(&format!("orders:{{done-{bytes}}}:idem"), late("done", bytes), 3_000_000);
    }
    let states = |words: &[&str]| {
        let mut lines =
            server.idemctl(&[&["list", "-o", "jsonl"], words].concat()).exits(0).json_lines();
        lines.sort_by_key(|line| line["key"].to_string());
        lines
            .iter()
            .map(|line| format!("{} {}", line["key"], line["state"]).replace('"', ""))
            .collect::<Vec<_>>()
    };
    let held = ["held-10000 in-progress", "held-600 in-progress"];
    assert_eq!(states(&[]), [&["done-10000 completed", "done-600 completed"], &held[..]].concat());
    assert_eq!(states(&["--owner", "w-1"]), held);
    let found = server.idemctl(&["sweep", "--orphaned", "--dry-run", "-o", "json"]).exits(0);
    assert_eq!(found.json()["found"]["no-expiry"]["count"], 2);
    server.idemctl(&["purge", "--all", "--yes"]).exits(0);
    assert_eq!(states(&[]), held);
    server.idemctl(&["sweep", "--orphaned", "--yes", "--grace", "0"]).exits(0);
    assert_eq!(states(&[]), [""; 0]);
}

#[test]
fn what_cannot_be_told_is_left_alone() {
    let server = with_schema();
    // Longer than a scan reads of a value that expires.
    server.set("orders:{a}:idem", late("held", 2 << 20), 3_000_000);
    server.set("orders:{b}:idem", late("done", 2 << 20), 3_000_000);
    server
        .idemctl(&["purge", "--all", "--yes"])
        .exits(3)
        .says("2 records (orders 2) of unknown format");
    let sweep = ["sweep", "--orphaned", "--yes", "--grace", "0"];
    // Such a lock ends by its TTL.
    server.idemctl(&sweep).exits(0);
    let narrowed = ["--include", "unreadable", "--schema", "orders", "--match", "a"];
    let left = server.idemctl(&[&sweep[..], &narrowed].concat()).exits(3);
    left.says("1 record (orders 1) of unknown format");
    assert_eq!(server.size(), 2);
    let listed = server.idemctl(&["list", "-o", "jsonl"]);
    assert_eq!(listed.json_lines(), [serde_json::Value::Null; 0], "no state is known");
    listed.says("2 records (orders 2) of unknown format");
    for (key, state) in [("a", "in-progress"), ("b", "completed")] {
        let read = server.idemctl(&["inspect", key, "-o", "json"]).exits(0).json();
        assert_eq!(read["records"][0]["state"], state, "one key is read as far as it takes");
    }
}

/// Rule: a value that may be a result is never swept, and one that may be a lock is never passed over
/// without a word.
#[test]
fn what_never_expires_and_cannot_be_told_is_named_and_not_swept() {
    let server = with_schema();
    server.put("orders:{c}:idem", late("held", 17 << 20));
    let sweep = server.idemctl(&["sweep", "--orphaned", "--yes", "--grace", "0"]).exits(3);
    sweep.says("1 record (orders 1) of unknown format");
    assert_eq!(server.size(), 1);
}

#[test]
fn a_deployments_prefix_goes_before_it() {
    let server = with_schema();
    server.set("eu:orders:{a}:idem", r#"{"s":"held","by":"w-1","hash":"abc","at":1}"#, 80_000);
    server.idemctl(&["inspect", "a", "--schema", "orders"]).exits(1);
    server.idemctl(&["inspect", "a", "--schema", "orders", "--prefix", "eu:"]).exits(0);
    let config = "default_context = \"eu\"\n[contexts.eu.deployment.orders]\nprefix = \"eu:\"\nlock_ttl = \"60s\"\n";
    server.configure(config);
    let found = server.idemctl(&["inspect", "a", "-o", "json"]).exits(0).json();
    assert_eq!(found["records"][0]["findings"][0]["code"], "excess-ttl");
}

#[test]
fn one_that_is_wrong_is_named_with_its_line() {
    let server = with(&TOML.replace("\"{lock_ttl}\"", "\"{lock_tll}\""));
    let run = server.idemctl(&["list", "--schema", "orders"]).exits(2);
    let line = TOML.lines().position(|line| line.contains("{lock_ttl}")).unwrap() + 1;
    run.says(format!("schema.toml:{line}: `{{lock_tll}}` is not a placeholder"));
}

#[test]
fn a_prefix_stands_in_place_of_the_schemas_own() {
    let server = with(
        &TOML.replace("{prefix}orders:{{key}}:idem\"", "{prefix}{key}\"\nprefix = \"orders:\""),
    );
    let lock = r#"{"s":"held","by":"w-1","hash":"abc","at":1}"#;
    server.set("orders:a", lock, 80_000);
    server.set("eu:b", lock, 80_000);
    server.idemctl(&["inspect", "a", "--schema", "orders"]).exits(0);
    server.idemctl(&["inspect", "b", "--schema", "orders", "--prefix", "eu:"]).exits(0);
    server.idemctl(&["inspect", "a", "--schema", "orders", "--prefix", "eu:"]).exits(1);
}

#[test]
fn a_prefix_for_a_schema_that_sends_the_bare_key_is_refused_with_the_reason() {
    let bare = TOML.replace("{prefix}orders", "orders").replacen(
        "keys = [\"{record}\"]",
        "keys = [\"{key}\"]",
        1,
    );
    let server = with(&bare);
    let run = server.idemctl(&["inspect", "a", "--schema", "orders", "--prefix", "eu:"]).exits(2);
    let why = "schema `orders` cannot have a prefix: [begin] sends take.lua the {key} alone";
    run.says(format!("--prefix: {why}"));
    server.idemctl(&["inspect", "a", "--schema", "orders"]).exits(1);
    let config = server.folder().join(".config/idemctl/config.toml");
    fs::write(
        &config,
        "default_context = \"eu\"\n[contexts.eu.deployment.orders]\nprefix = \"eu:\"\n",
    )
    .unwrap();
    for words in [&["list"][..], &["config", "show"], &["race", "--rounds", "1"]] {
        let run = server.idemctl(words).exits(2);
        assert!(
            run.stderr.contains(&format!("{}:3: {why}", config.display())),
            "{words:?}: {}",
            run.all()
        );
    }
    fs::remove_file(&config).unwrap();
    let shown = server.idemctl(&["schema", "show", "orders", "-o", "json"]).exits(0).json();
    assert_eq!(shown["schemas"][0]["takes_prefix"], false);
    assert_eq!(shown["schemas"][0]["prefix"]["place"], "nowhere");
}

/// Rule: a schema that cannot be used stops nobody who did not name that schema, and is never replaced by the built-in one.
#[test]
fn a_folder_that_is_wrong_is_left_out_with_a_warning_unless_it_is_named() {
    let server = with_schema();
    server.set("idempotency:k", PENDING, 60_000);
    server.set("orders:{a}:idem", late("held", 10), 60_000);
    server.describe("go-middleware", &[("schema.toml", "name = 7\n")]);
    let run = server.idemctl(&["list", "-o", "jsonl"]).exits(3);
    run.says("warning: skipped schema go-middleware: ").says("schema.toml:1");
    let schemas: Vec<_> = run.json_lines().iter().map(|line| line["schema"].clone()).collect();
    assert_eq!(schemas, ["orders"], "{}", run.all());
    server.idemctl(&["list", "--schema", "go-middleware"]).exits(2).says("schema.toml:1");
    // What `schema check` refuses is not loaded, although the file can be read.
    let wrong = TOML.replace(r#"lock_value = '{"s":"held""#, r#"lock_value = '{"s":"done""#);
    let folder = server.describe("orders", &[("schema.toml", &wrong)]);
    server.idemctl(&["schema", "check", folder.to_str().unwrap()]).exits(1);
    server.idemctl(&["list", "--schema", "orders"]).exits(2);
    server.idemctl(&["list"]).exits(3).says("skipped schema orders");
}

/// Rule: one schema of the context that cannot be read does not keep the operator from the records of the others.
#[test]
fn a_schema_of_the_context_that_cannot_be_read_is_skipped_and_named() {
    let server = Server::holding(&[("idem:a", r#"{"status":"IN_PROGRESS"}"#, 20_000)]);
    server
        .describe("broken", &[("schema.toml", "format = 2\nname = \"broken\"\nstate = DECIDE\n")]);
    let run = |words: &[&str]| server.in_context("m", "schema = [\"express\", \"broken\"]", words);
    run(&["inspect", "a"]).exits(0).shows("in-progress").says("skipped schema broken");
    run(&["list"]).exits(3).shows("express").says("skipped schema broken");
    run(&["check"]).exits(3).shows("UNKNOWN - schema broken: its files are invalid");
    server.put("idem:stuck", r#"{"status":"IN_PROGRESS"}"#);
    run(&["check"]).exits(2).shows("CRITICAL - 1 stuck lock");
    run(&["sweep", "--orphaned", "--yes"]).exits(3).says("skipped schema broken");
    assert_eq!(server.keys(), ["idem:a"]);
    run(&["list", "--schema", "broken"]).exits(2).says("schema check broken");
    server.in_context("n", "schema = [\"broken\"]", &["list"]).exits(2).says("schema.toml:3");
}

/// Rule: an invalid schema file is a gap of every answer that nothing was found. Revert: without
/// `chooses_all` in `catalog_of`.
#[test]
fn nothing_is_said_to_be_in_order_if_a_schema_file_is_invalid() {
    const OWN: &str = "format = 2\nname = \"pay\"\nkeys = { record = \"pay:{key}\" }\n\
        ttl = { lock = \"30s\", result = \"24h\" }\n[[value]]\nname = \"in-progress\"\n\
        where = { \"/status\" = \"IN_PROGRESS\" }\nrequired = [\"/status\"]\nstate = \"in-progress\"\n";
    const STUCK: &str = r#"{"status":"IN_PROGRESS"}"#;
    let express = OWN.replace("pay", "express");
    for (name, key, toml) in [
        ("pay", "pay:stuck", OWN.replace("lock =", "lokc =")),
        ("pay", "pay:stuck", OWN.replace("\"30s\"", "\"soon\"")),
        // A schema with the name of a built-in one is no draft.
        ("express", "idem:stuck", express.replace("\"30s\"", "\"DECIDE\"")),
    ] {
        let server = Server::holding(&[(key, STUCK, FOREVER)]);
        server.set("idempotency:a", PENDING, 60_000);
        server.describe(name, &[("schema.toml", &toml)]);
        let unknown = format!("schema {name}: its files are invalid");
        server.idemctl(&["check"]).exits(3).shows(format!("UNKNOWN - {unknown}"));
        let sweep = server.idemctl(&["sweep", "--orphaned", "--yes"]).exits(3);
        sweep.says(&unknown);
        assert!(!sweep.all().contains("no orphaned"), "{}", sweep.all());
        server.idemctl(&["inspect", "stuck"]).exits(3).says(format!("stuck: unknown: {unknown}"));
        let filter = ["--state", "completed"];
        server.idemctl(&[&["list"], &filter[..]].concat()).exits(3).says(&unknown);
        server.idemctl(&[&["stats"], &filter[..]].concat()).exits(3).says(&unknown);
        let list = server.idemctl(&["list", "-o", "json"]).exits(3).json();
        let left_out = list["left_out"].as_array().unwrap();
        assert!(left_out.iter().any(|left| left["schema"] == name), "{list:#}");
        assert_eq!(list["complete"], false);
        // A question about other schemas alone has its answer.
        server.idemctl(&["check", "--schema", "go-middleware"]).exits(0);
        server.idemctl(&["inspect", "go-middleware/nowhere"]).exits(1);
    }
}

/// A lock whose key template is that of the results and more: a client can choose the key `o1:lock`.
const OVERLAPPING: &str = r#"format = 2
name = "pay"
keys = { lock = "pay:{key}:lock", result = "pay:{key}" }
ttl = { lock = "30s", result = "24h" }
[[value]]
name = "held"
at = "lock"
opaque = true
state = "in-progress"
[[value]]
name = "stored"
at = "result"
opaque = true
state = "completed"
"#;

/// Rule: a Redis key that two templates of a schema fit is that of the longer one, in a scan as well as by its name, and
/// `schema check` warns of such templates.
#[test]
fn the_lock_of_a_key_is_not_the_result_of_another_key() {
    let server = Server::start();
    let folder = server.describe("pay", &[("schema.toml", OVERLAPPING)]);
    let checked = server.idemctl(&["schema", "check", &folder.display().to_string()]).exits(0);
    checked
        .shows(":3: warning: `pay:{key}` also fits the Redis keys of `pay:{key}:lock`")
        .shows("pay: ok");
    server.set("pay:o1:lock:lock", "hostile", 25_000);
    server.set("pay:o1:lock", "worker-7", 25_000);
    let listed = server.idemctl(&["list", "--schema", "pay", "-o", "json"]).exits(0).json();
    assert_eq!(
        (&listed["records"][0]["key"], &listed["records"][0]["state"]),
        (&"o1".into(), &"in-progress".into())
    );
    assert_eq!(
        (listed["records"].as_array().unwrap().len(), &listed["foreign"]["pay"]),
        (1, &1.into()),
        "{listed}"
    );
    server
        .idemctl(&["purge", "--schema", "pay", "--all", "--yes"])
        .exits(0)
        .says("no such records");
    assert_eq!(server.size(), 2);
    // A result of its own is purged, and a lock beside it is told.
    server.set("pay:o1", "stored", 80_000_000);
    server
        .idemctl(&["purge", "--schema", "pay", "--all", "--yes"])
        .exits(0)
        .says("1 of 1 record purged");
    assert_eq!(server.keys(), ["pay:o1:lock:lock"]);
}
