//! What is nobody's is named as such.

use serde_json::{Value, json};

use super::records::detected;
use crate::support::{FOREVER, Server};

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

/// Rule: a value that anybody may write names nobody for sure. Revert: with 0 for `MIN_OF_VALUES` the certainty is `is`.
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

/// Rule: names that say lock or in progress, in any case, look like locks.
#[test]
fn locks_are_told_by_their_names_in_any_case() {
    let server = Server::start();
    for index in 0..6 {
        server.put(&format!("SINGLETONLOCK_task{index}"), "abc");
        server.set(&format!(":1:MyLock{index}"), "x", 40_000);
        server.set(&format!("arq:in-progress:job{index}"), "1", 30_000);
        server.set(&format!("idempotency:k{index}:code"), "201", 3_000_000);
    }
    let mut noted = Vec::new();
    for group in detected(&server, &[])["groups"].as_array().unwrap() {
        if !group["evidence"].as_array().unwrap().is_empty() {
            noted.push(group["pattern"].as_str().unwrap().to_owned());
        }
    }
    noted.sort();
    let locks = [":1:MyLock{n}", "SINGLETONLOCK_task{n}", "arq:in-progress:job{n}"];
    assert_eq!(noted, locks);
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

/// Rule: an application with a small share of a shared Redis is found under its own words. Revert: with 20 for `MAX_WORDS` the
/// group has the pattern `*:idem:order-{n}` and no schema.
#[test]
fn a_small_application_is_found_among_thirty_others() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut pipeline = redis::pipe();
    for program in 0..30 {
        let name = format!(
            "{}app",
            char::from(b'a' + program % 26).to_string().repeat(3 + usize::from(program / 26))
        );
        for number in 0..60 {
            let layout = ["user", "session", "basket"][usize::from(program % 3)];
            pipeline
                .cmd("SET")
                .arg(format!("{name}:{layout}:{number}"))
                .arg(format!(r#"{{"v":{number}}}"#));
        }
    }
    for number in 0..30 {
        let value = if number < 4 { r#"{"status":"IN_PROGRESS"}"# } else { EXPRESS_RESULT };
        pipeline.cmd("SET").arg(format!("shop:idem:order-{number}")).arg(value);
    }
    for number in 0..5 {
        pipeline.cmd("SET").arg(format!("SINGLETONLOCK_{number}")).arg("worker-1");
    }
    pipeline.exec(&mut connection).unwrap();
    let found = detected(&server, &[]);
    let group =
        found["groups"].as_array().unwrap().iter().find(|group| group["schema"] == "express");
    let group = group.expect("the application is found");
    assert_eq!(
        (&group["prefix"], &group["keys"], &group["stuck"]),
        (&json!("shop:"), &json!(30), &json!(4))
    );
    // What may be locks comes first, and the groups of other programs take ten lines at most.
    let shown = server.idemctl(&["detect"]).exits(0);
    let shown = shown.text();
    let table = shown.split("NOTE").nth(1).unwrap();
    let lines: Vec<_> = table.lines().skip(1).collect();
    assert!(lines[0].starts_with("SINGLETONLOCK_{n}"), "{table}");
    assert!(lines[10].starts_with("and 21 more patterns"), "{table}");
}

/// A result as the express middleware stores it.
const EXPRESS_RESULT: &str =
    r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":"e30="}"#;

/// Rule: many first words are tenants, and share a pattern.
#[test]
fn tenants_with_the_same_layout_share_a_pattern() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut pipeline = redis::pipe();
    for tenant in 0..60 {
        for number in 0..10 {
            let name = format!(
                "{}{}",
                char::from(b'a' + tenant % 26),
                char::from(b'a' + tenant / 26).to_string().repeat(4)
            );
            pipeline
                .cmd("SET")
                .arg(format!("{name}:orders:{number}"))
                .arg(format!(r#"{{"v":{number}}}"#));
        }
    }
    pipeline.exec(&mut connection).unwrap();
    let found = detected(&server, &[]);
    let groups = found["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert_eq!(groups[0]["pattern"], "*:orders:{n}");
}

/// Rule: so do words of which each has other words behind it.
#[test]
fn users_with_pages_of_their_own_share_a_pattern() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut pipeline = redis::pipe();
    let name = |number: u8| {
        char::from(b'a' + number % 26).to_string().repeat(3 + usize::from(number / 26))
    };
    for user in 0..60 {
        for page in 0..6 {
            let page = format!("{}{}", name(user), name(page));
            pipeline.cmd("SET").arg(format!("{}:{page}:meta", name(user))).arg("x");
        }
    }
    pipeline.exec(&mut connection).unwrap();
    let found = detected(&server, &[]);
    let groups = found["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{groups:?}");
}

/// Rule: before a schema describes them, keys that stay for good come first, and --match asks about
/// some keys alone. Revert: without the counts, the larger group of sessions comes first.
#[test]
fn unknown_keys_without_expiry_are_counted_and_come_first() {
    let server = Server::start();
    server.fill((0..40).map(|number| (format!("sess:{number}"), "x")), 60_000);
    server.fill((0..9).map(|number| (format!("mutex:job:{number}"), "worker-1")), 60_000);
    server.fill([("mutex:job:77", "worker-1"), ("config", "1")], FOREVER);
    server.fill([("lease:9", "worker-2")], 2 * 365 * 24 * 3_600_000);
    let found = detected(&server, &[]);
    let group = |pattern: &str| {
        let groups = found["groups"].as_array().unwrap();
        groups.iter().find(|group| group["pattern"] == pattern).unwrap().clone()
    };
    let counts = |pattern: &str| {
        let group = group(pattern);
        (group["no_expiry"].clone(), group["over_a_year"].clone())
    };
    assert_eq!(counts("mutex:job:{n}"), (json!(1), json!(0)), "{found:#}");
    assert_eq!(counts("lease:{n}"), (json!(0), json!(1)), "{found:#}");
    assert_eq!(counts("sess:{n}"), (json!(0), json!(0)), "{found:#}");
    let text = server.idemctl(&["detect"]).exits(0).text();
    let at = |pattern: &str| text.find(pattern).unwrap();
    assert!(
        at("\nmutex:job:{n}") < at("\nsess:{n}") && at("\nconfig") < at("\nsess:{n}"),
        "{text}"
    );
    let some = detected(&server, &["--match", "mutex:*"]);
    assert_eq!((&some["sampled"], &some["keys"]), (&json!(10), &json!(10)), "{some:#}");
    assert_eq!(some["groups"].as_array().unwrap().len(), 1, "{some:#}");
    server.idemctl(&["detect", "--match", "mutex:["]).exits(2).says("--match");
}
