//! admin/restore_if_absent

use idemctl::domain::step::StepReply;

use crate::bench::{Bench, STRAY};

fn bench() -> Bench {
    Bench::of("admin/restore_if_absent")
}

fn dump(bench: &mut Bench, key: &str) -> Vec<u8> {
    let StepReply::Text(payload) = bench.ask(&["DUMP", key]) else { panic!("nothing to dump") };
    payload
}

#[test]
fn brings_a_value_back_byte_for_byte_with_its_ttl() {
    let mut bench = bench();
    for value in STRAY {
        bench.put("a", value);
        let payload = dump(&mut bench, "a");
        bench.ask(&["DEL", "a"]);
        assert_eq!(bench.run(&["a"], &[&payload[..], b"7000"]), "RESTORED");
        assert_eq!(bench.get("a").unwrap(), *value);
        bench.assert_ttl("a", 7);
        bench.ask(&["DEL", "a"]);
        assert_eq!(bench.run(&["a"], &[&payload[..], b"0"]), "RESTORED");
        assert_eq!(bench.pttl("a"), -1);
    }
}

#[test]
fn never_overwrites_what_is_there() {
    let mut bench = bench();
    bench.put("backup", "old");
    let payload = dump(&mut bench, "backup");
    for value in STRAY {
        bench.put_expiring("a", value);
        bench.assert_leaves(&["a"], &[&payload[..], b"0"], "PRESENT");
    }
    bench.each_type("a", |bench| bench.assert_leaves(&["a"], &[&payload[..], b"0"], "PRESENT"));
}

#[test]
fn brings_other_types_back_too() {
    bench().each_type("a", |bench| {
        let payload = dump(bench, "a");
        let before = bench.left("a");
        bench.ask(&["DEL", "a"]);
        assert_eq!(bench.run(&["a"], &[&payload[..], b"0"]), "RESTORED");
        assert_eq!(bench.left("a"), before);
    });
}

#[test]
fn damaged_bytes_and_a_wrong_ttl_are_an_error() {
    let mut bench = bench();
    bench.put("backup", "old");
    let payload = dump(&mut bench, "backup");
    let mut damaged = payload.clone();
    damaged[1] ^= 1;
    for (payload, ttl) in
        [(&damaged[..], "0"), (b"", "0"), (b"text", "0"), (&payload, "-1"), (&payload, "1.5"), (&payload, "")]
    {
        assert_eq!(bench.run(&["a"], &[payload, ttl.as_bytes()]), "error ERR");
        assert_eq!(bench.pttl("a"), -2);
    }
}
