//! What happens to a record, or to the probe, in the middle of a change: a proxy in front of Redis
//! acts between what idemctl reads, what it sends, and the reply.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::Signal;
use serde_json::json;

use crate::stage::{Stage, verdicts};
use crate::support::proxy::{self, Hook};
use crate::support::{Run, Running as _, Runs as _, signal, until};

/// The text that idemctl writes in place of a result.
const FOREIGN: &str = "idemctl probe: not a record";

/// A result of the schema express, which another client writes.
const RESULT: &str = r#"{"status":"COMPLETED","statusCode":201,"body":"x"}"#;

/// The Redis key of the probe that a request names.
fn key_in(sent: &[u8]) -> String {
    let text = String::from_utf8_lossy(sent);
    let start = text.find("idem:idemctl-probe-").unwrap();
    text[start..].split('\r').next().unwrap().to_owned()
}

/// True if a request is the script that removes.
fn removes(sent: &[u8]) -> bool {
    sent.ends_with(b"$6\r\nUNLINK\r\n")
}

/// True if a request ends a transaction.
fn executes(sent: &[u8]) -> bool {
    proxy::says(sent, "$4\r\nEXEC\r\n")
}

/// A client beside the service and idemctl.
fn send(url: &str, words: &[&str]) {
    let mut other = redis::Client::open(url).unwrap().get_connection().unwrap();
    redis::cmd(words[0]).arg(&words[1..]).exec(&mut other).unwrap();
}

/// What the audit log says of the Redis key whose result was replaced.
#[track_caller]
fn log_of_replaced(stage: &Stage, run: &Run) -> Vec<String> {
    let lines = stage.server.audited();
    let replaced = lines.iter().find(|line| line["what"] == "replaced");
    let redis_key = &replaced.unwrap_or_else(|| panic!("{}", run.all()))["redis_key"];
    let own = lines.iter().filter(|line| &line["redis_key"] == redis_key);
    own.map(|line| line["what"].as_str().unwrap().to_owned()).collect()
}

