//! Locks without results, and keys that are claimed as done before the work is.

use serde_json::Value;

use crate::support::{Run, Server, alone};

const MUTEXES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mutexes");

fn seen() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("seen")).unwrap();
    let schema = r#"
format = 2
name = "seen"
keys = { record = "seen:{key}" }
ttl = { result = "24h" }
[[value]]
name = "claimed"
equals = "true"
state = "completed"
[[begin.call]]
command = ["SET", "{record}", "true", "NX", "EX", "{result_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { record = "absent" } },
  { nil = true, means = "replay", when = { record = "present" } },
]
"#;
    std::fs::write(folder.path().join("seen/schema.toml"), schema).unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    (folder, path)
}

fn explored(words: &[&str]) -> Run {
    alone(&[&["explore", "--sandbox"], words].concat())
}

/// The smallest sets of faults that break an invariant, with the steps of their shortest histories.
fn broken(run: &Run, invariant: &str) -> Vec<(String, u64)> {
    let mut broken = Vec::new();
    for harm in run.json()["schemas"][0]["harms"].as_array().unwrap() {
        if harm["invariant"] == invariant {
            let faults = harm["minimal_faults"].as_object().unwrap().keys().cloned();
            let faults = faults.collect::<Vec<_>>().join("+");
            broken.push((faults, harm["steps"].as_u64().unwrap()));
        }
    }
    broken.sort();
    broken
}

/// Rule: seen is not done. A claim that nothing takes back loses the effect if its worker crashes or
/// fails, or never learns that it has the claim.
#[test]
fn a_claim_before_the_work_can_lose_the_effect() {
    let (_folder, path) = seen();
    let run = explored(&["seen", "--schema-dir", &path, "-o", "json"]).exits(1);
    let lost = broken(&run, "effect-not-lost");
    let expected = [("crash", 3), ("fail", 3), ("lost", 2), ("resend", 3)];
    assert_eq!(lost, expected.map(|(fault, steps)| (fault.to_owned(), steps)));
    assert_eq!(broken(&run, "no-false-done"), []);
    explored(&["seen", "--schema-dir", &path])
        .exits(1)
        .shows("a later request  begins (SET): replay");
    let raced = alone(&["race", "--sandbox", "--schema", "seen", "--schema-dir", &path]).exits(2);
    raced.says("its workers store no result");
}

#[test]
fn a_lock_is_raced_and_released() {
    let server = Server::start();
    let words = ["race", "--schema", "token-compared", "--schema-dir", MUTEXES, "--rounds", "10"];
    let run = server.idemctl(&[&words[..], &["-o", "json"]].concat()).exits(0).json();
    let run = &run["runs"][0];
    assert_eq!((&run["verdict"], &run["strategy"]), (&"atomic".into(), &"schema".into()));
    assert_eq!((&run["winners_max"], &run["conflicts"]), (&1.into(), &Value::from(10 * (49 + 48))));
    assert_eq!(server.size(), 0);
    // The comparison of these scripts is with GET and SET.
    server.idemctl(&words).exits(0).shows("with check-then-act instead of these scripts");
}

#[test]
fn nothing_is_completed_or_simulated_where_there_is_no_result() {
    let server = Server::start();
    server.set("m:a", "me", 60_000);
    let of = ["--schema", "token-compared", "--schema-dir", MUTEXES];
    let words = [&["complete", "a", "--status", "201", "--body", "{}", "--yes"], &of[..]].concat();
    server.idemctl(&words).exits(2).says("token-compared: it has no result to store");
    let words = [&["simulate", "first-then-retry"], &of[..]].concat();
    alone(&words).exits(2).says("its workers store no result");
    assert_eq!(server.get("m:a"), Some(b"me".to_vec()));
}

/// The token behind a fixed text is the owner.
#[test]
fn an_owner_behind_a_fixed_text_is_known() {
    let server = Server::start();
    server.set("m:a", "pending:6e0c2b1a", 20_000);
    let of = ["--schema", "token-behind-text", "--schema-dir", MUTEXES];
    server.idemctl(&[&["inspect", "a"], &of[..]].concat()).exits(0).shows("6e0c2b1a");
    let run = explored(&["token-behind-text", "--schema-dir", MUTEXES]).exits(0);
    run.shows("holds: lock-ends, owner-only");
}

/// Rule: what compares in one call and changes in another is not asked to claim that it is safe.
#[test]
fn a_check_does_not_advise_what_it_would_reject() {
    let folder = format!("{MUTEXES}/get-then-delete");
    let run = alone(&["schema", "check", &folder]).exits(0);
    assert!(!run.all().contains("checks_owner"), "{}", run.all());
}

/// Rule: a command that the server does not know is no reply that the schema lacks.
#[test]
fn a_conditional_command_is_checked_where_the_server_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let schema = folder.path().join("delifeq");
    std::fs::create_dir(&schema).unwrap();
    let text = std::fs::read_to_string(format!("{MUTEXES}/token-compared/schema.toml")).unwrap();
    let text = text.replace("token-compared", "delifeq").replace(
        "script = \"release\"\nkeys = [\"{lock}\"]\nargs = [\"{lock_value}\"]",
        "command = [\"DELIFEQ\", \"{lock}\", \"{lock_value}\"]",
    );
    std::fs::write(schema.join("schema.toml"), text).unwrap();
    let path = folder.path().to_str().unwrap();
    let known: Vec<redis::Value> = Server::start().send(&[b"COMMAND", b"INFO", b"DELIFEQ"]);
    let is_known = known != [redis::Value::Nil];
    let checked = alone(&["schema", "check", schema.to_str().unwrap()]);
    let explored = explored(&["delifeq", "--schema-dir", path]);
    if is_known {
        checked.exits(0);
        explored.exits(0).shows("no schema bug");
    } else {
        checked.exits(1).shows("this server does not know the call");
        explored.exits(1).shows("it never reaches a released lock without a fault");
    }
}

/// Rule: a schema that describes no step is not said to store no result.
#[test]
fn a_schema_without_steps_lacks_them() {
    let (_folder, path) = seen();
    let file = format!("{path}/seen/schema.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let (formats, _) = text.split_once("[[begin.call]]").unwrap();
    std::fs::write(&file, formats).unwrap();
    let run = explored(&["seen", "--schema-dir", &path]).exits(2);
    run.says("its schema.toml has no [begin] and no [complete]");
}
