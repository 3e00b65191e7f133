//! admin/change_many_if_same

use idemctl::domain::step::reply::StepReply;

use crate::bench::Bench;
use crate::support::wire::STRAY;

fn bench() -> Bench {
    Bench::of("admin/change_many_if_same")
}

/// What a call can be asked to do: remove, or give five seconds.
const CHANGES: [&str; 2] = ["UNLINK", "5000"];

/// Heads, and in the last argument the preconditions, each with a semicolon behind; and what is to be done.
fn to(change: &str, args: &[impl AsRef<[u8]>]) -> Vec<Vec<u8>> {
    let (preconditions, heads) = args.split_last().unwrap();
    let preconditions = preconditions
        .as_ref()
        .strip_suffix(b";")
        .map_or_else(Vec::new, |preconditions| preconditions.split(|byte| *byte == b';').collect());
    let heads = heads.iter().map(|head| head.as_ref().to_vec());
    heads
        .chain(preconditions.into_iter().map(<[u8]>::to_vec))
        .chain([change.as_bytes().to_vec()])
        .collect()
}

/// Runs the script; the letters without the moment.
fn letters(bench: &mut Bench, keys: &[&str], args: &[Vec<u8>]) -> String {
    let reply = bench.run(keys, args);
    reply.split('@').next().unwrap().to_owned()
}

/// Removes; the letters.
fn remove(bench: &mut Bench, keys: &[&str], args: &[impl AsRef<[u8]>]) -> String {
    bench.run(keys, &to("UNLINK", args))
}

/// Asserts that neither change is made.
#[track_caller]
fn assert_leaves(bench: &mut Bench, keys: &[&str], args: &[impl AsRef<[u8]>], reply: &str) {
    for change in CHANGES {
        let before: Vec<_> = keys.iter().map(|key| bench.left(key)).collect();
        assert_eq!(letters(bench, keys, &to(change, args)), reply, "{before:?}");
        let after: Vec<_> = keys.iter().map(|key| bench.left(key)).collect();
        assert_eq!(after, before);
    }
}

/// The precondition for a key to change, seen whole.
fn whole(value: &[u8], deadline: &str) -> String {
    format!("={},{deadline};", value.len())
}

#[test]
fn removes_what_is_exactly_as_seen_or_gives_it_the_ttl() {
    let mut bench = bench();
    for (value, change) in STRAY.iter().flat_map(|value| CHANGES.map(|change| (value, change))) {
        bench.put("a", value);
        bench.put_expiring("b", value);
        let preconditions = whole(value, "-1") + &whole(value, &bench.deadline("b"));
        assert_eq!(
            letters(
                &mut bench,
                &["a", "b"],
                &to(change, &[value, value, preconditions.as_bytes()])
            ),
            "DD",
            "{change}"
        );
        if change == "UNLINK" {
            assert_eq!((bench.pttl("a"), bench.pttl("b")), (-2, -2));
        } else {
            bench.assert_ttl("a", 5);
            bench.assert_ttl("b", 5);
            assert_eq!(bench.get("a").unwrap(), *value);
        }
    }
}

/// Rule: a deadline alone stands for a key to change that was seen whole.
#[test]
fn a_deadline_alone_is_the_precondition_of_a_whole_value() {
    let mut bench = bench();
    for value in STRAY.iter().copied() {
        bench.put("a", value);
        let longer = [value, &b"x"[..]].concat();
        for other in [&longer[..], b"?"] {
            assert_leaves(&mut bench, &["a"], &[other, b"-1;"], "C");
            bench.put("a", other);
            assert_leaves(&mut bench, &["a"], &[value, b"-1;"], "C");
            bench.put("a", value);
        }
        assert_leaves(&mut bench, &["a"], &[value, b"4000000000000;"], "C");
        bench.put("result", "x");
        assert_eq!(remove(&mut bench, &["a", "result"], &[value, b"x", b"-1;+1,-1;"]), "D");
        bench.put("a", value);
        bench.ask(&["PEXPIREAT", "a", "4000000000000"]);
        assert_leaves(&mut bench, &["a"], &[value, b"-1;"], "C");
        assert_leaves(&mut bench, &["a"], &[value, b"4000000000009;"], "C");
        assert_eq!(remove(&mut bench, &["a"], &[value, b"4000000000000;"]), "D");
    }
}

