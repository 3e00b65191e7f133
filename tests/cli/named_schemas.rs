//! Commands in a context that names schemas report which keys they did not read.

use crate::support::{DONE, FOREVER, LOCK, PENDING, Run, Runs, Server, idemctl};

/// Eight locks of event-driven without expiry, and records of express.
fn seeded() -> Server {
    let server = Server::holding(&[("idem:cart-1", LOCK, 29_000)]);
    server.fill(
        (0..8).map(|number| (format!("idem:started:order-9910{number}"), "worker-7")),
        FOREVER,
    );
    server
}

/// Runs in a context that names express alone.
fn in_context(server: &Server, words: &[&str]) -> Run {
    let config = server.folder().join("prod.toml");
    let text = format!("[contexts.prod]\nurl = \"{}\"\nschema = [\"express\"]\n", server.url());
    std::fs::write(&config, text).unwrap();
    let config = config.display().to_string();
    idemctl(server.folder()).args(["--config", &config, "--context", "prod"]).args(words).run()
}

/// Rule: the line names the schemas that are OK. Revert: without the count of unread keys the line is that of a server without locks.
#[test]
fn a_check_says_which_schemas_it_read_and_which_keys_it_did_not() {
    let server = seeded();
    let run = in_context(&server, &["check"]).exits(0);
    run.shows("OK - no stuck locks of express among 1 record in 9 keys; ");
    run.shows("; other schemas are not checked (event-driven 8, context prod) |");
    let json = in_context(&server, &["check", "-o", "json"]).exits(0).json();
    assert_eq!(
        (&json["schemas"][0], &json["unread"]["event-driven"]),
        (&"express".into(), &8.into()),
        "{json}"
    );
    let named = server.idemctl(&["check", "--schema", "express"]).exits(0);
    named.shows("; other schemas are not checked (event-driven 8) |");
    // Whoever names nothing reads everything.
    let all = server.idemctl(&["check", "-o", "json"]).exits(2).json();
    assert_eq!(
        (&all["schemas"], &all["unread"]),
        (&serde_json::Value::Null, &serde_json::json!({})),
        "{all}"
    );
    let server = Server::holding(&[("idem:cart-1", LOCK, 29_000)]);
    in_context(&server, &["check"])
        .exits(0)
        .shows("in 1 key; other schemas are not checked (context prod) |");
}

#[test]
fn inspect_says_that_another_schema_has_the_record() {
    let server = seeded();
    let run = in_context(&server, &["inspect", "order-99100"]).exits(1);
    run.says(
        "hint: checked only express (context prod); event-driven has a record: `idemctl --config ",
    );
    run.says(" inspect order-99100 --schema event-driven`");
    let run = server.idemctl(&["inspect", "order-99100", "--schema", "express"]).exits(1);
    run.says("hint: checked only express; event-driven has a record");
    let run = in_context(&server, &["inspect", "nowhere"]).exits(1);
    assert!(!run.stderr.contains("has a record"), "{}", run.all());
}

