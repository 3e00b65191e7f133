//! reference/renew

use crate::bench::Bench;
use crate::reference::{KEY, OWNER, TTLS, assert_ms, lock, record, refuses_bad_ttls};

fn bench() -> Bench {
    Bench::of("reference/renew")
}

#[test]
fn gives_this_owners_lock_another_ttl_and_changes_nothing_else() {
    let mut bench = bench();
    for (ttl, ms) in TTLS {
        for expires in [true, false] {
            bench.put_expiring(KEY, lock(OWNER));
            if !expires {
                bench.ask(&["PERSIST", KEY]);
            }
            assert_eq!(bench.run(&[KEY], &[OWNER, ttl]), "RENEWED", "{ttl}");
            assert_ms(&mut bench, *ms);
        }
    }
    bench.put(KEY, lock(OWNER));
    bench.run(&[KEY], &[OWNER, "30"]);
    assert_eq!(record(&mut bench), lock(OWNER));
}

#[test]
fn a_malformed_or_missing_ttl_is_an_error() {
    let mut bench = bench();
    refuses_bad_ttls(&mut bench, |ttl| vec![OWNER.into(), ttl.into()]);
    bench.assert_leaves(&[KEY], &[OWNER], "error INVALID");
}
