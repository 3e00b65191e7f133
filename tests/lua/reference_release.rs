//! reference/release

use crate::bench::Bench;
use crate::reference::{KEY, OTHER, OWNER, leaves_what_is_no_record, lock, results};

fn bench() -> Bench {
    Bench::of("reference/release")
}

#[test]
fn removes_this_owners_lock() {
    let mut bench = bench();
    for expires in [true, false] {
        if expires {
            bench.put_expiring(KEY, lock(OWNER))
        } else {
            bench.put(KEY, lock(OWNER))
        }
        assert_eq!(bench.run(&[KEY], &[OWNER]), "RELEASED");
        assert_eq!(bench.get(KEY), None);
    }
}

#[test]
fn a_lock_that_is_gone_is_lost() {
    bench().assert_leaves(&[KEY], &[OWNER], "LOST");
}

#[test]
fn anothers_lock_or_any_result_fences_it_off() {
    let mut bench = bench();
    let stored = [lock(OTHER), lock(&OWNER[1..]), lock(&OWNER.to_uppercase())];
    for stored in stored.into_iter().chain(results(OWNER)).chain(results(OTHER)) {
        bench.put_expiring(KEY, stored);
        for owner in [OWNER, "", "\""] {
            bench.assert_leaves(&[KEY], &[owner], "FENCED");
        }
        bench.assert_leaves(&[KEY], &[] as &[&str], "FENCED");
    }
}

#[test]
fn what_is_no_record_is_an_error() {
    leaves_what_is_no_record(&mut bench(), &[OWNER]);
}
