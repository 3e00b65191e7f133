//! A service that keeps the content type, and no other header, in a field of its own.

use serde_json::{Value, json};

use crate::support::Server;

const TOML: &str = r#"format = 2
name = "typed"
keys = { record = "t:{key}" }
ttl = { lock = "5m", result = "24h" }

[[value]]
name = "run"
equals = "run"
state = "in-progress"

[[value]]
name = "done"
has = ["/st"]
required = ["/ct", "/b"]
state = "completed"
fields = { status = "/st", content_type = "/ct", body = "/b" }

[write]
lock_value = "run"
result_value = '{"st":{status},"ct":{content_type},"b":{body_text}}'

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [{ word = "OK", means = "acquired", when = { record = "absent" } }, { nil = true, means = "next" }]

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { word = "run", means = "conflict", when = { record = "run" } },
  { value = "done", means = "replay", when = { record = "done" } },
]

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

/// Rule: the content type is a header of the response, and `complete` takes that header alone.
#[test]
fn the_content_type_is_the_one_header() {
    let server = Server::holding(&[("t:a", "run", 200_000)]);
    server.describe("typed", &[("schema.toml", TOML)]);
    let complete = |headers: &[&str]| {
        let headers: Vec<_> = headers.iter().flat_map(|header| ["--header", header]).collect();
        let words =
            ["complete", "a", "--schema", "typed", "--status", "201", "--body", "hi", "--yes"];
        server.idemctl(&[&words, &headers[..]].concat())
    };
    complete(&["Content-Type: text/plain", "X-A: 1"])
        .exits(2)
        .says("header would be lost: a result of typed keeps status, content type and body");
    complete(&[]).exits(2).says("`/ct` is null, which the schema does not allow");
    complete(&["Content-Type: text/plain"])
        .exits(0)
        .says("Tested with the service's scripts on a temporary local Redis.");
    assert_eq!(server.get("t:a").unwrap(), br#"{"st":201,"ct":"text/plain","b":"hi"}"#);
    let shown: Value =
        server.idemctl(&["inspect", "a", "--schema", "typed", "-o", "json"]).exits(0).json();
    assert_eq!(
        shown["records"][0]["response"]["headers"],
        json!({ "content-type": ["text/plain"] })
    );
}
