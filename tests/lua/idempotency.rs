//! event-driven/idempotency

use idemctl::domain::step::reply::StepReply;

use crate::bench::Bench;
use crate::support::wire::STRAY;

const LOCK: &str = "idem:started:order-1";
const RESULT: &str = "idem:result:order-1";
const WORKER: &str = "0d3f6f2e-58f5-4c0b-9d6c-1f1f8f2a7b11";
const ARGS: [&str; 3] = [WORKER, "30", "86400"];

fn bench() -> Bench {
    Bench::of("event-driven/idempotency")
}

#[test]
fn takes_a_free_lock_for_this_worker_with_the_lock_ttl() {
    let mut bench = bench();
    assert_eq!(bench.run(&["order-1"], &ARGS), "[2]");
    assert_eq!(bench.get(LOCK).unwrap(), WORKER.as_bytes());
    bench.assert_ttl(LOCK, 30);
    assert_eq!(bench.get(RESULT), None);
}

#[test]
fn a_held_lock_stays_whoever_asks() {
    let mut bench = bench();
    for holder in [WORKER, "another", ""] {
        bench.put_expiring(LOCK, holder);
        assert_eq!(bench.run(&["order-1"], &ARGS), "[3]");
        assert_eq!(bench.get(LOCK).unwrap(), holder.as_bytes());
        bench.assert_ttl(LOCK, 60);
    }
    bench.each_type(LOCK, |bench| assert_eq!(bench.run(&["order-1"], &ARGS), "[3]"));
}

#[test]
fn a_result_is_handed_out_as_it_is_be_there_a_lock_or_not() {
    let mut bench = bench();
    for locked in [false, true] {
        if locked {
            bench.put_expiring(LOCK, "another");
        }
        for stored in STRAY.iter().chain([&br#"{"statusCode":200,"body":"{}"}"#[..]].iter()) {
            bench.put_expiring(RESULT, stored);
            let reply =
                StepReply::Array(vec![StepReply::Integer(1), StepReply::Text(stored.to_vec())]);
            assert_eq!(bench.reply(&["order-1"], &ARGS), reply);
            assert_eq!(bench.get(LOCK).is_some(), locked, "a replay takes no lock");
        }
    }
}

#[test]
fn a_result_of_another_type_is_an_error() {
    bench().each_type(RESULT, |bench| {
        assert_eq!(bench.run(&["order-1"], &ARGS), "error WRONGTYPE");
        assert_eq!(bench.get(LOCK), None);
    });
}

#[test]
fn a_ttl_that_is_no_whole_number_is_an_error() {
    let mut bench = bench();
    bench.refuses_bad_ttls(&["order-1"], |ttl| {
        vec![WORKER.to_owned(), ttl.to_owned(), "86400".to_owned()]
    });
    assert_eq!(bench.get(LOCK), None);
}
