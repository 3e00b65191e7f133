//! A service that keeps headers as an array of pairs, as ASGI and WSGI applications have them.

use serde_json::json;

use crate::support::Server;

const TOML: &str = r#"format = 2
name = "wsgi"
keys = { record = "wsgi:{key}" }
ttl = { lock = "5m", result = "24h" }

[[value]]
name = "running"
equals = "running"
state = "in-progress"

[[value]]
name = "done"
required = ["/status", "/headers", "/body"]
state = "completed"
fields = { status = "/status", headers = "/headers", body = "/body" }
"#;

const STORED: &str = r#"{"status":201,"headers":[["Content-Type","application/json"],["Set-Cookie","a=1"],["Set-Cookie","b=2"],["X-Empty",""]],"body":"{\"id\":1}"}"#;

/// Rule: headers that are stored as pairs are shown, a repeated one with each of its values. Revert: if `headers` of the
/// decoder takes an object alone, the page and the JSON have no header.
#[test]
fn headers_that_are_stored_as_pairs_are_shown() {
    let server = Server::holding(&[("wsgi:a", STORED, 200_000)]);
    server.describe("wsgi", &[("schema.toml", TOML)]);
    let page = server.idemctl(&["inspect", "a", "--schema", "wsgi"]).exits(0);
    page.shows("201").shows("Content-Type: application/json").shows("X-Empty:");
    page.shows("Set-Cookie: (hidden)");
    let words = ["inspect", "a", "--schema", "wsgi", "--reveal", "-o", "json"];
    let shown = server.idemctl(&words).exits(0);
    let response = &shown.json()["records"][0]["response"];
    assert_eq!(
        response["headers"],
        json!({
            "Content-Type": ["application/json"],
            "Set-Cookie": ["a=1", "b=2"],
            "X-Empty": [""],
        }),
        "{response}"
    );
    assert_eq!(response["status"], 201);
    assert_eq!(response["body"], r#"{"id":1}"#);
    server.idemctl(&["schema", "check", "wsgi"]).exits(0);
}
