//! Locks that expire before their result is stored.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence, ModelledFault};
use crate::domain::doctor::lock_watch::{WatchEnd, WatchedLock};
use crate::domain::doctor::refusal::RefusedFact;
use crate::domain::duration;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "hold-times",
    group: CheckGroup::Ttl,
    needs: SampleNeed::Records,
    title: "how many locks expire before their result is stored",
    consequence: "Either the worker died, or its handler runs for longer than the lock TTL, and a \
                  retry starts the same operation a second time.",
    remedy: "Use a lock TTL that is well above the slowest run of the handler, or let the service \
             renew its locks.",
    judge,
};

/// The fewest results from which it follows that locks do not expire.
const MIN_RESULTS: usize = 20;

/// The fewest expired locks that dead workers do not explain.
const MANY_EXPIRED: usize = 10;

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let run = match &facts.observed {
        None => return Vec::new(),
        Some(Ok(run)) => run,
        Some(Err(refusal)) => return vec![CheckJudgement::unknown(refusal.clone())],
    };
    let mut judgements = Vec::new();
    for schema in &facts.schemas {
        if !schema.has_locks() {
            continue;
        }
        let of_schema = run.locks.iter().filter(|lock| lock.schema.name == schema.name);
        let found = judge_schema(&schema.name, of_schema);
        judgements.push(found.for_schemas(vec![schema.name.clone()]));
    }
    judgements
}

fn judge_schema<'a>(name: &str, locks: impl Iterator<Item = &'a WatchedLock>) -> CheckJudgement {
    let (mut results, mut expired, mut outlived, mut unclear) = (0, 0, 0, 0);
    let mut least_left = u64::MAX;
    let mut longest = 0;
    for lock in locks {
        longest = longest.max(lock.left_ms.unwrap_or(0));
        match lock.end {
            WatchEnd::Result { left_ms } => {
                results += 1;
                least_left = least_left.min(left_ms);
            }
            WatchEnd::Expired => expired += 1,
            WatchEnd::Outlived => outlived += 1,
            WatchEnd::Unclear => unclear += 1,
            WatchEnd::Held | WatchEnd::Gone => {}
        }
    }
    let late = expired + outlived;
    let ended = late + results;
    if late > 0 {
        let mut fact =
            format!("{late} of {ended} locks of {name} expired before a result was stored");
        if outlived > 0 {
            fact.push_str(&format!(", and {outlived} of their workers stored one later"));
        }
        if unclear > 0 {
            fact.push_str(&format!("; not seen: the ends of {unclear} more"));
        }
        let are_many = late >= MANY_EXPIRED && late * 10 >= ended;
        let found = if outlived > 0 || are_many {
            CheckJudgement::warning(fact)
        } else {
            CheckJudgement::note(fact)
        };
        return found.with_evidence(FactEvidence::Estimated).with_fault(ModelledFault::Expiry);
    }
    if unclear > 0 {
        return unknown(format!(
            "locks of {name} whose end was not seen: {unclear} of {}",
            unclear + results
        ));
    }
    if results < MIN_RESULTS {
        return unknown(format!(
            "locks of {name} that were seen until their result: {results}, of {MIN_RESULTS} that are \
             needed"
        ));
    }
    let left = duration::short(least_left);
    let fact = format!(
        "none of {results} locks of {name} expired before a result was stored; each had {left} left \
         or more"
    );
    let found = if least_left < longest / 10 {
        CheckJudgement::note(fact).with_fault(ModelledFault::Expiry)
    } else {
        CheckJudgement::ok(fact)
    };
    found.with_evidence(FactEvidence::Estimated)
}

fn unknown(why: String) -> CheckJudgement {
    CheckJudgement::unknown(RefusedFact::unknown(
        "--observe",
        why,
        "Observe for longer, at a time with many requests.",
    ))
}
