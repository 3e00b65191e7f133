//! `idemctl list` from the outside.

use std::time::{Duration, Instant};

use crate::support::{DONE, FOREVER, LOCK, PENDING, Server};
use serde_json::Value;

const TWO_HOURS: u64 = 7_230_000;

fn seeded() -> Server {
    Server::holding(&[
        ("idempotency:order-1", PENDING, 200_000),
        ("idempotency:order-2", DONE, TWO_HOURS),
        ("idempotency:order-3", "in-progress", 100_000),
        ("idempotency:order-4", PENDING, FOREVER),
        ("idem:started:pay-1", "worker-7", 20_000),
        ("idem:started:pay-2", "worker-8", 20_000),
        ("idem:result:pay-2", r#"{"statusCode":200,"body":"ok"}"#, TWO_HOURS),
        ("idem:result:pay-3", r#"{"statusCode":500,"body":"","error":"card declined"}"#, TWO_HOURS),
        ("idem:lock:msg-1", "1", 20_000),
        ("idem:done:msg-2", "1", TWO_HOURS),
        ("idem:web-1", LOCK, 20_000),
        ("idem:web-2", "{garbage", 20_000),
        ("bare", r#"{"status":0}"#, 20_000),
        ("unrelated:1", "x", 20_000),
    ])
}

/// These fields of each record that is listed, in the order of the alphabet.
fn rows(server: &Server, words: &[&str], fields: &[&str]) -> Vec<String> {
    let run = server.idemctl(&[&["list", "-o", "jsonl"], words].concat());
    assert_eq!(run.code, if run.stderr.contains("Skipped ") { 3 } else { 0 }, "{}", run.all());
    let lines = run.json_lines();
    let row = |line: &Value| {
        fields.iter().map(|field| line[field].as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    let mut rows: Vec<_> = lines.iter().map(row).collect();
    rows.sort();
    rows
}

fn keys(server: &Server, words: &[&str]) -> Vec<String> {
    rows(server, words, &["key"])
}

#[test]
fn lists_each_record_once_under_the_schema_that_reads_it() {
    let server = seeded();
    assert_eq!(
        rows(&server, &[], &["key", "schema", "state"]),
        [
            "msg-1 event-consumer in-progress",
            "msg-2 event-consumer completed",
            "order-1 go-middleware in-progress",
            "order-2 go-middleware completed",
            "order-3 go-middleware-v1 in-progress",
            "order-4 go-middleware in-progress",
            "pay-1 event-driven in-progress",
            "pay-2 event-driven completed",
            "pay-3 event-driven completed",
            "web-1 express in-progress",
            "web-2 express unreadable",
        ]
    );
}

#[test]
fn filters_choose() {
    let server = seeded();
    assert_eq!(keys(&server, &["--schema", "express"]), ["web-1", "web-2"]);
    assert_eq!(keys(&server, &["--schema", "go-chi"]), ["bare"]);
    assert_eq!(
        keys(&server, &["--state", "in-progress", "--match", "order-*"]),
        ["order-1", "order-3", "order-4"]
    );
    assert_eq!(keys(&server, &["--no-expiry"]), ["order-4"]);
    assert_eq!(keys(&server, &["--finding", "no-expiry,leftover-lock"]), ["order-4", "pay-2"]);
    assert_eq!(keys(&server, &["--owner", "worker-7"]), ["pay-1"]);
    assert_eq!(keys(&server, &["--ttl-below", "30s", "--schema", "event-driven"]), ["pay-1"]);
    assert_eq!(keys(&server, &["--ttl-above", "1h", "--schema", "event-consumer"]), ["msg-2"]);
    let stated = ["--schema", "go-middleware-v1", "--lock-ttl", "300s"];
    assert_eq!(keys(&server, &[&["--older-than", "150s"], &stated[..]].concat()), ["order-3"]);
    assert_eq!(keys(&server, &["--finding", "overdue", "--overdue", "150s"]), ["order-3"]);
    assert_eq!(keys(&server, &["--limit", "2"]).len(), 2);
}

#[test]
fn sorting_keeps_the_first_of_the_order() {
    let server = seeded();
    let order = |by: &str, schema: &str| -> Vec<Value> {
        let run = server
            .idemctl(&["list", "-o", "jsonl", "--sort", by, "--limit", "2", "--schema", schema])
            .exits(0);
        run.json_lines().iter().map(|line| line["key"].clone()).collect()
    };
    assert_eq!(order("key", "go-middleware"), ["order-1", "order-2"]);
    assert_eq!(order("ttl", "go-middleware,go-middleware-v1"), ["order-3", "order-1"]);
    assert_eq!(order("size", "event-driven"), ["pay-3", "pay-2"]);
    assert_eq!(order("age", "go-middleware,go-middleware-v1"), ["order-2", "order-3"]);
}

#[test]
fn the_table_is_for_people() {
    let server = Server::holding(&[("idempotency:order-1", PENDING, TWO_HOURS)]);
    server.put("idempotency:order-2", PENDING);
    let run = server
        .idemctl(&["list", "--sort", "key", "--schema", "go-middleware", "--lock-ttl", "4h"])
        .exits(0);
    insta::assert_snapshot!(run.stable(&server));
}

#[test]
fn json_is_one_document_and_closed() {
    let server = seeded();
    let document = server.idemctl(&["list", "-o", "json"]).exits(0).json();
    assert_eq!(document["format"], 1);
    assert_eq!(document["complete"], true);
    assert_eq!(document["records"].as_array().unwrap().len(), 11);
    let empty = server.idemctl(&["list", "-o", "json", "--match", "none"]).exits(0).json();
    assert_eq!(empty["records"], serde_json::json!([]));
}

#[test]
fn the_newer_releases_operator_sees_the_older_ones_values_as_trouble() {
    let server = seeded();
    let run = server
        .idemctl(&["list", "-o", "jsonl", "--schema", "go-middleware", "--match", "order-3"])
        .exits(0);
    let record = &run.json_lines()[0];
    assert_eq!(record["state"], "unreadable");
    assert_eq!(record["findings"][0]["code"], "foreign-schema");
}

#[test]
fn many_records_of_two_keys_come_once_each_while_they_complete() {
    let server = Server::start();
    // A third each: a lock, a result, both.
    let of = |name: &str, third: usize| {
        (0..3_000).filter(move |index| index % 3 != third).map({
            let name = name.to_owned();
            move |index| format!("idem:{name}:k{index}")
        })
    };
    server.fill(of("started", 1).map(|key| (key, "w")), 2_000_000);
    server.fill(of("result", 0).map(|key| (key, r#"{"statusCode":200,"body":""}"#)), 9_000_000);
    let listed = keys(&server, &[]);
    assert_eq!(listed.len(), 3_000);
    let leftover = keys(&server, &["--finding", "leftover-lock"]);
    assert_eq!(leftover.len(), 1_000);
}

#[test]
fn a_body_that_was_read_in_part_is_left_out_and_its_size_told() {
    let body = "A".repeat(200);
    let value = format!(r#"{{"status":"COMPLETED","code":201,"headers":{{}},"body":"{body}"}}"#);
    let server = Server::holding(&[("idempotency:long", &value, TWO_HOURS)]);
    let listed = |more: &[&str]| {
        let words = [&["list", "-o", "jsonl"], more].concat();
        server.idemctl(&words).exits(0).json_lines().remove(0)
    };
    for more in [&[][..], &["--state", "completed"], &["--sort", "size"]] {
        let record = listed(more);
        assert_eq!(record["size_bytes"], value.len(), "{more:?}");
        assert_eq!(
            (&record["response"]["status"], &record["response"]["body"]),
            (&Value::from(201), &Value::Null)
        );
        assert_eq!(record["response"]["whole"], false);
    }
    assert!(listed(&["--full"])["response"].get("body").is_some_and(|body| !body.is_null()));
}

/// Rule: sizes are right, whether a page finds them by the beginnings of values, by longer
/// beginnings, or by STRLEN; and a scan whose values are short sends no STRLEN for them.
#[test]
fn sizes_are_found_in_each_way() {
    let value = |length: usize| {
        let begin = r#"{"status":"COMPLETED","code":201,"headers":{},"body":""#;
        format!("{begin}{}\"}}", "A".repeat(length - begin.len() - 2))
    };
    let strlens = |server: &Server| -> u64 {
        let stats: String = server.send(&[b"INFO", b"commandstats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_strlen:calls="));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    };
    // Lengths around the limits of 64 and 512 bytes, and whether most values need no STRLEN.
    for (lengths, is_spared) in [
        (&[60, 64, 65, 66, 511, 512][..], true),
        (&[65, 512, 513, 514, 2_000], false),
        (&[60, 61, 62, 63, 64], true),
    ] {
        let length_of = |index: usize| lengths[index % lengths.len()];
        let server = Server::filled(
            (0..3_000).map(|index| (format!("idempotency:{index}"), value(length_of(index)))),
            9_000_000,
        );
        let listed = server.idemctl(&["list", "-o", "jsonl", "--scan-count", "300"]).exits(0);
        let records = listed.json_lines();
        assert_eq!(records.len(), 3_000);
        for record in records {
            let index: usize = record["key"].as_str().unwrap().parse().unwrap();
            assert_eq!(record["size_bytes"], length_of(index), "{record}");
        }
        assert_eq!(strlens(&server) < 1_000, is_spared, "{lengths:?}: {}", strlens(&server));
    }
}

#[test]
fn a_large_value_is_found_whatever_else_is_asked() {
    let value = format!(
        r#"{{"status":"COMPLETED","code":201,"headers":{{}},"body":"{}"}}"#,
        "A".repeat(70_000)
    );
    let server = Server::holding(&[("idempotency:large", value, TWO_HOURS)]);
    for more in [&[][..], &["--finding", "oversized"], &["--state", "completed"]] {
        let record = server
            .idemctl(&[&["list", "-o", "jsonl"], more].concat())
            .exits(0)
            .json_lines()
            .remove(0);
        assert_eq!(record["findings"][0]["code"], "oversized", "{more:?}");
    }
}

#[test]
fn a_walk_takes_steps_as_small_and_as_slow_as_asked() {
    let server =
        Server::filled((0..1_000).map(|index| (format!("idempotency:{index}"), PENDING)), 0);
    let scans = |words: &[&str]| {
        server.send::<()>(&[b"CONFIG", b"RESETSTAT"]);
        let started = Instant::now();
        server.idemctl(words);
        (server.calls("scan"), started.elapsed())
    };
    let sweep = ["sweep", "--orphaned", "--dry-run"];
    for words in [&["list"][..], &sweep, &["purge", "--state", "in-progress", "--all", "--dry-run"]]
    {
        let usual = scans(words).0;
        let small = scans(&[words, &["--scan-count", "20"]].concat()).0;
        assert!(usual < 10 && small > 35, "{words:?}: {usual}, {small}");
    }
    for words in [&["list"][..], &sweep] {
        // A thousand at two thousand a second.
        let (steps, took) = scans(&[words, &["--rate", "2000/s"]].concat());
        assert!(steps >= 5 && took > Duration::from_millis(350), "{words:?}: {steps}, {took:?}");
    }
    for wrong in
        [["--scan-count", "0"], ["--scan-count", "-1"], ["--scan-count", "200000"], ["--rate", "0"]]
    {
        server.idemctl(&[&["list"][..], &wrong].concat()).exits(2);
    }
}

#[test]
fn what_is_not_here_may_be_in_another_database() {
    let server = Server::holding(&[("idempotency:here", PENDING, FOREVER)]);
    for words in [&["list"][..], &["stats"], &["inspect", "here"]] {
        server.idemctl(&[&["-n", "3"], words].concat()).says("Redis keys in database 0 (-n 0): 1");
        assert!(!server.idemctl(words).stderr.contains("in database"), "{words:?}");
    }
}

#[test]
fn the_records_of_all_databases_are_listed_with_their_database() {
    let server = Server::start();
    for (key, db) in [("a", "0"), ("b", "3"), ("c", "3")] {
        server.set(&format!("idempotency:{key}"), PENDING, 60_000);
        if db != "0" {
            server.send::<i64>(&[b"MOVE", format!("idempotency:{key}").as_bytes(), db.as_bytes()]);
        }
    }
    let listed = |words: &[&str]| {
        server.idemctl(&[&["list", "--all-dbs", "--sort", "key"], words].concat()).exits(0)
    };
    let run = listed(&["-o", "csv", "--columns", "db,key"]);
    assert_eq!(run.text(), "db,key\n0,a\n3,b\n3,c\n");
    let run = listed(&["-o", "json"]).json();
    assert_eq!((&run["records"][2]["db"], &run["keys_walked"]), (&3.into(), &3.into()), "{run}");
    let run = listed(&[]);
    run.shows("DB  STATE")
        .shows("3   in-progress")
        .says("3 records among 3 keys of 2 databases of ");
    assert!(server.idemctl(&["list", "-o", "json"]).exits(0).json()["records"][0]["db"].is_null());
    server
        .idemctl(&["list", "--all-dbs", "--limit", "1", "-o", "name"])
        .exits(0)
        .shows("0/go-middleware/\"a\"\n");
}

/// Rule: what was not read is null, and never empty.
#[test]
fn headers_that_were_not_read_are_null() {
    let value = format!(
        r#"{{"status":"COMPLETED","statusCode":201,"headers":{{"a":"{}"}},"body":"x"}}"#,
        "y".repeat(4_000)
    );
    let server = Server::holding(&[("idem:k", &value, 50_000_000)]);
    let headers = |words: &[&str]| {
        let json = server
            .idemctl(&[&["list", "--schema", "express", "-o", "json"], words].concat())
            .exits(0)
            .json();
        json["records"][0]["response"]["headers"].clone()
    };
    assert!(headers(&[]).is_null(), "{}", headers(&[]));
    assert!(headers(&["--full"])["a"].is_array(), "{}", headers(&["--full"]));
}

/// Rule: what records were chosen by is shown.
#[test]
fn the_status_is_shown_where_it_was_asked_for() {
    let value = r#"{"status":"COMPLETED","statusCode":503,"headers":{},"body":null}"#;
    let server = Server::holding(&[("idem:k", value, 50_000_000)]);
    let run = server.idemctl(&["list", "--schema", "express", "--status", "5xx"]).exits(0);
    run.shows("STATUS").shows("503");
    assert!(!server.idemctl(&["list", "--schema", "express"]).exits(0).text().contains("STATUS"));
}

/// Rule: a default TTL that locks contradict is noted if locks are listed, and not if nobody asked for locks.
#[test]
fn a_default_ttl_is_noted_if_it_is_in_question() {
    let server = Server::start();
    server.set("idem:held", LOCK, 7_200_000);
    server.set(
        "idem:failed",
        r#"{"status":"COMPLETED","statusCode":500,"headers":{},"body":null}"#,
        80_000_000,
    );
    let note = "note: 1 lock with up to 1h 59m left, more than the default lock TTL.";
    server.idemctl(&["list"]).exits(0).says(note);
    server.idemctl(&["stats"]).exits(0).says(note);
    for words in [
        &["-q", "list"][..],
        &["list", "--status", "5xx"],
        &["stats", "--state", "completed"],
        &["purge", "--status", "5xx", "--dry-run"],
    ] {
        let run = server.idemctl(words).exits(0);
        assert!(!run.all().contains("note:"), "{words:?}: {}", run.all());
    }
}

const SETS: &str = r#"format = 2
name = "sets"
keys = { lock = "sets:{key}" }
ttl = { lock = "30s" }
[[value]]
name = "held"
type = "zset"
state = "in-progress"
"#;

/// Rule: idle times are read only if they are asked for, before the value, and are unknown under an
/// LFU policy. Revert: with OBJECT IDLETIME after GETRANGE, Redis before 7.2 reports zero.
#[test]
fn idle_times_are_read_on_request_and_before_the_values() {
    let server = Server::holding(&[("idem:old", LOCK, 60_000)]);
    std::thread::sleep(Duration::from_millis(3_100));
    server.set("idem:new", LOCK, 60_000);
    let sorted = ["list", "--sort", "idle", "--columns", "key,idle", "-o", "csv"];
    let first = server.idemctl(&sorted).exits(0).text();
    let rows: Vec<_> = first.lines().collect();
    assert_eq!((rows[0], rows.len()), ("key,idle_seconds", 3), "{first}");
    let idle = |row: &str| row.split_once(',').unwrap().1.parse::<u64>().unwrap();
    assert!(rows[1].starts_with("old,") && idle(rows[1]) >= 2 && idle(rows[2]) < 2, "{first}");
    assert_eq!(server.calls("object|idletime").max(server.calls("object")), 2);
    let wide = server.idemctl(&["list", "-o", "wide"]).exits(0).text();
    assert!(!wide.contains("IDLE"), "{wide}");
    assert_eq!(server.calls("object|idletime").max(server.calls("object")), 2, "not asked for");
    server.idemctl(&["list", "--sort", "idle"]).exits(0).shows("  IDLE  ");
    // What is not a string is read by a script, whose idle times count only under CLIENT NO-TOUCH.
    let no_touch: redis::RedisResult<()> =
        redis::cmd("CLIENT").arg("NO-TOUCH").arg("OFF").query(&mut server.connect());
    server.describe("sets", &[("schema.toml", SETS)]);
    server.send::<i64>(&[b"ZADD", b"sets:z", b"1", b"worker-1"]);
    let sets = ["list", "--schema", "sets", "--columns", "idle", "-o", "tsv"];
    let row = server.idemctl(&sets).exits(0).text();
    assert_eq!(row.trim_end() == "idle_seconds\n0", no_touch.is_ok(), "{row}");
    server.send::<()>(&[b"CONFIG", b"SET", b"maxmemory-policy", b"allkeys-lfu"]);
    let unknown = server.idemctl(&["list", "--columns", "key,idle"]).exits(0).text();
    assert!(unknown.lines().skip(1).all(|row| row.trim_end().ends_with('-')), "{unknown}");
}
