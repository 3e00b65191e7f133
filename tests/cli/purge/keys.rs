//! Keys that are named one by one.

use super::choice::{purge, seeded};

#[test]
fn keys_that_are_not_there_or_not_chosen_are_named_and_the_others_are_purged() {
    let server = seeded();
    let run = purge(&server, &["old", "nowhere", "held", "bare", "--yes"]).exits(3);
    run.says("1 of 1 records purged").says("not found: nowhere, bare");
    run.says("1 of the keys was left alone: it is in-progress and not chosen");
    let run = purge(&server, &["nowhere", "--dry-run", "-o", "json"]).exits(3).json();
    assert_eq!((&run["keys_not_found"], &run["not_found"][0]), (&1.into(), &"nowhere".into()));
}

#[test]
fn keys_that_cannot_be_meant_are_refused() {
    let server = seeded();
    for words in [&["old", "-"][..], &["old", "--key-file", "-"], &["--max-percent", "5", "old"], &[""]] {
        purge(&server, &[words, &["--yes"]].concat()).exits(2);
    }
    assert!(server.get("idempotency:old").is_some());
}
