//! Judgements of memory that records need.

use super::*;
use crate::domain::doctor::sizing::SizedRecord;
use crate::domain::doctor::{LookCount, ObservedRun};

const MIB: u64 = 1 << 20;
const HOUR: u64 = 3_600_000;

/// A server with 1,440,000 keys, of which 1,440 are sampled: one result a second, stored for 24 h.
fn steady(info: &[&str]) -> DeploymentFacts {
    let lines =
        [&["used_memory:838860800", "db0:keys=1440000,expires=9", "run_id:a"], info].concat();
    let sample = RecordSample {
        keys: 1_440,
        keys_of_records: 1_440,
        schemas: sampled(&[express(RESULT, TimeLeft::Millis(1))]).sample.unwrap().schemas,
        ..RecordSample::default()
    };
    let mut facts = DeploymentFacts { sample: Ok(sample), ..deployment(vec![with(&lines)]) };
    sized(&mut facts).clear();
    for minute in 1..=1_440 {
        sized(&mut facts).push(result(Some(minute * 60_000)));
    }
    facts
}

fn result(left_ms: Option<u64>) -> SizedRecord {
    SizedRecord { left_ms, bytes: Some(448), keys: 1, weight: 1.0, is_lock: false }
}

fn sample(facts: &mut DeploymentFacts) -> &mut RecordSample {
    facts.sample.as_mut().unwrap()
}

fn sized(facts: &mut DeploymentFacts) -> &mut Vec<SizedRecord> {
    &mut sample(facts).schemas[0].sized
}

/// The only judgement, as a severity and a fact.
fn judged(facts: &DeploymentFacts) -> (CheckSeverity, String) {
    let mut all = statements(facts, "capacity");
    assert_eq!(all.len(), 1);
    let judgement = all.swap_remove(0).judgement;
    (judgement.severity, judgement.fact)
}

#[test]
fn what_arrives_is_compared_with_maxmemory() {
    let of = |limit: u64| judged(&steady(&[&format!("maxmemory:{}", limit * MIB)]));
    assert_eq!(of(2_000).0, Fine, "{}", of(2_000).1);
    assert_eq!(of(1_000).0, Note, "{}", of(1_000).1);
    // 800 MiB are in use, and with what arrives there are certainly more than that.
    let mut young = steady(&["maxmemory:1048576000"]);
    sized(&mut young).retain(|result| result.left_ms > Some(12 * HOUR));
    sample(&mut young).keys = 720;
    sample(&mut young).keys_of_records = 720;
    sample(&mut young).schemas[0].sized.iter_mut().for_each(|result| result.weight = 1.0);
    let (severity, fact) = judged(&young);
    assert_eq!(severity, Warning, "{fact}");
    assert!(fact.contains("writes are refused in about"), "{fact}");
    let node = young.nodes[0].clone();
    let mut evicting = young;
    evicting.nodes = vec![NodeFacts { info: with(&["maxmemory_policy:allkeys-lru"]).info, ..node }];
    evicting.nodes = vec![with(&[
        "used_memory:838860800",
        "db0:keys=1440000",
        "maxmemory:1048576000",
        "maxmemory_policy:allkeys-lru",
    ])];
    assert!(judged(&evicting).1.contains("evictions start in about"));
}

/// Rule: full memory is an error, whatever the sample shows, and no limit is never OK.
#[test]
fn full_memory_and_no_limit_are_never_ok() {
    let mut full = steady(&["maxmemory:838860800"]);
    assert_eq!(judged(&full).0, Error);
    sized(&mut full).truncate(1);
    assert_eq!(judged(&full).0, Error);
    // Buffers of replicas do not count against maxmemory.
    let not_counted = ["maxmemory:838860800", "mem_not_counted_for_evict:700000000"];
    assert_ne!(judged(&steady(&not_counted)).0, Error);
    let unlimited = judged(&steady(&["maxmemory:0"]));
    assert_eq!(unlimited.0, Note);
    assert!(unlimited.1.contains("the limit is the host's"), "{}", unlimited.1);
    let small = judged(&steady(&["maxmemory:0", "total_system_memory:838860800"]));
    assert_eq!(small.0, Warning, "{}", small.1);
    let hidden = judged(&steady(&["maxmemory:0", "total_system_memory:0"]));
    assert_eq!(hidden.0, Note, "{}", hidden.1);
}

