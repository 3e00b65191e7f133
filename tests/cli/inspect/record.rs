//! What is shown of a record, and of a key that has none.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{LOCK, PENDING, Run, Server, until};

/// Two hours and a bit, so that the text says `2h` for a while.
pub(super) const TWO_HOURS: u64 = 7_230_000;

pub(super) const COMPLETED: &str = r#"{"status":"COMPLETED","code":201,"headers":{"Content-Type":["application/json"],"Set-Cookie":["session=s3cret"]},"body":"eyJpZCI6Im9yZGVyLTEiLCJ0b3RhbCI6MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjN9"}"#;

#[test]
fn shows_a_lock_and_what_the_next_request_gets() {
    let server = Server::holding(&[("idempotency:order-1", PENDING, TWO_HOURS)]);
    let run = server
        .idemctl(&["inspect", "order-1", "--schema", "go-middleware", "--lock-ttl", "4h"])
        .exits(0);
    insta::assert_snapshot!(run.stable(&server));
}

#[test]
fn shows_a_response_without_its_secrets() {
    let server = Server::holding(&[("idempotency:order-1", COMPLETED, TWO_HOURS)]);
    let run = server
        .idemctl(&["inspect", "order-1", "--schema", "go-middleware", "--result-ttl", "4h"])
        .exits(0);
    insta::assert_snapshot!(run.stable(&server));
    assert!(!run.all().contains("s3cret"));
    let revealed =
        server.idemctl(&["inspect", "order-1", "--reveal", "-o", "json"]).exits(0).json();
    assert_eq!(
        revealed["records"][0]["response"]["headers"]["Set-Cookie"],
        json!(["session=s3cret"])
    );
}

#[test]
fn json_has_every_field_of_the_contract() {
    let server = Server::holding(&[("idem:started:pay-1", "0b1e6c1e-worker", 20_000)]);
    let document = server.idemctl(&["inspect", "pay-1", "-o", "json"]).exits(0).json();
    assert_eq!(document["format"], 1);
    let record = &document["records"][0];
    let fields: Vec<_> = record.as_object().unwrap().keys().map(String::as_str).collect();
    insta::assert_snapshot!(fields.join(" "));
    assert_eq!(record["schema"], "event-driven");
    assert_eq!(record["redis_keys"], json!(["idem:started:pay-1", "idem:result:pay-1"]));
    assert_eq!(record["state"], "in-progress");
    assert_eq!(record["owner"], "0b1e6c1e-worker");
    assert_eq!(record["result_ttl_ms"], Value::Null);
    assert_eq!(record["next_request"]["answer"], "conflict");
    assert_eq!(record["age_source"], "lock-ttl");
    let (left, age) = (record["lock_ttl_ms"].as_u64().unwrap(), record["age_ms"].as_u64().unwrap());
    assert_eq!(left + age, 30_000);
}

#[test]
fn a_full_redis_key_is_understood() {
    let server = Server::holding(&[("idem:done:message-9", "1", TWO_HOURS)]);
    let by_key = server.idemctl(&["inspect", "message-9", "-o", "json"]).exits(0).json();
    let by_redis_key =
        server.idemctl(&["inspect", "idem:done:message-9", "-o", "json"]).exits(0).json();
    for document in [by_key, by_redis_key] {
        let records = document["records"].as_array().unwrap();
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(records[0]["schema"], "event-consumer");
        assert_eq!(records[0]["key"], "message-9");
        assert_eq!(records[0]["next_request"]["answer"], "replay");
    }
}

#[test]
fn several_schemas_with_the_key_are_all_shown_and_said() {
    let server = Server::holding(&[("idempotency:order-1", PENDING, 60_000)]);
    server.set("idem:order-1", LOCK, 20_000);
    let run = server.idemctl(&["inspect", "order-1", "-o", "jsonl"]).exits(0);
    assert_eq!(run.json_lines().len(), 2);
    assert!(run.stderr.contains("2 records, under express and go-middleware"), "{}", run.stderr);
    let run =
        server.idemctl(&["inspect", "order-1", "-o", "jsonl", "--schema", "express"]).exits(0);
    assert_eq!(run.json_lines().len(), 1);
}

