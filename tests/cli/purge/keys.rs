//! Keys that are named one by one.

use super::choice::{purge, seeded};
use crate::support::Server;

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

/// Rule: a key that is named twice is one, however far apart the two places are.
#[test]
fn a_key_that_a_long_list_names_twice_is_counted_and_missed_once() {
    let server = Server::start();
    let result = r#"{"status":"COMPLETED","code":200,"headers":{},"body":""}"#;
    server.fill((0..600).map(|number| (format!("idempotency:k-{number}"), result)), 3_600_000);
    let once = (0..600).map(|number| format!("k-{number}")).chain(["nowhere".to_owned()]).collect::<Vec<_>>();
    let list = [once.clone(), once].concat().join("\n");
    let run = server.idemctl_fed(&["purge", "-", "--yes", "-o", "json"], list.as_bytes()).exits(3).json();
    assert_eq!((&run["done"], &run["keys_not_found"]), (&600.into(), &1.into()), "{run}");
}
