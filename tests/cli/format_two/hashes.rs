//! Records that are hashes, and locks that are sets.

use serde_json::json;

use super::codecs::gzip;
use super::described::{are, describe, inspected, listed};
use crate::support::Server;
use crate::support::proxy::sends_at;

/// A status, an owner and a response, each in a field.
pub const PLAIN: &str = r#"
[[value]]
name = "held"
type = "hash"
where = { "/status" = "LOCKED" }
required = ["/owner"]
optional = ["/at"]
state = "in-progress"
fields = { owner = "/owner", created_at = "/at" }
[[value]]
name = "done"
type = "hash"
where = { "/status" = "DONE" }
required = ["/code", "/body"]
state = "completed"
fields = { status = "/code", body = "/body" }
"#;

fn hset(server: &Server, key: &str, fields: &[(&str, &[u8])]) {
    let fields = fields.iter().flat_map(|(name, value)| [name.as_bytes(), value]);
    let words: Vec<_> = [b"HSET", key.as_bytes()].into_iter().chain(fields).collect();
    server.send::<()>(&words);
}

fn lock(server: &Server, key: &str, owner: &str) {
    hset(server, key, &[("status", b"LOCKED"), ("owner", owner.as_bytes())]);
}

fn result(server: &Server, key: &str, body: &[u8]) {
    hset(server, key, &[("status", b"DONE"), ("code", b"201"), ("body", body)]);
    server.send::<()>(&[b"PEXPIRE", key.as_bytes(), b"3000000"]);
}

fn plain() -> Server {
    let server = Server::start();
    describe(&server, "plain", "record = \"h:{key}\"", PLAIN);
    server
}

#[test]
fn fields_are_the_first_step_of_pointers() {
    let server = plain();
    lock(&server, "h:a", "w-1");
    result(&server, "h:b", b"paid \xff");
    hset(&server, "h:c", &[("status", b"DONE"), ("code", b"201"), ("body", b""), ("other", b"1")]);
    server.put("h:d", "a string");
    assert_eq!(listed(&server, "plain"), are(&[("a", "in-progress"), ("b", "completed")]));
    let held = inspected(&server, "plain", "a");
    assert_eq!(
        (&held["owner"], &held["findings"][0]["code"]),
        (&json!("w-1"), &json!("no-expiry"))
    );
    let done = inspected(&server, "plain", "b");
    assert_eq!(
        (&done["response"]["status"], &done["response"]["body_base64"]),
        (&json!(201), &json!("cGFpZCD/"))
    );
    assert!(
        inspected(&server, "plain", "c")["foreign_because"].as_str().unwrap().contains("/other")
    );
    server
        .idemctl(&["inspect", "d", "--schema", "plain"])
        .exits(0)
        .shows("holds a string, not a hash");
    server
        .idemctl(&["stats", "--schema", "plain"])
        .exits(0)
        .shows("in-progress")
        .shows("completed");
    server.idemctl(&["inspect", "a", "--schema", "plain"]).exits(0).shows("a hash of 2 fields");
}

