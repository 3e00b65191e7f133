//! Clusters and Sentinels.

use std::collections::BTreeSet;

use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts, SentinelFacts};
use crate::domain::doctor::judgement::{
    CheckJudgement, FactEvidence, Judgements, ModelledFault, of_each_node,
};
use crate::domain::doctor::refusal::{FactResult, RefusedFact};
use crate::domain::duration;
use crate::domain::hash_slot::{self, SLOTS};
use crate::domain::record::Evidence;
use crate::domain::record::age::millis;
use crate::domain::schema::{Schema, TtlOf};

/// The Sentinels that a robust deployment needs, according to the source.
const FEWEST_SENTINELS: u64 = 3;

/// Any key shows in which slots a template puts the Redis keys of a record.
const KEYS: [&[u8]; 3] = [b"idemctl-1", b"idemctl-2", b"idemctl-3"];

pub(super) fn state(facts: &DeploymentFacts) -> Judgements {
    if !facts.is_cluster {
        return Ok(Vec::new());
    }
    Ok(of_each_node(facts, state_of))
}

fn state_of(node: &NodeFacts) -> FactResult<CheckJudgement> {
    let Some(info) = &node.cluster_info else {
        return Ok(CheckJudgement::ok("not a cluster node"));
    };
    let info = info.clone()?;
    let state = info.field("cluster_state")?;
    let assigned = info.field("cluster_slots_assigned")?;
    let failed = info.field("cluster_slots_fail")?;
    if state != "ok" || assigned != SLOTS.to_string() || failed != "0" {
        return Ok(CheckJudgement::error(format!(
            "cluster_state is {state}, {assigned} of {SLOTS} slots are assigned, {failed} have failed"
        )));
    }
    let line = node.cluster_line.clone().transpose()?.unwrap_or_default();
    // In the node's own line, `[77->-ID]` is a slot that leaves it, `[77-<-ID]` one that arrives.
    let moving: Vec<_> = line.split(' ').filter(|word| word.starts_with('[')).collect();
    if moving.is_empty() {
        return Ok(CheckJudgement::fine());
    }
    Ok(CheckJudgement::warning(format!("slots that are being moved: {}", moving.join(" "))))
}

pub(super) fn keys_in_slots(facts: &DeploymentFacts) -> Judgements {
    if !facts.is_cluster || facts.schemas.is_empty() {
        return Ok(Vec::new());
    }
    let refused =
        facts.schemas_that(|schema| !is_in_one_slot(schema) && sends_several_keys(schema));
    let apart = facts.schemas_that(|schema| !is_in_one_slot(schema) && !sends_several_keys(schema));
    let mut judgements = Vec::new();
    if !refused.is_empty() {
        let fact = format!(
            "a call of {} gets Redis keys in different slots, which Redis refuses",
            refused.join(", ")
        );
        judgements.push(CheckJudgement::error(fact).for_schemas(refused));
    }
    if !apart.is_empty() {
        let fact = format!("the Redis keys of {} are in different slots", apart.join(", "));
        judgements.push(CheckJudgement::warning(fact).for_schemas(apart));
    }
    if judgements.is_empty() {
        judgements.push(CheckJudgement::fine());
    }
    for judgement in &mut judgements {
        judgement.evidence = FactEvidence::Configured;
    }
    Ok(judgements)
}

fn is_in_one_slot(schema: &Schema) -> bool {
    KEYS.iter().all(|key| hash_slot::is_one(schema.redis_keys(key).iter().map(Vec::as_slice)))
}

/// True if some call names more than one Redis key of the record.
fn sends_several_keys(schema: &Schema) -> bool {
    let mut calls = schema.steps().flat_map(|step| &step.calls);
    calls
        .any(|call| (0..schema.keys.len()).filter(|index| schema.touches(call, *index)).count() > 1)
}

pub(super) fn sentinels(facts: &DeploymentFacts) -> Judgements {
    let sentinels = &facts.sentinels;
    if sentinels.is_empty() {
        return Ok(Vec::new());
    }
    // A Sentinel that does not answer must not hide what another one reports.
    for sentinel in sentinels {
        if let Ok(Err(why)) = &sentinel.quorum {
            return Ok(vec![CheckJudgement::error(format!("{}: {why}", sentinel.name))]);
        }
    }
    let mut counts = BTreeSet::new();
    let mut quorums = BTreeSet::new();
    for sentinel in sentinels {
        of(sentinel, sentinel.quorum.clone())?.ok();
        counts.insert(of(sentinel, sentinel.number("num-other-sentinels"))? + 1);
        quorums.insert(of(sentinel, sentinel.number("quorum"))?);
    }
    let count = counts.first().copied().unwrap_or(0);
    let shown: Vec<_> = quorums.iter().map(u64::to_string).collect();
    let fact = format!("Sentinels: {count}, with a quorum of {}", shown.join(" and "));
    let is_sound = quorums.len() == 1 && count >= FEWEST_SENTINELS;
    Ok(vec![if is_sound { CheckJudgement::ok(fact) } else { CheckJudgement::warning(fact) }])
}

/// The answer of a Sentinel. A refusal names the Sentinel.
fn of<T>(sentinel: &SentinelFacts, answer: FactResult<T>) -> FactResult<T> {
    answer.map_err(|refusal| RefusedFact {
        why: format!("{}: {}", sentinel.name, refusal.why),
        ..refusal
    })
}

pub(super) fn down_after(facts: &DeploymentFacts) -> Judgements {
    if facts.sentinels.is_empty() || facts.schemas.is_empty() {
        return Ok(Vec::new());
    }
    let mut longest = 0;
    let mut hidden = None;
    for sentinel in &facts.sentinels {
        match of(sentinel, sentinel.number("down-after-milliseconds")) {
            Ok(down_after) => longest = longest.max(down_after),
            Err(refusal) => hidden = Some(refusal),
        }
    }
    let short = |schema: &Schema, is_stated: bool| {
        schema.has_locks()
            && schema.ttl(TtlOf::Lock).is_some_and(|ttl| millis(ttl) <= longest)
            && (schema.ttl_evidence(TtlOf::Lock) == Evidence::Stated) == is_stated
    };
    let stated = facts.schemas_that(|schema| short(schema, true));
    let by_default = facts.schemas_that(|schema| short(schema, false));
    let waits = duration::short(longest);
    let shown = format!("Sentinels wait {waits} before a failover (down-after-milliseconds)");
    let fact = |names: &[String]| {
        format!("{shown}, and the lock TTL of {} is not longer", names.join(", "))
    };
    let mut judgements = Vec::new();
    if !stated.is_empty() {
        let found = CheckJudgement::warning(fact(&stated)).with_evidence(FactEvidence::Configured);
        judgements.push(found.for_schemas(stated).with_fault(ModelledFault::Expiry));
    }
    if !by_default.is_empty() {
        let found = CheckJudgement::note(fact(&by_default)).with_evidence(FactEvidence::Estimated);
        judgements.push(found.for_schemas(by_default).with_fault(ModelledFault::Expiry));
    }
    match hidden {
        // The hidden time may be longer than those of the other Sentinels.
        Some(hidden) if judgements.is_empty() => return Err(hidden),
        None if judgements.is_empty() => {
            judgements.push(CheckJudgement::ok(shown));
        }
        _ => {}
    }
    Ok(judgements)
}
