//! admin/restore_many_if_absent

use idemctl::domain::step::reply::StepReply;

use crate::bench::Bench;
use crate::support::wire::STRAY;

fn bench() -> Bench {
    Bench::of("admin/restore_many_if_absent")
}

fn dump(bench: &mut Bench, key: &str) -> Vec<u8> {
    let StepReply::Text(payload) = bench.ask(&["DUMP", key]) else { panic!("nothing to dump") };
    payload
}

/// The letters of the reply. Each X has the error of RESTORE.
fn letters<K: AsRef<[u8]>, A: AsRef<[u8]>>(bench: &mut Bench, keys: &[K], args: &[A]) -> String {
    let StepReply::Array(reply) = bench.reply(keys, args) else { panic!("no array") };
    let [StepReply::Text(letters), StepReply::Integer(now), refusals @ ..] = &reply[..] else {
        panic!("{reply:?}")
    };
    assert!(*now > 1_000_000_000_000, "{now}");
    for refusal in refusals {
        let StepReply::Error { message, .. } = refusal else { panic!("{refusal:?}") };
        assert!(message.contains("DUMP payload version or checksum are wrong"), "{message}");
    }
    let letters = String::from_utf8(letters.clone()).unwrap();
    assert_eq!(letters.matches('X').count(), refusals.len(), "{letters}");
    letters
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
        assert_leaves(&mut bench, &["a", "backup"], &[&payload[..], b"", b"0", b"-"], "P");
    }
    bench.each_type("a", |bench| assert_leaves(bench, &["a"], &[&payload[..], b"0"], "P"));
}

#[test]
fn what_stands_beside_keeps_it_away() {
    let (mut bench, payload) = with_backup();
    for value in STRAY {
        bench.put_expiring("lock", value);
        assert_leaves(&mut bench, &["a", "lock"], &[&payload[..], b"", b"0", b"-"], "B");
        assert_eq!(bench.pttl("a"), -2);
    }
    let args = [&payload[..], b"", b"0", b"-"];
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
fn malformed_arguments_are_an_error() {
    let (mut bench, payload) = with_backup();
    for at in ["-1", "1.5", "", "+0", "*0", "-", "*"] {
        assert_eq!(bench.run(&["a"], &[&payload[..], at.as_bytes()]), "error ERR", "{at}");
    }
    for second in ["*", "*-", "-0", "x"] {
        let args = [&payload[..], &payload, b"0", second.as_bytes()];
        assert_eq!(bench.run(&["a", "b"], &args), "error ERR", "{second}");
    }
    assert_eq!(bench.run(&["a"], &[&payload[..]]), "error ERR");
    assert_eq!(bench.run(&["a"], &[&payload[..], b"0", b"0"]), "error ERR");
    assert_eq!((bench.pttl("a"), bench.pttl("b")), (-2, -2));
}

/// Rule: lock and result come back together, and neither does if one of them is there.
#[test]
fn the_keys_of_a_record_come_back_together_or_not_at_all() {
    let (mut bench, payload) = with_backup();
    let args = [&payload[..], &payload[..], b"0", b"*0"];
    assert_eq!(letters(&mut bench, &["lock", "result"], &args), "RR");
    assert_leaves(&mut bench, &["lock", "result"], &args, "PP");
    bench.ask(&["DEL", "lock"]);
    assert_leaves(&mut bench, &["lock", "result"], &args, "BP");
    bench.ask(&["DEL", "result"]);
    // A lock whose time is over does not come back, and one that is there by now bars the result all the same.
    let past = in_ms(&mut bench, -1);
    let args = [&payload[..], &payload[..], past.as_bytes(), b"*0"];
    bench.put("lock", "a retry");
    assert_leaves(&mut bench, &["lock", "result"], &args, "EB");
    bench.ask(&["DEL", "lock"]);
    assert_eq!(letters(&mut bench, &["lock", "result"], &args), "ER");
    // What RESTORE refuses of one is refused of both.
    bench.ask(&["DEL", "result"]);
    for (lock, result) in [(&payload[..], &b"damaged"[..]), (b"damaged", &payload)] {
        let args = [lock, result, b"0", b"*0"];
        assert_leaves(&mut bench, &["lock", "result"], &args, "XX");
    }
}

/// Rule: bytes that RESTORE refuses leave their own record untouched, and no other.
#[test]
fn refused_bytes_in_the_middle_leave_only_their_own_record() {
    let (mut bench, payload) = with_backup();
    let mut damaged = payload.clone();
    damaged[1] ^= 1;
    let (past, future) = (in_ms(&mut bench, -1), in_ms(&mut bench, 60_000));
    bench.put("there", "by now");
    bench.put("bar", "a lock");
    let keys = ["one", "bad", "part", "over", "there", "barred", "bar", "empty", "last"];
    let payloads =
        [&payload[..], &payload, &damaged, &payload, &payload, &payload, b"", b"", &payload];
    let deadlines = ["0", "0", "*0", &past, "0", "0", "-", "0", &future];
    let args: Vec<&[u8]> =
        payloads.into_iter().chain(deadlines.iter().map(|at| at.as_bytes())).collect();
    assert_eq!(letters(&mut bench, &keys, &args), "RXXEPBXR");
    for (key, left) in [("one", -1), ("bad", -2), ("part", -2), ("over", -2), ("empty", -2)] {
        assert_eq!(bench.pttl(key), left, "{key}");
    }
    assert_eq!(bench.get("there").unwrap(), b"by now");
    bench.assert_ttl("last", 60);
}

/// Rule: a record whose other key may not be removed again is not said to be untouched.
#[test]
fn what_cannot_be_removed_again_is_told_as_back() {
    let (mut bench, payload) = with_backup();
    bench.log_in_with("+@all -unlink");
    let args = [&payload[..], b"damaged", b"0", b"*0"];
    assert_eq!(letters(&mut bench, &["lock", "result"], &args), "RX");
    assert_eq!((bench.pttl("lock"), bench.pttl("result")), (-1, -2));
}

/// Rule: records of one call are restored one after the other, so that one of them may bar the next.
#[test]
fn a_hundred_records_come_back_in_one_call_each_key_once() {
    let (mut bench, payload) = with_backup();
    let keys: Vec<_> = (0..100).map(|index| format!("k{}", index % 99)).collect();
    let args: Vec<_> = [&payload[..]; 100].into_iter().chain([&b"0"[..]; 100]).collect();
    assert_eq!(letters(&mut bench, &keys, &args), format!("{}P", "R".repeat(99)));
    assert_eq!(letters(&mut bench, &keys, &args), "P".repeat(100));
}

/// Rule: without the clock too, what RESTORE accepts and does not store is not said to be back.
#[test]
fn what_is_over_is_found_out_without_the_clock() {
    let (mut bench, payload) = with_backup();
    bench.log_in_with("+@all -time");
    assert_eq!(bench.run(&["a"], &[&payload[..], b"1"]), "[E -1]");
}