/// Rule: `--find` searches the keys of every schema by name, whatever the values are, and reports the schemas that it left out.
#[test]
fn find_searches_the_keys_of_every_schema() {
    let server = seeded();
    in_context(&server, &["inspect", "--find", "99103"])
        .exits(0)
        .shows("order-99103  in-progress  event-driven");
    let run = server.idemctl(&["inspect", "--find", "99103", "--schema", "express"]).exits(1);
    run.says("no idempotency key of express among 9 Redis keys of ")
        .says("the keys of event-driven were not searched; to search them, omit --schema");
    // A value that no schema writes is found by its name as well.
    server.set("idempotency:cart-953", r#"{"odd":1}"#, 60_000);
    server.set("idempotency:cart-954", PENDING, 60_000);
    server.idemctl(&["inspect", "--find", "art-95"]).exits(0).shows("cart-953").shows("cart-954");
}

/// Rule: idemctl cannot rely on a default TTL, but reports a lock that outlasts it beside OK.
#[test]
fn a_check_tells_of_locks_that_outlast_a_default_lock_ttl() {
    let server = Server::holding(&[
        ("idempotency:slow", PENDING, 27_660_000),
        ("idempotency:quick", PENDING, 200_000),
        ("idempotency:done", DONE, 80_000_000),
    ]);
    let run = server.idemctl(&["check"]).exits(0);
    run.shows("\nlocks of go-middleware may outlast the default lock TTL (set lock_ttl)\n");
    let json = server.idemctl(&["check", "-o", "json"]).exits(0).json();
    assert_eq!(
        (&json["outlasting"][0]["locks"], &json["outlasting"][0]["default_ms"]),
        (&1.into(), &300_000.into())
    );
    // Whoever states the TTL gets an alarm in its place.
    let run = server.idemctl(&["check", "--schema", "go-middleware", "--lock-ttl", "5m"]).exits(1);
    assert!(!run.text().contains("outlast"), "{}", run.all());
    server.idemctl(&["check", "--schema", "go-middleware", "--lock-ttl", "10h"]).exits(0);
}

/// Rule: a check does not read every value if the server counts reads as use, and reports that it did not.
#[test]
fn a_check_says_if_it_does_not_know_whether_locks_outlast_a_default() {
    let server = Server::filled(
        (0..1_500).map(|number| (format!("idempotency:k-{number}"), DONE)),
        80_000_000,
    );
    let json = server.idemctl(&["check", "-o", "json"]).exits(0).json();
    let is_partial = json["outlasting_partial"] == true;
    let says = "locks of go-middleware and go-middleware-v1 may outlast the default lock TTL (set lock_ttl)";
    let text = server.idemctl(&["check"]).exits(0).text();
    assert_eq!(text.contains(says), is_partial, "{json}");
    // CLIENT NO-TOUCH is of Redis 7.2 and later.
    let no_touch =
        redis::cmd("CLIENT").arg("NO-TOUCH").arg("ON").query::<()>(&mut server.connect());
    assert_eq!(is_partial, no_touch.is_err(), "{json}");
}

/// Rule: all locks are read, so that a sample of the records does not make the answer look sampled.
#[test]
fn a_check_says_what_was_sampled_and_what_the_filters_left() {
    let server = Server::filled(
        (0..1_500).map(|number| (format!("idempotency:k-{number}"), PENDING)),
        200_000,
    );
    server
        .idemctl(&["check"])
        .exits(0)
        .shows("OK - no stuck locks among about 1500 records in 1500 keys |");
    server
        .idemctl(&["check", "--match", "k-95"])
        .exits(0)
        .shows("OK - no stuck locks (filtered) among about 1500 records in 1500 keys |");
}

/// Rule: if nothing is found because the keys belong to a schema that was not named, the command
/// says so.
#[test]
fn nothing_of_the_named_schema_names_the_schema_of_the_keys() {
    let value = r#"{"a":1}"#;
    let server = Server::holding(&[("o:eu:1", value, 60_000), ("o:eu:2", value, 60_000)]);
    for (name, record) in [("orders", "o:{key}"), ("orders-eu", "o:eu:{key}")] {
        let toml = format!(
            "format = 2\nname = \"{name}\"\nkeys = {{ record = \"{record}\" }}\n\
            ttl = {{ lock = \"5m\" }}\n[[value]]\nname = \"running\"\nhas = [\"/a\"]\n\
            state = \"in-progress\"\n"
        );
        server.describe(name, &[("schema.toml", &toml)]);
    }
    for command in [&["list"][..], &["stats"], &["sweep", "--orphaned", "--yes"], &["duplicates"]] {
        let run = server.idemctl(&[command, &["--schema", "orders"]].concat());
        run.says("keys of the schema orders-eu, which --schema orders-eu reads: 2");
    }
    let purge = ["purge", "--schema", "orders", "--state", "in-progress", "--yes"];
    server.idemctl(&purge).says("keys of the schema orders-eu, which --schema orders-eu reads: 2");
    let run = server.idemctl(&["list", "--schema", "orders-eu"]).exits(0);
    assert!(!run.stderr.contains("of the schema"), "{}", run.stderr);
}