/// Rule: keys are named the same way wherever several are taken, and each that has no record is named.
#[test]
fn several_keys_come_from_a_file_and_those_without_a_record_are_named() {
    let server =
        Server::holding(&[("idempotency:a", PENDING, 60_000), ("idempotency:b", PENDING, 60_000)]);
    let run = server
        .idemctl_fed(&["inspect", "--key-file", "-", "-o", "jsonl"], b"a\nb\na\nnowhere\n")
        .exits(3);
    assert_eq!(run.json_lines().len(), 2);
    run.says("nowhere: no record");
    server.idemctl_fed(&["inspect", "-", "-0"], b"nowhere\0never\0").exits(1);
    server.idemctl(&["inspect", "-0"]).exits(2);
}

#[test]
fn a_schema_without_prefix_claims_only_what_it_reads() {
    let server = Server::holding(&[("plain", "hello", 60_000)]);
    server.idemctl(&["inspect", "plain"]).exits(1);
    server.set("plain", r#"{"status":0}"#, 60_000);
    let document = server.idemctl(&["inspect", "plain", "-o", "json"]).exits(0).json();
    assert_eq!(document["records"][0]["schema"], "go-chi");
    server.set("pay:7", r#"{"status":0}"#, 60_000);
    server.idemctl(&["inspect", "7"]).exits(1);
    server.idemctl(&["inspect", "7", "--schema", "go-chi", "--prefix", "pay:"]).exits(0);
}

#[test]
fn the_older_releases_value_is_named() {
    let server = Server::holding(&[("idempotency:order-1", "in-progress", 100_000)]);
    let finding = |words: &[&str]| {
        let document = server.idemctl(words).exits(0).json();
        let record = document["records"][0].clone();
        let codes: Vec<_> =
            record["findings"].as_array().unwrap().iter().map(|one| one["code"].clone()).collect();
        (record["schema"].clone(), record["next_request"]["answer"].clone(), codes)
    };
    let either = finding(&["inspect", "order-1", "-o", "json"]);
    assert_eq!(
        either,
        (json!("go-middleware-v1"), json!("conflict"), vec![json!("foreign-schema")])
    );
    let newer = finding(&["inspect", "order-1", "-o", "json", "--schema", "go-middleware"]);
    assert_eq!(newer, (json!("go-middleware"), json!("fail"), vec![json!("foreign-schema")]));
    let older = finding(&["inspect", "order-1", "-o", "json", "--schema", "go-middleware-v1"]);
    assert_eq!(older, (json!("go-middleware-v1"), json!("conflict"), vec![]));
}

#[test]
fn an_absent_key_says_where_it_was_looked_for() {
    let server = Server::start();
    let run = server.idemctl(&["inspect", "nowhere"]).exits(1);
    insta::assert_snapshot!(run.stable(&server));
    let document = server.idemctl(&["inspect", "nowhere", "-o", "json"]).exits(1).json();
    assert_eq!(document, json!({ "format": 1, "records": [], "unclaimed": [], "complete": true }));
}

#[test]
fn keys_come_from_stdin() {
    let server = Server::holding(&[
        ("idempotency:a", PENDING, 60_000),
        ("idempotency:b\nc", PENDING, 60_000),
    ]);
    let run = server.idemctl_fed(&["inspect", "-", "-o", "jsonl"], b"a\n").exits(0);
    assert_eq!(run.json_lines()[0]["key"], "a");
    let run = server.idemctl_fed(&["inspect", "-0", "-", "-o", "jsonl"], b"a\0b\nc\0").exits(0);
    assert_eq!(run.json_lines()[1]["key"], "b\nc");
    server.idemctl_fed(&["inspect", "-"], b"").exits(2);
}

#[test]
fn keys_without_end_on_stdin_are_refused() {
    let server = Server::start();
    let mut command = server.command();
    command.args(["inspect", "-"]).stdin(std::fs::File::open("/dev/zero").unwrap());
    Run::from(command.output().unwrap()).exits(2).says("a line is larger than 4 MiB");
    let run = server.idemctl_fed(&["inspect", "-"], &b"a key\n".repeat(3 << 20)).exits(2);
    run.says("cannot read keys from stdin: they are larger than 16 MiB");
}

#[test]
fn a_large_value_is_read_in_part_unless_asked_whole() {
    let body = "x".repeat(1_100_000);
    let value =
        format!(r#"{{"status":"COMPLETED","statusCode":200,"headers":{{}},"body":"{body}"}}"#);
    let server = Server::holding(&[("idem:big", &value, TWO_HOURS)]);
    let part = server.idemctl(&["inspect", "big", "-o", "json"]).exits(0).json();
    let record = &part["records"][0];
    assert_eq!(record["state"], "completed");
    assert_eq!(record["response"]["status"], 200);
    assert_eq!(record["response"]["whole"], false);
    assert_eq!(record["size_bytes"], value.len());
    assert_eq!(record["findings"][0]["code"], "oversized");
    // A terminal gets a screen of it, not a megabyte.
    let page = server.idemctl(&["inspect", "big"]).exits(0).text();
    assert!(
        page.contains("at least 1023.9 KiB (only the beginning; --full shows all of it)"),
        "{page}"
    );
    assert!(page.len() < 6 * 1024, "{page}");
    let whole = server.idemctl(&["inspect", "big", "-o", "json", "--full"]).exits(0).json();
    assert_eq!(whole["records"][0]["response"]["body"].as_str().unwrap().len(), 1_100_000);
}

/// Rule: inspect states only what it read. Revert: without `read_further`, a value over 64 KiB has
/// no stored status; without `without_guess`, a replay is predicted of a value that is cut off.
#[test]
fn fields_behind_a_large_body_are_read_or_unknown() {
    let server = Server::start();
    let read_back = |size: usize, end: &str| {
        let body = "x".repeat(size);
        let value = format!(r#"{{"status":"COMPLETED","headers":{{}},"body":"{body}"{end}"#);
        server.set("idem:big", &value, TWO_HOURS);
        let page = server.idemctl(&["inspect", "big"]).exits(0).text();
        let json = server.idemctl(&["inspect", "big", "-o", "json"]).exits(0).json();
        (page, json["records"][0].clone())
    };
    let (page, record) = read_back(200_000, r#","statusCode":201}"#);
    assert!(page.contains("replay of the stored response, status 201"), "{page}");
    assert_eq!(record["response"]["status"], 201);
    assert_eq!(record.get("unread"), None);
    let (page, _) = read_back(200_000, r#","statusCode":201"#);
    assert!(page.contains("Next request  fails"), "{page}");

    let (page, record) = read_back(1_100_000, r#","statusCode":201}"#);
    let unread = "not in the part of the value that was read; --full reads all of it";
    assert!(page.contains(&format!("Response      {unread}")), "{page}");
    assert!(page.contains("Next request  unknown"), "{page}");
    assert_eq!(record["unread"], serde_json::json!(["status"]));
    assert_eq!(record["next_request"]["answer"], "unknown");
    let why = record["next_request"]["unknown_because"].as_str().unwrap();
    assert!(why.contains("--full"), "{why}");
    let full = server.idemctl(&["inspect", "big", "--full"]).exits(0);
    full.shows("replay of the stored response, status 201");
}

#[test]
fn watch_ends_with_the_state_it_waits_for() {
    let server = Server::holding(&[("idempotency:order-1", PENDING, 60_000)]);
    let mut connection = server.connect();
    let worker = std::thread::spawn(move || {
        until("the lock is shown", || {
            let info: String =
                redis::cmd("INFO").arg("commandstats").query(&mut connection).unwrap();
            let calls = |line: &str| line.starts_with("cmdstat_eval") && !line.contains("calls=1,");
            info.lines().any(calls)
        });
        redis::cmd("SET")
            .arg("idempotency:order-1")
            .arg(COMPLETED)
            .arg("EX")
            .arg(9_000)
            .exec(&mut connection)
            .unwrap();
    });
    let run = server
        .idemctl(&["inspect", "order-1", "--watch", "20ms", "--until", "completed", "-o", "jsonl"])
        .exits(0);
    worker.join().unwrap();
    let states: Vec<_> = run.json_lines().iter().map(|line| line["state"].clone()).collect();
    assert_eq!(states, ["in-progress", "completed"]);
}

#[test]
fn reading_leaves_the_server_as_it_was() {
    let server = Server::holding(&[("idempotency:order-1", PENDING, 60_000)]);
    let writes = || ["set", "del", "unlink", "expire"].map(|command| server.calls(command));
    let before = writes();
    server.idemctl(&["inspect", "order-1"]).exits(0);
    server.idemctl(&["list"]).exits(0);
    assert_eq!(writes(), before);
}

#[test]
fn reading_leaves_the_idle_time_as_it_is_where_the_server_can() {
    let server = Server::holding(&[("idempotency:order-1", PENDING, 60_000)]);
    let knows_no_touch: redis::RedisResult<()> =
        redis::cmd("CLIENT").arg("NO-TOUCH").arg("OFF").query(&mut server.connect());
    std::thread::sleep(Duration::from_millis(2_100));
    for words in [&["inspect", "order-1"][..], &["list"]] {
        server.idemctl(words).exits(0);
    }
    let idle: u64 = server.send(&[b"OBJECT", b"IDLETIME", b"idempotency:order-1"]);
    assert!(knows_no_touch.is_err() || idle >= 1, "the key was touched: idle for {idle} s");
}

/// Rule: an idle time that counts idemctl's own reads is not shown.
#[test]
fn the_idle_time_is_shown_only_where_reading_leaves_it_as_it_is() {
    let server = Server::holding(&[("idempotency:order-1", PENDING, 60_000)]);
    let no_touch: redis::RedisResult<()> =
        redis::cmd("CLIENT").arg("NO-TOUCH").arg("OFF").query(&mut server.connect());
    let knows_no_touch = no_touch.is_ok();
    server.add_user("narrow", "~* +@all -client");
    for (user, shows) in [(&[][..], knows_no_touch), (&["--user", "narrow", "-a", "pw"], false)] {
        let document =
            server.idemctl(&[user, &["inspect", "order-1", "-o", "json"]].concat()).exits(0).json();
        let idle = &document["records"][0]["idle_seconds"];
        assert_eq!(idle.is_u64(), shows, "{user:?}: {idle}");
        let text = server.idemctl(&[user, &["inspect", "order-1"]].concat()).exits(0).text();
        assert_eq!(text.contains("\n  Idle "), shows, "{user:?}: {text}");
        let verbose = server.idemctl(&[user, &["-v", "inspect", "order-1"]].concat()).exits(0);
        assert_eq!(
            verbose.stderr.contains("count as accesses in the idle times"),
            !shows,
            "{user:?}: {}",
            verbose.all()
        );
    }
}

/// Rule: "there is nothing" is said only of what was looked at.
#[test]
fn a_key_that_the_user_may_not_read_is_not_absent() {
    let server = Server::holding(&[("idem:hidden", LOCK, 20_000)]);
    server.add_user("narrow", "~idempotency:* +@read +@connection +@scripting +time");
    let as_narrow = ["--user", "narrow", "-a", "pw", "inspect", "hidden", "-o", "json"];
    let run = server.idemctl(&as_narrow).exits(4);
    assert_eq!(
        run.json(),
        json!({ "format": 1, "records": [], "unclaimed": [], "complete": false }),
        "{}",
        run.all()
    );
    run.says("among the keys that this user may read");
}

/// Rule: what the next request gets is what the service's begin does, here: a result is handed out as it is.
#[test]
fn a_result_that_is_no_json_is_handed_out_where_begin_hands_it_out() {
    let server = Server::holding(&[("idem:result:k", "no json", 20_000)]);
    let json =
        server.idemctl(&["inspect", "k", "--schema", "event-driven", "-o", "json"]).exits(0).json();
    assert_eq!(json["records"][0]["next_request"]["answer"], "replay", "{json}");
}

/// Rule: a Redis key that exists is never told as nothing.
#[test]
fn a_key_that_is_no_record_is_told_with_what_parts_it_from_one() {
    let server = Server::holding(&[("user:42", r#"{"status":0,"name":"Ann"}"#, 20_000)]);
    server.send::<()>(&[b"HSET", b"cart:7", b"f", b"v"]);
    server.set("idempotency:order-1", PENDING, 20_000);
    let run = server.idemctl(&["inspect", "user:42", "-o", "json"]);
    let told = run.all();
    assert!(told.contains("go-chi") && told.contains("/name"), "{told}");
    let run = server.idemctl(&["inspect", "cart:7", "-o", "json"]).exits(1);
    let there = &run.json()["unclaimed"][0];
    assert_eq!(
        (&there["redis_key"], &there["type"]),
        (&"cart:7".into(), &"hash".into()),
        "{}",
        run.all()
    );
    run.says("cart:7 exists (a hash");
    // Nobody bears this one among the schemas that are named.
    let run = server
        .idemctl(&["inspect", "idempotency:order-1", "--schema", "express", "-o", "json"])
        .exits(1);
    let there = &run.json()["unclaimed"][0];
    assert_eq!(
        (&there["redis_key"], &there["size_bytes"]),
        (&"idempotency:order-1".into(), &20.into()),
        "{}",
        run.all()
    );
    run.says("exists (a string of 20 B, TTL");
    let json = server.idemctl(&["inspect", "nowhere", "-o", "json"]).exits(1).json();
    assert_eq!(json["unclaimed"], json!([]));
}

/// Rule: what exists under a schema that is named is shown with what the service does, whatever stands there.
#[test]
fn whatever_stands_under_a_named_schema_without_prefix_is_shown() {
    let server =
        Server::holding(&[("garbage", "?!", 20_000), ("other", r#"{"status":true}"#, 20_000)]);
    server.send::<()>(&[b"HSET", b"hash", b"f", b"v"]);
    for (key, answer) in [("garbage", "conflict"), ("other", "conflict"), ("hash", "fail")] {
        let json =
            server.idemctl(&["inspect", key, "--schema", "go-chi", "-o", "json"]).exits(0).json();
        let record = &json["records"][0];
        assert_eq!(
            (&record["key"], &record["next_request"]["answer"]),
            (&key.into(), &answer.into()),
            "{json}"
        );
        assert!(record["foreign_because"].is_string(), "{json}");
    }
}

/// Rule: a value that nobody can read is seen: its first bytes by default, and with --raw the bytes of every value.
#[test]
fn the_bytes_of_a_value_are_shown() {
    let server = Server::holding(&[("idempotency:odd", "{\"status\":\"COMPL\u{1b}", 50_000)]);
    server.set("idempotency:k", PENDING, 50_000);
    server.idemctl(&["inspect", "odd"]).exits(0).shows(r#"Value         {"status":"COMPL\x1b"#);
    let run = server.idemctl(&["inspect", "k", "--raw"]).exits(0);
    run.shows("Raw           idempotency:k").shows(PENDING);
    server.set("idempotency:long", format!("{{\"status\":\"{}", "x".repeat(10_000)), 50_000);
    let run = server.idemctl(&["inspect", "long", "--raw"]).exits(0);
    run.shows("the first 4.0 KiB of 9.8 KiB");
    assert!(
        server
            .idemctl(&["inspect", "long", "--raw", "--full"])
            .exits(0)
            .text()
            .contains(&"x".repeat(10_000))
    );
    server.idemctl(&["inspect", "k", "--raw", "-o", "json"]).exits(2).says("omit -o");
}

/// Rule: without --reveal nothing of a value is shown that holds credentials, its bytes included.
#[test]
fn the_bytes_of_credentials_need_reveal() {
    let server = Server::holding(&[("idempotency:order-1", COMPLETED, TWO_HOURS)]);
    let shown = |words: &[&str]| {
        server
            .idemctl(&[&["inspect", "order-1", "--schema", "go-middleware"], words].concat())
            .exits(0)
    };
    let run = shown(&["--raw"]);
    run.shows(
        "idempotency:order-1: withheld, because the bytes contain the header set-cookie; --reveal \
        shows them",
    );
    assert!(!run.all().contains("s3cret"), "{}", run.all());
    assert!(shown(&["--raw", "--reveal"]).all().contains("s3cret"));
    // A value of another program, which nobody decodes.
    for value in [r#"{"kind":"x","Authorization":"Bearer s3cret"}"#, r#"{"Cookie":"s3cret""#] {
        server.set("idempotency:order-1", value, TWO_HOURS);
        assert!(!shown(&["--raw"]).all().contains("s3cret"), "{value}");
    }
}