#[test]
fn the_other_keys_of_a_record_get_no_ttl() {
    let mut bench = bench();
    for key in ["a", "a2", "b", "b2", "c"] {
        bench.put(key, "x");
    }
    let keys = ["a", "a2", "b", "b2", "gone", "c"];
    let args = ["x", "x", "x", "", "x", "y", "=1,-1;+1,-1;=1,-1;-,;=1,-1;=1,-1;"];
    assert_eq!(letters(&mut bench, &keys, &to("5000", &args)), "DCAC");
    bench.assert_ttl("a", 5);
    for key in ["a2", "b", "b2", "c"] {
        assert_eq!(bench.pttl(key), -1, "{key}");
    }
}

/// Rule: with + no key ends earlier than before, and with - none later, by the clock of the server that holds it. A key without
/// expiry has more time than any.
#[test]
fn a_bound_leaves_a_key_alone_that_has_enough_time_or_little_enough() {
    let mut bench = bench();
    for (change, seconds, of_a_minute, of_no_end) in [
        ("+5000", 5, "K", "K"),
        ("+120000", 120, "D", "K"),
        ("-5000", 5, "D", "D"),
        ("-120000", 120, "K", "D"),
    ] {
        bench.put_expiring("minute", "x");
        bench.put("endless", "x");
        let preconditions = whole(b"x", &bench.deadline("minute")) + &whole(b"x", "-1");
        let args = to(change, &["x", "x", &preconditions]);
        assert_eq!(
            letters(&mut bench, &["minute", "endless"], &args),
            format!("{of_a_minute}{of_no_end}"),
            "{change}"
        );
        bench.assert_ttl("minute", if of_a_minute == "D" { seconds } else { 60 });
        if of_no_end == "D" {
            bench.assert_ttl("endless", seconds);
        } else {
            assert_eq!(bench.pttl("endless"), -1, "{change}");
        }
    }
}

#[test]
fn each_record_is_judged_on_its_own() {
    let mut bench = bench();
    bench.put("same", "x");
    bench.put("other", "y");
    bench.put("last", "z");
    let args = ["x", "x", "x", "z", "=1,-1;=1,-1;=1,-1;=1,-1;"];
    assert_eq!(remove(&mut bench, &["same", "other", "gone", "last"], &args), "DCAD");
    assert_eq!(bench.get("other").unwrap(), b"y");
    assert_eq!((bench.pttl("same"), bench.pttl("last")), (-2, -2));
}

#[test]
fn the_records_other_keys_have_to_be_as_seen_and_stay() {
    let mut bench = bench();
    let mut lock = |result: Option<&str>, head: &str, precondition: &str| {
        bench.put("lock", "x");
        match result {
            Some(result) => bench.put("result", result),
            None => drop(bench.ask(&["DEL", "result"])),
        }
        let before = bench.left("result");
        let letters =
            remove(&mut bench, &["lock", "result"], &["x", head, &format!("=1,-1;{precondition}")]);
        assert_eq!(bench.left("result"), before);
        assert_eq!(bench.pttl("lock") == -2, letters == "D");
        letters
    };
    assert_eq!(lock(Some("yes"), "yes", "+3,-1;"), "D");
    assert_eq!(lock(Some("yes"), "y", "+3,-1;"), "D");
    assert_eq!(lock(Some(""), "", "+0,-1;"), "D");
    assert_eq!(lock(None, "", "-,;"), "D");
    assert_eq!(lock(Some("yes"), "", "-,;"), "C");
    assert_eq!(lock(Some(""), "", "-,;"), "C");
    assert_eq!(lock(None, "yes", "+3,-1;"), "C");
    assert_eq!(lock(None, "", "+0,-1;"), "C");
    assert_eq!(lock(Some("no!"), "yes", "+3,-1;"), "C");
    assert_eq!(lock(Some("yes!"), "y", "+3,-1;"), "C");
}

