//! express/complete_processing

use crate::bench::Bench;
use crate::support::wire::STRAY;

const KEY: &str = "idem:order-1";
const DONE: &str = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":{}}"#;

fn bench() -> Bench {
    Bench::of("express/complete_processing")
}

#[test]
fn stores_the_response_over_whatever_is_there() {
    let mut bench = bench();
    for held in STRAY
        .iter()
        .chain([&br#"{"status":"IN_PROGRESS"}"#[..], br#"{"status":"COMPLETED"}"#].iter())
    {
        bench.put(KEY, held);
        assert_eq!(bench.run(&[KEY], &[DONE, "86400"]), "OK");
        assert_eq!(bench.get(KEY).unwrap(), DONE.as_bytes());
        bench.assert_ttl(KEY, 86_400);
    }
    bench.each_type(KEY, |bench| {
        assert_eq!(bench.run(&[KEY], &[DONE, "86400"]), "OK");
        assert_eq!(bench.get(KEY).unwrap(), DONE.as_bytes());
    });
}

#[test]
fn stores_nothing_when_the_key_is_gone() {
    bench().assert_leaves(&[KEY], &[DONE, "86400"], "LOCK_EXPIRED");
}

#[test]
fn a_ttl_that_is_no_whole_number_is_an_error_and_leaves_the_lock() {
    let mut bench = bench();
    bench.put_expiring(KEY, r#"{"status":"IN_PROGRESS"}"#);
    bench.refuses_bad_ttls(&[KEY], |ttl| vec![DONE.to_owned(), ttl.to_owned()]);
}
