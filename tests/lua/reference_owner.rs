//! reference/renew, reference/complete and reference/release, as far as they judge alike who calls.

use crate::bench::Bench;
use crate::reference::{KEY, OTHER, OWNER, leaves_what_is_no_record, lock, results};

/// The steps of an owner, and what each is sent behind the owner.
const STEPS: [(&str, &[&str]); 3] = [
    ("reference/renew", &["30"]),
    ("reference/complete", &["completed", "1", "86400"]),
    ("reference/release", &[]),
];

/// Tries each of them on a server of its own, with the arguments of a call by this owner.
fn each(check: impl Fn(&str, &mut Bench, &dyn Fn(&'static str) -> Vec<&'static str>)) {
    for (script, args) in STEPS {
        check(script, &mut Bench::of(script), &|owner| [&[owner], args].concat());
    }
}

#[test]
fn a_lock_that_is_gone_is_lost() {
    each(|_, bench, by| bench.assert_leaves(&[KEY], &by(OWNER), "LOST"));
}

#[test]
fn anothers_lock_or_result_fences_it_off() {
    each(|script, bench, by| {
        let stored = [lock(OTHER), lock(&OWNER[1..]), lock(&OWNER.to_uppercase())];
        // To complete once more what the owner completed is no mistake.
        let own = results(OWNER).into_iter().filter(|_| script != "reference/complete");
        for stored in stored.into_iter().chain(results(OTHER)).chain(own) {
            bench.put_expiring(KEY, stored);
            for owner in [OWNER, "", "\""] {
                bench.assert_leaves(&[KEY], &by(owner), "FENCED");
            }
        }
    });
}

#[test]
fn what_is_no_record_is_an_error() {
    each(|_, bench, by| leaves_what_is_no_record(bench, &by(OWNER)));
}

#[test]
fn a_release_removes_this_owners_lock_with_and_without_a_ttl() {
    let mut bench = Bench::of("reference/release");
    for ttl in [&["EX", "60"][..], &[]] {
        bench.ask(&[&["SET", KEY, &lock(OWNER)], ttl].concat());
        assert_eq!(bench.run(&[KEY], &[OWNER]), "RELEASED");
        assert_eq!(bench.get(KEY), None);
    }
    bench.put(KEY, lock(OTHER));
    bench.assert_leaves(&[KEY], &[] as &[&str], "FENCED");
}
