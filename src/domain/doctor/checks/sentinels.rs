//! Whether the Sentinels can agree on a failover.

use std::collections::BTreeSet;

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeploymentFacts, SentinelFacts};
use crate::domain::doctor::judgement::CheckJudgement;
use crate::domain::doctor::refusal::{FactResult, RefusedFact};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "sentinels",
    group: CheckGroup::Sentinel,
    needs: SampleNeed::Nothing,
    title: "whether the Sentinels can agree on a failover",
    consequence: "If the master fails, no replica is promoted. Requests fail, or are executed \
                  without a lock, until an operator acts.",
    remedy: "Run at least 3 Sentinels on different machines, with a quorum of 2.",
    judge,
};

/// The Sentinels that a robust deployment needs, according to the source.
const FEWEST: u64 = 3;

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    if facts.sentinels.is_empty() {
        return Vec::new();
    }
    vec![judge_all(&facts.sentinels).unwrap_or_else(CheckJudgement::unknown)]
}

fn judge_all(sentinels: &[SentinelFacts]) -> FactResult<CheckJudgement> {
    // A Sentinel that does not answer must not hide what another one reports.
    for sentinel in sentinels {
        if let Ok(Err(why)) = &sentinel.quorum {
            return Ok(CheckJudgement::error(format!("{}: {why}", sentinel.name)));
        }
    }
    let mut counts = BTreeSet::new();
    let mut quorums = BTreeSet::new();
    for sentinel in sentinels {
        of(sentinel, sentinel.quorum.clone())?.ok();
        let others = of(sentinel, sentinel.number("num-other-sentinels"))?;
        counts.insert(others + 1);
        quorums.insert(of(sentinel, sentinel.number("quorum"))?);
    }
    let count = counts.first().copied().unwrap_or(0);
    if quorums.len() > 1 {
        let shown: Vec<_> = quorums.iter().map(u64::to_string).collect();
        return Ok(CheckJudgement::warning(format!(
            "the Sentinels have different quorums ({})",
            shown.join(", ")
        )));
    }
    let quorum = quorums.first().copied().unwrap_or(0);
    let noun = if count == 1 { "Sentinel" } else { "Sentinels" };
    let fact = format!("{count} {noun} with a quorum of {quorum}");
    if count < FEWEST {
        return Ok(CheckJudgement::warning(fact).with_consequence(
            "If a Sentinel fails together with the master, no majority is left for a failover.",
        ));
    }
    Ok(CheckJudgement::ok(format!("{fact}, and each reaches a quorum and a majority")))
}

/// The answer of a Sentinel. A refusal names the Sentinel.
fn of<T>(sentinel: &SentinelFacts, answer: FactResult<T>) -> FactResult<T> {
    answer.map_err(|refusal| RefusedFact {
        why: format!("{}: {}", sentinel.name, refusal.why),
        ..refusal
    })
}
