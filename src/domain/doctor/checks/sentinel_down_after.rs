//! Whether locks outlive the time until Sentinels begin a failover.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence, ModelledFault};
use crate::domain::duration;
use crate::domain::record::Evidence;
use crate::domain::record::age::millis;
use crate::domain::schema::TtlOf;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "sentinel-down-after",
    group: CheckGroup::Sentinel,
    needs: SampleNeed::Schemas,
    title: "whether locks outlive the time until Sentinels begin a failover",
    consequence: "While the master is down, no worker can renew its lock or store its response. The \
                  locks expire before a replica takes over, and retries then execute again.",
    remedy: "Use a lock TTL that is longer than down-after-milliseconds and the failover together, or \
             lower that time on each Sentinel with SENTINEL SET.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    if facts.sentinels.is_empty() || facts.schemas.is_empty() {
        return Vec::new();
    }
    let mut longest = 0;
    let mut hidden = None;
    for sentinel in &facts.sentinels {
        match sentinel.number("down-after-milliseconds") {
            Ok(down_after) => longest = longest.max(down_after),
            Err(refusal) => {
                let mut unknown = CheckJudgement::unknown(refusal);
                unknown.nodes.push(sentinel.name.clone());
                hidden.get_or_insert(unknown);
            }
        }
    }
    let mut stated = Vec::new();
    let mut by_default = Vec::new();
    for schema in &facts.schemas {
        let Some(ttl) = schema.ttl(TtlOf::Lock) else { continue };
        if !schema.has_locks() || millis(ttl) > longest {
            continue;
        }
        match schema.ttl_evidence(TtlOf::Lock) {
            Evidence::Stated => stated.push(schema.name.clone()),
            _ => by_default.push(schema.name.clone()),
        }
    }
    let waits = duration::short(longest);
    let shown = format!("Sentinels wait {waits} before a failover (down-after-milliseconds)");
    let mut judgements = Vec::new();
    if !stated.is_empty() {
        let fact = format!("{shown}, and the lock TTL of {} is not longer", stated.join(", "));
        let judgement = CheckJudgement::warning(fact).with_evidence(FactEvidence::Configured);
        judgements.push(judgement.for_schemas(stated).with_fault(ModelledFault::Expiry));
    }
    if !by_default.is_empty() {
        let names = by_default.join(", ");
        let fact = format!("{shown}, and the default lock TTL of {names} is not longer");
        let judgement = CheckJudgement::note(fact).with_evidence(FactEvidence::Estimated);
        judgements.push(judgement.for_schemas(by_default).with_fault(ModelledFault::Expiry));
    }
    if judgements.is_empty() {
        // The hidden time may be longer than those of the other Sentinels.
        if let Some(hidden) = hidden {
            return vec![hidden];
        }
        judgements
            .push(CheckJudgement::ok(format!("{shown}, and all lock TTLs in use are longer")));
    }
    judgements
}