/// IdempotentAPI for .NET: the hash of Microsoft's RedisCache, whose `data` is JSON in gzip.
#[test]
fn a_field_may_hold_compressed_json() {
    let server = Server::start();
    let put = |key: &str, data: &str| {
        hset(
            &server,
            key,
            &[
                ("absexp", b"639309069688864656"),
                ("sldexp", b"-1"),
                ("data", &gzip(data.as_bytes())),
            ],
        );
    };
    put("IdempAPI_1", r#"{"$type":"Dictionary","Request.Inflight":"bac075ef"}"#);
    let done = r#"{"$type":"D","Request.DataHash":"ab","Response.StatusCode":200,"Context.Result":{"ResultValue":"long"}}"#;
    put("IdempAPI_2", &done.replace("long", &"y".repeat(9_000)));
    hset(&server, "IdempAPI_3", &[("absexp", b"-1"), ("sldexp", b"-1"), ("data", b"no gzip")]);
    assert_eq!(
        listed(&server, "idempotent-api")[..2],
        are(&[("1", "in-progress"), ("2", "completed")])
    );
    assert_eq!(inspected(&server, "idempotent-api", "1")["owner"], "bac075ef");
    let stored = inspected(&server, "idempotent-api", "2");
    assert_eq!(
        (&stored["response"]["status"], &stored["fingerprint"]),
        (&json!(200), &json!("ab"))
    );
    server.idemctl(&["inspect", "3", "--schema", "idempotent-api"]).exits(0).shows("not gzip");
}

#[test]
fn a_lock_is_removed_and_comes_back() {
    let server = plain();
    lock(&server, "h:a", "w-1");
    lock(&server, "h:b", "w-2");
    server
        .idemctl(&["force-unlock", "a", "--schema", "plain", "--yes", "--expect", "w-2"])
        .exits(8);
    server
        .idemctl(&["force-unlock", "a", "--schema", "plain", "--yes", "--expect", "w-1"])
        .exits(0);
    assert_eq!(server.keys(), ["h:b"]);
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(listed(&server, "plain"), are(&[("a", "in-progress"), ("b", "in-progress")]));
    assert_eq!(inspected(&server, "plain", "a")["owner"], "w-1");
    let found = server
        .idemctl(&["sweep", "--orphaned", "--dry-run", "--schema", "plain", "-o", "json"])
        .exits(0);
    assert_eq!(found.json()["found"]["no-expiry"]["count"], 2);
    server.idemctl(&["sweep", "--orphaned", "--schema", "plain", "--yes", "--grace", "0"]).exits(0);
    assert_eq!(server.size(), 0);
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.size(), 2);
}

#[test]
fn results_are_purged_and_come_back_with_their_expiry() {
    let server = plain();
    for number in 0..250 {
        result(&server, &format!("h:{number}"), "z".repeat(number * 3).as_bytes());
    }
    lock(&server, "h:held", "w");
    let before: i64 = server.send(&[b"PTTL", b"h:7"]);
    server.idemctl(&["purge", "--all", "--schema", "plain", "--yes"]).exits(0);
    assert_eq!(server.keys(), ["h:held"]);
    server.idemctl(&["undo", "--yes"]).exits(0);
    let after: i64 = server.send(&[b"PTTL", b"h:7"]);
    assert!((1..=before).contains(&after), "{before} {after}");
    assert_eq!(server.size(), 251);
    let body: String = server.send(&[b"HGET", b"h:249", b"body"]);
    assert_eq!(body.len(), 747);
}

#[test]
fn a_lock_that_is_given_more_time_goes_back_to_what_it_was() {
    let server = plain();
    lock(&server, "h:a", "w-1");
    server.send::<()>(&[b"PEXPIRE", b"h:a", b"30000"]);
    server.idemctl(&["extend", "a", "--schema", "plain", "--for", "10m", "--yes"]).exits(0);
    assert!(server.send::<i64>(&[b"PTTL", b"h:a"]) > 60_000);
    server.idemctl(&["undo", "--yes"]).exits(0);
    let left: i64 = server.send(&[b"PTTL", b"h:a"]);
    assert!(left > 0 && left <= 30_000, "{left}");
    assert_eq!(inspected(&server, "plain", "a")["owner"], "w-1");
}

/// Rule: a hash that changed since it was shown is left alone, and so is one that was brought back as it was, and expires at
/// another moment.
#[test]
fn a_hash_that_changed_in_the_meantime_is_left_alone() {
    for meanwhile in [
        &["HSET", "h:a", "owner", "w-2"][..],
        &["PEXPIRE", "h:a", "600000"],
        &["HSET", "h:a", "new", "1"],
    ] {
        let server = plain();
        lock(&server, "h:a", "w-1");
        let way = sends_at(&server, "UNLINK\r\n", meanwhile);
        server.through(&way, &["force-unlock", "a", "--schema", "plain", "--yes"]).exits(8);
        assert_eq!(server.keys(), ["h:a"], "{meanwhile:?}");
    }
}