/// Runs a probe that replaces a result, and sends it SIGINT when Redis has executed the first request
/// that `is_point` after the text, before the reply comes back.
fn interrupted_at(stage: &Stage, is_point: fn(&[u8]) -> bool) -> Run {
    let pid = Arc::new(AtomicU32::new(0));
    let (has_text, is_raised) = (AtomicBool::new(false), AtomicBool::new(false));
    let to_signal = Arc::clone(&pid);
    let socket = proxy::hooked_socket(&stage.server, move |sent| {
        let is_here = has_text.load(Ordering::SeqCst) && is_point(sent);
        has_text.fetch_or(proxy::says(sent, FOREIGN), Ordering::SeqCst);
        if !is_here || is_raised.swap(true, Ordering::SeqCst) {
            return Hook::Pass;
        }
        let pid = to_signal.load(Ordering::SeqCst);
        Hook::Then(Box::new(move || {
            signal(pid, Signal::INT);
            thread::sleep(Duration::from_millis(200));
        }))
    });
    let mut command = stage.through(&socket, &["--faults", "--only", "fault-foreign-value"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    pid.store(child.id(), Ordering::SeqCst);
    child.ends().exits(130)
}

/// Rule: a change is made to its end, and its text is removed, also if Ctrl-C comes while Redis
/// executes it.
/// Revert: if Ctrl-C drops the change, the log does not have it. If the text counts as a value of
/// another program, it stays.
#[test]
fn an_interrupted_change_is_logged_and_its_text_is_removed() {
    for is_point in [executes, removes] {
        let stage = Stage::new("express", None);
        let run = interrupted_at(&stage, is_point);
        assert_eq!(log_of_replaced(&stage, &run), ["replaced", "removed"], "{}", run.all());
        assert_eq!(stage.server.keys(), [""; 0], "{}", run.all());
        assert!(!run.all().contains("may still be in Redis"), "{}", run.all());
    }
}

/// Rule: the result that the text replaces is in the backup.
/// Revert: without it, only the text is there.
#[test]
fn a_replaced_result_is_backed_up() {
    let stage = Stage::new("express", None);
    let run = stage.probe(&["--faults", "--only", "fault-foreign-value"]).exits(0);
    assert_eq!(log_of_replaced(&stage, &run), ["replaced", "removed"], "{}", run.all());
    let backup = run.json()["records"]["backup"].as_str().unwrap().to_owned();
    let text = std::fs::read_to_string(backup).unwrap();
    let lines = stage.server.audited();
    let replaced = lines.iter().find(|line| line["what"] == "replaced").unwrap();
    let saved = STANDARD.encode(replaced["redis_key"].as_str().unwrap());
    assert_eq!(text.matches(&saved).count(), 2, "{text}");
}

/// A probe of a service whose stored results another client writes again, right before idemctl
/// replaces them. `times` says how often.
fn with_other_results(stage: &Stage, times: usize) -> Command {
    let (url, acted) = (stage.server.url(), AtomicUsize::new(0));
    let socket = proxy::hooked_socket(&stage.server, move |sent| {
        // idemctl backs up what it has read, and then replaces it.
        if proxy::says(sent, "DUMP\r\n") && acted.fetch_add(1, Ordering::SeqCst) < times {
            send(&url, &["SET", &key_in(sent), RESULT, "PX", "600000"]);
        }
        Hook::Pass
    });
    stage.through(&socket, &["--faults", "--only", "fault-foreign-value"])
}

/// Rule: idemctl replaces only the result that it has read.
/// Revert: without the comparison, the value of the other client is overwritten. If the backup keeps
/// the result that was not replaced, it is restored in place of the value of the other client.
#[test]
fn a_result_that_changed_meanwhile_is_not_replaced() {
    let stage = Stage::new("express", None);
    let run = with_other_results(&stage, usize::MAX).run().exits(3);
    let (verdict, message) = &verdicts(&run)["fault-foreign-value"];
    assert_eq!(verdict, "inconclusive", "{}", run.all());
    assert!(message.contains("it changed after idemctl had read it"), "{message}");
    let lines = stage.server.audited();
    assert!(lines.iter().all(|line| line["what"] == "removed"), "{lines:#?}");
    assert_eq!(stage.server.keys(), [""; 0], "{}", run.all());
    let backup = run.json()["records"]["backup"].as_str().unwrap().to_owned();
    stage.server.idemctl(&["restore", &backup, "--yes"]).exits(0);
    let restored = stage.server.keys();
    let values = restored.iter().map(|key| stage.server.get(key).unwrap());
    let of_other = values.filter(|value| value == RESULT.as_bytes()).count();
    assert_eq!((of_other, restored.len()), (3, lines.len()), "{restored:?}");
}

/// Rule: a fault that was missed is tried again.
/// Revert: with one try, the check is inconclusive.
#[test]
fn a_fault_that_was_missed_is_made_again() {
    let stage = Stage::new("express", None);
    let run = with_other_results(&stage, 1).run().exits(0);
    let (verdict, message) = &verdicts(&run)["fault-foreign-value"];
    assert_eq!(verdict, "reported", "{}", run.all());
    assert!(message.contains("kept the value"), "{message}");
}

/// Rule: only the text of idemctl is removed.
/// Revert: if any value in place of the text counts as it, the value of another client is lost.
#[test]
fn a_value_that_replaces_the_text_stays_and_is_named() {
    let stage = Stage::new("express", None);
    let (url, has_text) = (stage.server.url(), AtomicBool::new(false));
    let socket = proxy::hooked_socket(&stage.server, move |sent| {
        has_text.fetch_or(proxy::says(sent, FOREIGN), Ordering::SeqCst);
        if !executes(sent) || !has_text.load(Ordering::SeqCst) {
            return Hook::Pass;
        }
        let url = url.clone();
        Hook::Then(Box::new(move || {
            let mut other = redis::Client::open(&*url).unwrap().get_connection().unwrap();
            let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut other).unwrap();
            for key in keys {
                let value: String = redis::cmd("GET").arg(&key).query(&mut other).unwrap();
                if value == FOREIGN {
                    send(&url, &["SET", &key, "of another program", "PX", "600000"]);
                }
            }
        }))
    });
    let run = stage.through(&socket, &["--faults", "--only", "fault-foreign-value"]).run().exits(0);
    let (_, message) = &verdicts(&run)["fault-foreign-value"];
    assert!(message.contains("overwrote or removed the value"), "{message}");
    let keys = stage.server.keys();
    assert_eq!(keys.len(), 1, "{}", run.all());
    assert_eq!(stage.server.get(&keys[0]).as_deref(), Some(&b"of another program"[..]));
    let why = "its value is not one of the schema";
    let kept = json!([{ "key": keys[0].strip_prefix("idem:").unwrap(), "why": why }]);
    assert_eq!(run.json()["records"]["kept"], kept, "{}", run.all());
}

/// Rule: a record that is gone before its removal does not stay, and one that changes right before it
/// stays. Only the second one is named.
/// Revert: if a record that is gone counts as kept, the run says that it may still be in Redis.
#[test]
fn records_that_change_right_before_their_removal_are_named_if_they_stay() {
    let stage = Stage::new("express", None);
    let (url, keys) = (stage.server.url(), Arc::new(Mutex::new(Vec::<String>::new())));
    let (own, is_changed) = (Arc::clone(&keys), AtomicBool::new(false));
    let socket = proxy::hooked_socket(&stage.server, move |sent| {
        let keys = own.lock().unwrap();
        if let [gone, changed, ..] = &keys[..]
            && removes(sent)
            && !is_changed.swap(true, Ordering::SeqCst)
        {
            send(&url, &["DEL", gone]);
            send(&url, &["SET", changed, RESULT, "PX", "600000"]);
        }
        Hook::Pass
    });
    let mut command = stage.through(&socket, &["--only", "replay-status"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the probe has records", || stage.server.keys().len() >= 4);
    *keys.lock().unwrap() = stage.server.keys();
    let run = child.ends().exits(0);
    let changed = keys.lock().unwrap()[1].clone();
    assert_eq!(stage.server.keys(), std::slice::from_ref(&changed), "{}", run.all());
    let why = "it changed after idemctl had read it";
    let kept = json!([{ "key": changed.strip_prefix("idem:").unwrap(), "why": why }]);
    assert_eq!(run.json()["records"]["kept"], kept, "{}", run.all());
    assert_eq!(run.json()["records"]["not_found"], json!([]), "{}", run.all());
}

/// Rule: if the records cannot be read at the end, each key that was sent is named, and no other text.
/// Revert: without this, the run says nothing of them. If the beginnings of keys count, they are named
/// as well.
#[test]
fn keys_that_cannot_be_read_at_the_end_are_named() {
    let stage = Stage::new("express", None);
    let is_cut = Arc::new(AtomicBool::new(false));
    let cuts = Arc::clone(&is_cut);
    let socket = proxy::hooked_socket(&stage.server, move |_| match cuts.load(Ordering::SeqCst) {
        true => Hook::Cut,
        false => Hook::Pass,
    });
    let mut command = stage.through(&socket, &["--only", "replay-status"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the probe has records", || stage.server.keys().len() >= 4);
    is_cut.store(true, Ordering::SeqCst);
    let run = child.ends();
    let keys = stage.server.keys();
    let kept = run.json()["records"]["kept"].clone();
    let named: Vec<_> = kept.as_array().unwrap().iter().map(|kept| kept["key"].clone()).collect();
    for key in &keys {
        assert!(named.contains(&json!(key.strip_prefix("idem:").unwrap())), "{key}: {}", run.all());
    }
    assert_eq!(named.len(), keys.len(), "{named:?}");
    run.says("may still be in Redis");
}

/// Rule: a fault changes only a record that the schema recognises as a whole.
/// Revert: without this, the result beside the value of another program expires.
#[test]
fn a_result_beside_an_unrecognised_value_is_not_changed() {
    let stage = Stage::new("event-consumer", None);
    let url = stage.server.url();
    let socket = proxy::hooked_socket(&stage.server, move |sent| {
        let mut other = redis::Client::open(&*url).unwrap().get_connection().unwrap();
        let keys: Vec<String> = redis::cmd("KEYS").arg("idem:done:*").query(&mut other).unwrap();
        // The first four are of the first requests.
        if keys.len() > 4 && proxy::says(sent, "idem:done:") {
            for key in keys {
                let lock = key.replace("idem:done:", "idem:lock:");
                if !redis::cmd("EXISTS").arg(&lock).query::<bool>(&mut other).unwrap() {
                    redis::cmd("LPUSH").arg(&lock).arg("x").exec(&mut other).unwrap();
                }
            }
        }
        Hook::Pass
    });
    let words = ["--faults", "--only", "fault-result-expires"];
    let run = stage.through(&socket, &words).run().exits(3);
    let (verdict, message) = &verdicts(&run)["fault-result-expires"];
    assert_eq!(verdict, "inconclusive", "{}", run.all());
    assert!(message.contains("event-consumer does not recognise its value"), "{message}");
    assert!(stage.server.audited().is_empty(), "{}", run.all());
    let kept = run.json()["records"]["kept"].clone();
    assert!(!kept.as_array().unwrap().is_empty(), "{}", run.all());
    assert_eq!(stage.server.keys().len(), 2 * kept.as_array().unwrap().len(), "{}", run.all());
}
