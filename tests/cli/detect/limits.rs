//! How much is looked at, and what is said where nothing can be.

use serde_json::json;

use super::records::{detected, named, seed};
use crate::support::{LOCK, Runs as _, Server};

#[test]
fn a_large_keyspace_is_sampled_at_random_and_extrapolated() {
    let server =
        Server::filled((0..9_000).map(|number| (format!("idem:order-{number}"), LOCK)), 600_000);
    server.fill((0..9_000).map(|number| (format!("sess:{number}"), "x")), 600_000);
    let found = detected(&server, &["--sample", "400"]);
    assert_eq!((&found["sampled"], &found["keys"]), (&json!(400), &json!(18_000)));
    let keys: u64 = found["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["keys"].as_u64().unwrap())
        .sum();
    assert!((17_990..=18_000).contains(&keys), "{found:#}");
    assert_eq!(named(&found)[0].0, "express");
    server
        .idemctl(&["detect", "--sample", "400"])
        .exits(0)
        .says("400 of 18000 Redis keys")
        .shows(" ~");
}

#[test]
fn an_empty_database_says_where_keys_are() {
    let server = Server::start();
    server.idemctl(&["detect"]).exits(0).says("Sampled 0");
    seed(&server, "express", "");
    server
        .idemctl(&["-n", "5", "detect"])
        .exits(0)
        .says("Sampled 0")
        .says("Redis keys in database 0 (-n 0): 20");
    assert_eq!(
        server.idemctl(&["-n", "5", "detect", "-o", "json"]).exits(0).json()["groups"],
        json!([])
    );
}

#[test]
fn a_user_without_the_right_to_look_is_told_which_right_is_missing() {
    let server = Server::start();
    seed(&server, "express", "");
    let as_user = |name: &str| {
        let words = ["--user", name, "detect"];
        server.command().env("REDISCLI_AUTH", "pw").args(words).run()
    };
    server.add_user("noscan", "~* +@all -scan");
    as_user("noscan").exits(4).says("scan");
    server.add_user("noread", "~* +@all -getrange");
    as_user("noread").exits(4).says("getrange");
    server.add_user("part", "~idem:order-express-1* +@all");
    as_user("part").exits(3).says("9 Redis keys were skipped").shows("express");
    server.add_user("bare", "~* +scan +getrange +pttl +strlen +type");
    as_user("bare").exits(0).shows("express");
}

#[test]
fn nothing_is_changed() {
    let server = Server::start();
    seed(&server, "express", "");
    server.add_user("reader", "~* +@read +@connection -@write");
    server
        .command()
        .env("REDISCLI_AUTH", "pw")
        .args(["--user", "reader", "detect"])
        .run()
        .exits(0)
        .shows("express");
}

/// Rule: a replica is looked at as its master is, also one that has lost its master, and takes no write for that.
#[test]
fn a_replica_is_looked_at_as_its_master_is() {
    let server = Server::start();
    seed(&server, "express", "");
    let groups = || detected(&server, &[])["groups"].clone();
    let by_master = groups();
    server.send::<()>(&[b"REPLICAOF", b"127.0.0.1", b"1"]);
    server.send::<()>(&[b"CONFIG", b"SET", b"replica-read-only", b"yes"]);
    assert_eq!(groups(), by_master);
    server.idemctl(&["detect", "--rate", "1000"]).exits(0).shows("express");
    assert_eq!(server.calls("set"), 20, "nothing but what was seeded was written");
}

/// Rule: a prefix that a client chose is printed as one word of printable characters, which a shell reads back.
#[test]
fn a_prefix_that_a_client_chose_is_quoted_in_the_command_that_adopts_it() {
    for (prefix, option) in [
        (
            "x'\nAdopt: idemctl purge --all\x1b[8m #:",
            r"--prefix $'x\'\nAdopt: idemctl purge --all\033[8m #:'",
        ),
        ("-h:", "--prefix=-h:"),
    ] {
        let server = Server::start();
        seed(&server, "express", prefix);
        let run = server.idemctl(&["detect"]).exits(0);
        run.shows(option);
        assert!(!run.text().contains('\x1b'), "{}", run.text());
        assert_eq!(
            run.text().lines().filter(|line| line.starts_with("Adopt")).count(),
            1,
            "{}",
            run.text()
        );
    }
}

/// Rule: where the context has another prefix, the command that lists records under the schema's own prefix says so.
#[test]
fn records_under_the_own_prefix_are_listed_although_the_context_has_another() {
    let server = Server::start();
    seed(&server, "express", "");
    server.states(&[("express", "prefix = \"old:\"")]);
    let run = server.idemctl(&["detect"]).exits(0);
    run.shows("list --schema express --prefix ''\n");
    seed(&server, "express", "old:");
    let run = server.idemctl(&["detect"]).exits(0);
    run.shows("list --schema express --prefix ''\n");
    let words = ["list", "--schema", "express", "--prefix", "", "-o", "json"];
    let listed = server.idemctl(&words).exits(0).json();
    assert_eq!(listed["records"].as_array().unwrap().len(), 20);
}

/// Rule: a value of which only the beginning is read is not a damaged one.
#[test]
fn the_beginning_of_a_long_value_is_not_called_unreadable() {
    let server = Server::start();
    let redis_key = |number: usize| {
        format!("laravel_database_laravel_cache_:idempotency:7:order-{number}").into_bytes()
    };
    for number in 0..20 {
        let body = "x".repeat(if number < 12 { 100 } else { 900 });
        // The status follows the body, as in releases before 12.1.
        let value = format!(
            "a:5:{{s:4:\"body\";s:{}:\"{body}\";s:6:\"status\";i:201;s:7:\"headers\";a:0:{{}}\
            s:4:\"path\";s:3:\"pay\";s:11:\"originalKey\";s:1:\"k\";}}",
            body.len()
        );
        server.send::<()>(&[b"SET", &redis_key(number), value.as_bytes(), b"EX", b"600"]);
    }
    let found = detected(&server, &[]);
    // Four long values of a page are read further.
    assert_eq!(found["groups"][0]["states"], json!({ "completed": 16, "undecided": 4 }));
    server.idemctl(&["detect"]).exits(0).shows("16 completed, 4 of unknown state");
}

/// A hash with a field that is JSON, as a module for NestJS keeps it.
const NESTED: &str = r#"format = 2
name = "nested"
keys = { record = "nested:{key}" }
ttl = { lock = "1h", result = "1h" }
[[value]]
name = "done"
type = "hash"
decode_at = { "/payload" = ["json"] }
where = { "/payload/status" = "COMPLETED" }
required = ["/token"]
optional = ["/payload/body"]
state = "completed"
fields = { body = "/payload/body" }
"#;

/// Rule: a field of which only the beginning was read is not a value of another program. Revert:
/// with only `Undecided` instead of `depends_on_rest`, the long record is "foreign".
#[test]
fn a_hash_whose_long_field_is_cut_is_not_unrecognised() {
    let server = Server::start();
    server.describe("nested", &[("schema.toml", NESTED)]);
    for (key, length) in [("nested:short", 10), ("nested:long", 40_000)] {
        let body = "x".repeat(length);
        let payload = format!(r#"{{"status":"COMPLETED","body":"{body}"}}"#);
        let payload = payload.as_bytes();
        server.send::<()>(&[b"HSET", key.as_bytes(), b"token", b"t", b"payload", payload]);
    }
    let found = detected(&server, &[]);
    assert_eq!(found["groups"][0]["states"], json!({ "completed": 1, "undecided": 1 }));
}
