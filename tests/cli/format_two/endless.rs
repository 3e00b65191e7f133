//! Steps of a service that gives neither its locks nor its results a TTL.

use crate::support::Server;

const TOML: &str = r#"format = 2
name = "endless"
keys = { record = "n:{key}" }
ttl = { lock = "none", result = "none" }

[[value]]
name = "run"
equals = "run"
state = "in-progress"

[[value]]
name = "done"
equals = "done"
state = "completed"

[write]
lock_value = "run"
result_value = "done"

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX"]
replies = [{ word = "OK", means = "acquired", when = { record = "absent" } }, { nil = true, means = "next" }]

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { word = "run", means = "conflict", when = { record = "run" } },
  { word = "done", means = "replay", when = { record = "done" } },
]

[[complete.call]]
command = ["SET", "{record}", "{result_value}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

/// Rule: where there is no TTL, no sentence names one.
#[test]
fn steps_speak_of_no_ttl_where_there_is_none() {
    let server = Server::start();
    server.describe("endless", &[("schema.toml", TOML)]);
    let step = |name: &str| server.idemctl(&[name, "a", "--schema", "endless", "--yes"]).exits(0);
    let begun = step("begin");
    begun.says("requests with this key are then rejected until it ends.");
    let done = step("complete");
    done.says(
        "This stores the completion of the operation at n:a without expiry, as endless does.",
    );
    done.says(
        "Then the next request gets a replay as long as the result exists, because its service \
        gives it no TTL.",
    );
}