/// Rule: a record changes as a whole or not at all.
#[test]
fn all_keys_of_a_record_that_change_change_together() {
    let mut bench = bench();
    let (keys, args) = (["lock", "result"], ["x", "y", "=1,-1;*1,-1;"]);
    for other in [Some("z"), None] {
        bench.put("lock", "x");
        bench.ask(&["DEL", "result"]);
        if let Some(other) = other {
            bench.put("result", other);
        }
        assert_leaves(&mut bench, &keys, &args, "C");
    }
    bench.ask(&["DEL", "lock"]);
    assert_leaves(&mut bench, &keys, &args, "A");
    bench.put("result", "y");
    assert_leaves(&mut bench, &keys, &args, "C");
    bench.put("lock", "x");
    assert_eq!(remove(&mut bench, &keys, &args), "D");
    assert_eq!((bench.pttl("lock"), bench.pttl("result")), (-2, -2));
}

#[test]
fn both_keys_of_a_record_can_go_in_one_call() {
    let mut bench = bench();
    bench.put("lock", "x");
    bench.put("result", "y");
    let keys = ["lock", "result", "result", "lock"];
    assert_eq!(remove(&mut bench, &keys, &["x", "y", "y", "x", "=1,-1;+1,-1;=1,-1;+1,-1;"]), "DD");
    assert_eq!((bench.pttl("lock"), bench.pttl("result")), (-2, -2));
}

#[test]
fn leaves_a_value_that_is_another() {
    let mut bench = bench();
    for (value, head, length) in [
        ("x", "y", 1),
        ("x", "x ", 2),
        ("x", "", 0),
        ("", "x", 1),
        ("x", "X", 1),
        ("xy", "x", 1),
        ("xyz", "x", 2),
        ("xyz", "y", 3),
    ] {
        bench.put("a", value);
        assert_leaves(&mut bench, &["a"], &[head, &format!("={length},-1;")], "C");
    }
}

#[test]
fn of_a_value_seen_in_part_head_and_length_are_compared() {
    let mut bench = bench();
    bench.put("a", "headtail");
    assert_leaves(&mut bench, &["a"], &["head", "=9,-1;"], "C");
    assert_leaves(&mut bench, &["a"], &["heat", "=8,-1;"], "C");
    assert_eq!(remove(&mut bench, &["a"], &["head", "=8,-1;"]), "D");
}

#[test]
fn a_checksum_of_what_was_backed_up_has_to_hold_too() {
    let mut bench = bench();
    bench.put("a", "headtail");
    let StepReply::Text(dump) = bench.ask(&["DUMP", "a"]) else { panic!("no dump") };
    let head = [b"head", &dump[dump.len() - 8..]].concat();
    bench.put("a", "headTAIL");
    assert_leaves(&mut bench, &["a"], &[&head[..], b"=8d,-1;"], "C");
    bench.put("a", "headtail");
    assert_eq!(remove(&mut bench, &["a"], &[&head[..], b"=8d,-1;"]), "D");
    bench.each_type("a", |bench| assert_leaves(bench, &["a"], &[&head[..], b"=8d,-1;"], "C"));
}

/// Rule: a record is bytes and the moment of expiry of each of its Redis keys.
#[test]
fn leaves_a_lock_that_was_taken_anew_with_the_same_bytes() {
    let mut bench = bench();
    bench.put("a", "x");
    assert_leaves(&mut bench, &["a"], &["x", "=1,1;"], "C");
    bench.put_expiring("a", "x");
    let seen = bench.deadline("a");
    assert_leaves(&mut bench, &["a"], &["x", "=1,-1;"], "C");
    for other in [-9_000, -10, 10, 9_000] {
        let other = match seen.strip_prefix('~') {
            Some(at) => format!("~{}", at.parse::<i64>().unwrap() + other),
            None => (seen.parse::<i64>().unwrap() + other).to_string(),
        };
        assert_leaves(&mut bench, &["a"], &["x", &format!("=1,{other};")], "C");
    }
    assert_eq!(remove(&mut bench, &["a"], &["x", &format!("=1,{seen};")]), "D");
}

