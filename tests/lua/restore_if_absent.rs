//! admin/restore_if_absent

use idemctl::domain::step::reply::StepReply;

use crate::bench::Bench;
use crate::support::wire::STRAY;

fn bench() -> Bench {
    Bench::of("admin/restore_if_absent")
}

fn dump(bench: &mut Bench, key: &str) -> Vec<u8> {
    let StepReply::Text(payload) = bench.ask(&["DUMP", key]) else { panic!("nothing to dump") };
    payload
}

/// A server with a value, and what DUMP says of it.
fn with_backup() -> (Bench, Vec<u8>) {
    let mut bench = bench();
    bench.put("backup", "old");
    let payload = dump(&mut bench, "backup");
    (bench, payload)
}

/// The server's clock, so many milliseconds on.
fn in_ms(bench: &mut Bench, more: i64) -> String {
    let StepReply::Array(time) = bench.ask(&["TIME"]) else { panic!("TIME answers two numbers") };
    let [StepReply::Text(seconds), StepReply::Text(micros)] = &time[..] else { panic!("{time:?}") };
    let number = |text: &[u8]| std::str::from_utf8(text).unwrap().parse::<i64>().unwrap();
    (number(seconds) * 1_000 + number(micros) / 1_000 + more).to_string()
}

#[test]
fn brings_a_value_back_byte_for_byte_to_expire_at_the_moment_it_is_given() {
    let mut bench = bench();
    for value in STRAY {
        bench.put("a", value);
        let payload = dump(&mut bench, "a");
        bench.ask(&["DEL", "a"]);
        let at = in_ms(&mut bench, 7_000);
        assert_eq!(bench.run(&["a", "a"], &[&payload[..], at.as_bytes()]), "RESTORED");
        assert_eq!(bench.get("a").unwrap(), *value);
        bench.assert_ttl("a", 7);
        bench.ask(&["DEL", "a"]);
        assert_eq!(bench.run(&["a", "a"], &[&payload[..], b"0"]), "RESTORED");
        assert_eq!(bench.pttl("a"), -1);
    }
}

#[test]
fn never_overwrites_what_is_there() {
    let (mut bench, payload) = with_backup();
    for value in STRAY {
        bench.put_expiring("a", value);
        bench.assert_leaves(&["a", "a"], &[&payload[..], b"0"], "PRESENT");
        bench.assert_leaves(&["a", "backup"], &[&payload[..], b"0"], "PRESENT");
    }
    bench.each_type("a", |bench| bench.assert_leaves(&["a", "a"], &[&payload[..], b"0"], "PRESENT"));
}

#[test]
fn what_stands_beside_keeps_it_away() {
    let (mut bench, payload) = with_backup();
    for value in STRAY {
        bench.put_expiring("lock", value);
        bench.assert_leaves(&["a", "lock"], &[&payload[..], b"0"], "BARRED");
        assert_eq!(bench.pttl("a"), -2);
    }
    bench.each_type("lock", |bench| bench.assert_leaves(&["a", "lock"], &[&payload[..], b"0"], "BARRED"));
    assert_eq!(bench.run(&["a", "lock"], &[&payload[..], b"0"]), "RESTORED");
}

#[test]
fn what_is_over_by_then_is_not_said_to_be_back() {
    let (mut bench, payload) = with_backup();
    let past = in_ms(&mut bench, -1);
    for at in [&past, "1"] {
        assert_eq!(bench.run(&["a", "a"], &[&payload[..], at.as_bytes()]), "EXPIRED");
        assert_eq!(bench.pttl("a"), -2);
    }
}

#[test]
fn brings_other_types_back_too() {
    bench().each_type("a", |bench| {
        let payload = dump(bench, "a");
        let before = bench.left("a");
        bench.ask(&["DEL", "a"]);
        assert_eq!(bench.run(&["a", "a"], &[&payload[..], b"0"]), "RESTORED");
        assert_eq!(bench.left("a"), before);
    });
}

#[test]
fn damaged_bytes_and_a_wrong_expiry_are_an_error() {
    let (mut bench, payload) = with_backup();
    let mut damaged = payload.clone();
    damaged[1] ^= 1;
    for (payload, at) in
        [(&damaged[..], "0"), (b"", "0"), (b"text", "0"), (&payload, "-1"), (&payload, "1.5"), (&payload, "")]
    {
        assert_eq!(bench.run(&["a", "a"], &[payload, at.as_bytes()]), "error ERR");
        assert_eq!(bench.pttl("a"), -2);
    }
}
