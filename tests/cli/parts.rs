//! Records with more Redis keys than a lock and a result: parts.

use crate::support::backup;
use crate::support::cluster::Cluster;
use crate::support::{Run, Server};

/// A response whose status code and whose payload's hash have Redis keys of their own, as libraries
/// for Python and for Laravel keep them. The hash is written when the lock is taken.
const PAID: &str = r#"format = 2
name = "paid"
ttl = { lock = "30s", result = "24h" }

[keys]
lock = "paid:lock:{key}"
result = "paid:{key}"
parts = { code = "paid:{key}:code", hash = "paid:{key}:hash" }

[[value]]
name = "held"
at = "lock"
opaque = true
state = "in-progress"
fields = { owner = "" }

[[value]]
name = "stored"
at = "result"
required = ["/id"]
state = "completed"
fields = { body = "" }
body_encoding = "json"

[[value]]
name = "code"
at = "code"
opaque = true
fields = { status = "" }

[[value]]
name = "payload"
at = "hash"
encoding = "php"
fields = { fingerprint = "" }

[[begin.call]]
command = ["SET", "{lock}", "{owner}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "next" },
  { nil = true, means = "conflict", when = { lock = "present", result = "absent" }, client = "409" },
]

[[begin.call]]
command = ["GET", "{result}"]
replies = [
  { value = "stored", means = "mismatch", when = { result = "stored", fingerprint = "other" } },
  { value = "stored", means = "replay" },
  { nil = true, means = "acquired", when = { lock = "absent", result = "absent" } },
]

[release]
checks_owner = false

[[release.call]]
command = ["DEL", "{lock}"]
replies = [{ integer = 1, means = "released" }, { integer = 0, means = "refused" }]
"#;

const BODY: &str = r#"{"id":"ch_1"}"#;

const HASH: &str = r#"s:4:"a1b2";"#;

/// The Redis keys of the record `a`, with their values: a result with its parts, and no lock.
const STORED: [(&str, &str); 3] = [("paid:a", BODY), ("paid:a:code", "201"), ("paid:a:hash", HASH)];

fn server() -> Server {
    let server = Server::start();
    server.describe("paid", &[("schema.toml", PAID)]);
    for (redis_key, value) in STORED {
        server.set(redis_key, value, 80_000_000);
    }
    server
}

/// The schema's records, by their keys.
fn listed(server: &Server) -> Vec<(String, String)> {
    let run: Run = server.idemctl(&["list", "--schema", "paid", "-o", "jsonl"]);
    let mut listed = Vec::new();
    for line in run.exits(0).json_lines() {
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        listed.push((text("key"), text("state")));
    }
    listed.sort();
    listed
}

fn record(key: &str, state: &str) -> (String, String) {
    (key.to_owned(), state.to_owned())
}

/// Rule: a record has the fields of its parts, and each of its Redis keys is shown once.
#[test]
fn a_record_has_the_fields_of_its_parts() {
    let server = server();
    server.idemctl(&["schema", "check", "paid"]).exits(0).shows("1 completed");
    let shown = server.idemctl(&["schema", "show", "paid"]).exits(0);
    shown.shows("Part code").shows("paid:{key}:code").shows("at hash");
    let inspect = ["inspect", "a", "--schema", "paid", "-o", "json"];
    let json = &server.idemctl(&inspect).exits(0).json()["records"][0];
    assert_eq!(json["state"], "completed");
    assert_eq!(json["fingerprint"], "a1b2");
    assert_eq!(json["response"]["status"], 201);
    assert_eq!(json["redis_keys"].as_array().unwrap().len(), 4, "the lock is absent");
    let page = server.idemctl(&["inspect", "a", "--schema", "paid", "--full"]).exits(0);
    page.shows("paid:a:code [code]").shows("201").shows("a1b2").shows("replay").shows("ch_1");
    // A Redis key of a part is a name of the record, too.
    server.idemctl(&["inspect", "paid:a:code"]).exits(0).shows("paid:a:hash [hash]");
    assert_eq!(listed(&server), [record("a", "completed")], "once, whatever key SCAN returns");
    for filter in [["--status", "2xx"], ["--fingerprint", "a1*"]] {
        let list = [&["list", "--schema", "paid", "-o", "jsonl"][..], &filter[..]].concat();
        assert_eq!(server.idemctl(&list).exits(0).json_lines().len(), 1, "{filter:?}");
    }
    let none = ["list", "--schema", "paid", "--status", "4xx", "-o", "jsonl"];
    assert_eq!(server.idemctl(&none).exits(0).json_lines().len(), 0);
    // Keys that the client chose so that they look like those of a part stay their own record.
    server.set("paid:b", BODY, 60_000);
    assert_eq!(listed(&server), [record("a", "completed"), record("b", "completed")]);
}

