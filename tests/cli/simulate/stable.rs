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

#[test]
fn a_machine_that_is_slower_than_a_lock_makes_no_verdict_worse() {
    let server = Server::start();
    // The result of whoever makes the payment first, `{"` in base64, is on its way for longer than the lock lives.
    let slow = acts_at(&server, "eyJ", || sleep(Duration::from_millis(1_200)));
    let played = idemctl(server.folder())
        .env("PATH", path())
        .env("TMPDIR", server.folder())
        .args(["-u", &format!("unix://{}", slow.display()), "simulate", "crash-before-complete"])
        .args(["--schema", "reference", "-o", "json"])
        .run()
        .exits(0)
        .json();
    let cell = &played["cells"][0];
    assert_eq!((&cell["verdict"], &cell["effects"]), (&"blocked".into(), &1.into()), "{cell:#}");
}
