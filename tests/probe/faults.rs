//! `--faults`: each fault on a service that executes again, and on one that does not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::stage::{PAYMENT, Stage, verdicts};
use crate::support::{Home, Run};

/// The checks that make faults.
pub const FAULTS: &str = "fault-lock-expires,fault-foreign-value,fault-result-expires";

/// Long enough for a change on a busy machine while the handler runs.
const HANDLER: Duration = Duration::from_millis(600);

fn probe(stage: &Stage) -> Run {
    stage.probe(&["--faults", "--only", FAULTS])
}

/// Whether the title of a check holds; `None` if this is unknown.
#[track_caller]
fn holds(run: &Run, id: &str) -> Option<bool> {
    let document = run.json();
    let checks = document["checks"].as_array().unwrap_or_else(|| panic!("{}", run.all()));
    let check = checks.iter().find(|check| check["id"] == id).unwrap();
    check["holds"].as_bool()
}

#[track_caller]
fn assert_holds(run: &Run, wanted: bool, ids: &[&str]) {
    for id in ids {
        assert_eq!(holds(run, id), Some(wanted), "{id}: {:#?}\n{}", verdicts(run), run.stderr);
    }
}

#[test]
fn a_service_that_relies_on_redis_executes_again() {
    for schema in ["express", "go-middleware", "reference"] {
        let stage = Stage::with(schema, |config| config.delay = HANDLER);
        let run = probe(&stage).exits(0);
        let ids = ["fault-lock-expires", "fault-result-expires"];
        assert_holds(&run, false, &ids);
        let found = verdicts(&run);
        for id in ids {
            let (verdict, message) = &found[id];
            assert_eq!(verdict, "reported");
            assert!(message.contains("executed 2 times"), "{id}: {message}");
        }
        assert!(found["fault-lock-expires"].1.contains("the retry got 201"), "{found:?}");
    }
}

#[test]
fn a_service_with_a_unique_constraint_does_not_execute_again() {
    let stage = Stage::with("express", |config| {
        config.delay = HANDLER;
        config.is_unique = true;
    });
    let run = probe(&stage).exits(0);
    assert_holds(&run, true, &["fault-lock-expires", "fault-result-expires"]);
    assert_holds(&run, true, &["fault-foreign-value"]);
}

/// The service with the schema event-consumer takes any value for a result.
#[test]
fn a_service_that_replays_a_foreign_value_is_found() {
    let run = probe(&Stage::with("event-consumer", |_| {}));
    assert_holds(&run, false, &["fault-foreign-value"]);
    let (_, message) = &verdicts(&run)["fault-foreign-value"];
    assert!(message.contains("another result") && message.contains("kept the value"), "{message}");
}

#[test]
fn a_handler_that_ends_too_soon_is_inconclusive() {
    let stage = Stage::with("express", |config| config.delay = Duration::ZERO);
    let run = probe(&stage);
    let found = verdicts(&run);
    assert_eq!(found["fault-lock-expires"].0, "inconclusive", "{found:#?}");
}

#[test]
fn each_change_is_logged_and_the_foreign_value_is_gone() {
    let stage = Stage::with("express", |config| config.delay = HANDLER);
    let run = probe(&stage);
    let mut words: Vec<_> = stage
        .server
        .audited()
        .iter()
        .filter_map(|line| line["what"].as_str().map(str::to_owned))
        .collect();
    words.sort();
    words.dedup();
    assert_eq!(words, ["removed", "replaced"], "{}", run.all());
    assert_eq!(stage.server.keys(), [""; 0], "{}", run.all());
}

/// Rule: what idemctl wrote must not expire by itself, or the service would seem to have removed it.
/// Revert: if the value gets the TTL that the result had, it is gone before it is read.
#[test]
fn a_result_with_a_short_ttl_does_not_let_the_foreign_value_expire() {
    let stage = Stage::with("express", |config| config.schema.result_ttl = Duration::from_secs(1));
    let is_over = AtomicBool::new(false);
    let (run, longest) = thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut longest = 0;
            while !is_over.load(Ordering::SeqCst) {
                for key in stage.server.keys() {
                    let value = stage.server.get(&key);
                    if value.as_deref() == Some(b"idemctl probe: not a record") {
                        let left: i64 = stage.server.send(&[b"PTTL", key.as_bytes()]);
                        longest = longest.max(left);
                    }
                }
            }
            longest
        });
        let run = stage.probe(&["--faults", "--only", "fault-foreign-value"]);
        is_over.store(true, Ordering::SeqCst);
        (run, watching.join().unwrap())
    });
    assert!(longest > 60_000, "{longest} ms: {}", run.all());
    assert!(stage.server.keys().is_empty(), "{}", run.all());
}

#[test]
fn faults_need_a_schema_a_server_and_the_permission_to_change() {
    let url = "http://127.0.0.1:1/";
    let run = Home::with("").run(&["probe", url, "--faults"]).exits(2);
    run.says("--faults changes records, but no server is named");
    let stage = Stage::new("express", None);
    let config = format!("[contexts.ro]\nurl = \"{}\"\nread_only = true\n", stage.server.url());
    stage.server.configure(&config);
    let url = stage.service.url("/payments");
    let payment = ["-d", PAYMENT, "--only", "replay-status"];
    let words = ["probe", &url, "--schema", "express", "--context", "ro"];
    let words = [&words[..], &payment].concat();
    let faults = [&words[..], &["--faults"]].concat();
    stage.server.unnamed(&faults).exits(2).says("read-only");
    assert_eq!(stage.service.effects(), 0);
    // Without --faults, the probe runs, and says that the records stay.
    let run = stage.server.unnamed(&words).exits(0);
    run.says("cannot be removed").says("are kept in Redis");
    assert_eq!(stage.server.keys().len(), 5);
}
