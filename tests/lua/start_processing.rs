//! express/start_processing

use idemctl::domain::step::reply::StepReply;

use crate::bench::{Bench, STRAY};

const KEY: &str = "idem:order-1";

fn bench() -> Bench {
    Bench::of("express/start_processing")
}

#[test]
fn takes_a_free_lock_with_its_ttl() {
    let mut bench = bench();
    assert_eq!(bench.run(&[KEY], &["30"]), "PROCEED");
    assert_eq!(bench.get(KEY).unwrap(), br#"{"status":"IN_PROGRESS"}"#);
    bench.assert_ttl(KEY, 30);
}

#[test]
fn a_held_lock_is_a_conflict_and_keeps_its_ttl() {
    let mut bench = bench();
    bench.run(&[KEY], &["30"]);
    assert_eq!(bench.run(&[KEY], &["900"]), "CONFLICT");
    bench.assert_ttl(KEY, 30);
}

#[test]
fn hands_out_a_stored_response_byte_for_byte() {
    let mut bench = bench();
    for stored in [
        &br#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":[]}"#[..],
        br#" { "status" : "COMPLETED", "big": 12345678901234567890 }"#,
        b"{\"status\":\"COMPLETED\",\"body\":\"caf\xe9\"}",
    ] {
        bench.put(KEY, stored);
        assert_eq!(bench.reply(&[KEY], &["30"]), StepReply::Text(stored.to_vec()));
    }
}

#[test]
fn any_other_string_is_an_unknown_state_and_left_alone() {
    let mut bench = bench();
    for stray in STRAY {
        bench.put_expiring(KEY, stray);
        bench.assert_leaves(&[KEY], &["30"], "ERROR_UNKNOWN_STATE");
    }
}

#[test]
fn another_type_is_an_error() {
    bench().each_type(KEY, |bench| bench.assert_leaves(&[KEY], &["30"], "error WRONGTYPE"));
}

#[test]
fn a_ttl_that_is_no_whole_number_is_an_error() {
    bench().refuses_bad_ttls(&[KEY], |ttl| vec![ttl.to_owned()]);
}
