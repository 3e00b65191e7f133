//! go-middleware/check_and_lock, go-chi/lock and express/start_processing: one Redis key holds the lock and then the result.

use idemctl::domain::step::reply::StepReply;

use crate::bench::Bench;
use crate::support::wire::STRAY;

/// A script, and what it answers.
struct Begin {
    script: &'static str,
    key: &'static str,
    took: &'static str,
    lock: &'static str,
    conflict: &'static str,
    /// Results as services and others write them.
    results: [&'static [u8]; 3],
    /// What it answers to strings that are no record: to JSON, and to other text.
    strays: [&'static str; 2],
}

const BEGINS: [Begin; 3] = [
    Begin {
        script: "go-middleware/check_and_lock",
        key: "idempotency:order-1",
        took: "PROCEED",
        lock: r#"{"status":"PENDING"}"#,
        conflict: "CONFLICT",
        results: [
            br#"{"status":"COMPLETED","code":201,"headers":{},"body":"e30="}"#,
            br#" { "status" : "COMPLETED", "big": 12345678901234567890, "empty": [] }"#,
            b"{\"status\":\"COMPLETED\",\"body\":\"caf\xe9\"}",
        ],
        strays: ["ERROR", "error ERR"],
    },
    Begin {
        script: "go-chi/lock",
        key: "order-1",
        took: "nil",
        lock: r#"{"status":0}"#,
        conflict: "error LOCKED",
        results: [
            br#"{"status":1,"response":{"StatusCode":201,"Header":{},"Body":"e30="}}"#,
            br#"{"status":1.0,"big":12345678901234567890,"empty":[]}"#,
            b"{\"status\":1,\"body\":\"caf\xe9\"}",
        ],
        strays: ["error LOCKED"; 2],
    },
    Begin {
        script: "express/start_processing",
        key: "idem:order-1",
        took: "PROCEED",
        lock: r#"{"status":"IN_PROGRESS"}"#,
        conflict: "CONFLICT",
        results: [
            br#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":[]}"#,
            br#" { "status" : "COMPLETED", "big": 12345678901234567890 }"#,
            b"{\"status\":\"COMPLETED\",\"body\":\"caf\xe9\"}",
        ],
        strays: ["ERROR_UNKNOWN_STATE"; 2],
    },
];

/// Tries each of them on a server of its own.
fn each(check: impl Fn(&Begin, &mut Bench)) {
    BEGINS.iter().for_each(|begin| check(begin, &mut Bench::of(begin.script)));
}

#[test]
fn a_free_lock_is_taken_with_its_ttl_and_a_held_one_keeps_it() {
    each(|begin, bench| {
        assert_eq!(bench.run(&[begin.key], &["300"]), begin.took, "{}", begin.script);
        assert_eq!(bench.get(begin.key).unwrap(), begin.lock.as_bytes(), "{}", begin.script);
        bench.assert_leaves(&[begin.key], &["900"], begin.conflict);
        bench.assert_ttl(begin.key, 300);
    });
}

#[test]
fn a_stored_response_is_handed_out_byte_for_byte() {
    each(|begin, bench| {
        for stored in begin.results {
            bench.put(begin.key, stored);
            let reply = bench.reply(&[begin.key], &["300"]);
            assert_eq!(reply, StepReply::Text(stored.to_vec()), "{}", begin.script);
            assert_eq!(bench.pttl(begin.key), -1, "{}: a read leaves the TTL alone", begin.script);
        }
    });
}

#[test]
fn what_is_no_record_is_told_and_left_alone() {
    each(|begin, bench| {
        for stray in STRAY {
            bench.put_expiring(begin.key, stray);
            let is_json = serde_json::from_slice::<serde_json::Value>(stray).is_ok();
            bench.assert_leaves(&[begin.key], &["300"], begin.strays[usize::from(!is_json)]);
        }
        bench.each_type(begin.key, |bench| {
            bench.assert_leaves(&[begin.key], &["300"], "error WRONGTYPE")
        });
    });
}

#[test]
fn a_lock_whose_status_is_almost_that_of_a_result_is_locked_to_go_chi() {
    let mut bench = Bench::of("go-chi/lock");
    for held in [r#"{"status":"1"}"#, r#"{"status":true}"#] {
        bench.put_expiring("order-1", held);
        bench.assert_leaves(&["order-1"], &["90"], "error LOCKED");
    }
}

#[test]
fn a_ttl_that_is_no_whole_number_is_an_error() {
    each(|begin, bench| bench.refuses_bad_ttls(&[begin.key], |ttl| vec![ttl.to_owned()]));
}
