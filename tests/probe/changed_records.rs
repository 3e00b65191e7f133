//! Records of a probe that change, or stay, while it removes them.

use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::stage::{DELAY, Stage, verdicts};
use crate::support::Running as _;
use crate::validator::faults;

/// A result as the schema express has it.
const RESULT: &str = r#"{"status":"COMPLETED","statusCode":201,"body":"x"}"#;

/// Starts a probe.
fn started(stage: &Stage, words: &[&str]) -> Child {
    let mut command = stage.command(&stage.service.url("/effects"), "json", words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the first four records, and returns the Redis key of the last, which the probe does not
/// send again.
#[track_caller]
fn last_of_the_first(stage: &Stage) -> String {
    last_of_the_first_with(stage, "COMPLETED")
}

/// The same for a service whose results contain this text.
#[track_caller]
fn last_of_the_first_with(stage: &Stage, result: &str) -> String {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        let keys = stage.server.keys();
        let is_completed = |key: &String| {
            let value = stage.server.get(key).unwrap_or_default();
            String::from_utf8_lossy(&value).contains(result)
        };
        if keys.len() == 4 && keys.iter().all(is_completed) {
            return keys[3].clone();
        }
    }
    panic!("the probe does not have its first four records");
}

/// Rule: only values of the schema and idemctl's own text are removed.
/// Revert: if any value is removed, that of another program is lost.
#[test]
fn a_value_of_another_program_stays_and_is_named() {
    let stage = Stage::new("express", None);
    let child = started(&stage, &["--only", "replay-status"]);
    let key = last_of_the_first(&stage);
    stage.server.set(&key, "of another program", 600_000);
    let run = child.ends().exits(0);
    assert_eq!(stage.server.keys(), std::slice::from_ref(&key), "{}", run.all());
    assert_eq!(stage.server.get(&key).as_deref(), Some(&b"of another program"[..]));
    let why = "its value is not one of the schema";
    let kept = json!([{ "key": key.strip_prefix("idem:").unwrap(), "why": why }]);
    assert_eq!(run.json()["records"]["kept"], kept, "{}", run.all());
}

/// Rule: a record that is there again after its removal is named.
/// Revert: without the second look, the probe says that all were removed.
#[test]
fn a_record_that_is_written_again_is_named() {
    let stage = Stage::new("express", None);
    // This check uses many keys, so the removal continues for a while after it removed this one.
    let child = started(&stage, &["--only", "concurrent-keys", "--concurrency", "100"]);
    let key = last_of_the_first(&stage);
    let began = Instant::now();
    while stage.server.get(&key).is_some() && began.elapsed() < Duration::from_secs(30) {}
    stage.server.set(&key, RESULT, 600_000);
    let run = child.ends();
    assert_eq!(stage.server.keys(), std::slice::from_ref(&key), "{}", run.all());
    let why = "it was written after idemctl had removed it";
    let kept = json!([{ "key": key.strip_prefix("idem:").unwrap(), "why": why }]);
    assert_eq!(run.json()["records"]["kept"], kept, "{}", run.all());
}

/// Rule: a record that idemctl cannot find is not passed over in silence.
/// Revert: without the keys that were answered, nothing is said of this one.
#[test]
fn a_key_without_a_record_is_named() {
    let stage = Stage::new("express", None);
    let child = started(&stage, &["--only", "replay-status"]);
    let key = last_of_the_first(&stage);
    stage.server.send::<i64>(&[b"DEL", key.as_bytes()]);
    let run = child.ends().exits(0);
    let records = run.json()["records"].clone();
    assert_eq!(records["removed"], 4, "{}", run.all());
    let key = key.strip_prefix("idem:").unwrap();
    assert_eq!(records["not_found"], json!([key]), "{}", run.all());
    run.says("no record in Redis under this schema for 1 key");
    let faults = faults("probe.json", &[run.json()]);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Rule: all Redis keys of a record are removed.
/// Revert: if only the first one is removed, the other one stays.
#[test]
fn a_lock_beside_a_result_is_removed_with_it() {
    let stage = Stage::new("event-consumer", None);
    let child = started(&stage, &["--only", "replay-status"]);
    let result = last_of_the_first_with(&stage, "order");
    let lock = result.replace("idem:done:", "idem:lock:");
    stage.server.set(&lock, "1", 600_000);
    let run = child.ends().exits(0);
    assert_eq!(stage.server.keys(), [""; 0], "{}", run.all());
    assert_eq!(run.json()["records"]["removed"], 5, "{}", run.all());
}

/// Rule: a lookup also reads a key as the name of a Redis key. A record that it finds there has another
/// key, which this run did not send, so it stays.
/// Revert: any record that the lookup finds is removed.
#[test]
fn a_record_whose_key_was_not_sent_stays_and_is_named() {
    let stage = Stage::new("express", None);
    let schema = "format = 2\nname = \"short\"\nkeys = { record = \"idemctl-probe-{key}\" }\n\
                  ttl = { result = \"none\" }\n\n[[value]]\nname = \"done\"\nequals = \"done\"\n\
                  state = \"completed\"\n";
    stage.server.describe("short", &[("schema.toml", schema)]);
    let child = started(&stage, &["--only", "replay-status", "--schema", "short"]);
    let sent = last_of_the_first(&stage).strip_prefix("idem:").unwrap().to_owned();
    stage.server.set(&sent, "done", 600_000);
    let run = child.ends().exits(0);
    assert_eq!(stage.server.keys(), std::slice::from_ref(&sent), "{}", run.all());
    let key = sent.strip_prefix("idemctl-probe-").unwrap();
    let kept = json!([{ "key": key, "why": "this run did not send its key" }]);
    assert_eq!(run.json()["records"]["kept"], kept, "{}", run.all());
}

/// Rule: after Ctrl-C, the removal waits for a handler that ends soon.
/// Revert: without the wait, only the lock is removed, and the handler stores its result afterwards
/// (this service does not look whether it still has the lock).
#[test]
fn a_result_that_is_stored_right_after_ctrl_c_is_removed() {
    let stage = Stage::new("event-consumer", None);
    let child = started(&stage, &["--only", "replay-status"]);
    let began = Instant::now();
    while stage.server.keys().is_empty() && began.elapsed() < Duration::from_secs(30) {}
    child.signal(Signal::INT);
    let run = child.ends().exits(130);
    thread::sleep(DELAY * 2);
    assert_eq!(stage.server.keys(), [""; 0], "{}", run.all());
}

/// The same Redis keys and results as those of express.
const COPY: &str = r#"format = 2
name = "copy"
keys = { record = "idem:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "done"
where = { "/status" = "COMPLETED" }
state = "completed"
"#;

/// Rule: a record that two schemas have is one record.
/// Revert: if each schema counts, the fault finds several records, and the record is backed up twice.
#[test]
fn a_record_of_two_schemas_is_changed_and_removed_once() {
    let stage = Stage::new("express", None);
    stage.server.describe("copy", &[("schema.toml", COPY)]);
    let only = ["--only", "fault-result-expires", "--faults", "--schema", "copy"];
    let run = stage.probe(&only).exits(0);
    let (_, message) = &verdicts(&run)["fault-result-expires"];
    assert!(message.contains("executed 2 times"), "{message}");
    let records = run.json()["records"].clone();
    assert_eq!((&records["removed"], &records["kept"]), (&json!(6), &json!([])), "{}", run.all());
    assert_eq!(stage.server.keys(), [""; 0], "{}", run.all());
    let backup = std::fs::read_to_string(records["backup"].as_str().unwrap()).unwrap();
    assert_eq!(backup.matches("redis_key_base64").count(), 8, "{backup}");
}
