//! go-middleware/set_completed

use crate::bench::Bench;
use crate::support::wire::STRAY;

const KEY: &str = "idempotency:order-1";
const DONE: &str = r#"{"status":"COMPLETED","code":201,"headers":{},"body":"e30="}"#;

fn bench() -> Bench {
    Bench::of("go-middleware/set_completed")
}

#[test]
fn replaces_a_lock_by_the_response_with_its_ttl() {
    let mut bench = bench();
    for lock in [r#"{"status":"PENDING"}"#, r#"{ "status": "PENDING", "more": [] }"#] {
        bench.put_expiring(KEY, lock);
        assert_eq!(bench.run(&[KEY], &[DONE, "86400"]), "OK");
        assert_eq!(bench.get(KEY).unwrap(), DONE.as_bytes());
        bench.assert_ttl(KEY, 86_400);
    }
}

#[test]
fn stores_any_bytes_as_they_are() {
    let mut bench = bench();
    bench.put(KEY, r#"{"status":"PENDING"}"#);
    assert_eq!(bench.run(&[KEY], &[&b"\xff\x00\r\n"[..], b"60"]), "OK");
    assert_eq!(bench.get(KEY).unwrap(), b"\xff\x00\r\n");
}

#[test]
fn stores_nothing_where_no_lock_is() {
    let mut bench = bench();
    bench.assert_leaves(&[KEY], &[DONE, "86400"], "ERROR");
    for stray in STRAY.iter().chain([&br#"{"status":"COMPLETED"}"#[..]].iter()) {
        bench.put_expiring(KEY, stray);
        bench.assert_leaves(&[KEY], &[DONE, "86400"], "ERROR");
    }
}

#[test]
fn another_type_is_an_error() {
    bench()
        .each_type(KEY, |bench| bench.assert_leaves(&[KEY], &[DONE, "86400"], "error WRONGTYPE"));
}

#[test]
fn a_ttl_that_is_no_whole_number_is_an_error_and_leaves_the_lock() {
    let mut bench = bench();
    bench.put_expiring(KEY, r#"{"status":"PENDING"}"#);
    bench.refuses_bad_ttls(&[KEY], |ttl| vec![DONE.to_owned(), ttl.to_owned()]);
}
