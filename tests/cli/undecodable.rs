//! Stored responses that the service may fail to decode.

use crate::support::Server;

/// A library that stores its responses in the way of `value`, and replays each result.
fn schema(value: &str, write: &str) -> String {
    format!(
        r#"
format = 2
name = "lib"
keys = {{ record = "lib:{{key}}" }}
ttl = {{ lock = "30s", result = "24h" }}
protocol = "set-nx-get"
client = {{ conflict = "409" }}
[[value]]
name = "running"
equals = "running"
state = "in-progress"
[[value]]
name = "done"
state = "completed"
{value}
[write]
lock_value = "running"
{write}
"#
    )
}

/// The prediction for a stored value, and the reason if it is unknown.
fn predicted(server: &Server, store: &[&[u8]]) -> (String, String) {
    server.send::<()>(&[b"DEL", b"lib:k"]);
    server.send::<redis::Value>(store);
    let shown = server.idemctl(&["inspect", "k", "--schema", "lib", "-o", "json"]).exits(0).json();
    let next = &shown["records"][0]["next_request"];
    let why = next["unknown_because"].as_str().unwrap_or_default();
    (next["answer"].as_str().unwrap().to_owned(), why.to_owned())
}

/// Rule: a replay is predicted only of a response that the service can decode, and of JSON that is
/// some by the standard. Revert: without `json_prefix::is_standard` in `parse` or in `body`, what
/// cjson alone reads is a replay.
#[test]
fn json_that_only_redis_reads_is_not_a_replay() {
    let value = "where = { \"/st\" = \"done\" }\nrequired = [\"/status\", \"/body\"]\nnull = [\"/body\"]\n\
        fields = { status = \"/status\", body = \"/body\" }\n";
    let write = "result_value = '{\"st\":\"done\",\"status\":{status},\"body\":{body_json}}'";
    let server = Server::start();
    let text = format!("{value}body_encoding = \"json\"\n");
    server.describe("lib", &[("schema.toml", &schema(&text, write))]);
    for (body, answer) in [
        ("1e400", "replay"),
        ("{\"a\":[\"\u{e9}\"]}", "replay"),
        ("NaN", "unknown"),
        ("[-Infinity]", "unknown"),
        ("0x10", "unknown"),
        ("01", "unknown"),
        ("\"a\tb\"", "unknown"),
    ] {
        let stored = format!("{{\"st\":\"done\",\"status\":201,\"body\":{body}}}");
        let (next, because) = predicted(&server, &[b"SET", b"lib:k", stored.as_bytes()]);
        assert_eq!(next, answer, "{stored}: {because}");
        assert!(answer == "replay" || because.contains("not JSON by the standard"), "{because}");
    }
    // Many decoders replace bytes that are not UTF-8.
    let bytes = b"{\"st\":\"done\",\"status\":201,\"body\":\"\xe9\"}";
    assert_eq!(predicted(&server, &[b"SET", b"lib:k", bytes]).0, "replay");

    let text = format!("{value}body_is = \"json\"\n");
    let write = write.replace("body_json", "body_text");
    server.describe("lib", &[("schema.toml", &schema(&text, &write))]);
    for (body, answer) in [("{}", "replay"), ("\\\"x\\\"", "replay"), ("[NaN]", "unknown")] {
        let stored = format!("{{\"st\":\"done\",\"status\":201,\"body\":\"{body}\"}}");
        let (next, because) = predicted(&server, &[b"SET", b"lib:k", stored.as_bytes()]);
        assert_eq!(next, answer, "{stored}: {because}");
    }

    let inside = "where = { \"/st\" = \"done\" }\nrequired = [\"/data/body\"]\n\
        decode_at = { \"/data\" = [\"json\"] }\nfields = { body = \"/data/body\" }\n";
    server.describe("lib", &[("schema.toml", &IN_A_HASH.replace("VALUE", inside))]);
    for (data, answer) in [("{\"body\":1}", "replay"), ("{\"body\":NaN}", "unknown")] {
        let store: [&[u8]; 6] = [b"HSET", b"lib:k", b"st", b"done", b"data", data.as_bytes()];
        let (next, because) = predicted(&server, &store);
        assert_eq!(next, answer, "{data}: {because}");
    }
}

