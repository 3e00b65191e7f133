//! event-consumer/mark_completed_and_unlock

use crate::bench::Bench;
use crate::support::wire::STRAY;

const DONE: &str = "idem:done:order-1";
const LOCK: &str = "idem:lock:order-1";

fn bench() -> Bench {
    Bench::of("event-consumer/mark_completed_and_unlock")
}

#[test]
fn marks_and_unlocks_whoever_holds_the_lock() {
    let mut bench = bench();
    for lock in [None, Some("1"), Some("another")] {
        if let Some(lock) = lock {
            bench.put_expiring(LOCK, lock);
        }
        assert_eq!(bench.run(&[DONE, LOCK], &["1", "86400"]), "1");
        assert_eq!(bench.get(LOCK), None);
        assert_eq!(bench.get(DONE).unwrap(), b"1");
        bench.assert_ttl(DONE, 86_400);
    }
}

#[test]
fn stores_any_result_byte_for_byte() {
    let mut bench = bench();
    for result in STRAY {
        assert_eq!(bench.run(&[DONE, LOCK], &[result, &b"60"[..]]), "1");
        assert_eq!(bench.get(DONE).unwrap(), *result);
    }
}

#[test]
fn other_types_are_replaced_and_removed() {
    let mut bench = bench();
    for key in [DONE, LOCK] {
        bench.each_type(key, |bench| {
            assert_eq!(bench.run(&[DONE, LOCK], &["1", "60"]), "1");
            assert_eq!(bench.get(DONE).unwrap(), b"1");
            assert_eq!(bench.pttl(LOCK), -2);
        });
    }
}

#[test]
fn a_ttl_that_is_no_whole_number_is_an_error_and_leaves_the_lock() {
    let mut bench = bench();
    bench.put_expiring(LOCK, "1");
    bench.refuses_bad_ttls(&[DONE, LOCK], |ttl| vec!["1".to_owned(), ttl.to_owned()]);
}
