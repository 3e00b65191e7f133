//! reference/renew

use crate::bench::Bench;
use crate::reference::{
    KEY, OTHER, OWNER, TTLS, assert_ms, leaves_what_is_no_record, lock, record, refuses_bad_ttls, results,
};

fn bench() -> Bench {
    Bench::of("reference/renew")
}

#[test]
fn gives_this_owners_lock_another_ttl_and_changes_nothing_else() {
    let mut bench = bench();
    for (ttl, ms) in TTLS {
        for expires in [true, false] {
            if expires {
                bench.put_expiring(KEY, lock(OWNER))
            } else {
                bench.put(KEY, lock(OWNER))
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
fn a_lock_that_is_gone_is_lost() {
    bench().assert_leaves(&[KEY], &[OWNER, "30"], "LOST");
}

#[test]
fn anothers_lock_or_any_result_fences_it_off() {
    let mut bench = bench();
    let stored = [lock(OTHER), lock(&OWNER[1..]), lock(&OWNER.to_uppercase())];
    for stored in stored.into_iter().chain(results(OWNER)).chain(results(OTHER)) {
        bench.put_expiring(KEY, stored);
        for owner in [OWNER, "", "\""] {
            bench.assert_leaves(&[KEY], &[owner, "30"], "FENCED");
        }
    }
}

#[test]
fn a_malformed_or_missing_ttl_is_an_error() {
    let mut bench = bench();
    refuses_bad_ttls(&mut bench, |ttl| vec![OWNER.into(), ttl.into()]);
    bench.assert_leaves(&[KEY], &[OWNER], "error INVALID");
}

#[test]
fn what_is_no_record_is_an_error() {
    leaves_what_is_no_record(&mut bench(), &[OWNER, "30"]);
}
