//! go-middleware/check_and_lock

use crate::bench::{Bench, STRAY};

const KEY: &str = "idempotency:order-1";

fn bench() -> Bench {
    Bench::of("go-middleware/check_and_lock")
}

#[test]
fn takes_a_free_lock_with_its_ttl() {
    let mut bench = bench();
    assert_eq!(bench.run(&[KEY], &["300"]), "PROCEED");
    assert_eq!(bench.get(KEY).unwrap(), br#"{"status":"PENDING"}"#);
    bench.assert_ttl(KEY, 300);
}

#[test]
fn a_held_lock_is_a_conflict_and_keeps_its_ttl() {
    let mut bench = bench();
    bench.run(&[KEY], &["300"]);
    assert_eq!(bench.run(&[KEY], &["900"]), "CONFLICT");
    bench.assert_ttl(KEY, 300);
}

#[test]
fn hands_out_a_stored_response_byte_for_byte() {
    let mut bench = bench();
    for stored in [
        &br#"{"status":"COMPLETED","code":201,"headers":{},"body":"e30="}"#[..],
        br#" { "status" : "COMPLETED", "big": 12345678901234567890, "empty": [] }"#,
        b"{\"status\":\"COMPLETED\",\"body\":\"caf\xe9\"}",
    ] {
        bench.put(KEY, stored);
        assert_eq!(bench.reply(&[KEY], &["300"]), idemctl::domain::step::reply::StepReply::Text(stored.to_vec()));
        assert_eq!(bench.pttl(KEY), -1, "a read leaves the TTL alone");
    }
}

#[test]
fn json_of_another_status_and_other_text_are_told_apart_and_left_alone() {
    let mut bench = bench();
    for stray in STRAY {
        bench.put_expiring(KEY, stray);
        let is_json = serde_json::from_slice::<serde_json::Value>(stray).is_ok();
        bench.assert_leaves(&[KEY], &["300"], if is_json { "ERROR" } else { "error ERR" });
    }
}

#[test]
fn another_type_is_an_error() {
    bench().each_type(KEY, |bench| bench.assert_leaves(&[KEY], &["300"], "error WRONGTYPE"));
}

#[test]
fn a_ttl_that_is_no_whole_number_is_an_error() {
    bench().refuses_bad_ttls(&[KEY], |ttl| vec![ttl.to_owned()]);
}
