//! A verdict is the same each time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::variant::{home, path, run};
use crate::support::proxy::{Hook, hooked_socket, says};
use crate::support::{Runs, Server, idemctl};

/// What may not change from one time to the next: all but the timeline.
fn played() -> Vec<Value> {
    let home = home();
    let words = ["simulate", "--all", "--schema", "reference,express", "--sandbox", "-o", "json"];
    let mut document = run(home.path(), &words).exits(1).json();
    assert!(
        std::fs::read_dir(home.path()).unwrap().next().is_none(),
        "every private server is gone"
    );
    let cells = document["cells"].as_array_mut().unwrap();
    for cell in &mut *cells {
        cell.as_object_mut().unwrap().remove("timeline");
    }
    cells.clone()
}

/// True where the machine was so slow that a story could not be played as it is told: that is no verdict, and said so.
fn is_too_slow(cell: &Value) -> bool {
    cell["verdict"] == "n/a" && cell["why"].as_str().is_some_and(|why| why.contains("too slow"))
}

#[test]
fn the_same_is_played_twice() {
    let first = played();
    assert_eq!(first.len(), 2 * 22);
    for (cell, again) in first.iter().zip(played()) {
        if is_too_slow(cell) || is_too_slow(&again) {
            continue;
        }
        let place = format!("{} with {}", cell["scenario"], cell["schema"]);
        assert_eq!(cell["why"], again["why"], "{place}");
        assert_eq!(*cell, again, "{place}");
    }
}

/// What comes of a scenario with `reference` where the request that says `late` is on its way for that long: the first so many
/// times after a lock was asked for with this TTL.
fn played_slowly(
    scenario: &str,
    lock_ttl: &'static str,
    late: &'static str,
    times: usize,
    millis: u64,
) -> Value {
    let server = Server::start();
    let (asked, was_slow) = (AtomicBool::new(false), AtomicUsize::new(0));
    let slow = hooked_socket(&server, move |sent| {
        if says(sent, &format!("\r\n{lock_ttl}\r\n")) {
            asked.store(true, SeqCst);
        } else if says(sent, late)
            && asked.swap(false, SeqCst)
            && was_slow.fetch_add(1, SeqCst) < times
        {
            sleep(Duration::from_millis(millis));
        }
        Hook::Pass
    });
    let mut command = idemctl(server.folder());
    command.env("PATH", path()).env("TMPDIR", server.folder());
    command.args(["-u", &format!("unix://{}", slow.display()), "simulate", scenario]);
    command.args(["--schema", "reference", "-o", "json"]);
    command.run().json()["cells"][0].clone()
}

/// Rule: what comes after the moment at which a lock may have ended is no part of a story.
#[test]
fn a_machine_that_is_slower_than_a_lock_makes_no_verdict_worse() {
    // A result, `{"` in base64.
    let cell = played_slowly("crash-before-complete", "1", "eyJ", 1, 1_200);
    let is_blocked = cell["verdict"] == "blocked" && cell["effects"] == 1;
    assert!(is_blocked || is_too_slow(&cell), "{cell:#}");
    // A retry, whose own lock is not to run out. By way of a proxy the first round is too slow in any case.
    let cell = played_slowly("clock-of-ttl", "1.5", "\r\n60\r\n", 2, 1_700);
    let is_refused = cell["verdict"] == "refused" && cell["effects"] == 1;
    assert!(is_refused || is_too_slow(&cell), "{cell:#}");
}
