//! Where records may be, whose they are, and who wrote them.

use proptest::prelude::*;

use super::*;
use crate::domain::record::TimeLeft;
use crate::domain::samples::{self, any_key, catalog, text};
use crate::domain::schema::State;

/// What idemctl says of one value at one place, by schema and state.
fn told(catalog: &Catalog, schema: &str, value: &[u8]) -> Vec<(String, State, Vec<&'static str>)> {
    let schema = catalog.all().iter().find(|known| known.name == schema).unwrap();
    let redis_keys = schema.redis_keys(b"k");
    let place =
        for_key(catalog, &redis_keys[0]).into_iter().find(|place| place.redis_keys == redis_keys);
    let seen = samples::seen(schema, &[(text(value), TimeLeft::Millis(1_000))]);
    let place = place.expect("a place to look at");
    let told = |record: Record| {
        (
            record.schema.name.clone(),
            record.state,
            record.findings.iter().map(|finding| finding.code.as_str()).collect(),
        )
    };
    let found = records(catalog, &place, seen.clone(), &Thresholds::default());
    let first = first_record(catalog, place, seen, &Thresholds::default());
    assert_eq!(format!("{first:?}"), format!("{:?}", found.first()));
    found.into_iter().map(told).collect()
}

fn is(name: &str, state: State, findings: &[&'static str]) -> (String, State, Vec<&'static str>) {
    (name.to_owned(), state, findings.to_vec())
}

#[test]
fn an_idempotency_key_is_looked_for_under_every_schema() {
    let places = for_key(&catalog(&[], None), b"k");
    let keys: Vec<_> = places.iter().map(|place| place.redis_keys.concat()).collect();
    assert_eq!(
        keys,
        [
            &b"idem:lock:kidem:done:k"[..],
            b"idem:started:kidem:result:k",
            b"idem:k",
            b"k",
            b"idempotency:k",
            b"idemkey:k"
        ]
    );
    assert_eq!(places[4].schemas.len(), 2, "two releases share their Redis keys");
}

#[test]
fn a_redis_key_names_its_own_record_first() {
    let places = for_key(&catalog(&[], None), b"idem:done:k");
    assert_eq!(
        (&places[0].key[..], places[0].schemas[0].name.as_str()),
        (&b"k"[..], "event-consumer")
    );
    assert!(
        places
            .iter()
            .all(|place| place.schemas[0].name != "express" || place.key == b"idem:done:k")
    );
}

#[test]
fn a_named_schema_may_look_at_what_another_owns() {
    let places = for_key(&catalog(&["express"], None), b"lock:k");
    assert_eq!(
        places.iter().map(|place| place.redis_keys.concat()).collect::<Vec<_>>(),
        [b"idem:lock:k"]
    );
}

#[test]
fn what_nobody_reads_is_the_newest_releases() {
    let catalog = catalog(&[], None);
    assert_eq!(
        told(&catalog, "go-middleware", b"?"),
        [is("go-middleware", State::Unreadable, &["unreadable"])]
    );
}

#[test]
fn each_releases_value_is_that_releases() {
    let all = catalog(&[], None);
    let older = is("go-middleware-v1", State::InProgress, &["foreign-schema"]);
    assert_eq!(told(&all, "go-middleware", b"in-progress"), [older]);
    let pending = br#"{"status":"PENDING"}"#;
    assert_eq!(told(&all, "go-middleware", pending), [is("go-middleware", State::InProgress, &[])]);
    let newer = catalog(&["go-middleware"], None);
    let foreign = is("go-middleware", State::Unreadable, &["foreign-schema"]);
    assert_eq!(told(&newer, "go-middleware", b"in-progress"), [foreign]);
    let older = catalog(&["go-middleware-v1"], None);
    let known = is("go-middleware-v1", State::InProgress, &[]);
    assert_eq!(told(&older, "go-middleware-v1", b"in-progress"), [known]);
}

fn claims(catalog: &Catalog, schema: &str, value: &[u8]) -> Vec<(String, Author)> {
    let found = claimed(catalog, schema, value);
    found.into_iter().map(|record| (record.schema.name.clone(), record.author)).collect()
}

fn claimed(catalog: &Catalog, schema: &str, value: &[u8]) -> Vec<Record> {
    let schema = catalog.all().iter().find(|known| known.name == schema).unwrap();
    let candidate = Candidate {
        key: b"k".to_vec(),
        redis_keys: schema.redis_keys(b"k"),
        schemas: Arc::from([Arc::clone(schema)]),
        is_most_specific: true,
    };
    let seen = samples::seen(
        schema,
        &[(text(value), TimeLeft::NoExpiry), (Content::Absent, TimeLeft::Millis(0))]
            [..schema.keys.len()],
    );
    records(catalog, &candidate, seen, &Thresholds::default())
}

/// Rule: what a closed form of another loaded schema reads as a result is nobody's lock, whoever
/// the Redis key says.
#[test]
fn a_result_of_another_schema_is_no_lock() {
    let result = br#"{"status":"COMPLETED","statusCode":200,"headers":{},"body":""}"#;
    let spared =
        |schema: &str, value: &[u8]| claims(&catalog(&[], None), schema, value)[0].1.clone();
    let by_express = Author::ResultOf("express".to_owned());
    assert_eq!(spared("event-driven", result), by_express);
    assert_eq!(spared("event-consumer", result), by_express);
    assert_eq!(spared("event-driven", b"0d3f6f2e"), Author::NotForeign);
    assert_eq!(
        spared("event-driven", br#"{"status":"IN_PROGRESS"}"#),
        Author::LockOf("express".to_owned()),
        "a lock is no result"
    );
    assert_eq!(
        spared("event-driven", br#"{"status":"COMPLETED","x":1}"#),
        Author::NotForeign,
        "no form of express"
    );
    assert_eq!(spared("express", result), Author::NotForeign);
    let findings = &claimed(&catalog(&[], None), "event-driven", result)[0].findings;
    assert!(!findings.is_empty());
    for finding in findings {
        assert_eq!(finding.advice, "", "unlocking refuses it");
    }
}

/// Rule: a value that one of several schemas at a Redis key claims is that one's, though another
/// reads it too.
#[test]
fn who_claims_a_value_comes_before_who_reads_it() {
    let mut all = samples::schemas();
    let mut traced = samples::schema("go-middleware");
    traced.name = "traced".to_owned();
    traced.allow_field("/traceId");
    all.push(traced);
    let catalog = Catalog::new(all, &[]).unwrap();
    let value = br#"{"status":"PENDING","traceId":"t"}"#;
    assert_eq!(told(&catalog, "go-middleware", value), [is("traced", State::InProgress, &[])]);
    let foreign = br#"{"status":"PENDING","other":"t"}"#;
    assert_eq!(
        told(&catalog, "go-middleware", foreign).len(),
        2,
        "both read it, neither claims it"
    );
}

/// Rule: another loaded schema's value stays what it was, with a finding that names that schema.
#[test]
fn a_neighbours_value_is_no_strangers() {
    let older = catalog(&["go-middleware-v1"], None);
    assert_eq!(
        claims(&older, "go-middleware-v1", br#"{"status":"PENDING"}"#)[0].1,
        Author::NotForeign
    );
    assert!(claims(&older, "go-middleware-v1", br#"{"status":"PENDING","x":1}"#)[0].1.is_foreign());
}

#[test]
fn nothing_there_is_no_record() {
    let catalog = catalog(&["express"], None);
    let place = for_key(&catalog, b"k").remove(0);
    let seen = samples::seen(&place.schemas[0], &[(Content::Absent, TimeLeft::Millis(0))]);
    assert_eq!(records(&catalog, &place, seen, &Thresholds::default()).len(), 0);
}

proptest! {
    #[test]
    fn without_a_prefix_only_what_can_be_read_is_claimed(value in prop::collection::vec(any::<u8>(), 0..30)) {
        let named = claims(&catalog(&["go-chi"], None), "go-chi", &value);
        prop_assert!(named.iter().all(|(_, author)| author.is_foreign()), "{:?}", named);
        prop_assert_eq!(claims(&catalog(&[], None), "go-chi", &value), []);
        let prefixed = told(&catalog(&[], Some("pay:")), "go-chi", &value);
        prop_assert_eq!(prefixed.len(), 1);
    }

    #[test]
    fn what_a_scan_finds_is_what_its_redis_key_names(
        redis_key in any_key(),
        prefix in prop::option::of(Just("pay:")),
        named in prop::option::of(prop::sample::select(vec!["express", "event-driven", "go-chi", "go-middleware-v1"])),
    ) {
        let catalog = catalog(named.as_slice(), prefix);
        if let Some((found, key_index)) = for_redis_key(&catalog, &redis_key) {
            prop_assert_eq!(&found.redis_keys[key_index], &redis_key);
            let places = for_key(&catalog, &redis_key);
            let same = places.iter().find(|place| place.redis_keys == found.redis_keys && place.key == found.key);
            let scanned = catalog.scanned().iter().any(|schema| schema.name == found.schemas[0].name);
            prop_assert!(same.is_some() || !scanned, "{}", redis_key.escape_ascii());
        }
    }

    #[test]
    fn places_are_distinct_and_each_is_owned(key in any_key()) {
        let catalog = catalog(&[], None);
        let places = for_key(&catalog, &key);
        for (index, place) in places.iter().enumerate() {
            prop_assert!(places[..index].iter().all(|other| other.redis_keys != place.redis_keys));
            for redis_key in &place.redis_keys {
                prop_assert!(catalog.schemas_of_key(redis_key).any(|(best, _)| best.name == place.schemas[0].name));
            }
        }
    }
}
