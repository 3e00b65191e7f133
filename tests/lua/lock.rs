//! go-chi/lock

use idemctl::domain::step::reply::StepReply;

use crate::bench::{Bench, STRAY};

const KEY: &str = "order-1";

fn bench() -> Bench {
    Bench::of("go-chi/lock")
}

#[test]
fn takes_a_free_lock_with_its_ttl() {
    let mut bench = bench();
    assert_eq!(bench.reply(&[KEY], &["60"]), StepReply::Nil);
    assert_eq!(bench.get(KEY).unwrap(), br#"{"status":0}"#);
    bench.assert_ttl(KEY, 60);
}

#[test]
fn hands_out_a_stored_response_byte_for_byte() {
    let mut bench = bench();
    for stored in [
        &br#"{"status":1,"response":{"StatusCode":201,"Header":{},"Body":"e30="}}"#[..],
        br#"{"status":1.0,"big":12345678901234567890,"empty":[]}"#,
        b"{\"status\":1,\"body\":\"caf\xe9\"}",
    ] {
        bench.put(KEY, stored);
        assert_eq!(bench.reply(&[KEY], &["60"]), StepReply::Text(stored.to_vec()));
    }
}

#[test]
fn anything_else_is_the_error_locked_and_left_alone() {
    let mut bench = bench();
    for held in STRAY.iter().chain([&br#"{"status":0}"#[..], br#"{"status":"1"}"#, br#"{"status":true}"#].iter()) {
        bench.put_expiring(KEY, held);
        bench.assert_leaves(&[KEY], &["90"], "error LOCKED");
        bench.assert_ttl(KEY, 60);
    }
}

#[test]
fn another_type_is_an_error_of_its_own() {
    bench().each_type(KEY, |bench| bench.assert_leaves(&[KEY], &["60"], "error WRONGTYPE"));
}

#[test]
fn a_ttl_that_is_no_whole_number_is_an_error() {
    bench().refuses_bad_ttls(&[KEY], |ttl| vec![ttl.to_owned()]);
}