/// Rule: parts alone are no record, and neither is a lock of another program at their Redis key.
#[test]
fn parts_alone_are_no_record() {
    let server = Server::start();
    server.describe("paid", &[("schema.toml", PAID)]);
    server.set("paid:a:code", "201", 60_000);
    server.set("paid:a:hash", HASH, 60_000);
    assert!(listed(&server).is_empty());
    let absent = server.idemctl(&["inspect", "a", "--schema", "paid"]);
    absent.exits(1).says("paid:a:code exists").says("not a record");
    server.idemctl(&["purge", "--schema", "paid", "--yes"]).exits(0);
    assert_eq!(server.size(), 2);
    // With the lock they are those of an execution.
    server.set("paid:lock:a", "w-1", 20_000);
    let held = server.idemctl(&["inspect", "a", "--schema", "paid", "-o", "json"]).exits(0).json();
    assert_eq!(held["records"][0]["state"], "in-progress");
    assert_eq!(held["records"][0]["response"], serde_json::Value::Null, "of an earlier result");
    assert_eq!(held["records"][0]["fingerprint"], "a1b2");
}

/// Rule: the Redis keys of a record are removed and restored together.
#[test]
fn a_record_is_removed_and_restored_with_its_parts() {
    for way in ["undo", "restore"] {
        let server = server();
        let before = server.keys();
        server.idemctl(&["purge", "a", "--schema", "paid", "--yes"]).exits(0).says("1 of 1 record");
        assert_eq!(server.size(), 0);
        let file = backup::only(&server).display().to_string();
        let words =
            if way == "undo" { vec!["undo", "--yes"] } else { vec!["restore", &file, "--yes"] };
        server.idemctl(&words).exits(0).says("3 of 3 Redis keys");
        assert_eq!(server.keys(), before);
        assert_eq!(server.get("paid:a:code").unwrap(), b"201");
        assert_eq!(listed(&server), [record("a", "completed")]);
    }
}

/// Rule: a part that changed since it was shown keeps the whole record, and one that exists again
/// keeps it from being restored.
#[test]
fn one_changed_part_keeps_the_record() {
    let server = server();
    // Its part is read in the scan and compared in the script: the change comes in between.
    let keys = ["paid:a", "paid:a:code", "paid:a:hash"];
    server.idemctl(&["purge", "a", "--schema", "paid", "--yes"]).exits(0);
    server.set("paid:a:code", "500", 60_000);
    let run = server.idemctl(&["undo", "--yes"]);
    run.exits(3).says("1 already present").says("another Redis key of the record exists");
    assert_eq!(server.get("paid:a:code").unwrap(), b"500");
    for absent in [keys[0], keys[2]] {
        assert_eq!(server.get(absent), None, "{absent}");
    }
}

/// Rule: what is at a part's Redis key and is no value of the part belongs to another program, and
/// the record is left alone.
#[test]
fn a_part_of_another_program_protects_the_record() {
    let server = server();
    server.send::<()>(&[b"DEL", b"paid:a:code"]);
    server.send::<i64>(&[b"SADD", b"paid:a:code", b"x"]);
    server.idemctl(&["purge", "--schema", "paid", "--yes"]).exits(0);
    server.idemctl(&["purge", "a", "--schema", "paid", "--yes"]);
    assert_eq!(server.size(), 3);
}

/// Rule: force-unlock and sweep remove the lock alone.
#[test]
fn unlocking_leaves_the_parts() {
    let server = Server::start();
    server.describe("paid", &[("schema.toml", PAID)]);
    server.put("paid:lock:a", "w-1");
    server.put("paid:lock:b", "w-2");
    for key in ["a", "b"] {
        server.set(&format!("paid:{key}:hash"), HASH, 60_000);
    }
    server.idemctl(&["force-unlock", "a", "--schema", "paid", "--yes"]).exits(0);
    assert_eq!(server.get("paid:lock:a"), None);
    assert!(server.get("paid:a:hash").is_some());
    let sweep = ["sweep", "--orphaned", "--schema", "paid", "--yes"];
    server.idemctl(&sweep).exits(0).says("1 ");
    assert_eq!(server.get("paid:lock:b"), None);
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.get("paid:lock:b").unwrap(), b"w-2");
    assert_eq!(listed(&server), [record("b", "in-progress")]);
}

