//! `ttl-as-stated`: the TTLs that steps set are those of `[ttl]`. Each planted bug changes one of them.

use super::{Frontier, explore, explored, frontier, only};
use crate::simulate::attempts::{HEALS, TAKES};
use crate::simulate::variant::{MINE, Variant, home, reference, run};
use crate::support::{BUILT_IN, Server};

/// The published libraries that idemctl describes, and that can be explored.
const LIBRARIES: [&str; 8] = [
    "express-idempotency",
    "hono-idempotency",
    "idempo",
    "idempotency-kit",
    "laravel-square1",
    "node-idempotency",
    "powertools-python",
    "powertools-typescript",
];

const RENEWS: &str =
    "redis.call('PEXPIRE', record, string.format('%d', math.ceil(lock_ttl * 1000)))";
const LOCK_MS: &str = "local lock_ms = string.format('%d', math.ceil(lock_ttl * 1000))";
const RESULT_MS: &str = "'PX', string.format('%d', math.ceil(result_ttl * 1000))";

fn of_mine(variant: &Variant, words: &[&str]) -> Frontier {
    let folder = variant.folder();
    let dir = ["--schema-dir", folder.to_str().unwrap(), "--sandbox", "-o", "json"];
    frontier(&only(&run(folder, &[&["explore", MINE], words, &dir].concat())))
}

/// The faults and the steps by which a variant of the reference breaks the invariant.
fn breaks(variant: &Variant) -> (String, u64) {
    let faults = "expiry=1,delay=1,crash=0,lost=0,resend=0,fail=0,late-fail=0,give-up=0";
    let broken = of_mine(variant, &["--workers", "2", "--faults", faults]);
    let ways = broken.get("ttl-as-stated").unwrap_or_else(|| panic!("{broken:?}"));
    ways[0].clone()
}

#[test]
fn steps_that_set_the_stated_ttls_are_left_in_peace() {
    for schema in BUILT_IN {
        let broken = explored(&[schema, "--workers", "2"]);
        assert!(!broken.contains_key("ttl-as-stated"), "{schema}: {broken:?}");
    }
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/lua/libraries");
    for library in LIBRARIES {
        let words = ["explore", library, "--schema-dir", dir, "--sandbox", "-o", "json"];
        let explored = only(&run(home().path(), &[&words[..], &["--workers", "2"]].concat()));
        let broken = frontier(&explored);
        assert!(!broken.contains_key("ttl-as-stated"), "{library}: {broken:?}");
    }
}

/// Rule: what a call stores, and a lock that it renews, has the stated TTL.
#[test]
fn a_ttl_that_is_not_stated_is_found_by_the_call_that_sets_it() {
    let of_complete = |ttl: &str| reference().with("complete.lua", RESULT_MS, ttl);
    let no_fault = String::new;
    for (bug, variant, expected) in [
        ("a result of five seconds", of_complete("'PX', '5000'"), (no_fault(), 4)),
        (
            "a result with milliseconds for seconds",
            of_complete("'PX', result_ttl"),
            (no_fault(), 4),
        ),
        ("a result that keeps the TTL of its lock", of_complete("'KEEPTTL'"), (no_fault(), 4)),
        ("a result with the lock's TTL", of_complete("'EX', '30'"), (no_fault(), 4)),
        (
            "a result without a TTL",
            reference().with("complete.lua", &format!(", {RESULT_MS}"), ""),
            (no_fault(), 4),
        ),
        (
            // Long enough not to end while a call is executed on a busy machine.
            "a lock of a tenth of its TTL",
            reference().with("begin.lua", LOCK_MS, "local lock_ms = tostring(lock_ttl * 100)"),
            (no_fault(), 1),
        ),
        (
            "a renewal that takes the TTL away",
            reference().with("renew.lua", RENEWS, "redis.call('SET', record, stored)"),
            (no_fault(), 2),
        ),
        (
            "a renewal with milliseconds for seconds",
            reference().with("renew.lua", RENEWS, "redis.call('PEXPIRE', record, lock_ttl)"),
            (no_fault(), 2),
        ),
        (
            "a renewal that does nothing",
            reference().with("renew.lua", RENEWS, ""),
            ("delay=1".to_owned(), 3),
        ),
        (
            "a lock without a TTL",
            reference().with("begin.lua", TAKES, "redis.call('SET', record, lock)").with(
                "begin.lua",
                HEALS,
                "",
            ),
            (no_fault(), 1),
        ),
    ] {
        assert_eq!(breaks(&variant), expected, "{bug}");
    }
}

/// Rule: `none` states nothing.
#[test]
fn none_states_nothing() {
    let faults = ["--workers", "2", "--faults", "expiry=0,crash=0,lost=0,fail=1"];
    let stubborn = reference().with("complete.lua", RESULT_MS, "'EX', '86399'");
    assert!(of_mine(&stubborn, &faults).contains_key("ttl-as-stated"));
    let unstated = stubborn.with("schema.toml", "result = \"24h\"", "result = \"none\"");
    let unstated = unstated.with("schema.toml", "\"{result_ttl}\"", "\"86400\"");
    let broken = of_mine(&unstated, &faults);
    assert!(!broken.contains_key("ttl-as-stated"), "{broken:?}");
}

/// Rule: on a named server keys have shorter TTLs, so a script's own longer TTL is not judged.
#[test]
fn a_limit_for_test_keys_is_not_taken_for_the_stated_ttl() {
    let server = Server::start();
    let variant = reference().with("complete.lua", RESULT_MS, "'EX', '86400'");
    let dir = variant.folder().to_str().unwrap();
    let words = ["explore", MINE, "--workers", "2", "--schema-dir", dir, "-o", "json"];
    let broken = frontier(&only(&server.idemctl(&words)));
    assert!(!broken.contains_key("ttl-as-stated"), "{broken:?}");
}

#[test]
fn the_advice_names_the_units() {
    let variant = reference().with("complete.lua", RESULT_MS, "'PX', result_ttl");
    let dir = variant.folder().to_str().unwrap();
    let words = ["explore", MINE, "--faults", "none", "--schema-dir", dir, "--sandbox"];
    let run = run(variant.folder(), &words).exits(1);
    run.shows("ttl-as-stated: mine\n  → set the TTL that `[ttl]` states");
    // The schemas that are built in need none of this advice.
    assert!(!explore(&["all", "--workers", "2"]).text().contains("ttl-as-stated:"));
}