/// Rule: no more than a budget is read of a large hash, and a hash of many fields is no record.
#[test]
fn a_large_hash_is_read_within_bounds() {
    let server = plain();
    result(&server, "h:large", "x".repeat(3_000_000).as_bytes());
    let words: Vec<_> = (0..300).map(|number| number.to_string()).collect();
    let fields: Vec<(&str, &[u8])> =
        words.iter().map(|word| (&word[..], word.as_bytes())).collect();
    hset(&server, "h:wide", &fields);
    assert_eq!(listed(&server, "plain"), are(&[("large", "completed")]));
    server
        .idemctl(&["inspect", "wide", "--schema", "plain"])
        .exits(0)
        .shows("a hash of 300 fields, too many");
    server.idemctl(&["purge", "--all", "--schema", "plain", "--yes"]).exits(0);
    assert_eq!(server.keys(), ["h:wide"]);
}

/// Rule: a hash whose fields all expire ends by itself, where the server knows such expiry.
#[test]
fn fields_that_all_expire_end_the_lock() {
    let server = plain();
    for key in ["h:ends", "h:stays"] {
        lock(&server, key, "w");
    }
    let expire = |key: &str, fields: &[&str]| {
        let count = fields.len().to_string();
        let words = [b"HPEXPIRE", key.as_bytes(), b"60000", b"FIELDS", count.as_bytes()];
        let words: Vec<_> =
            words.into_iter().chain(fields.iter().map(|field| field.as_bytes())).collect();
        let mut command = redis::Cmd::new();
        words.iter().for_each(|word| _ = command.arg(*word));
        command.query::<Vec<i64>>(&mut server.connect()).is_ok()
    };
    if !expire("h:ends", &["status", "owner"]) {
        return;
    }
    expire("h:stays", &["status"]);
    let findings = |key: &str| inspected(&server, "plain", key)["findings"].clone();
    assert_eq!((findings("ends"), &findings("stays")[0]["code"]), (json!([]), &json!("no-expiry")));
    server.idemctl(&["sweep", "--orphaned", "--schema", "plain", "--yes", "--grace", "0"]).exits(3);
    assert_eq!(server.keys(), ["h:ends", "h:stays"]);
}

#[test]
fn no_step_is_played_on_a_set() {
    let server = Server::start();
    describe(&server, "sets", "lock = \"s:{key}:lock\"\nresult = \"s:{key}:done\"", SETS);
    for words in [
        &["complete", "a"][..],
        &["begin", "a"],
        &["race"],
        &["simulate", "failover-loses-lock"],
        &["explore"],
    ] {
        server
            .idemctl(&[words, &["--schema", "sets"]].concat())
            .exits(2)
            .says("reads but does not write");
    }
}

#[test]
fn where_no_script_may_read_plain_commands_do() {
    let server = plain();
    lock(&server, "h:a", "w-1");
    result(&server, "h:b", b"paid");
    server.add_user("plain", "~* +@read +@connection +time");
    let words = ["--user", "plain", "--pass", "pw", "list", "--schema", "plain", "-o", "csv"];
    server.idemctl(&words).exits(0).shows("in-progress").shows("completed");
}

/// A lock whose members say who waits: that it is there is all that is told.
const SETS: &str = r#"
[[value]]
name = "held"
at = "lock"
type = "zset"
state = "in-progress"
[[value]]
name = "done"
at = "result"
type = "set"
state = "completed"
"#;

#[test]
fn sets_tell_that_a_record_is_there() {
    let server = Server::start();
    describe(&server, "sets", "lock = \"s:lock:{key}\"\nresult = \"s:done:{key}\"", SETS);
    server.send::<()>(&[b"ZADD", b"s:lock:a", b"1", b"w-1"]);
    server.send::<()>(&[b"SADD", b"s:done:b", b"x"]);
    server.put("s:lock:c", "a string");
    assert_eq!(listed(&server, "sets")[..2], are(&[("a", "in-progress"), ("b", "completed")]));
    assert_eq!(inspected(&server, "sets", "a")["findings"][0]["code"], "no-expiry");
    server.idemctl(&["force-unlock", "a", "--schema", "sets", "--yes"]).exits(0);
    assert_eq!(server.keys(), ["s:done:b", "s:lock:c"]);
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.send::<Vec<String>>(&[b"ZRANGE", b"s:lock:a", b"0", b"-1"]), ["w-1"]);
}
