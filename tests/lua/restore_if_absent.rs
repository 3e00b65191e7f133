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

/// The letters of the reply.
fn letters(bench: &mut Bench, keys: &[&str], args: &[&[u8]]) -> String {
    let StepReply::Array(reply) = bench.reply(keys, args) else { panic!("no array") };
    let [StepReply::Text(letters), StepReply::Integer(now)] = &reply[..] else {
        panic!("{reply:?}")
    };
    assert!(*now > 1_000_000_000_000, "{now}");
    String::from_utf8(letters.clone()).unwrap()
}

#[track_caller]
fn assert_leaves(bench: &mut Bench, keys: &[&str], args: &[&[u8]], expected: &str) {
    let before: Vec<_> = keys.iter().map(|key| bench.left(key)).collect();
    assert_eq!(letters(bench, keys, args), expected, "{before:?}");
    let after: Vec<_> = keys.iter().map(|key| bench.left(key)).collect();
    assert_eq!(after, before);
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
        assert_eq!(letters(&mut bench, &["a"], &[&payload[..], at.as_bytes()]), "R");
        assert_eq!(bench.get("a").unwrap(), *value);
        bench.assert_ttl("a", 7);
        bench.ask(&["DEL", "a"]);
        assert_eq!(letters(&mut bench, &["a"], &[&payload[..], b"0"]), "R");
        assert_eq!(bench.pttl("a"), -1);
    }
}

#[test]
fn never_overwrites_what_is_there() {
    let (mut bench, payload) = with_backup();
    for value in STRAY {
        bench.put_expiring("a", value);
        assert_leaves(&mut bench, &["a"], &[&payload[..], b"0"], "P");
        assert_leaves(&mut bench, &["a", "backup"], &[&payload[..], b"", b"0", b"0"], "P");
    }
    bench.each_type("a", |bench| assert_leaves(bench, &["a"], &[&payload[..], b"0"], "P"));
}

#[test]
fn what_stands_beside_keeps_it_away() {
    let (mut bench, payload) = with_backup();
    for value in STRAY {
        bench.put_expiring("lock", value);
        assert_leaves(&mut bench, &["a", "lock"], &[&payload[..], b"", b"0", b"0"], "B");
        assert_eq!(bench.pttl("a"), -2);
    }
    let args = [&payload[..], b"", b"0", b"0"];
    bench.each_type("lock", |bench| assert_leaves(bench, &["a", "lock"], &args, "B"));
    assert_eq!(letters(&mut bench, &["a", "lock"], &args), "R");
}

#[test]
fn what_is_over_by_then_is_not_said_to_be_back() {
    let (mut bench, payload) = with_backup();
    let past = in_ms(&mut bench, -1);
    for at in [&past, "1"] {
        assert_eq!(letters(&mut bench, &["a"], &[&payload[..], at.as_bytes()]), "E");
        assert_eq!(bench.pttl("a"), -2);
    }
}

#[test]
fn brings_other_types_back_too() {
    bench().each_type("a", |bench| {
        let payload = dump(bench, "a");
        let before = bench.left("a");
        bench.ask(&["DEL", "a"]);
        assert_eq!(letters(bench, &["a"], &[&payload[..], b"0"]), "R");
        assert_eq!(bench.left("a"), before);
    });
}

#[test]
fn damaged_bytes_and_a_wrong_expiry_are_an_error() {
    let (mut bench, payload) = with_backup();
    let mut damaged = payload.clone();
    damaged[1] ^= 1;
    for (payload, at) in
        [(&damaged[..], "0"), (b"text", "0"), (&payload, "-1"), (&payload, "1.5"), (&payload, "")]
    {
        assert_eq!(bench.run(&["a"], &[payload, at.as_bytes()]), "error ERR");
        assert_eq!(bench.pttl("a"), -2);
    }
}

/// Rule: lock and result come back together, and neither does if one of them is there.
#[test]
fn the_keys_of_a_record_come_back_together_or_not_at_all() {
    let (mut bench, payload) = with_backup();
    let args = [&payload[..], &payload[..], b"0", b"0"];
    assert_eq!(letters(&mut bench, &["lock", "result"], &args), "RR");
    assert_leaves(&mut bench, &["lock", "result"], &args, "PP");
    bench.ask(&["DEL", "lock"]);
    assert_leaves(&mut bench, &["lock", "result"], &args, "BP");
    bench.ask(&["DEL", "result"]);
    // A lock whose time is over does not come back, and one that is there by now bars the result all the same.
    let past = in_ms(&mut bench, -1);
    let args = [&payload[..], &payload[..], past.as_bytes(), b"0"];
    bench.put("lock", "a retry");
    assert_leaves(&mut bench, &["lock", "result"], &args, "EB");
    bench.ask(&["DEL", "lock"]);
    assert_eq!(letters(&mut bench, &["lock", "result"], &args), "ER");
    // What RESTORE refuses of one is refused of both.
    bench.ask(&["DEL", "result"]);
    let args = [&payload[..], b"damaged", b"0", b"0"];
    assert_eq!(bench.run(&["lock", "result"], &args), "error ERR");
    assert_eq!((bench.pttl("lock"), bench.pttl("result")), (-2, -2));
}
