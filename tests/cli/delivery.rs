//! `idemctl complete` promises what clients get: the response is compared with what the service's own steps hand out.

use crate::support::Server;

/// A service whose script stores the response anew, as many do that are written with cjson.
fn describe_cjson_service(server: &Server) {
    let toml = r#"
format = 2
name = "anew"
summary = "a script that encodes the result again"

[keys]
record = "anew:{key}"

[ttl]
lock = "30s"
result = "1h"

[[value]]
name = "lock"
where = { "/s" = "P" }
required = ["/s"]
state = "in-progress"

[[value]]
name = "done"
where = { "/s" = "D" }
required = ["/s", "/code", "/headers", "/body"]
state = "completed"
fields = { status = "/code", headers = "/headers", body = "/body" }
body_encoding = "json"

[write]
lock_value = '{"s":"P"}'
result_value = '{"s":"D","code":{status},"headers":{headers},"body":{body_json}}'
headers_as = "one"

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "GET", "EX", "{lock_ttl}"]
replies = [
  { nil = true, means = "acquired", when = { record = "absent" } },
  { value = "lock", means = "conflict" },
  { value = "done", means = "replay" },
]

[complete]
checks_owner = false

[[complete.call]]
script = "store"
keys = ["{record}"]
args = ["{result_value}", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;
    let store = "local result = cjson.decode(ARGV[1])\n\
        redis.call('SET', KEYS[1], cjson.encode(result), 'EX', ARGV[2])\nreturn 'OK'\n";
    server.describe("anew", &[("schema.toml", toml), ("store.lua", store)]);
}

/// Rule: what clients get is asked of the service's own steps, on a temporary local Redis. If it is another response, nothing
/// is stored. Revert: without `check_delivery` the first body is stored as `{"items":{}}`.
#[test]
fn a_response_that_the_services_steps_change_is_refused() {
    let server = Server::start();
    describe_cjson_service(&server);
    let lock = r#"{"s":"P"}"#;
    let words = ["complete", "k", "--schema", "anew", "--yes", "--status", "201", "--body"];
    for (body, difference) in [
        (r#"{"items":[]}"#, r#"its body would be `{\"items\":{}}`, not `{\"items\":[]}`"#),
        (r#"{"big":12345678901234567890}"#, "1.2345678901235e+19"),
        ("\"hello\"", "its body would be `hello`"),
    ] {
        server.set("anew:k", lock, 20_000);
        let run = server.idemctl(&[&words[..], &[body]].concat()).exits(2);
        run.says("clients would get another response from anew").says(difference);
        assert_eq!(server.get("anew:k").unwrap(), lock.as_bytes(), "{body}");
    }
    let twice = ["--header", "x-a: 1", "--header", "X-A: 2"];
    let run = server.idemctl(&[&words[..], &["{}"], &twice[..]].concat()).exits(2);
    run.says("stores one text for each header, and X-A is given twice");
    for body in ["{ \"b\": [1, 2.50], \"a\": \"caf\u{e9}\" }", "a text", "true"] {
        server.set("anew:k", lock, 20_000);
        let header = ["--header", "X-Request: 7"];
        server.idemctl(&[&words[..], &[body], &header[..]].concat()).exits(0);
        let shown = server.idemctl(&["inspect", "k", "--schema", "anew", "-o", "json"]).exits(0);
        assert_eq!(shown.json()["records"][0]["state"], "completed", "{body}");
    }
}

/// Rule: a body that the library reads as JSON has to be JSON, and a JSON string keeps its quotes in both directions.
#[test]
fn a_text_for_a_library_that_reads_json_is_refused_and_a_json_string_comes_back_as_it_was() {
    let server = Server::start();
    for (schema, redis_key, lock) in [
        (
            "powertools-python",
            "app.pay#9f812421cb7b6c40faaa1eb8b30ac48e",
            r#"{"status": "INPROGRESS", "expiration": 4000000000, "in_progress_expiration": 4000000000000}"#,
        ),
        (
            "powertools-typescript",
            "pay#n4EkIct7bED6qh64swrEjg==",
            r#"{"status":"INPROGRESS","expiration":4000000000,"in_progress_expiration":4000000000000}"#,
        ),
    ] {
        server.set(redis_key, lock, 20_000);
        let words = ["complete", redis_key, "--schema", schema, "--yes", "--body"];
        let run = server.idemctl(&[&words[..], &["hello world"]].concat()).exits(2);
        run.says("every body of").says("is JSON").says("needs its quotes");
        assert_eq!(server.get(redis_key).unwrap(), lock.as_bytes(), "{schema}");
        server.idemctl(&[&words[..], &["\"hello world\""]].concat()).exits(0);
        let body =
            server.idemctl(&["inspect", redis_key, "--schema", schema, "--body", "-"]).exits(0);
        assert_eq!(body.text(), "\"hello world\"", "{schema}");
    }
}
