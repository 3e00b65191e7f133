//! admin/change_many_if_same, asked to let keys expire at a moment.

use crate::bench::Bench;

/// A key of five bytes that was seen whole, and what is to be done.
fn args(deadline: &str, change: &str) -> Vec<Vec<u8>> {
    [b"value".to_vec(), format!("=5,{deadline}").into_bytes(), change.as_bytes().to_vec()].into()
}

/// The server's clock in milliseconds.
fn now(bench: &mut Bench) -> i64 {
    bench.put_expiring("clock", b"value");
    let at: i64 = bench.deadline("clock").trim_start_matches('~').parse().unwrap();
    at - bench.pttl("clock")
}

/// Rule: a moment that is ordered is the moment at which the key expires, within two milliseconds.
#[test]
fn a_key_expires_at_the_moment_that_was_ordered() {
    let mut bench = Bench::of("admin/change_many_if_same");
    bench.put("a", b"value");
    let at = now(&mut bench) + 600_000;
    assert_eq!(bench.run(&["a"], &args("-1", &format!("@{at}"))), "D");
    let told: i64 = bench.deadline("a").trim_start_matches('~').parse().unwrap();
    assert!((told - at).abs() <= 2, "{told} {at}");
    assert_eq!(bench.get("a").unwrap(), b"value");
}

#[test]
fn a_moment_that_is_over_ends_the_key_at_once_and_a_malformed_one_changes_nothing() {
    let mut bench = Bench::of("admin/change_many_if_same");
    bench.put("a", b"value");
    for change in ["@", "@0", "@-1", "@1.5", "@@1", "@1 "] {
        bench.assert_leaves(&["a"], &args("-1", change), "error ERR");
    }
    assert_eq!(bench.run(&["a"], &args("-1", "@1000")), "D");
    crate::support::until("a ends", || bench.get("a").is_none());
}