#[test]
fn what_the_sample_does_not_show_is_unknown() {
    let limit = "maxmemory:2097152000";
    let mut hidden = steady(&[limit]);
    sized(&mut hidden)[0].bytes = None;
    let statement = statements(&hidden, "capacity").swap_remove(0);
    assert_eq!(statement.judgement.severity, Unknown);
    assert!(statement.remedy().unwrap().contains("+memory|usage"));
    let mut unlimited = steady(&["maxmemory:0"]);
    sized(&mut unlimited)[0].bytes = None;
    assert_eq!(judged(&unlimited).0, Unknown, "a right is missing");
    let mut few = steady(&["maxmemory:0"]);
    sized(&mut few).truncate(19);
    assert_eq!(judged(&few).0, Note, "there is no limit, whatever is needed");
    let mut few = steady(&[limit]);
    sized(&mut few).truncate(19);
    assert_eq!(judged(&few).0, Unknown);
    let mut unread = steady(&[limit]);
    sample(&mut unread).unread = 1;
    assert_eq!(judged(&unread).0, Unknown);
    let mut burst = steady(&[limit]);
    sized(&mut burst).iter_mut().for_each(|result| result.left_ms = Some(HOUR));
    assert_eq!(judged(&burst).0, Unknown);
    let mut without_keys = steady(&[limit]);
    without_keys.nodes = vec![with(&[limit, "used_memory:838860800"])];
    assert_eq!(judged(&without_keys).0, Unknown);
    let mut unused = steady(&[limit]);
    sample(&mut unused).schemas.clear();
    assert_eq!(judged(&unused).0, Unknown, "records may be rare among other keys");
    sample(&mut unused).is_all = true;
    assert_eq!(judged(&unused).0, Unknown, "none of them is known");
    sample(&mut unused).keys = 0;
    assert!(statements(&unused, "capacity").is_empty());
    // Locks alone say nothing of results.
    let mut locks = steady(&[limit]);
    sized(&mut locks).iter_mut().for_each(|record| record.is_lock = true);
    assert_eq!(judged(&locks).0, Unknown);
    assert!(judged(&locks).1.contains("the sample has no result"), "{}", judged(&locks).1);
}

#[test]
fn data_that_may_grow_is_not_in_order() {
    let limit = "maxmemory:2097152000";
    let mut endless = steady(&[limit]);
    sized(&mut endless).push(result(None));
    assert_eq!(judged(&endless).0, Note);
    let mut shared = steady(&[limit]);
    sample(&mut shared).keys = 2_000;
    assert_eq!(judged(&shared).0, Note, "{}", judged(&shared).1);
    // During the run, the other data did not grow, or did.
    let after = |mut facts: DeploymentFacts, used: u64| {
        let used = format!("used_memory:{used}");
        let info = with(&["run_id:a", "db0:keys=1440030", &used]).info;
        let infos = [("a:6379/0".to_owned(), info)].into();
        let run = ObservedRun { lasted_ms: 30_000, infos, ..ObservedRun::default() };
        facts.observed = Some(Ok(run));
        judged(&facts)
    };
    let mut shared = steady(&[limit]);
    sample(&mut shared).keys = 2_000;
    assert_eq!(after(shared, 838_870_000).0, Fine);
    let mut shared = steady(&[limit]);
    sample(&mut shared).keys = 2_000;
    let (severity, fact) = after(shared, 838_860_800 + 20 * MIB);
    assert_eq!(severity, Warning);
    assert!(fact.contains("memory grew by 20.0 MiB in 30s"), "{fact}");
    // Growth that takes longer to be noticed is no alarm.
    let mut shared = steady(&[limit]);
    sample(&mut shared).keys = 2_000;
    assert_eq!(after(shared, 838_860_800 + 10 * MIB).0, Note);
    // The same in another database, or in one large key.
    let mut large = steady(&[limit]);
    sized(&mut large).iter_mut().for_each(|result| result.bytes = Some(20));
    assert_eq!(judged(&large).0, Note, "{}", judged(&large).1);
}

/// Rule: arrivals that the run measured raise the range, and never lower it. Those that may be
/// locks do not.
#[test]
fn measured_arrivals_count_too() {
    let observing = |keys: u64, looks: &[(u64, u64)]| {
        let mut facts = steady(&["maxmemory:2097152000"]);
        let keys = format!("db0:keys={keys}");
        let info = with(&["run_id:a", &keys, "used_memory:838860800"]).info;
        let infos = [("a:6379/0".to_owned(), info)].into();
        let looks =
            looks.iter().map(|(keys, of_locks)| LookCount { keys: *keys, of_locks: *of_locks });
        let looks = looks.collect();
        let run = ObservedRun { lasted_ms: 30_000, infos, looks, ..ObservedRun::default() };
        facts.observed = Some(Ok(run));
        judged(&facts)
    };
    let none = [(500, 0); 10];
    assert_eq!(observing(1_440_000 + 500, &none).0, Fine, "16 to 18 results a second, as sampled");
    let many = observing(1_440_000 + 30_000, &none);
    assert_eq!(many.0, Warning, "{}", many.1);
    assert!(many.1.starts_with("988 to "), "{}", many.1);
    assert_eq!(observing(1_440_000, &none).0, Fine, "a quiet time does not lower the estimate");
    assert!(!observing(1_440_000, &none).1.starts_with("0"));
    // No look, too few looked at, and locks that were seen.
    for looks in [&[][..], &[(5, 0); 10], &[(500, 0), (500, 0), (500, 10), (500, 11)]] {
        let perhaps = observing(1_440_000 + 30_000, looks);
        assert_eq!(perhaps.0, Note, "{looks:?}: {}", perhaps.1);
        assert!(perhaps.1.contains("and never at the low end"), "{}", perhaps.1);
    }
    // All of them were taken just before the end.
    let late = observing(1_440_000 + 30_000, &[(500, 0), (500, 0), (500, 0), (500, 12)]);
    assert_eq!(late.0, Note, "{}", late.1);
    // As many locks as before are no new keys.
    let steady =
        observing(1_440_000 + 300_000, &[(5_000, 50), (5_000, 50), (5_000, 50), (5_000, 50)]);
    assert_eq!(steady.0, Warning, "{}", steady.1);
}

