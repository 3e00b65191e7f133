//! reference/begin

use idemctl::domain::step::reply::StepReply;

use crate::bench::Bench;
use crate::reference::{
    KEY, OTHER, OWNER, PRINT, TTLS, assert_ms, leaves_what_is_no_record, lock, record,
    refuses_bad_ttls, result, results, server_ms, time_in,
};

const ARGS: [&str; 4] = [OWNER, PRINT, "30", "retry"];

fn bench() -> Bench {
    Bench::of("reference/begin")
}

#[test]
fn takes_a_free_lock_with_its_ttl_and_the_servers_time() {
    let mut bench = bench();
    let before = server_ms(&mut bench);
    assert_eq!(bench.run(&[KEY], &ARGS), "[ACQUIRED]");
    let stored = record(&mut bench);
    let time = time_in(&stored, "created_at");
    assert!((before..=server_ms(&mut bench)).contains(&time), "{stored}");
    assert_eq!(stored, lock(OWNER).replace("1735689600123", &time.to_string()));
    bench.assert_ttl(KEY, 30);
}

#[test]
fn a_fraction_of_a_second_is_kept_and_none_becomes_zero() {
    let mut bench = bench();
    for (ttl, ms) in TTLS {
        bench.ask(&["DEL", KEY]);
        assert_eq!(bench.run(&[KEY], &[OWNER, PRINT, ttl, "retry"]), "[ACQUIRED]", "{ttl}");
        assert_ms(&mut bench, *ms);
    }
}

#[test]
fn a_held_lock_stays_whoever_asks_and_tells_how_long() {
    let mut bench = bench();
    for asks in [OTHER, OWNER] {
        bench.put_expiring(KEY, lock(OWNER));
        let reply = bench.reply(&[KEY], &[asks, PRINT, "900", "retry"]);
        let StepReply::Array(items) = reply else { panic!("{reply:?}") };
        let [StepReply::Text(word), StepReply::Integer(left)] = &items[..] else {
            panic!("{items:?}")
        };
        assert_eq!(word, b"IN_PROGRESS");
        assert!((58_000..=60_000).contains(left), "{left}");
        assert_eq!(record(&mut bench), lock(OWNER));
        bench.assert_ttl(KEY, 60);
    }
}

#[test]
fn a_lock_without_ttl_gets_one() {
    let mut bench = bench();
    bench.put(KEY, lock(OWNER));
    assert_eq!(bench.run(&[KEY], &[OTHER, PRINT, "1.5", "retry"]), "[IN_PROGRESS 1500]");
    assert_ms(&mut bench, 1_500);
    assert_eq!(record(&mut bench), lock(OWNER));
}

#[test]
fn brings_back_the_response_of_a_completed_operation() {
    let mut bench = bench();
    for on_failed in ["retry", "replay"] {
        for response in [
            r#"{"status":201,"big":12345678901234567890,"empty":[]}"#,
            "null",
            "}",
            "\"}],\"response\":{",
        ] {
            bench.put_expiring(KEY, result("completed", OWNER, response));
            let expected = format!("[REPLAY {response}]");
            bench.assert_leaves(&[KEY], &[OTHER, PRINT, "30", on_failed], &expected);
        }
    }
}

#[test]
fn a_failed_operation_is_retried_or_replayed_as_the_request_says() {
    let mut bench = bench();
    bench.put_expiring(KEY, result("failed", OTHER, "1"));
    bench.assert_leaves(&[KEY], &[OWNER, PRINT, "30", "replay"], "[REPLAY 1]");
    assert_eq!(bench.run(&[KEY], &ARGS), "[ACQUIRED]");
    let time = time_in(&record(&mut bench), "created_at").to_string();
    assert_eq!(record(&mut bench), lock(OWNER).replace("1735689600123", &time));
    bench.assert_ttl(KEY, 30);
}

#[test]
fn another_payload_is_a_mismatch_whatever_became_of_the_operation() {
    let mut bench = bench();
    for stored in [lock(OWNER)].into_iter().chain(results(OWNER)) {
        bench.put_expiring(KEY, &stored);
        for print in ["another", "", &PRINT.to_uppercase(), &PRINT[1..]] {
            bench.assert_leaves(&[KEY], &[OTHER, print, "30", "retry"], "[MISMATCH]");
        }
        bench.put_expiring(KEY, stored.replace(PRINT, ""));
        bench.assert_leaves(&[KEY], &[OTHER, PRINT, "30", "retry"], "[MISMATCH]");
    }
    bench.put(KEY, lock(OWNER));
    bench.assert_leaves(&[KEY], &[OTHER, "another", "30", "retry"], "[MISMATCH]");
}

#[test]
fn an_empty_fingerprint_fits_an_empty_one() {
    let mut bench = bench();
    assert_eq!(bench.run(&[KEY], &[OWNER, "", "30", "retry"]), "[ACQUIRED]");
    assert!(bench.run(&[KEY], &[OTHER, "", "30", "retry"]).starts_with("[IN_PROGRESS "));
}

#[test]
fn owner_and_fingerprint_are_what_needs_no_escaping_in_json() {
    let mut bench = bench();
    let longest = "x".repeat(128);
    for fits in ["a", "A-b_c.d:e/f+g=", "=-", &longest] {
        bench.ask(&["DEL", KEY]);
        assert_eq!(bench.run(&[KEY], &[fits, fits, "30", "retry"]), "[ACQUIRED]", "{fits}");
        let stored: serde_json::Value = serde_json::from_str(&record(&mut bench)).unwrap();
        assert_eq!((&stored["owner"], &stored["fingerprint"]), (&fits.into(), &fits.into()));
    }
    bench.ask(&["DEL", KEY]);
    let too_long = format!("{longest}x");
    let odd: [&[u8]; 10] =
        [b"a b", b"a\"b", b"a\\", b"a\n", b"\0", b"a\0b", b"\xff", b"a]", b"a,b", b"<"];
    for odd in odd.into_iter().chain([b"caf\xc3\xa9", too_long.as_bytes()]) {
        bench.assert_leaves(&[KEY], &[odd, b"", b"30", b"retry"], "error INVALID");
        bench.assert_leaves(&[KEY], &[b"a", odd, b"30", b"retry"], "error INVALID");
    }
    bench.assert_leaves(&[KEY], &["", "", "30", "retry"], "error INVALID");
}

#[test]
fn a_malformed_or_missing_argument_is_an_error() {
    let mut bench = bench();
    refuses_bad_ttls(&mut bench, |ttl| {
        vec![OTHER.into(), PRINT.into(), ttl.into(), "retry".into()]
    });
    for on_failed in ["", "Retry", "RETRY", "retry ", "conflict"] {
        bench.assert_leaves(&[KEY], &[OTHER, PRINT, "30", on_failed], "error INVALID");
    }
    for count in 0..ARGS.len() {
        bench.assert_leaves(&[KEY], &ARGS[..count], "error INVALID");
    }
}

#[test]
fn what_is_no_record_is_an_error() {
    leaves_what_is_no_record(&mut bench(), &ARGS);
}
