//! admin/change_many_if_same, on what is no string.

use idemctl::domain::step::reply::StepReply;

use crate::bench::Bench;

/// Asserts that neither change is made.
#[track_caller]
fn leaves(bench: &mut Bench, key: &str, seen: &[u8], rule: &str, reply: &str) {
    for change in [&b"UNLINK"[..], b"5000"] {
        let before = bench.left(key);
        let told = bench.run(&[key], &[seen, rule.as_bytes(), change]);
        assert_eq!((told.split('@').next(), bench.left(key)), (Some(reply), before));
    }
}

/// Rule: what is no string is the one that was seen when DUMP has the checksum that was seen, and no other.
#[test]
fn what_is_no_string_is_compared_by_the_checksum_of_its_dump() {
    let mut bench = Bench::of("admin/change_many_if_same");
    let sum = |bench: &mut Bench| {
        let StepReply::Text(dump) = bench.ask(&["DUMP", "a"]) else { panic!("no dump") };
        dump[dump.len() - 8..].to_vec()
    };
    bench.ask(&["HSET", "a", "status", "held"]);
    let seen = sum(&mut bench);
    for other in [
        &["HSET", "a", "status", "done"][..],
        &["HSET", "a", "owner", "w"],
        &["PEXPIRE", "a", "600000"],
    ] {
        bench.ask(other);
        leaves(&mut bench, "a", &seen, "=0D,-1", "C");
        bench.ask(&["DEL", "a"]);
        bench.ask(&["HSET", "a", "status", "held"]);
    }
    bench.put("b", "x");
    leaves(&mut bench, "b", &seen, "=0D,-1", "C");
    for wrong in ["=1D,-1", "=D,-1"] {
        leaves(&mut bench, "a", &seen, wrong, "error ERR");
    }
    assert_eq!(bench.run(&["a"], &[&seen[..], b"=0D,-1", b"UNLINK"]), "D");
    assert_eq!(bench.run(&["a"], &[&seen[..], b"=0D,-1", b"UNLINK"]), "A");
}