/// Rule: a comparison of two lists sees a changed part.
#[test]
fn diff_sees_a_changed_part() {
    let server = server();
    let list = server.idemctl(&["list", "--schema", "paid", "-o", "json"]).exits(0).stdout;
    let file = server.folder().join("before.json");
    std::fs::write(&file, list).unwrap();
    let diff = ["diff", file.to_str().unwrap(), "--schema", "paid"];
    server.idemctl(&diff).exits(0);
    server.send::<i64>(&[b"PEXPIRE", b"paid:a:hash", b"1000000"]);
    server.idemctl(&diff).exits(1).shows("renewed");
    let (_, code) = STORED[1];
    server.set("paid:a:hash", code, 80_000_000);
    server.idemctl(&diff).exits(1);
}

/// Rule: on a cluster the Redis keys of a record may have different slots. Each is removed and
/// restored, and the result comes back after its parts.
#[test]
fn the_parts_may_have_other_slots() {
    let cluster = Cluster::start(3);
    cluster.node(0).describe("paid", &[("schema.toml", PAID)]);
    for (redis_key, value) in STORED {
        cluster.set(redis_key, value, 80_000_000);
    }
    cluster.set("paid:lock:a", "w-1", 20_000);
    let list = ["list", "--schema", "paid", "-o", "jsonl"];
    assert_eq!(cluster.idemctl(&list).exits(0).json_lines().len(), 1);
    cluster.idemctl(&["purge", "a", "--schema", "paid", "--yes"]).exits(0).says("1 of 1 record");
    assert_eq!(cluster.size(), 0);
    cluster.idemctl(&["undo", "--yes"]).exits(0).says("4 of 4 Redis keys");
    for (redis_key, value) in STORED {
        assert_eq!(cluster.get(redis_key).as_deref(), Some(value), "{redis_key}");
    }
    assert_eq!(cluster.get("paid:lock:a").as_deref(), Some("w-1"));
}

/// Rule: what a file says wrongly about parts is named with its line.
#[test]
fn a_wrong_part_is_named() {
    let server = Server::start();
    for (from, to, message) in [
        ("code = \"paid:{key}:code\"", "result = \"paid:{key}:code\"", "has another meaning"),
        ("code = \"paid:{key}:code\"", "\"a b\" = \"paid:{key}:code\"", "consists of letters"),
        ("code = \"paid:{key}:code\"", "code = \"paid:{key}\"", "must have different Redis keys"),
        ("code = \"paid:{key}:code\"", "code = \"paid:code\"", "its template needs `{key}`"),
        ("at = \"code\"", "at = \"kode\"", "[keys] has no `kode`"),
        ("at = \"code\"", "at = \"code\"\nstate = \"completed\"", "a part has no state"),
        ("at = \"code\"", "at = \"code\"\nttl = \"1m\"", "no TTL of its own"),
        ("fields = { status = \"\" }", "fields = { owner = \"\" }", "owners and times"),
        ("state = \"completed\"\n", "", "missing field `state`"),
    ] {
        let wrong = PAID.replacen(from, to, 1);
        assert_ne!(wrong, PAID, "{from}");
        server.describe("paid", &[("schema.toml", &wrong)]);
        server.idemctl(&["schema", "check", "paid"]).exits(1).shows(message);
    }
    let complete = "\n[[complete.call]]\ncommand = [\"SET\", \"{result}\", \"{owner}\"]\n\
        replies = [{ word = \"OK\", means = \"stored\" }]\n";
    let wrong = format!("{PAID}{complete}");
    server.describe("paid", &[("schema.toml", &wrong)]);
    let run = server.idemctl(&["schema", "check", "paid"]).exits(1);
    run.shows("does not store a response in several Redis keys");
}

/// Rule: `detect` knows the parts of a schema that other keys identify, and no part alone names one.
#[test]
fn detect_knows_the_parts_of_a_schema() {
    let server = server();
    for index in 0..6 {
        for (name, value) in [("", BODY), (":code", "201"), (":hash", HASH)] {
            server.set(&format!("paid:k-{index}{name}"), value, 80_000_000);
        }
    }
    let detected = server.idemctl(&["detect"]).exits(0);
    detected.shows("the keys are paid:{key}:code").shows("parts of records");
    assert!(!detected.text().contains("Not recognised"), "{}", detected.text());
    for redis_key in server.keys() {
        if !redis_key.contains(":code") {
            server.send::<()>(&[b"DEL", redis_key.as_bytes()]);
        }
    }
    let alone = server.idemctl(&["detect"]).exits(0);
    assert!(!alone.text().contains("Schema        paid"), "{}", alone.text());
}

