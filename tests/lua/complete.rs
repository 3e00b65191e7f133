//! event-driven/complete

use crate::bench::Bench;

const LOCK: &str = "idem:started:order-1";
const RESULT: &str = "idem:result:order-1";
const KEYS: [&str; 3] = ["order-1", RESULT, LOCK];
const WORKER: &str = "0d3f6f2e-58f5-4c0b-9d6c-1f1f8f2a7b11";
const DONE: &str = r#"{"statusCode":200,"body":"{}"}"#;
const ARGS: [&str; 3] = [WORKER, DONE, "86400"];

fn bench() -> Bench {
    Bench::of("event-driven/complete")
}

#[test]
fn stores_the_result_and_drops_this_workers_lock() {
    let mut bench = bench();
    for earlier in [None, Some("{}")] {
        bench.put_expiring(LOCK, WORKER);
        if let Some(earlier) = earlier {
            bench.put(RESULT, earlier);
        }
        assert_eq!(bench.run(&KEYS, &ARGS), "1");
        assert_eq!(bench.get(LOCK), None);
        assert_eq!(bench.get(RESULT).unwrap(), DONE.as_bytes());
        bench.assert_ttl(RESULT, 86_400);
    }
}

#[test]
fn a_lock_that_is_gone_or_anothers_fences_it_off() {
    let mut bench = bench();
    bench.assert_leaves(&KEYS, &ARGS, "0");
    for holder in
        ["another", "", "0D3F6F2E-58F5-4C0B-9D6C-1F1F8F2A7B11", "0d3f6f2e", "{\"owner\":1}"]
    {
        bench.put_expiring(LOCK, holder);
        bench.assert_leaves(&KEYS, &ARGS, "0");
    }
}

#[test]
fn an_empty_id_is_no_lock_that_is_not_there() {
    bench().assert_leaves(&KEYS, &["", DONE, "86400"], "0");
}

#[test]
fn a_lock_of_another_type_is_an_error() {
    bench().each_type(LOCK, |bench| bench.assert_leaves(&KEYS, &ARGS, "error WRONGTYPE"));
}

#[test]
fn a_result_of_another_type_is_replaced() {
    bench().each_type(RESULT, |bench| {
        bench.put_expiring(LOCK, WORKER);
        assert_eq!(bench.run(&KEYS, &ARGS), "1");
        assert_eq!(bench.get(RESULT).unwrap(), DONE.as_bytes());
    });
}

#[test]
fn a_ttl_that_is_no_whole_number_is_an_error_and_leaves_the_lock() {
    let mut bench = bench();
    bench.put_expiring(LOCK, WORKER);
    bench.refuses_bad_ttls(&KEYS, |ttl| vec![WORKER.to_owned(), DONE.to_owned(), ttl.to_owned()]);
}
