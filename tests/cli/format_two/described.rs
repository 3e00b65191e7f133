//! A server and a schema of one's own, described in a few lines.

use crate::support::Server;

/// What a schema has to say besides keys and values.
const STEPS: &str = r#"
[write]
lock_value = '{"status":"LOCKED"}'
result_value = '{"status":"DONE"}'
REPLAYS
[[begin.call]]
command = ["SET", "{lock_or_record}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { lock_or_record = "absent" } },
  { nil = true, means = "conflict", when = { lock_or_record = "present" } },
]
[[complete.call]]
command = ["SET", "{result_or_record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

/// How a result that is called `done` comes back.
const REPLAYS: &str = r#"
[[begin.call]]
command = ["GET", "{result_or_record}"]
replies = [
  { nil = true, means = "next" },
  { text = true, means = "replay", when = { result_or_record = "done" } },
]"#;

/// Describes a library in the schema folder of this server's home: the lines of `[keys]`, then the forms.
pub fn describe(server: &Server, name: &str, keys: &str, values: &str) {
    let (lock, result) =
        if keys.contains("record =") { ("record", "record") } else { ("lock", "result") };
    // What is packed takes more to write than a state.
    let is_packed =
        ["decode", "\"php\"", "\"msgpack\"", "\"hash\""].iter().any(|word| values.contains(word));
    let steps = if is_packed { "" } else { STEPS };
    let steps =
        steps.replace("REPLAYS", if values.contains("name = \"done\"") { REPLAYS } else { "" });
    let steps = steps.replace("lock_or_record", lock).replace("result_or_record", result);
    let head = format!(
        "format = 2\nname = \"{name}\"\n[keys]\n{keys}\n[ttl]\nlock = \"1m\"\nresult = \"1h\"\n"
    );
    server.describe(name, &[("schema.toml", &format!("{head}{values}{steps}"))]);
}

/// The states of a schema's records by their keys, as `list` tells them.
pub fn listed(server: &Server, schema: &str) -> Vec<(String, String)> {
    let lines = server.idemctl(&["list", "--schema", schema, "-o", "jsonl"]).exits(0).json_lines();
    let word =
        |line: &serde_json::Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
    let mut states: Vec<_> =
        lines.iter().map(|line| (word(line, "key"), word(line, "state"))).collect();
    states.sort();
    states
}

/// A record as `inspect` tells it in JSON.
pub fn inspected(server: &Server, schema: &str, key: &str) -> serde_json::Value {
    server.idemctl(&["inspect", key, "--schema", schema, "-o", "json"]).exits(0).json()["records"]
        [0]
    .clone()
}

/// Such a list, as a test writes it.
pub fn are(states: &[(&str, &str)]) -> Vec<(String, String)> {
    states.iter().map(|(key, state)| ((*key).to_owned(), (*state).to_owned())).collect()
}