/// A lock whose key counts as free only if its token waits in another Redis key, as a library for
/// semaphores keeps it.
const SEMAPHORE: &str = r#"format = 2
name = "sem"
ttl = { lock = "1h" }

[keys]
lock = "sem:{key}:taken"
parts = { free = "sem:{key}:free", made = "sem:{key}:made" }

[[value]]
name = "taken"
at = "lock"
opaque = true
state = "in-progress"

[[value]]
name = "free"
at = "free"
opaque = true

[[value]]
name = "made"
at = "made"
opaque = true

[[begin.call]]
command = ["SET", "{lock}", "1", "NX"]
replies = [
  { word = "OK", means = "acquired", when = [{ made = "absent" }, { free = "present" }] },
  { nil = true, means = "conflict", when = { free = "absent" } },
]
"#;

/// Rule: a lock is not removed alone if the service would still reject requests because of the parts.
/// The alarm remains, and a purge removes all Redis keys.
#[test]
fn a_lock_that_would_not_free_the_key_stays() {
    let server = Server::start();
    server.describe("sem", &[("schema.toml", SEMAPHORE)]);
    server.put("sem:a:taken", "1");
    server.put("sem:a:made", "1");
    let refused = server.idemctl(&["force-unlock", "a", "--schema", "sem", "--yes"]);
    refused.exits(2).says("would still reject the next request").says("its parts remain (made)");
    let sweep = server.idemctl(&["sweep", "--orphaned", "--schema", "sem", "--yes"]);
    sweep.says("sweep leaves a lock of sem alone");
    assert_eq!(server.size(), 2);
    server.idemctl(&["check", "--schema", "sem"]).exits(2).shows("CRITICAL");
    let purge = ["purge", "a", "--schema", "sem", "--state", "in-progress", "--yes"];
    server.idemctl(&purge).exits(0);
    assert_eq!(server.size(), 0);
    // Without the other part, the service makes the semaphore again.
    server.put("sem:b:taken", "1");
    server.idemctl(&["force-unlock", "b", "--schema", "sem", "--yes"]).exits(0);
    assert_eq!(server.size(), 0);
    // What remains beside a removed lock is not a request that took it.
    server.describe("paid", &[("schema.toml", PAID)]);
    server.put("paid:lock:c", "w-1");
    server.set("paid:c:hash", HASH, 60_000);
    let run = server.idemctl(&["force-unlock", "c", "--schema", "paid", "--yes"]).exits(0);
    run.says("Read back: the lock is gone.");
}

/// Rule: parts do not come back beside the result of a retry, whatever lock is passed over.
#[test]
fn parts_do_not_come_back_beside_another_result() {
    let server = server();
    server.idemctl(&["purge", "a", "--schema", "paid", "--yes"]).exits(0);
    server.set("paid:a", r#"{"id":"ch_2"}"#, 80_000_000);
    let file = backup::only(&server).display().to_string();
    let run = server.idemctl(&["restore", &file, "--yes"]).exits(3);
    run.says("2 not restored, because another Redis key of the record exists");
    server.idemctl(&["restore", &file, "--replace-locked", "--yes"]).exits(3);
    assert_eq!(server.keys(), ["paid:a"]);
}

/// Rule: a purge of a named record says why it leaves what its filters select, and exits with 3.
#[test]
fn a_purge_says_that_a_part_has_another_type() {
    let server = Server::start();
    server.describe("paid", &[("schema.toml", PAID)]);
    server.put("paid:lock:a", "w-1");
    server.send::<()>(&[b"RPUSH", b"paid:a:hash", b"x"]);
    let purge = ["purge", "a", "--schema", "paid", "--state", "in-progress", "--yes"];
    let run = server.idemctl(&purge).exits(3);
    run.says(
        "unchanged: paid/a (another program uses one of its Redis keys, which does not hold a",
    );
    // The default state leaves it out, so its type does not matter.
    server.idemctl(&["purge", "a", "--schema", "paid", "--yes"]).says("it is in-progress");
    assert_eq!(server.size(), 2);
}