#[test]
fn an_exact_moment_is_compared_exactly_and_a_computed_one_within_two_milliseconds() {
    let mut bench = bench();
    bench.put("a", "x");
    assert_eq!(bench.ask(&["PEXPIREAT", "a", "4000000000000"]), StepReply::Integer(1));
    let is_exact = !bench.deadline("a").starts_with('~');
    for (other, passes) in [(0, true), (1, !is_exact), (-1, !is_exact), (9, false), (-9, false)] {
        let precondition = format!("=1,{};", 4_000_000_000_000_i64 + other);
        let letter = letters(&mut bench, &["a"], &to("5000", &["x", &precondition]));
        assert_eq!(letter, if passes { "D" } else { "C" }, "{other}");
        bench.ask(&["PEXPIREAT", "a", "4000000000000"]);
        let approximate = format!("=1,~{};", 4_000_000_000_000_i64 + other);
        let letter = letters(&mut bench, &["a"], &to("5000", &["x", &approximate]));
        assert_eq!(letter, if other.abs() < 9 { "D" } else { "C" }, "{other}");
        bench.ask(&["PEXPIREAT", "a", "4000000000000"]);
    }
}

#[test]
fn the_expiry_of_a_records_other_key_has_to_be_as_seen_too() {
    let mut bench = bench();
    bench.put("lock", "x");
    bench.put_expiring("result", "yes");
    let seen = bench.deadline("result");
    assert_leaves(&mut bench, &["lock", "result"], &["x", "yes", "=1,-1;+3,-1;"], "C");
    assert_leaves(&mut bench, &["lock", "result"], &["x", "yes", "=1,-1;+3,1;"], "C");
    assert_eq!(
        remove(&mut bench, &["lock", "result"], &["x", "yes", &format!("=1,-1;+3,{seen};")]),
        "D"
    );
}

#[test]
fn without_a_way_to_ask_for_the_expiry_nothing_is_changed() {
    let mut bench = bench();
    bench.put_expiring("a", "x");
    let seen = bench.deadline("a");
    bench.log_in_with("+eval +unlink +pttl +getrange +strlen +dump +ping");
    assert_leaves(&mut bench, &["a"], &["x", &format!("=1,{seen};")], "error NOPERM");
}

#[test]
fn leaves_any_other_type() {
    bench().each_type("a", |bench| {
        for (head, length) in [("", 0), ("PENDING", 7), ("PEND", 7)] {
            assert_leaves(bench, &["a"], &[head, &format!("={length},-1;")], "C");
        }
        bench.put("lock", "x");
        for precondition in ["-,;", "+0,-1;"] {
            assert_leaves(bench, &["lock", "a"], &["x", "", &format!("=1,-1;{precondition}")], "C");
        }
    });
}

/// Rules for two keys of which one is none, or that are too few or too many; a space between them.
const MALFORMED: &str = "
    =1,-1; =1,-1;=1,-1;=1,-1; =1,-1;=,-1; =1,-1;=1,; =1,-1;=1,-; =1,-1;=1,p; =1,-1;+,; =1,-1;+1,; =1,-1;=1,-2;
    =1,-1;=1,~; =1,-1;-,5; =1,-1;-1,; =1,-1;-,; =1,-1;=0,-1; =1,-1;=1d,-1; +1,;=1,-1; +1,-1;-1; -1;-2; -1;1.5; -1;nan;
    -1;inf; -1;; -1;~1;
";

#[test]
fn malformed_arguments_are_an_error_before_anything_is_done() {
    let mut bench = bench();
    bench.put("a", "x");
    bench.put("b", "x");
    for preconditions in MALFORMED.split_whitespace().chain(["", "=1,-1; =1,-1;"]) {
        assert_leaves(&mut bench, &["a", "b"], &["x", "x", preconditions], "error ERR");
    }
    assert_leaves(&mut bench, &["a", "b"], &["x", "", "=1,-1;=1,-1;"], "error ERR");
    assert_leaves(&mut bench, &["a"], &["x"], "error ERR");
    assert_leaves(&mut bench, &["a"], &["x", "=1,-1;", "5"], "error ERR");
    assert_eq!(remove(&mut bench, &[], &[""]), "error ERR");
    for change in ["unlink", "UNLINK ", "DEL"] {
        bench.assert_leaves(&["a"], &to(change, &["x", "=1,-1;"]), "error ERR");
    }
    for ttl in ["0", "1.5", "30.0", "", "ten"] {
        bench.assert_leaves(&["a"], &to(ttl, &["x", "=1,-1;"]), "error ERR");
    }
}
