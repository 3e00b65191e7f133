//! A verdict is the same each time.

use serde_json::Value;

use super::variant::{home, run};

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
