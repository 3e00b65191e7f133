//! admin/expire_if_same

use crate::bench::{Bench, STRAY};

fn bench() -> Bench {
    Bench::of("admin/expire_if_same")
}

#[test]
fn gives_what_is_exactly_as_seen_the_ttl() {
    let mut bench = bench();
    for value in STRAY {
        let seen = [b"=", *value].concat();
        bench.put("a", value);
        assert_eq!(bench.run(&["a"], &[&seen[..], b"5000", b"persistent"]), "EXPIRING");
        bench.assert_ttl("a", 5);
        assert_eq!(bench.run(&["a"], &[&seen[..], b"90000", b"expiring"]), "EXPIRING");
        bench.assert_ttl("a", 90);
        assert_eq!(bench.run(&["a"], &[&seen[..], b"7000"]), "EXPIRING");
        bench.assert_ttl("a", 7);
        assert_eq!(bench.get("a").unwrap(), *value);
    }
}

#[test]
fn touches_the_first_key_alone() {
    let mut bench = bench();
    bench.put("lock", "x");
    bench.put("result", "y");
    assert_eq!(bench.run(&["lock", "result"], &["=x", "=y", "5000", "persistent"]), "EXPIRING");
    assert_eq!(bench.pttl("result"), -1);
}

#[test]
fn leaves_what_changed() {
    let mut bench = bench();
    bench.put("a", "x");
    bench.assert_leaves(&["a"], &["=y", "5000", "any"], "CHANGED");
    bench.assert_leaves(&["a"], &["-", "5000"], "CHANGED");
    bench.assert_leaves(&["a"], &["=x", "5000", "expiring"], "CHANGED");
    bench.assert_leaves(&["a", "b"], &["=x", "=y", "5000", "any"], "CHANGED");
    bench.put("b", "y");
    bench.assert_leaves(&["a", "b"], &["=x", "-", "5000", "any"], "CHANGED");
    bench.put_expiring("a", "x");
    bench.assert_leaves(&["a"], &["=x", "5000", "persistent"], "CHANGED");
    bench.each_type("a", |bench| {
        bench.assert_leaves(&["a"], &["-", "5000"], "CHANGED");
        bench.assert_leaves(&["a"], &["=PENDING", "5000"], "CHANGED");
    });
}

#[test]
fn leaves_it_when_the_ttl_went_up() {
    let mut bench = bench();
    bench.put_expiring("a", "x");
    bench.assert_leaves(&["a"], &["=x", "5000", "30000"], "CHANGED");
    assert_eq!(bench.run(&["a"], &["=x", "5000", "60000"]), "EXPIRING");
    bench.put("a", "x");
    bench.assert_leaves(&["a"], &["=x", "5000", "60000"], "CHANGED");
}

#[test]
fn says_when_the_key_is_gone() {
    assert_eq!(bench().run(&["a"], &["=x", "5000", "any"]), "ABSENT");
}

#[test]
fn malformed_arguments_are_an_error_before_anything_is_done() {
    let mut bench = bench();
    bench.put("a", "x");
    for ttl in ["0", "-1", "1.5", "05", "", "ten", "1e3"] {
        bench.assert_leaves(&["a"], &["=x", ttl, "any"], "error ERR");
    }
    for seen_ttl in ["-1", "1.5", "0x10", "ten", ""] {
        bench.assert_leaves(&["a"], &["=x", "5000", seen_ttl], "error ERR");
    }
    let wrong: [&[&str]; 5] =
        [&[], &["=x"], &["x", "5000", "any"], &["=x", "5000", "never"], &["=x", "5000", "any", "any"]];
    for args in wrong {
        bench.assert_leaves(&["a"], args, "error ERR");
    }
}
