//! `detect` names every published library by what the library wrote, in a database of all of them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::recorded;
use crate::support::Server;

/// What the names of samples say that somebody else wrote, or damaged: a few of them beside a few sound ones name nobody.
const DAMAGED: [&str; 9] =
    ["other-text", "not-json", "empty", "wrong-type", "unknown", "corrupt", "no-status", "no-request", "no-expiration"];

#[test]
fn each_library_is_named_first_in_a_database_of_all() {
    let server = Server::start();
    let libraries = recorded::libraries();
    let is_sound = |name: &str| !DAMAGED.iter().any(|damaged| name.contains(damaged));
    let sound = libraries.iter().flat_map(|library| &library.samples).filter(|sample| is_sound(&sample.name));
    let mut wanted = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for sample in sound.filter(|sample| !sample.redis_keys().is_empty()) {
        if sample.redis_keys().into_iter().all(|key| taken.insert(key)) {
            sample.load(&server);
            wanted.insert(sample.schema.clone());
        }
    }
    let found = server.idemctl(&["detect", "-o", "json"]).exits(0).json();
    let groups = found["groups"].as_array().unwrap();
    let named: BTreeSet<_> = groups.iter().filter_map(|group| group["schema"].as_str().map(str::to_owned)).collect();
    assert_eq!(named, wanted, "{found:#}");
    let prefixed: BTreeSet<_> = groups.iter().filter_map(of_prefix).collect();
    assert!(
        prefixed.contains("idempotent-api shop:") && prefixed.contains("idempotency-kit shop:idem:"),
        "{prefixed:?}"
    );
}

fn of_prefix(group: &Value) -> Option<String> {
    Some(format!("{} {}", group["schema"].as_str()?, group["prefix"].as_str()?))
}