/// Rule: what the run cannot tell from noise or from other keys is no finding, and without a run the
/// sentence says what it rests on.
#[test]
fn small_growth_and_other_keys_do_not_count() {
    let observing = |of_records: u64, more: u64, used: u64| {
        let mut facts = steady(&["maxmemory:2097152000"]);
        let sampled = sample(&mut facts);
        sampled.keys_of_records = sampled.keys - (sampled.keys / 100) * of_records;
        let keys = format!("db0:keys={}", 1_440_000 + more);
        let used = format!("used_memory:{used}");
        let info = with(&["run_id:a", &keys, &used]).info;
        let infos = [("a:6379/0".to_owned(), info)].into();
        let run = ObservedRun { lasted_ms: 30_000, infos, ..ObservedRun::default() };
        facts.observed = Some(Ok(run));
        judged(&facts)
    };
    let small = observing(0, 0, 838_860_800 + 900_000);
    assert_eq!(small.0, Fine, "{}", small.1);
    assert!(!small.1.contains("may not show"), "{}", small.1);
    let others = observing(1, 30_000, 838_860_800);
    assert_eq!(others.0, Fine, "{}", others.1);
    let alone = judged(&steady(&["maxmemory:2097152000"]));
    assert!(alone.1.contains("(a rise of the traffic in the last "), "{}", alone.1);
}

/// Rule: keys that the server counted are there, however few of them the sample shows.
#[test]
fn keys_that_were_counted_raise_the_high_end() {
    let observing = |more: u64| {
        let mut facts = steady(&["maxmemory:1258291200"]);
        let keys = format!("db0:keys={}", 1_440_000 + more);
        let info = with(&["run_id:a", &keys, "used_memory:838860800"]).info;
        let infos = [("a:6379/0".to_owned(), info)].into();
        let run = ObservedRun { lasted_ms: 30_000, infos, ..ObservedRun::default() };
        facts.observed = Some(Ok(run));
        judged(&facts)
    };
    assert_eq!(observing(500).0, Fine, "{}", observing(500).1);
    // 50 a second are within the error of a sample in which a key stands for 1,000.
    let many = observing(1_500);
    assert_eq!(many.0, Note, "{}", many.1);
    assert!(many.1.contains(" to 53 new results/s"), "{}", many.1);
}

/// Rule: the records cannot take more memory than there is.
#[test]
fn sizes_that_exceed_the_memory_in_use_are_lowered() {
    let small = ["maxmemory:1048576000", "used_memory:368640000", "used_memory_startup:0"];
    let (severity, fact) = judged(&steady(&small));
    assert_eq!(severity, Fine, "{fact}");
    // 1,440,000 records take 256 and not 512 bytes.
    assert!(fact.contains("need 351.5 MiB to"), "{fact}");
}

#[test]
fn rare_schemas_evictions_and_endless_results_are_judged() {
    let limit = "maxmemory:2097152000";
    let mut rare = steady(&[limit]);
    let mut other = sample(&mut rare).schemas[0].clone();
    other.sized.truncate(3);
    sample(&mut rare).schemas.push(other);
    assert_eq!(judged(&rare).0, Fine, "{}", judged(&rare).1);
    let mut endless = steady(&[limit]);
    sized(&mut endless).iter_mut().for_each(|result| result.left_ms = None);
    let (severity, fact) = judged(&endless);
    assert_eq!(severity, Note);
    assert!(fact.starts_with("the sampled results never expire"), "{fact}");
    let mut evicting = steady(&[limit]);
    let info = with(&["run_id:a", "db0:keys=1440000", "evicted_keys:7"]).info;
    let infos = [("a:6379/0".to_owned(), info)].into();
    evicting.observed = Some(Ok(ObservedRun { lasted_ms: 5_000, infos, ..ObservedRun::default() }));
    assert_eq!(judged(&evicting).0, Error);
}
