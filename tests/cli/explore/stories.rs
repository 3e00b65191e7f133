//! Every bad cell of `simulate` whose faults can be explored is found again: what a story tells of a schema can happen.

use super::{Frontier, explored};
use crate::simulate::variant::plays;
use crate::support::BUILT_IN;

/// Stories, and the faults of each.
const STORIES: [(&str, &str); 12] = [
    ("first-then-retry", "none"),
    ("concurrent-duplicates", "none"),
    ("crash-before-complete", "expiry=1,lost=0,fail=0"),
    ("zombie-completes", "expiry=1,crash=0,lost=0,fail=0"),
    ("zombie-overwrites", "expiry=1,crash=0,lost=0,fail=0"),
    ("zombie-releases", "expiry=1,crash=0,lost=0"),
    ("failure-deletes-result", "expiry=1,crash=0,lost=0"),
    ("handler-fails", "expiry=1,crash=0,lost=0"),
    ("crash-between-steps", "expiry=1,lost=0,fail=0"),
    ("lock-without-expiry", "expiry=0,lost=0,fail=0,persist=1"),
    ("evicted-lock", "expiry=0,crash=0,lost=0,fail=0,evict=1"),
    ("failover-loses-lock", "expiry=0,lost=0,fail=0,failover=1"),
];

/// The harms of which a verdict is one.
fn harms(verdict: &str) -> &'static [&'static str] {
    match verdict {
        "duplicate" => &["one-effect"],
        "wrong-answer" => &["true-replay", "no-false-done"],
        "stuck" => &["lock-ends"],
        _ => &[],
    }
}

#[test]
fn the_bad_cells_of_stories_are_found_again() {
    let mut found = 0;
    for schema in BUILT_IN {
        for (story, faults) in STORIES {
            let cell = plays(schema, story);
            let wanted = harms(cell.0["verdict"].as_str().unwrap());
            if wanted.is_empty() {
                continue;
            }
            let broken: Frontier = explored(&[schema, "--faults", faults]);
            assert!(
                wanted.iter().any(|harm| broken.contains_key(*harm)),
                "{story}: {broken:?}\n{cell}"
            );
            found += 1;
        }
    }
    assert!(found >= 20, "{found} bad cells are looked for");
}
