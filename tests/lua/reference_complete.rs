//! reference/complete

use crate::bench::Bench;
use crate::reference::{
    KEY, OWNER, TTLS, assert_ms, lock, record, refuses_bad_ttls, result, results, server_ms,
    time_in,
};

const RESPONSE: &str = r#"{"status":201,"big":12345678901234567890,"empty":[]}"#;
const ARGS: [&str; 4] = [OWNER, "completed", RESPONSE, "86400"];

fn bench() -> Bench {
    Bench::of("reference/complete")
}

#[test]
fn replaces_this_owners_lock_by_the_result_with_its_ttl_and_the_servers_time() {
    let mut bench = bench();
    for outcome in ["completed", "failed"] {
        bench.put(KEY, lock(OWNER));
        let before = server_ms(&mut bench);
        assert_eq!(bench.run(&[KEY], &[OWNER, outcome, RESPONSE, "86400"]), "STORED");
        let stored = record(&mut bench);
        let time = time_in(&stored, "completed_at");
        assert!((before..=server_ms(&mut bench)).contains(&time), "{stored}");
        assert_eq!(
            stored,
            result(outcome, OWNER, RESPONSE).replace("1735689600456", &time.to_string())
        );
        bench.assert_ttl(KEY, 86_400);
    }
}

#[test]
fn a_fraction_of_a_second_is_kept_and_none_becomes_zero() {
    let mut bench = bench();
    for (ttl, ms) in TTLS {
        bench.put_expiring(KEY, lock(OWNER));
        assert_eq!(bench.run(&[KEY], &[OWNER, "completed", "1", ttl]), "STORED", "{ttl}");
        assert_ms(&mut bench, *ms);
    }
}

#[test]
fn stores_any_bytes_as_they_are() {
    let mut bench = bench();
    let large = vec![b'x'; 1_000_000];
    for response in [&b"\xff\x00\r\n"[..], b"}", b"\"}", b"%d %1", &large] {
        bench.put(KEY, lock(OWNER));
        assert_eq!(bench.run(&[KEY], &[OWNER.as_bytes(), b"completed", response, b"60"]), "STORED");
        let stored = bench.get(KEY).unwrap();
        let end = [b"\"response\":", response, b"}"].concat();
        assert!(stored.ends_with(&end), "{} bytes", response.len());
    }
}

#[test]
fn a_result_is_stored_once_and_the_first_stays() {
    let mut bench = bench();
    for stored in results(OWNER) {
        bench.put_expiring(KEY, stored);
        for outcome in ["completed", "failed"] {
            bench.assert_leaves(&[KEY], &[OWNER, outcome, "2", "86400"], "ALREADY");
        }
    }
}

#[test]
fn a_malformed_or_missing_argument_is_an_error() {
    let mut bench = bench();
    let with = |ttl: &str| vec![OWNER.into(), "completed".into(), "1".into(), ttl.into()];
    refuses_bad_ttls(&mut bench, with);
    bench.put_expiring(KEY, lock(OWNER));
    for outcome in ["", "in-progress", "Completed", "failed ", "completed\""] {
        bench.assert_leaves(&[KEY], &[OWNER, outcome, "1", "60"], "error INVALID");
    }
    bench.assert_leaves(&[KEY], &[OWNER, "completed", "", "60"], "error INVALID");
    for count in 0..ARGS.len() {
        bench.assert_leaves(&[KEY], &ARGS[..count], "error INVALID");
    }
}
