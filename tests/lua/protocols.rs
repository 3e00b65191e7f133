//! protocols/fenced_begin, fenced_complete and fenced_release: the scripts of the protocol that a
//! schema can name.

use crate::bench::Bench;
use crate::support::wire::STRAY;

const LOCK: &str = "pay:lock:a";
const RESULT: &str = "pay:done:a";
const RECORD: &str = "pay:a";

/// Texts that are no number of milliseconds above 0. An empty one means that there is no TTL.
const BAD_TTLS: [&str; 4] = ["0", "-1", "1.5", "soon"];

#[test]
fn fenced_begin_takes_the_lock_once() {
    let mut bench = Bench::of("protocols/fenced_begin");
    for keys in [[RESULT, LOCK], [RECORD, RECORD]] {
        assert_eq!(bench.run(&keys, &["w-1", "60000"]), "nil");
        assert_eq!(bench.get(keys[1]).unwrap(), b"w-1");
        bench.assert_ttl(keys[1], 60);
        bench.assert_leaves(&keys, &["w-2", "60000"], "w-1");
    }
    bench.put(RESULT, "stored");
    bench.assert_leaves(&[RESULT, LOCK], &["w-2", "60000"], "stored");
}

#[test]
fn fenced_begin_takes_a_lock_without_ttl_if_it_gets_none() {
    let mut bench = Bench::of("protocols/fenced_begin");
    assert_eq!(bench.run(&[RESULT, LOCK], &["w-1", ""]), "nil");
    assert_eq!(bench.pttl(LOCK), -1);
}

#[test]
fn fenced_begin_leaves_other_types_and_refuses_bad_ttls() {
    let mut bench = Bench::of("protocols/fenced_begin");
    for key in [LOCK, RESULT] {
        bench.each_type(key, |bench| {
            let reply = bench.run(&[RESULT, LOCK], &["w-1", "60000"]);
            assert!(reply.starts_with("error WRONGTYPE"), "{reply}");
        });
    }
    for ttl in BAD_TTLS {
        let reply = bench.run(&[RESULT, LOCK], &["w-1", ttl]);
        assert!(reply.starts_with("error"), "{ttl}: {reply}");
        assert_eq!(bench.get(LOCK), None);
    }
}

#[test]
fn fenced_complete_stores_for_the_owner_alone() {
    let mut bench = Bench::of("protocols/fenced_complete");
    let json = r#"{"st":"P","who":{"id":"w-1"}}"#;
    for (keys, held, path) in [
        ([LOCK, RESULT], "w-1", "[]"),
        ([RECORD, RECORD], json, r#"["who","id"]"#),
        ([RECORD, RECORD], r#"{"b":"{\"who\":\"w-1\"}"}"#, r#"["b","who"]"#),
    ] {
        bench.put_expiring(keys[0], held);
        bench.assert_leaves(&keys, &["w-2", path, "stored", "60000"], "0");
        assert_eq!(bench.run(&keys, &["w-1", path, "stored", "60000"]), "1");
        assert_eq!(bench.get(keys[1]).unwrap(), b"stored");
        bench.assert_ttl(keys[1], 60);
        // The lock is gone, or the result took its place.
        bench.assert_leaves(&keys, &["w-1", path, "again", "60000"], "0");
        bench.ask(&["DEL", keys[0], keys[1]]);
    }
}

#[test]
fn fenced_complete_keeps_a_result_without_ttl_if_it_gets_none() {
    let mut bench = Bench::of("protocols/fenced_complete");
    bench.put_expiring(LOCK, "w-1");
    assert_eq!(bench.run(&[LOCK, RESULT], &["w-1", "[]", "stored", ""]), "1");
    assert_eq!(bench.pttl(RESULT), -1);
    assert_eq!(bench.get(LOCK), None);
}

#[test]
fn fenced_complete_and_release_leave_any_other_value_alone() {
    let mut complete = Bench::of("protocols/fenced_complete");
    let mut release = Bench::of("protocols/fenced_release");
    for value in STRAY {
        if *value == b"w-1" {
            continue;
        }
        for path in ["[]", r#"["who"]"#, r#"["who","id"]"#] {
            complete.put(RECORD, value);
            let args = ["w-1", path, "stored", "60000"];
            complete.assert_leaves(&[RECORD, RECORD], &args, "0");
            release.put(RECORD, value);
            release.assert_leaves(&[RECORD], &["w-1", path], "0");
        }
    }
    complete.each_type(LOCK, |bench| {
        let reply = bench.run(&[LOCK, RESULT], &["w-1", "[]", "stored", "60000"]);
        assert!(reply.starts_with("error WRONGTYPE"), "{reply}");
    });
    let reply = complete.run(&[LOCK, RESULT], &["w-1", "no JSON", "stored", "60000"]);
    assert!(reply.starts_with("error ERR"), "{reply}");
}

#[test]
fn fenced_complete_refuses_bad_ttls_and_keeps_the_lock() {
    let mut bench = Bench::of("protocols/fenced_complete");
    bench.put_expiring(LOCK, "w-1");
    for ttl in BAD_TTLS {
        let reply = bench.run(&[LOCK, RESULT], &["w-1", "[]", "stored", ttl]);
        assert!(reply.starts_with("error"), "{ttl}: {reply}");
        assert_eq!(bench.get(LOCK).unwrap(), b"w-1");
        assert_eq!(bench.get(RESULT), None);
    }
}

#[test]
fn fenced_release_removes_the_lock_of_the_owner_alone() {
    let mut bench = Bench::of("protocols/fenced_release");
    bench.put_expiring(LOCK, "w-1");
    bench.assert_leaves(&[LOCK], &["w-2", "[]"], "0");
    assert_eq!(bench.run(&[LOCK], &["w-1", "[]"]), "1");
    assert_eq!(bench.get(LOCK), None);
    assert_eq!(bench.run(&[LOCK], &["w-1", "[]"]), "0");
    bench.each_type(LOCK, |bench| {
        let reply = bench.run(&[LOCK], &["w-1", "[]"]);
        assert!(reply.starts_with("error WRONGTYPE"), "{reply}");
    });
    let reply = bench.run(&[LOCK], &["w-1", "{"]);
    assert!(reply.starts_with("error ERR"), "{reply}");
}
