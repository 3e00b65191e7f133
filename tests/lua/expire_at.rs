//! admin/change_many_if_same, asked to give keys a TTL that never shortens, or never lengthens.

use crate::bench::Bench;

/// A key of five bytes that was seen whole, and what is to be done.
fn args(deadline: &str, change: &str) -> Vec<Vec<u8>> {
    [b"value".to_vec(), format!("=5,{deadline}").into_bytes(), change.as_bytes().to_vec()].into()
}

/// The letters of a reply, and the moment behind them.
fn told(reply: &str) -> (String, i64) {
    let (letters, at) = reply.split_once('@').unwrap();
    (letters.to_owned(), at.parse().unwrap())
}

/// Rule: the node computes the moment of expiry by its own clock, gives it to every key, and says which one it is.
#[test]
fn all_keys_expire_at_the_moment_that_the_reply_names() {
    let mut bench = Bench::of("admin/change_many_if_same");
    let keys: Vec<_> = (0..20_000).map(|index| format!("k{index}")).collect();
    for some in keys.chunks(1_000) {
        let words = some.iter().flat_map(|key| [key.as_str(), "value"]);
        bench.ask(&["MSET"].into_iter().chain(words).collect::<Vec<_>>());
    }
    let mut words = vec!["value".to_owned(); keys.len()];
    words.extend(vec!["=5,-1".to_owned(); keys.len()]);
    words.push("-600000".to_owned());
    let (letters, at) = told(&bench.run(&keys, &words));
    assert_eq!(letters, "D".repeat(keys.len()));
    for key in ["k0", "k10000", "k19999"] {
        let deadline = bench.deadline(key);
        let (slack, deadline) =
            deadline.strip_prefix('~').map_or((0, &deadline[..]), |deadline| (2, deadline));
        assert!((deadline.parse::<i64>().unwrap() - at).abs() <= slack, "{key}: {deadline} {at}");
        assert_eq!(bench.get(key).unwrap(), b"value");
    }
}

#[test]
fn who_may_not_name_a_moment_gives_a_ttl() {
    let mut bench = Bench::of("admin/change_many_if_same");
    bench.put("a", b"value");
    bench.log_in_with("+@all -pexpireat");
    assert_eq!(told(&bench.run(&["a"], &args("-1", "-600000"))).0, "D");
    let left = bench.pttl("a");
    assert!((590_000..=600_000).contains(&left), "{left}");
}

/// Rule: + gives no key less time than it has, and - none more, by the clock of the node that holds the key.
#[test]
fn a_bound_is_compared_with_the_deadline_that_is_there() {
    let mut bench = Bench::of("admin/change_many_if_same");
    for (change, letter) in [("+1", "K"), ("-90000000", "K"), ("+90000000", "D"), ("-1000", "D")] {
        bench.put_expiring("a", b"value");
        let deadline = bench.deadline("a");
        let millis = |deadline: &str| deadline.trim_start_matches('~').parse::<i64>().unwrap();
        assert_eq!(told(&bench.run(&["a"], &args(&deadline, change))).0, letter, "{change}");
        let moved = millis(&bench.deadline("a")) - millis(&deadline);
        assert_eq!(moved.abs() <= 2, letter == "K", "{change}: {moved}");
    }
    bench.put("a", b"value");
    assert_eq!(
        told(&bench.run(&["a"], &args("-1", "+90000000"))).0,
        "K",
        "no expiry is more than any TTL"
    );
    assert_eq!(bench.pttl("a"), -1);
}

#[test]
fn a_malformed_change_changes_nothing() {
    let mut bench = Bench::of("admin/change_many_if_same");
    bench.put("a", b"value");
    for change in ["@1", "+", "-", "+0", "-0", "+-1", "++1", "+1.5", "1 "] {
        bench.assert_leaves(&["a"], &args("-1", change), "error ERR");
    }
}
