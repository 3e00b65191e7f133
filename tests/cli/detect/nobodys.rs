//! What is nobody's is named as such.

use serde_json::{Value, json};

use super::records::detected;
use crate::support::Server;

/// A database of sessions, caches, queues, counters and rate limits.
fn of_others() -> Server {
    let server = Server::start();
    let mut connection = server.connect();
    let mut pipeline = redis::pipe();
    for number in 0..40 {
        let id = format!(
            "{:032x}",
            (number as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834_u128)
        );
        pipeline
            .cmd("SET")
            .arg(format!("sess:{id}"))
            .arg(format!(r#"{{"user":{number},"status":"active"}}"#));
        pipeline
            .cmd("SET")
            .arg(format!("cache:user:{number}:profile"))
            .arg(r#"{"name":"Ann","status":"COMPLETED"}"#);
        pipeline.cmd("SET").arg(format!("ratelimit:10.0.0.{number}:minute")).arg("1");
        pipeline.cmd("SET").arg(format!("job:{number}:status")).arg(if number % 2 == 0 {
            "completed"
        } else {
            "in-progress"
        });
        pipeline
            .cmd("SET")
            .arg(format!("flag:f{number}"))
            .arg(json!({ "status": number % 3 }).to_string());
        pipeline.cmd("SET").arg(format!("00000000-0000-4000-8000-{number:012}")).arg("opaque");
        pipeline.cmd("HSET").arg(format!("cart:{number}")).arg("sku").arg("1");
        pipeline.cmd("RPUSH").arg(format!("queue:{number}")).arg("job");
        pipeline.cmd("ZADD").arg(format!("window:{number}")).arg(number).arg("hit");
        pipeline.cmd("XADD").arg(format!("stream:{number}")).arg("*").arg("event").arg("1");
        pipeline.cmd("SADD").arg(format!("tags:{number}")).arg("a");
    }
    pipeline.exec(&mut connection).unwrap();
    server
}

#[test]
fn sessions_caches_queues_and_rate_limits_are_nobodys() {
    let server = of_others();
    let found = detected(&server, &[]);
    let groups = found["groups"].as_array().unwrap();
    for group in groups {
        let fields = (
            &group["schema"],
            &group["confidence"],
            &group["adopt"],
            &group["stuck"],
            &group["states"],
        );
        assert_eq!(
            fields,
            (&Value::Null, &json!("unknown"), &Value::Null, &Value::Null, &json!({})),
            "{group:#}"
        );
        assert_eq!(
            (&group["also_possible"], &group["evidence"]),
            (&json!([]), &json!([])),
            "{group:#}"
        );
    }
    let is = |pattern: &str, kind: &str| {
        groups.iter().any(|group| {
            group["pattern"] == pattern && group["type"] == kind && group["keys"] == 40
        })
    };
    for (pattern, kind) in [
        ("sess:{hex}", "string"),
        ("cache:user:{n}:profile", "string"),
        ("job:{n}:status", "string"),
        ("{uuid}", "string"),
        ("cart:{n}", "hash"),
        ("queue:{n}", "list"),
        ("window:{n}", "zset"),
        ("stream:{n}", "stream"),
        ("tags:{n}", "set"),
    ] {
        assert!(is(pattern, kind), "{pattern}: {found:#}");
    }
}

/// Rule: a schema is named where it reads nearly all of a group. Revert: with less than 0.95 for `NEARLY_ALL` the schema is
/// named.
#[test]
fn a_schema_that_reads_half_of_a_group_is_not_named() {
    let server =
        Server::filled((0..10).map(|number| (format!("idem:lock:order-{number}"), "1")), 60_000);
    server.fill((10..20).map(|number| (format!("idem:lock:order-{number}"), "two")), 60_000);
    let found = detected(&server, &[]);
    let group = &found["groups"][0];
    assert_eq!((&group["schema"], &group["sampled"]), (&Value::Null, &json!(20)), "{found:#}");
    assert_eq!(
        group["also_possible"][0],
        json!({ "schema": "event-consumer", "why": "reads 10 of these 20" })
    );
}

/// Rule: a value that anybody may write names nobody for sure. Revert: with 0 for `LEAST_OF_VALUES` the certainty is `is`.
#[test]
fn values_that_anybody_may_write_are_perhaps_a_schemas() {
    let server =
        Server::filled((0..10).map(|number| (format!("flag:{number}"), r#"{"status":0}"#)), 60_000);
    let group = detected(&server, &[])["groups"][0].clone();
    assert_eq!(
        (&group["schema"], &group["confidence"]),
        (&json!("go-chi"), &json!("perhaps")),
        "{group:#}"
    );
}

#[test]
fn opaque_locks_of_an_unknown_library_look_like_locks() {
    let server = Server::filled(
        (0..10).map(|number| (format!("payments:lock:{number}"), "Zk3uJ9aQw1XyBv7T")),
        60_000,
    );
    let found = detected(&server, &[]);
    let group = &found["groups"][0];
    assert_eq!(
        (&group["schema"], &group["evidence"]),
        (&Value::Null, &json!(["looks like locks, library unknown"]))
    );
}

#[test]
fn values_of_nearly_a_schemas_form_say_what_parts_them() {
    let server = Server::start();
    server.fill(
        (0..10).map(|number| (format!("idem:{number}"), r#"{"status":"IN_PROGRESS","trace":1}"#)),
        60_000,
    );
    let group = detected(&server, &[])["groups"][0].clone();
    assert_eq!(group["schema"], Value::Null);
    assert_eq!(group["also_possible"][0]["schema"], "express", "{group:#}");
    assert!(group["also_possible"][0]["why"].as_str().unwrap().contains("/trace"), "{group:#}");
}

/// Rule: a prefix alone never names a library whose values are any text.
#[test]
fn keys_with_the_prefix_of_a_library_that_keeps_any_text_are_a_possible_match_at_most() {
    let keys: Vec<_> = (0..60).map(|number| format!("qo_report-{number}")).collect();
    let keys: Vec<_> = keys.iter().map(|key| (key.as_str(), "cached", 900_000)).collect();
    let server = Server::holding(&keys);
    let found = detected(&server, &[]);
    let group = &found["groups"][0];
    assert_ne!(group["confidence"], "is", "{found}");
}
