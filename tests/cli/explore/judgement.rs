//! What counts as a stored result and as the holder of a lock, with protocols that take the lock first.

use super::{Frontier, frontier, only, ways};
use crate::simulate::variant::{MINE, Variant, home, run};

/// The folder with the schemas of these tests.
const SCHEMAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/explore/schemas");

/// The published libraries that idemctl describes.
const LIBRARIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/lua/libraries");

/// No worker may be late, and no result may end.
const ASSUMING: [&str; 2] = ["--assume", "critical-section,results-outlive-retries"];

fn explored_in(dir: &str, schema: &str, words: &[&str]) -> Frontier {
    let of = ["explore", schema, "--schema-dir", dir, "--sandbox", "-o", "json"];
    frontier(&only(&run(home().path(), &[&of, words].concat())))
}

/// Rule: a result that a lock hides is stored, so taking the lock does not remove it.
#[test]
fn a_lock_that_hides_a_result_does_not_remove_it() {
    let late = ways(&[("one-effect", &[("expiry=1", 7)])]);
    assert_eq!(explored_in(SCHEMAS, "lock-then-look", &[]), late);
    assert!(!explored_in(LIBRARIES, "idempo", &[]).contains_key("result-kept"));
}

/// Rule: a result that is removed while a lock hides it is removed.
#[test]
fn a_result_that_is_removed_under_a_lock_is_not_kept() {
    let broken = explored_in(SCHEMAS, "release-both", &[]);
    assert_eq!(broken["result-kept"], [("expiry=1 fail=1".to_owned(), 7)]);
    // A failed worker deletes the result under the next worker's lock.
    let token = "1:release-both,release-both,release-both:s0.e0.x0.s1.s0.f1.s1";
    let words = ["explore", "--replay", token, "--schema-dir", SCHEMAS, "--sandbox"];
    run(home().path(), &words).exits(1).shows("Broken: result-kept");
}

/// Rule: a result that begin does not find is stored, too, so the next one replaces it.
#[test]
fn a_result_that_begin_does_not_find_is_replaced() {
    let misspelt = Variant::of("event-driven").with(
        "idempotency.lua",
        "local result_key = 'idem:result:' .. key",
        "local result_key = 'idem:results:' .. key",
    );
    let broken = explored_in(misspelt.folder().to_str().unwrap(), MINE, &["--faults", "none"]);
    assert_eq!(broken["result-not-replaced"], [(String::new(), 6)]);
}

/// Rule: under the assumption that results outlive retries, no stored result ends, even under a lock.
#[test]
fn an_assumption_spares_a_result_that_a_lock_hides() {
    assert_eq!(explored_in(SCHEMAS, "lock-then-look", &ASSUMING), ways(&[]));
}
