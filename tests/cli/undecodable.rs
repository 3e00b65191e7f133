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
                (r#"{"status":"201","headers":{},"body":"x"}"#, "unknown", "`/status` is a text"),
                (r#"{"status":"abc","headers":{},"body":"x"}"#, "unknown", "`/status`"),
                (r#"{"status":{},"headers":{},"body":"x"}"#, "unknown", "`/status`"),
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
