//! The Redis keys that templates match and build, and how templates are displayed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> KeyTemplate {
    KeyTemplate::parse(text, "").unwrap()
}

fn key(template: &KeyTemplate, redis_key: &str) -> Option<String> {
    let key = template.idempotency_key(redis_key.as_bytes())?;
    assert_eq!(template.redis_key(key), redis_key.as_bytes());
    Some(String::from_utf8(key.to_vec()).unwrap())
}

#[test]
fn refuses_a_template_without_or_with_two_keys() {
    for text in [
        "{key}:{key}",
        "{tenant}:",
        "{tenant}{key}",
        "{a}:{a}:{key}",
        "{Tenant}:{key}",
        "{}:{key}",
        "",
    ] {
        assert!(KeyTemplate::parse(text, "").is_err(), "{text}");
    }
}

#[test]
fn a_prefix_and_a_hash_tag_are_literal_as_they_are_written() {
    for (text, prefix, redis_key) in [
        ("{prefix}{key}", "pay:", "pay:a"),
        ("{prefix}idem:{key}", "{shop}:", "{shop}:idem:a"),
        ("lock:{{key}}", "", "lock:{a}"),
    ] {
        let template = KeyTemplate::parse(text, prefix).unwrap();
        assert_eq!(template.redis_key(b"a"), redis_key.as_bytes());
        assert!(template.has_fixed_prefix(), "{text}");
    }
    let in_front = parse("idem:{key}").behind("{shop}:");
    assert_eq!(in_front, KeyTemplate::parse("{prefix}idem:{key}", "{shop}:").unwrap());
}

#[test]
fn a_backslash_makes_a_brace_literal() {
    let template = parse(r"asynq:\{default\}:unique:{key}");
    assert_eq!(template.redis_key(b"a"), b"asynq:{default}:unique:a");
    assert!(KeyTemplate::parse(r"a\n:{key}", "").is_err());
}

#[test]
fn groups_are_a_part_of_the_key() {
    let template = parse("idem:{function}#{key}:v1");
    assert_eq!(key(&template, "idem:pay.main#29e1:v1").as_deref(), Some("pay.main#29e1"));
    assert_eq!(key(&template, "idem:a#b#c:v1").as_deref(), Some("a#b#c"));
    for other in ["idem:pay.main:v1", "idem:#29e1:v1", "idem:pay#:v1", "idem:pay#29e1"] {
        assert_eq!(key(&template, other), None, "{other}");
    }
    assert_eq!(
        (template.display().as_str(), template.specificity()),
        ("idem:{function}#{key}:v1", 9)
    );
}

/// Rule: a regular expression must match the whole text at `{key}`. It does not change the Redis
/// keys that are built.
#[test]
fn a_regular_expression_restricts_the_key() {
    let hex = parse("cache:{tenant}:{key}").matching("[0-9a-f]{4}").unwrap();
    assert_eq!(key(&hex, "cache:acme:29e1").as_deref(), Some("acme:29e1"));
    for other in [
        "cache:acme:29e",
        "cache:acme:29e1f",
        "cache:acme:x29e1",
        "cache:29e1",
        "cache:acme:29e1\n",
    ] {
        assert_eq!(key(&hex, other), None, "{other}");
    }
    assert_eq!(hex.idempotency_key(b"cache:\xff:29e1"), None);
    for wrong in ["(", "a)(b", "[z-a]"] {
        assert!(parse("{key}").matching(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn ignored_and_fixed_redis_keys() {
    let template = parse("pay#{key}").without(&[parse("pay#{key}:lock")]).behind("eu:");
    assert_eq!(key(&template, "eu:pay#a").as_deref(), Some("a"));
    assert_eq!(key(&template, "eu:pay#a:lock"), None);
    let fixed = parse("billing:lock");
    assert!(fixed.is_fixed() && fixed.has_fixed_prefix());
    assert_eq!(key(&fixed, "billing:lock").as_deref(), Some("billing:lock"));
    assert_eq!(key(&fixed, "billing:lock2"), None);
}

/// Rule: a displayed template has the same meaning in schema.toml.
#[test]
fn a_template_is_displayed_as_schema_toml_writes_it() {
    for text in [
        "orders:{{key}}:idem",
        r"asynq:\{default\}:unique:{key}",
        r"a\\b:{key}",
        "}{{a{key}",
        r"\{a\}",
    ] {
        assert_eq!(parse(text).display(), text);
    }
    let prefixed = KeyTemplate::parse("{prefix}idem:{key}", "{shop}:").unwrap();
    assert_eq!(prefixed.display(), r"\{shop\}:idem:{key}");
    assert_eq!(parse(r"\{a\}:{tenant}#{key}").pattern(), "{a}:{tenant}#*");
}

proptest! {
    #[test]
    fn a_redis_key_yields_its_idempotency_key(key in prop::collection::vec(any::<u8>(), 1..40)) {
        for text in ["idem:{key}", "{key}", "{key}:lock", "a:{key}:b"] {
            let template = parse(text);
            let redis_key = template.redis_key(&key);
            prop_assert_eq!(template.idempotency_key(&redis_key), Some(&key[..]));
        }
    }
}
