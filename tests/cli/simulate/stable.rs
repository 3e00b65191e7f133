//! A verdict is the same each time.

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::variant::{home, path, run};
use crate::support::proxy::acts_at;
use crate::support::{Runs, Server, idemctl};

/// What may not change from one time to the next: all but the timeline.
fn played() -> Vec<Value> {
    let home = home();
    let words = ["simulate", "--all", "--schema", "reference,express", "--sandbox", "-o", "json"];
    let mut document = run(home.path(), &words).exits(1).json();
    assert!(std::fs::read_dir(home.path()).unwrap().next().is_none(), "every private server is gone");
    let cells = document["cells"].as_array_mut().unwrap();
    for cell in &mut *cells {
        cell.as_object_mut().unwrap().remove("timeline");
    }
    cells.clone()
}

#[test]
fn the_same_is_played_twice() {
    let first = played();
    assert_eq!(first.len(), 2 * 19);
    assert_eq!(first, played());
}

/// What comes of a scenario with `reference` where the first request that says `word` is on its way for that long.
fn played_slowly(scenario: &str, word: &'static str, millis: u64) -> Value {
    let server = Server::start();
    let slow = acts_at(&server, word, move || sleep(Duration::from_millis(millis)));
    let mut command = idemctl(server.folder());
    command.env("PATH", path()).env("TMPDIR", server.folder());
    command.args([
        "-u",
        &format!("unix://{}", slow.display()),
        "simulate",
        scenario,
        "--schema",
        "reference",
        "-o",
        "json",
    ]);
    command.run().json()["cells"][0].clone()
}

/// Rule: what comes after the moment at which a lock may have ended is no part of a story.
#[test]
fn a_machine_that_is_slower_than_a_lock_makes_no_verdict_worse() {
    // The result of whoever makes the payment first, `{"` in base64.
    let cell = played_slowly("crash-before-complete", "eyJ", 1_200);
    assert_eq!((&cell["verdict"], &cell["effects"]), (&"blocked".into(), &1.into()), "{cell:#}");
    let cell = played_slowly("clock-of-ttl", "eyJ", 1_700);
    assert_eq!((&cell["verdict"], &cell["effects"]), (&"refused".into(), &1.into()), "{cell:#}");
}
