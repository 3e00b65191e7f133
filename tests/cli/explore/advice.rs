//! What to change: the cause of several harms is said once.

use std::fs;

use crate::simulate::variant::{home, run};

/// GET, then SET. The lock names its owner, and no step releases it.
const GET_THEN_SET: &str = r#"format = 2
name = "getset"
keys = { record = "gs:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "lock"
encoding = "json"
where = { "/s" = "P" }
required = ["/s", "/o"]
state = "in-progress"
fields = { owner = "/o" }

[[value]]
name = "done"
encoding = "json"
where = { "/s" = "D" }
required = ["/s", "/b", "/c"]
state = "completed"
fields = { status = "/c", body = "/b" }

[write]
lock_value = '{"s":"P","o":"{owner}"}'
result_value = '{"s":"D","c":{status},"b":{body_text}}'

[service]
on_failure = "keep"

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { nil = true, means = "next", when = { record = "absent" } },
  { value = "lock", means = "conflict", when = { record = "lock" } },
  { value = "done", means = "replay", when = { record = "done" } },
]

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "EX", "{lock_ttl}"]
replies = [{ word = "OK", means = "acquired", when = {} }]

[complete]
checks_owner = false

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

/// Rule: several harms that follow from one gap have one advice.
#[test]
fn what_follows_from_one_cause_is_said_once() {
    let folder = home();
    fs::create_dir(folder.path().join("getset")).unwrap();
    fs::write(folder.path().join("getset/schema.toml"), GET_THEN_SET).unwrap();
    let words = ["explore", "getset", "--schema-dir", ".", "--sandbox"];
    let shown = run(folder.path(), &words).exits(1).text();
    let (_, advice) = shown.split_once("What to change\n").unwrap();
    let broken = "one-effect, result-not-replaced, owner-only: getset\n  → take a lock only if";
    assert!(advice.starts_with(broken), "{advice}");
    assert_eq!(advice.matches('→').count(), 2, "{advice}");
}
