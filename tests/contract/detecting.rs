//! `detect` names every published library by what the library wrote, in a database of all of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::recorded::{self, Recorded, Sample};
use crate::support::{Server, alone};

/// What the names of samples say that somebody else wrote, or damaged: a few of them beside a few sound ones name nobody.
const DAMAGED: [&str; 11] = [
    "other-text",
    "not-json",
    "empty",
    "wrong-type",
    "unknown",
    "corrupt",
    "no-status",
    "no-request",
    "no-expiration",
    "damaged",
    "no-data",
];

/// The schemas whose sound samples these are, put into the server under other Redis keys.
fn load(
    server: &Server,
    libraries: &[Recorded],
    named: impl Fn(&Sample, &str) -> String,
) -> BTreeSet<String> {
    let is_sound = |name: &str| !DAMAGED.iter().any(|damaged| name.contains(damaged));
    let sound = libraries
        .iter()
        .flat_map(|library| &library.samples)
        .filter(|sample| is_sound(&sample.name));
    let (mut loaded, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for sample in sound.filter(|sample| !sample.redis_keys().is_empty()) {
        if sample.redis_keys().into_iter().all(|key| taken.insert(key)) {
            sample.load_as(server, |key| named(sample, key));
            loaded.insert(sample.schema.clone());
        }
    }
    loaded
}

fn groups(server: &Server) -> Vec<Value> {
    server.idemctl(&["detect", "-o", "json"]).exits(0).json()["groups"].as_array().unwrap().clone()
}

fn names(groups: &[Value]) -> BTreeSet<String> {
    groups.iter().filter_map(|group| group["schema"].as_str().map(str::to_owned)).collect()
}

#[test]
fn each_library_is_named_first_in_a_database_of_all() {
    let server = Server::start();
    let wanted = load(&server, &recorded::libraries(), |_, key| key.to_owned());
    let groups = groups(&server);
    assert_eq!(names(&groups), wanted, "{groups:#?}");
    let prefixed: BTreeSet<_> = groups.iter().filter_map(of_prefix).collect();
    assert!(
        prefixed.contains("idempotent-api shop:")
            && prefixed.contains("idempotency-kit shop:idem:"),
        "{prefixed:?}"
    );
}

/// The prefix that a schema has by itself, where its keys have one.
fn own_prefix(schema: &str) -> String {
    let shown = alone(&["schema", "show", schema, "-o", "json"]).exits(0).json();
    shown["schemas"][0]["prefix"]["text"].as_str().unwrap_or_default().to_owned()
}

/// A Redis key under another prefix: in place of the schema's own, or in front.
fn under(prefix: &str, own: &str, key: &str) -> String {
    match key.strip_prefix(own).filter(|_| !own.is_empty()) {
        Some(rest) if own.ends_with(':') => format!("{prefix}:{rest}"),
        Some(rest) => format!("{prefix}{rest}"),
        None => format!("{prefix}:{key}"),
    }
}

/// celery-once has no setting for a prefix, and any text is of its form.
#[test]
fn each_library_is_named_first_under_other_prefixes() {
    let server = Server::start();
    let libraries = recorded::libraries();
    let schemas: BTreeSet<_> = libraries
        .iter()
        .flat_map(|library| &library.samples)
        .map(|sample| &sample.schema)
        .collect();
    let own: BTreeMap<_, _> =
        schemas.into_iter().map(|schema| (schema.clone(), own_prefix(schema))).collect();
    let other = |schema: &str| schema.chars().rev().collect::<String>();
    let mut wanted = load(&server, &libraries, |sample, key| {
        under(&other(&sample.schema), &own[&sample.schema], key)
    });
    let groups = groups(&server);
    wanted.remove("celery-once");
    assert_eq!(names(&groups), wanted, "{groups:#?}");
}

fn of_prefix(group: &Value) -> Option<String> {
    Some(format!("{} {}", group["schema"].as_str()?, group["prefix"].as_str()?))
}
