//! What the memory of results is compared with.

use super::*;
use crate::domain::doctor::sample::SampledResult;

const HOUR: u64 = 3_600_000;

/// A server with this limit and a million keys, and a sample of 1,000 results of 1 KiB that came
/// evenly in so many hours, and are stored for 24 h.
fn filled(limit: &str, hours: u64) -> DeploymentFacts {
    let lines = [limit, "used_memory:1100000000", "db0:keys=1000000,expires=9"];
    let mut sample = RecordSample { keys: 1_000, ..RecordSample::default() };
    let of = sample.of_schema(&Arc::new(schema("express")));
    for number in 0..1_000 {
        let left_ms = Some(24 * HOUR - number * hours * HOUR / 1_000);
        of.results.push(SampledResult {
            left_ms,
            is_longer: false,
            bytes: Some(1_024),
            weight: 1.0,
        });
    }
    DeploymentFacts { sample: Ok(sample), ..deployment(vec![with(&lines)]) }
}

fn of(facts: &DeploymentFacts) -> Vec<CheckSeverity> {
    severities(facts, "capacity")
}

#[test]
fn what_arrives_is_compared_with_the_limit() {
    let even = statements(&filled("maxmemory:2147483648", 24), "capacity").swap_remove(0).judgement;
    assert_eq!(
        even.fact,
        "41708 new results/h of express, kept for 1d, need 977.5 MiB, beside 72.4 MiB of other data; \
         maxmemory is 2.0 GiB"
    );
    assert_eq!(even.severity, Fine);
    // The service began two hours ago, and will need twelve times as much.
    assert_eq!(of(&filled("maxmemory:2147483648", 2)), [Warning]);
    assert_eq!(of(&filled("maxmemory:1073741824", 24)), [Warning]);
    assert!(of(&filled("maxmemory:0", 24)).is_empty());
}

#[test]
fn few_results_a_load_and_hidden_memory_show_no_rate() {
    let changed = |change: &dyn Fn(&mut Vec<SampledResult>)| {
        let mut facts = filled("maxmemory:2147483648", 24);
        change(&mut facts.sample.as_mut().unwrap().schemas[0].results);
        of(&facts)
    };
    assert_eq!(changed(&|results| results.truncate(19)), [Unknown]);
    assert_eq!(of(&filled("maxmemory:2147483648", 0)), [Unknown]);
    assert_eq!(changed(&|results| results[0].bytes = None), [Unknown]);
    assert_eq!(changed(&|results| results[0].left_ms = None), [Fine]);
}