/// Rule: a replay is predicted only of headers of the type that the service writes. Revert: without
/// `unclear::headers`, each of these is a replay.
#[test]
fn headers_of_another_type_are_not_a_replay() {
    let value = "required = [\"/status\", \"/headers\"]\n\
        fields = { status = \"/status\", headers = \"/headers\" }\n";
    for (headers, headers_as, cases) in [
        (
            "header_lists",
            "list",
            &[
                (r#"{"A":["b","c"]}"#, "replay"),
                ("{}", "replay"),
                (r#"{"A":5}"#, "unknown"),
                (r#"{"A":"b"}"#, "unknown"),
                (r#"{"A":[5]}"#, "unknown"),
                ("[]", "unknown"),
            ][..],
        ),
        (
            "headers",
            "list",
            &[
                (r#"{"a":"b","c":["d","e"],"content-length":12}"#, "replay"),
                (r#"{"a":true}"#, "unknown"),
                (r#"{"a":{"b":"c"}}"#, "unknown"),
                (r#"{"a":[["b"]]}"#, "unknown"),
                (r#"[["a","b"]]"#, "unknown"),
            ],
        ),
        (
            "headers",
            "one",
            &[
                (r#"{"a":"b"}"#, "replay"),
                (r#"{"a":["b","c"]}"#, "unknown"),
                (r#"{"a":5}"#, "unknown"),
            ],
        ),
    ] {
        let write = format!(
            "result_value = '{{\"status\":{{status}},\"headers\":{{{headers}}}}}'\n\
            headers_as = \"{headers_as}\""
        );
        let server = Server::start();
        server.describe("lib", &[("schema.toml", &schema(value, &write))]);
        for (stored, answer) in cases {
            let stored = format!("{{\"status\":201,\"headers\":{stored}}}");
            let (next, because) = predicted(&server, &[b"SET", b"lib:k", stored.as_bytes()]);
            assert_eq!(next, *answer, "{headers} as {headers_as}, {stored}: {because}");
            assert!(*answer == "replay" || because.contains("`/headers`"), "{because}");
        }
    }
}

/// Rule: a replay is predicted only of a response that the service can decode. Revert: without
/// `unclear::response_field`, each of these is a replay.
#[test]
fn a_response_that_cannot_be_decoded_is_not_a_replay() {
    let plain = "required = [\"/status\", \"/body\"]\noptional = [\"/headers\"]\nfields = { status = \"/status\", \
        headers = \"/headers\", body = \"/body\" }\n";
    let text = (
        plain,
        "result_value = '{\"status\":{status},\"headers\":{headers},\"body\":{body_text}}'",
    );
    let json = "required = [\"/status\", \"/body\"]\nbody_is = \"json\"\nfields = { status = \"/status\", \
        body = \"/body\" }\n";
    let json = (json, "result_value = '{\"status\":{status},\"body\":{body_text}}'");
    let base64 = "required = [\"/status\", \"/body\"]\nbody_encoding = \"base64\"\nfields = { status = \
        \"/status\", body = \"/body\" }\n";
    let base64 = (base64, "result_value = '{\"status\":{status},\"body\":\"{body_base64}\"}'");
    for ((value, write), cases) in [
        (
            text,
            &[
                (r#"{"status":201,"headers":{},"body":""}"#, "replay", ""),
                (
                    r#"{"status":"201","headers":{},"body":"x"}"#,
                    "unknown",
                    "`/status` is not of the type",
                ),
                (r#"{"status":"abc","headers":{},"body":"x"}"#, "unknown", "`/status`"),
                (r#"{"status":{},"headers":{},"body":"x"}"#, "unknown", "`/status`"),
                (r#"{"status":0,"headers":{},"body":"x"}"#, "unknown", "is not a status"),
                (r#"{"status":600,"headers":{},"body":"x"}"#, "unknown", "is not a status"),
                (r#"{"status":201,"headers":"x","body":"x"}"#, "unknown", "`/headers`"),
                (r#"{"status":201,"headers":{},"body":{"a":1}}"#, "replay", ""),
            ][..],
        ),
        (
            json,
            &[
                (r#"{"status":201,"body":"[1]"}"#, "replay", ""),
                (r#"{"status":201,"body":"{\"a\":"}"#, "unknown", "`/body` is not JSON"),
                (r#"{"status":201,"body":""}"#, "unknown", "`/body` is not JSON"),
                (r#"{"status":201,"body":{}}"#, "unknown", "`/body` is not a text"),
            ],
        ),
        (
            base64,
            &[
                (r#"{"status":201,"body":"YQ=="}"#, "replay", ""),
                (r#"{"status":201,"body":""}"#, "replay", ""),
                (r#"{"status":201,"body":"YQ"}"#, "unknown", "`/body` is not base64"),
                (r#"{"status":201,"body":"_-8="}"#, "unknown", "`/body` is not base64"),
                (r#"{"status":201,"body":5}"#, "unknown", "`/body` is not base64"),
            ],
        ),
    ] {
        let server = Server::start();
        server.describe("lib", &[("schema.toml", &schema(value, write))]);
        for (stored, answer, why) in cases {
            let (next, because) = predicted(&server, &[b"SET", b"lib:k", stored.as_bytes()]);
            assert_eq!(next, *answer, "{stored}: {because}");
            assert!(because.contains(why), "{stored}: {because}");
        }
    }
}

/// Rule: the same of a fingerprint, times and an expiry of another type than the service writes.
/// Revert: without the checks of these in `unclear::response_field`, each of these is a replay.
#[test]
fn a_field_of_another_type_is_not_a_replay() {
    let value = "required = [\"/status\", \"/fp\", \"/at\", \"/until\"]\ntimestamp = \"rfc3339\"\n\
        fields = { status = \"/status\", fingerprint = \"/fp\", completed_at = \"/at\" }\n\
        expires_at = { field = \"/until\", unit = \"s\" }\n";
    let write = "result_value = '{\"status\":{status},\"fp\":\"{fingerprint}\",\
        \"at\":\"{now_rfc3339}\",\"until\":{result_expires_s}}'";
    let begin = "\n[[begin.call]]\ncommand = [\"GET\", \"{record}\"]\nreplies = [\
        { nil = true, means = \"acquired\", when = { record = \"absent\" } },\
        { value = \"running\", means = \"conflict\" }, { value = \"done\", means = \"replay\" }]\n";
    let text = schema(value, write);
    let text = text.replace("protocol = \"set-nx-get\"\nclient = { conflict = \"409\" }\n", "");
    let server = Server::start();
    server.describe("lib", &[("schema.toml", &(text + begin))]);
    for (fields, answer, why) in [
        (r#""fp":"f","at":"2026-11-27T20:00:00Z","until":4000000000"#, "replay", ""),
        (r#""fp":5,"at":"2026-11-27T20:00:00Z","until":4000000000"#, "unknown", "`/fp`"),
        (r#""fp":"f","at":"x","until":4000000000"#, "unknown", "`/at` is not a time"),
        (r#""fp":"f","at":5,"until":4000000000"#, "unknown", "`/at` is not a time"),
        (r#""fp":"f","at":"2026-11-27T20:00:00Z","until":"4000000000""#, "unknown", "`/until`"),
    ] {
        let stored = format!("{{\"status\":201,{fields}}}");
        let (next, because) = predicted(&server, &[b"SET", b"lib:k", stored.as_bytes()]);
        assert_eq!(next, answer, "{stored}: {because}");
        assert!(because.contains(why), "{stored}: {because}");
    }
}

/// Rule: idempotency-kit reads a record without a status as completed. Revert: without
/// `/fingerprint` in `completed-old`, the next request executes.
#[test]
fn a_result_of_idempotency_kit_without_a_status_is_a_replay() {
    let server = Server::start();
    let result = r#"{"operation":"op","idempotency_key":"k","result":1,"created_at":"2026-11-27T20:00:00Z","expires_at":"2100-01-01T00:00:00Z""#;
    for end in ["}", r#","fingerprint":null}"#, r#","fingerprint":"f"}"#] {
        server.set("idempotency:op:k", format!("{result}{end}"), 60_000);
        let inspect = ["inspect", "op:k", "--schema", "idempotency-kit"];
        server.idemctl(&inspect).exits(0).shows("completed").shows("Next request  replay");
    }
}

const IN_A_HASH: &str = r#"
format = 2
name = "lib"
keys = { record = "lib:{key}" }
ttl = { lock = "30s", result = "24h" }
[[value]]
name = "running"
type = "hash"
where = { "/st" = "run" }
state = "in-progress"
[[value]]
name = "done"
type = "hash"
state = "completed"
VALUE
[[begin.call]]
command = ["HGETALL", "{record}"]
replies = [
  { nil = true, means = "acquired", when = { record = "absent" } },
  { value = "running", means = "conflict" },
  { value = "done", means = "replay" },
]
"#;

/// Rule: the same of fields that are decoded first. Revert: without `unclear_field` and the required
/// fields of a level, an empty or unused field counts as decoded.
#[test]
fn a_field_that_cannot_be_decoded_first_is_not_a_replay() {
    let inside = "where = { \"/st\" = \"done\" }\nrequired = [\"/data/body\"]\n\
        decode_at = { \"/data\" = [\"json\"] }\nfields = { body = \"/data/body\" }\n";
    let whole = "where = { \"/st\" = \"done\" }\nrequired = [\"/data\"]\n\
        decode_at = { \"/data\" = [\"json\"] }\n";
    for (value, cases) in [
        (
            inside,
            [("{\"body\":\"x\"}", "replay"), ("", "unknown"), ("[]", "unknown"), ("{b", "unknown")],
        ),
        (whole, [("[]", "replay"), ("", "unknown"), ("5", "replay"), ("{b", "unknown")]),
    ] {
        let server = Server::start();
        let text = IN_A_HASH.replace("VALUE", value);
        server.describe("lib", &[("schema.toml", &text)]);
        for (data, answer) in cases {
            let store: [&[u8]; 6] = [b"HSET", b"lib:k", b"st", b"done", b"data", data.as_bytes()];
            let (next, because) = predicted(&server, &store);
            assert_eq!(next, answer, "{data}: {because}");
        }
    }
}

/// A Rust service that stores `Vec<u8>` with serde_json.
const BYTES: &str = r#"format = 2
name = "rust"
keys = { record = "rust:{key}" }
ttl = { result = "12h" }
[[value]]
name = "finished"
has = ["/Finished/code"]
state = "completed"
body_encoding = "bytes"
fields = { status = "/Finished/code", headers = "/Finished/headers", body = "/Finished/body" }
[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "finished", means = "replay", when = { record = "finished" } },
  { nil = true, means = "acquired", when = { record = "absent" } },
]
"#;

/// Rule: arrays of byte numbers are shown as these bytes, and any other array as it is stored.
/// Revert: without `bytes_of_numbers`, the body is the text of the array.
#[test]
fn arrays_of_byte_numbers_are_shown_as_bytes() {
    let server = Server::start();
    server.describe("rust", &[("schema.toml", BYTES)]);
    let finished = |key: &str, body: &str| {
        let value = format!(
            r#"{{"Finished":{{"code":202,"headers":{{"content-type":[97,112,112]}},"body":{body}}}}}"#
        );
        server.set(key, value, 30_000_000);
    };
    finished("rust:good", "[123,34,105,100,34,58,49,125]");
    finished("rust:bad", "[123,256]");
    let inspect = |key: &str, more: &[&str]| {
        server.idemctl(&[&["inspect", key, "--schema", "rust"], more].concat()).exits(0)
    };
    inspect("good", &[]).shows("content-type: app");
    assert_eq!(inspect("good", &["--body", "-"]).text(), "{\"id\":1}");
    assert_eq!(inspect("bad", &["--body", "-"]).text(), "[123,256]");
    inspect("bad", &[]).shows("`/Finished/body` is not of the type");
    // A value that is read in part shows the bytes that were read.
    finished("rust:long", &format!("[{}97]", "97,".repeat(100_000)));
    inspect("long", &[]).shows("aaaaaaaa");
}

/// Rule: idemctl refuses to write a format that it only reads.
#[test]
fn a_result_of_byte_numbers_is_not_written() {
    let server = Server::start();
    let text = format!(
        "{BYTES}[write]\nresult_value = '{{\"Finished\":{{\"code\":{{status}},\"body\":{{body_json}}}}}}'\n"
    );
    server.describe("rust", &[("schema.toml", &text)]);
    let checked = server.idemctl(&["schema", "check", "rust"]);
    checked.exits(1).shows("idemctl reads the arrays of `body_encoding = \"bytes\"`");
}
