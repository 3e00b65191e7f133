//! The place of a deployment's prefix in the Redis keys of a schema.

use super::*;

const NONE: Prefixes<'_> = Prefixes { own: None, shared: None };
const SHOP: Prefixes<'_> = own("shop:");

const fn own(prefix: &str) -> Prefixes<'_> {
    Prefixes { own: Some(prefix), shared: None }
}

/// The Redis keys of the idempotency key `k`.
fn redis_keys(toml: &str, prefixes: Prefixes<'_>) -> Vec<String> {
    let keys = deployed(toml, prefixes).unwrap().redis_keys(b"k");
    keys.into_iter().map(|key| String::from_utf8(key).unwrap()).collect()
}

#[test]
fn a_prefix_precedes_every_redis_key_unless_the_schema_places_it() {
    assert_eq!(redis_keys(SOUND, NONE), ["lock:k", "result:k"]);
    assert_eq!(redis_keys(SOUND, SHOP), ["shop:lock:k", "shop:result:k"]);
    // A hash tag is a prefix like any other.
    assert_eq!(redis_keys(SOUND, own("{shop}:")), ["{shop}:lock:k", "{shop}:result:k"]);
    let written = SOUND
        .replace("lock:{key}", "{prefix}lock:{key}")
        .replace("result:{key}", "a:{prefix}:{key}");
    assert_eq!(redis_keys(&written, NONE), ["lock:k", "a::k"]);
    assert_eq!(redis_keys(&written, SHOP), ["shop:lock:k", "a:shop::k"]);
}

#[test]
fn a_deployments_prefix_replaces_the_schemas_own() {
    let own = SOUND
        .replace("lock:{key}", "{prefix}lock:{key}")
        .replace("[ttl]", "prefix = \"old:\"\n[ttl]");
    assert_eq!(redis_keys(&own, NONE), ["old:lock:k", "result:k"]);
    assert_eq!(redis_keys(&own, SHOP), ["shop:lock:k", "result:k"]);
    wrong(
        "result:{key}\"",
        "result:{key}\"\nprefix = \"old:\"",
        7,
        "no template contains `{prefix}`",
    );
}

#[test]
fn a_shared_prefix_applies_to_schemas_that_place_it() {
    let shared = Prefixes { shared: Some("pay:"), ..NONE };
    assert_eq!(redis_keys(SOUND, shared), ["lock:k", "result:k"]);
    let written = SOUND.replace("lock:{key}", "{prefix}lock:{key}");
    assert_eq!(redis_keys(&written, shared), ["pay:lock:k", "result:k"]);
    assert_eq!(
        redis_keys(&written, Prefixes { shared: Some("pay:"), ..SHOP }),
        ["shop:lock:k", "result:k"]
    );
    // A prefix in the key that scripts receive is not a shared prefix of Redis keys.
    let in_key = written.replace("\"{owner}\",\n", "\"{owner}\", \"{prefix}{key}\",\n");
    assert_eq!(redis_keys(&in_key, shared), ["lock:k", "result:k"]);
    assert_eq!(redis_keys(&in_key, SHOP), ["shop:lock:k", "result:k"]);
}

#[test]
fn a_schema_that_sends_the_bare_key_cannot_have_a_prefix() {
    for (from, to) in [
        ("keys = [\"{lock}\"]", "keys = [\"{key}\"]"),
        ("  \"{owner}\",", "  \"{key}\","),
        ("\"EXISTS\", \"{result}\"", "\"EXISTS\", \"result:{key}\""),
    ] {
        let bare = SOUND.replacen(from, to, 1);
        let schema = deployed(&bare, SHOP).unwrap();
        let refusal = schema.prefix.place.refusal().unwrap();
        assert!(!schema.takes_prefix && refusal.starts_with("[begin] sends "), "{to}: {refusal}");
        assert_eq!(redis_keys(&bare, SHOP), ["lock:k", "result:k"]);
    }
    assert!(read(SOUND).unwrap().takes_prefix);
    wrong("\"{lock_ttl}\"", "\"{prefix}{key}\"", 4, "a step uses `{prefix}`");
}
