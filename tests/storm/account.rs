//! The last account: what is there, and what the audit log says, beside what the oracle saw.

use std::collections::HashMap;

use serde_json::Value;

use crate::judge::Wrong;
use crate::keyspace::{Keyspace, TOLERANCE_MS};
use crate::removal::LATE;
use crate::shared::Shared;
use crate::support::audit;
use crate::verdict::Verdict;

/// Redis keys as a server has them: the bytes, and when they end.
pub type There = HashMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

/// Compares what a server has with what the oracle takes it to have, but for what ends by then.
pub fn compared(
    there: &There,
    (space, is_sure): (&Keyspace, impl Fn(&Vec<u8>) -> bool),
    soon: u64,
    verdict: &mut Verdict,
) {
    for (key, (value, ends_at)) in there {
        let same = space.last(key).is_some_and(|entry| {
            let same_end = match (entry.ends_at, ends_at) {
                (Some(one), Some(other)) => one.abs_diff(*other) <= 2 * TOLERANCE_MS,
                (one, other) => one == *other,
            };
            entry.value[..] == value[..] && same_end
        });
        if !same {
            let said =
                format!("{} is {} until {ends_at:?}", key.escape_ascii(), value.escape_ascii());
            verdict.wrong(
                Wrong::Unattributed,
                "nobody",
                format!("{said}, and not {:?}", space.last(key)),
            );
        }
    }
    for (key, entry) in space.all(soon).filter(|(key, _)| !there.contains_key(*key) && is_sure(key))
    {
        verdict.wrong(
            Wrong::Unattributed,
            "nobody",
            format!("{} is gone: {entry:?}", key.escape_ascii()),
        );
    }
    verdict.count("oracle", "Redis keys compared at the end", there.len() as u64);
}

/// The audit log has a line for each removal and each return.
pub fn audited(shared: &Shared, verdict: &mut Verdict) {
    let mut noted = HashMap::new();
    for line in audit::text(&audit::folder(&shared.folder)).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let what =
            line["outcome"].as_str().or(line["what"].as_str()).unwrap_or_default().to_owned();
        *noted.entry(what).or_insert(0_u64) += 1;
    }
    let commands = ["swept", "expired", "purged", "unlocked", "restored"];
    let (noted, unknown): (u64, u64) = (
        commands.iter().map(|what| noted.get(*what).copied().unwrap_or(0)).sum(),
        noted.get("outcome-unknown").copied().unwrap_or(0),
    );
    let removed: u64 = verdict.total("disappeared")
        - ["removed by a service", "expired", "lost or older after a failover"]
            .iter()
            .map(|other| verdict.counted("disappeared", other))
            .sum::<u64>();
    let done = removed + verdict.total("restored") + verdict.total("given an expiry");
    let is_clear = unknown == 0 && verdict.counted("outcomes", "during a failover") == 0;
    let late = verdict.counted("restored", LATE);
    if is_clear && !(done - late..=done).contains(&noted) {
        verdict.wrong(
            Wrong::Told,
            "the audit log",
            format!("the audit log has {noted} lines for {done} changes"),
        );
    }
    verdict.count("outcomes", "lines of the audit log", noted);
}
