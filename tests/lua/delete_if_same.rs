//! admin/delete_if_same

use crate::bench::{Bench, STRAY};

fn bench() -> Bench {
    Bench::of("admin/delete_if_same")
}

#[test]
fn removes_what_is_exactly_as_seen() {
    let mut bench = bench();
    for value in STRAY {
        let seen = [b"=", *value].concat();
        for ttl in ["persistent", "any"] {
            bench.put("a", value);
            assert_eq!(bench.run(&["a"], &[&seen[..], ttl.as_bytes()]), "DELETED");
            assert_eq!(bench.pttl("a"), -2);
        }
        for ttl in ["expiring", "any"] {
            bench.put_expiring("a", value);
            assert_eq!(bench.run(&["a"], &[&seen[..], ttl.as_bytes()]), "DELETED");
            assert_eq!(bench.pttl("a"), -2);
        }
    }
}

#[test]
fn removes_the_first_key_alone() {
    let mut bench = bench();
    bench.put_expiring("lock", "x");
    bench.put_expiring("result", "y");
    assert_eq!(bench.run(&["lock", "result"], &["=x", "=y", "expiring"]), "DELETED");
    assert_eq!(bench.pttl("lock"), -2);
    assert_eq!(bench.get("result").unwrap(), b"y");
    bench.put_expiring("lock", "x");
    bench.ask(&["DEL", "result"]);
    assert_eq!(bench.run(&["lock", "result"], &["=x", "-", "expiring"]), "DELETED");
}

#[test]
fn leaves_a_value_that_is_another() {
    let mut bench = bench();
    for (value, expected) in
        [("x", "=y"), ("x", "=x "), ("x", "="), ("", "=x"), ("x", "=X"), ("x", "-"), ("-", "-"), ("=x", "=x")]
    {
        bench.put_expiring("a", value);
        bench.assert_leaves(&["a"], &[expected, "any"], "CHANGED");
    }
}

#[test]
fn leaves_it_when_the_expiry_is_of_another_kind() {
    let mut bench = bench();
    bench.put("a", "x");
    bench.assert_leaves(&["a"], &["=x", "expiring"], "CHANGED");
    bench.put_expiring("a", "x");
    bench.assert_leaves(&["a"], &["=x", "persistent"], "CHANGED");
}

#[test]
fn leaves_a_lock_that_was_taken_anew_with_the_same_bytes() {
    let mut bench = bench();
    bench.put("a", "x");
    bench.assert_leaves(&["a"], &["=x", "5000"], "CHANGED");
    bench.put_expiring("a", "x");
    bench.assert_leaves(&["a"], &["=x", "5000"], "CHANGED");
    assert_eq!(bench.run(&["a"], &["=x", "60000"]), "DELETED");
}

#[test]
fn leaves_it_when_the_records_other_key_is_another() {
    let mut bench = bench();
    bench.put_expiring("lock", "x");
    bench.assert_leaves(&["lock", "result"], &["=x", "=y", "expiring"], "CHANGED");
    bench.put_expiring("result", "z");
    bench.assert_leaves(&["lock", "result"], &["=x", "=y", "expiring"], "CHANGED");
    bench.assert_leaves(&["lock", "result"], &["=x", "-", "expiring"], "CHANGED");
    bench.each_type("result", |bench| {
        for expected in ["-", "=", "=z"] {
            bench.assert_leaves(&["lock", "result"], &["=x", expected, "expiring"], "CHANGED");
        }
    });
}

#[test]
fn leaves_any_other_type() {
    bench().each_type("a", |bench| {
        for expected in ["-", "=", "=PENDING"] {
            bench.assert_leaves(&["a"], &[expected, "any"], "CHANGED");
        }
    });
}

#[test]
fn says_when_the_key_is_gone() {
    let mut bench = bench();
    for expected in ["=x", "=", "-"] {
        assert_eq!(bench.run(&["a"], &[expected, "any"]), "ABSENT");
    }
    bench.put("b", "y");
    bench.assert_leaves(&["a", "b"], &["=x", "=other", "any"], "ABSENT");
}

#[test]
fn malformed_arguments_are_an_error_before_anything_is_done() {
    let mut bench = bench();
    bench.put("a", "x");
    let wrong: [&[&str]; 7] =
        [&[], &["=x"], &["x", "any"], &["", "any"], &["=x", ""], &["=x", "never"], &["=x", "any", "any"]];
    for args in wrong {
        bench.assert_leaves(&["a"], args, "error ERR");
    }
    for seen_ttl in ["-1", "1.5", "0x10", "ten"] {
        bench.assert_leaves(&["a"], &["=x", seen_ttl], "error ERR");
    }
    let none: [&str; 0] = [];
    assert_eq!(bench.run(&none, &["any"]), "error ERR");
}
