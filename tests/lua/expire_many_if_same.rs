//! admin/expire_many_if_same

use crate::bench::{Bench, STRAY};

fn bench() -> Bench {
    Bench::of("admin/expire_many_if_same")
}

#[test]
fn gives_what_is_exactly_as_seen_the_ttl() {
    let mut bench = bench();
    for value in STRAY {
        let length = value.len();
        bench.put("a", value);
        bench.put_expiring("b", value);
        let rules = format!("={length},-1;={length},60000;");
        assert_eq!(bench.run(&["a", "b"], &[value, value, rules.as_bytes(), b"5000"]), "EE");
        bench.assert_ttl("a", 5);
        bench.assert_ttl("b", 5);
        assert_eq!(bench.get("a").unwrap(), *value);
    }
}

#[test]
fn each_record_is_judged_on_its_own_and_its_other_keys_are_not_touched() {
    let mut bench = bench();
    for key in ["a", "a2", "b", "b2", "c"] {
        bench.put(key, "x");
    }
    let keys = ["a", "a2", "b", "b2", "gone", "c"];
    let args = ["x", "x", "x", "", "x", "y", "=1,-1;+1,;=1,-1;-,;=1,-1;=1,-1;", "5000"];
    assert_eq!(bench.run(&keys, &args), "ECAC");
    bench.assert_ttl("a", 5);
    for key in ["a2", "b", "b2", "c"] {
        assert_eq!(bench.pttl(key), -1, "{key}");
    }
}

#[test]
fn leaves_what_changed() {
    let mut bench = bench();
    bench.put("a", "headtail");
    for (head, rule) in [
        ("headtale", "=8,-1;"),
        ("heat", "=8,-1;"),
        ("head", "=7,-1;"),
        ("head", "=4,-1;"),
        ("headtail", "=8,5000;"),
        ("head12345678", "=8d,-1;"),
    ] {
        bench.assert_leaves(&["a"], &[head, rule, "5000"], "C");
    }
    bench.put_expiring("a", "x");
    bench.assert_leaves(&["a"], &["x", "=1,-1;", "5000"], "C");
    bench.assert_leaves(&["a"], &["x", "=1,5000;", "5000"], "C");
    bench.each_type("a", |bench| bench.assert_leaves(&["a"], &["PENDING", "=7,-1;", "5000"], "C"));
}

#[test]
fn malformed_arguments_are_an_error_before_anything_is_done() {
    let mut bench = bench();
    bench.put("a", "x");
    for args in [&["x", "=1,-1;"][..], &["x", "=1,-1;", "5", "5"], &["x", "1,-1;", "5"], &["", "=1,-1;", "5"]] {
        bench.assert_leaves(&["a"], args, "error ERR");
    }
    let none: [&str; 0] = [];
    assert_eq!(bench.run(&none, &["", "5"]), "error ERR");
    bench.refuses_bad_ttls(&["a"], |ttl| vec!["x".to_owned(), "=1,-1;".to_owned(), ttl.to_owned()]);
}
