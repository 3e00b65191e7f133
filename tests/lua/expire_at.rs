//! admin/change_many_if_same, asked to let keys expire at a moment.

use crate::bench::Bench;

/// A key of five bytes that was seen whole, and what is to be done.
fn args(deadline: &str, change: &str) -> Vec<Vec<u8>> {
    [b"value".to_vec(), format!("=5,{deadline}").into_bytes(), change.as_bytes().to_vec()].into()
}

/// The server's clock in milliseconds.
fn now(bench: &mut Bench) -> i64 {
    bench.put_expiring("clock", b"value");
    let at: i64 = bench.deadline("clock").trim_start_matches('~').parse().unwrap();
    at - bench.pttl("clock")
}

/// How far from the moment that was ordered a key expires; a moment that TIME and PTTL told is known within two milliseconds.
#[track_caller]
fn assert_expires_at(bench: &mut Bench, key: &str, at: i64) {
    let told = bench.deadline(key);
    let (slack, told) = told.strip_prefix('~').map_or((0, &told[..]), |told| (2, told));
    assert!((told.parse::<i64>().unwrap() - at).abs() <= slack, "{key}: {told} {at}");
}

/// Rule: a moment that is ordered is the moment at which each key expires, however long the server takes to get there.
#[test]
fn all_keys_expire_at_the_moment_that_was_ordered() {
    let mut bench = Bench::of("admin/change_many_if_same");
    let keys: Vec<_> = (0..20_000).map(|index| format!("k{index}")).collect();
    for some in keys.chunks(1_000) {
        let words = some.iter().flat_map(|key| [key.as_str(), "value"]);
        bench.ask(&["MSET"].into_iter().chain(words).collect::<Vec<_>>());
    }
    let at = now(&mut bench) + 600_000;
    let mut words = vec!["value".to_owned(); keys.len()];
    words.extend(vec!["=5,-1".to_owned(); keys.len()]);
    words.push(format!("@{at}"));
    assert_eq!(bench.run(&keys, &words), "D".repeat(keys.len()));
    for key in ["k0", "k10000", "k19999"] {
        assert_expires_at(&mut bench, key, at);
        assert_eq!(bench.get(key).unwrap(), b"value");
    }
}

#[test]
fn who_may_not_name_a_moment_gives_a_ttl_up_to_the_moment() {
    let mut bench = Bench::of("admin/change_many_if_same");
    bench.put("a", b"value");
    let at = now(&mut bench) + 600_000;
    bench.log_in_with("+@all -pexpireat");
    assert_eq!(bench.run(&["a"], &args("-1", &format!("@{at}"))), "D");
    let left = bench.pttl("a");
    assert!((590_000..=600_000).contains(&left), "{left}");
}

#[test]
fn a_moment_that_is_over_ends_the_key_at_once_and_a_malformed_one_changes_nothing() {
    let mut bench = Bench::of("admin/change_many_if_same");
    bench.put("a", b"value");
    for change in ["@", "@0", "@-1", "@1.5", "@@1", "@1 "] {
        bench.assert_leaves(&["a"], &args("-1", change), "error ERR");
    }
    assert_eq!(bench.run(&["a"], &args("-1", "@1000")), "D");
    crate::support::until("a ends", || bench.get("a").is_none());
}
