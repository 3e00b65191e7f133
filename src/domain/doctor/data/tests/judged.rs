//! What the checks say of counts, at each of their thresholds.

use super::*;
use crate::domain::doctor::data::client_key::{KeyCounts, WeakKey};
use crate::domain::doctor::data::data_sample::{FoundData, NumberCounts};
use crate::domain::doctor::data::separators::SeparatorCounts;
use crate::domain::doctor::data::{DataPlace, SchemaData, SensitiveKind};

/// The judgements about 100 records of one schema with these counts.
fn judged(edit: impl FnOnce(&mut SchemaData)) -> DataSample {
    let keys = KeyCounts { keys: 100, looked_for: 100, ..KeyCounts::default() };
    let mut data = SchemaData {
        schema: "one".to_owned(),
        template: "one:{key}".to_owned(),
        records: 100,
        found: Vec::new(),
        numbers: Vec::new(),
        keys,
    };
    edit(&mut data);
    DataSample {
        redis_keys: 100,
        there: Some(100),
        is_all: true,
        whole: 100,
        templates: 2,
        schemas: vec![data],
        ..DataSample::default()
    }
}

/// The severity of a check.
fn severity(code: &str, edit: impl FnOnce(&mut SchemaData)) -> String {
    of(code, judged(edit)).0
}

fn found(kind: SensitiveKind) -> FoundData {
    FoundData { kind, place: DataPlace::Key, records: 3 }
}

#[test]
fn a_part_before_a_separator_is_judged_from_20_keys_on() {
    let tenants = |separator: char, with: u64, without: u64, different: u64| {
        let counts = SeparatorCounts { separator, with, without, different };
        severity("tenant-in-keys", |data| {
            data.keys.keys = with + without;
            data.keys.separators = vec![counts];
        })
    };
    assert_eq!(tenants(':', 18, 1, 2), "unknown");
    assert_eq!(tenants(':', 19, 1, 2), "note");
    assert_eq!(tenants(':', 16, 4, 2), "note");
    assert_eq!(tenants(':', 15, 5, 2), "ok");
    assert_eq!(tenants(':', 20, 0, 2), "ok");
    assert_eq!(tenants(':', 19, 1, 19), "note", "no identifier contains it");
    assert_eq!(tenants('-', 19, 1, 5), "ok", "identifiers contain it");
    assert_eq!(tenants('-', 20, 1, 5), "note", "each part comes four times");
}

#[test]
fn weak_keys_are_judged_by_their_share() {
    let weak = |kind: WeakKey, count: u64| {
        severity("guessable-keys", |data| data.keys.weak = [(kind, count)].into())
    };
    for kind in [WeakKey::Repeated, WeakKey::Numbered] {
        assert_eq!(weak(kind, 19), "ok");
    }
    assert_eq!(weak(WeakKey::Repeated, 20), "warning");
    assert_eq!(weak(WeakKey::Numbered, 100), "note");
    assert_eq!(weak(WeakKey::Counter, 19), "note");
    assert_eq!(weak(WeakKey::Counter, 20), "warning");
    assert_eq!(weak(WeakKey::Placeholder, 1), "warning");
    // Whatever the client sent, hashes look random.
    let hashed = judged(|data| {
        data.keys.are_hashed = true;
        data.keys.weak = [(WeakKey::Counter, 100)].into();
    });
    assert!(said(hashed).iter().all(|(code, ..)| *code != "guessable-keys"));
}

#[test]
fn keys_in_two_forms_and_under_two_schemas_are_told() {
    assert_eq!(severity("quoted-keys", |data| data.keys.in_both_forms = 1), "warning");
    assert_eq!(severity("quoted-keys", |data| data.keys.quoted = 1), "note");
    assert_eq!(severity("quoted-keys", |data| data.keys.quoted = 100), "ok");
    assert_eq!(severity("shared-keys", |data| data.keys.looked_for = 0), "unknown");
    let shared = judged(|data| data.keys.elsewhere = [("two".to_owned(), 1)].into());
    let lines = said(shared);
    assert_eq!(lines.iter().filter(|(code, ..)| *code == "shared-keys").count(), 1, "{lines:?}");
    let mut alone = judged(|_| ());
    alone.templates = 1;
    assert!(said(alone).iter().all(|(code, ..)| *code != "shared-keys"));
}

#[test]
fn each_kind_of_data_is_judged_by_its_own_check() {
    let key = |kind| severity("stored-secrets", |data| data.found = vec![found(kind)]);
    assert_eq!(key(SensitiveKind::ProviderKey("Some key")), "error");
    assert_eq!(key(SensitiveKind::PrivateKey), "error");
    assert_eq!(key(SensitiveKind::Jwt), "warning");
    assert_eq!(key(SensitiveKind::Email), "ok");
    let ibans = NumberCounts {
        kind: SensitiveKind::Iban,
        place: DataPlace::Key,
        is_grouped: false,
        numbers: 5,
        fitting: 5,
        valid: 5,
        test_numbers: 0,
        records: 5,
    };
    assert_eq!(severity("card-numbers", |data| data.numbers = vec![ibans.clone()]), "ok");
    assert_eq!(severity("personal-data", |data| data.numbers = vec![ibans]), "warning");
}
