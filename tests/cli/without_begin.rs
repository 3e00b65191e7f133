//! A schema without a begin step: idemctl says nothing about what the next request gets.

use crate::support::Server;

const SCHEMA: &str = r#"
format = 2
name = "flags"
summary = "locks and results of a service that reads them in its own way"

[keys]
record = "flags:{key}"

[ttl]
lock = "30s"
result = "1h"

[[value]]
name = "held"
where = { "/s" = "held" }
required = ["/s"]
state = "in-progress"

[[value]]
name = "done"
where = { "/s" = "done" }
required = ["/s"]
state = "completed"
"#;

#[test]
fn nothing_is_said_about_the_next_request() {
    let server = Server::start();
    server.describe("flags", &[("schema.toml", SCHEMA)]);
    server.put("flags:a", r#"{"s":"held"}"#);
    server.set("flags:b", r#"{"s":"done"}"#, 3_000_000);
    server.set("flags:c", r#"{"s":"held"}"#, 900_000);
    for (words, exit) in [
        (&["inspect", "a", "c", "--schema", "flags", "--lock-ttl", "30s"][..], 0),
        (&["sweep", "--orphaned", "--dry-run", "--schema", "flags"], 0),
        (&["purge", "--all", "--dry-run", "--schema", "flags"], 0),
        (&["force-unlock", "a", "--dry-run", "--schema", "flags"], 0),
        (&["force-unlock", "a", "c", "--dry-run", "--schema", "flags"], 0),
    ] {
        let run = server.idemctl(words).exits(exit);
        let said = format!("{}{}", run.text(), run.stderr);
        for claim in ["retry", "retries", "executes the operation,", "with each", "with this key"] {
            assert!(!said.contains(claim), "{words:?} says {claim:?}: {said}");
        }
    }
}
