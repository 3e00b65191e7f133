//! How the locks ended that `--observe` saw.

use crate::domain::doctor::facts::{DeploymentFacts, ObservedRun};
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence, Judgements, ModelledFault};
use crate::domain::doctor::lock_watch::{WatchEnd, WatchedLock};
use crate::domain::doctor::refusal::{FactResult, RefusedFact};
use crate::domain::duration;

/// The fewest results from which it follows that locks do not expire.
const MIN_RESULTS: usize = 20;

/// The fewest expired locks that dead workers do not explain.
const MANY_EXPIRED: usize = 10;

/// Renewals from which a program renews a lock. An operator may have extended it once.
const MIN_MOVES: usize = 2;

pub(super) fn hold_times(facts: &DeploymentFacts) -> Judgements {
    let Some(run) = facts.observed()? else { return Ok(Vec::new()) };
    let mut judgements = Vec::new();
    for schema in facts.schemas.iter().filter(|schema| schema.has_locks()) {
        let name = &schema.name;
        let locks: Vec<_> = run.locks.iter().filter(|lock| lock.schema.name == *name).collect();
        let found = held(name, &locks).unwrap_or_else(CheckJudgement::unknown);
        judgements.push(found.for_schemas(vec![name.clone()]));
    }
    Ok(judgements)
}

fn held(name: &str, locks: &[&WatchedLock]) -> FactResult<CheckJudgement> {
    let count = |end| locks.iter().filter(|lock| lock.end == end).count();
    let (outlived, unclear) = (count(WatchEnd::Outlived), count(WatchEnd::Unclear));
    let late = count(WatchEnd::Expired) + outlived;
    let left = |lock: &&WatchedLock| match lock.end {
        WatchEnd::Result { left_ms } => Some(left_ms),
        _ => None,
    };
    let results: Vec<u64> = locks.iter().filter_map(left).collect();
    let ended = late + results.len();
    let mut fact = format!("{late} of {ended} locks of {name} expired before a result was stored");
    if late > 0 {
        if outlived > 0 {
            fact.push_str(&format!(", and {outlived} of their workers stored one later"));
        }
        let are_many = late >= MANY_EXPIRED && late * 10 >= ended;
        let found = match outlived > 0 || are_many {
            true => CheckJudgement::warning(fact),
            false => CheckJudgement::note(fact),
        };
        return Ok(found.with_evidence(FactEvidence::Estimated).with_fault(ModelledFault::Expiry));
    }
    if unclear > 0 || results.len() < MIN_RESULTS {
        return Err(too_short(format!(
            "locks of {name} that were seen until their result: {}, of {MIN_RESULTS} that are \
             needed; ends that were not seen: {unclear}",
            results.len()
        )));
    }
    let least = results.iter().copied().min().unwrap_or(0);
    let longest = locks.iter().filter_map(|lock| lock.left_ms).max().unwrap_or(0);
    fact.push_str(&format!("; each had {} left or more", duration::short(least)));
    let found = match least < longest / 10 {
        true => CheckJudgement::note(fact).with_fault(ModelledFault::Expiry),
        false => CheckJudgement::ok(fact),
    };
    Ok(found.with_evidence(FactEvidence::Estimated))
}

fn too_short(why: impl Into<String>) -> RefusedFact {
    let instead =
        "Observe for at least twice --longest-run, and longer at a time with few requests.";
    RefusedFact::unknown("--observe", why, instead)
}

pub(super) fn renewed_locks(facts: &DeploymentFacts) -> Judgements {
    let (Some(run), Some(longest_run)) = (facts.observed()?, facts.longest_run_ms) else {
        return Ok(Vec::new());
    };
    let limit = duration::short(longest_run);
    let is_old = |lock: &&WatchedLock| lock.held_ms() > longest_run;
    let locks = run.locks.iter();
    let renewed: Vec<_> = locks.filter(is_old).filter(|lock| lock.moves >= MIN_MOVES).collect();
    let count = renewed.len();
    if let Some(longest) = renewed.iter().map(|lock| lock.held_ms()).max() {
        let fact = format!(
            "locks that were renewed and held for longer than --longest-run {limit}: {count}, for up \
             to {}",
            duration::short(longest)
        );
        let of = schemas_of(&renewed);
        return Ok(vec![CheckJudgement::warning(fact).for_schemas(of)]);
    }
    check_decided(run, longest_run)?;
    let fact =
        format!("locks that are renewed for longer than {limit}: none of {}", run.locks.len());
    Ok(vec![CheckJudgement::ok(fact).with_evidence(FactEvidence::Estimated)])
}

fn schemas_of(locks: &[&WatchedLock]) -> Vec<String> {
    let mut schemas: Vec<_> = locks.iter().map(|lock| lock.schema.name.clone()).collect();
    schemas.sort();
    schemas.dedup();
    schemas
}

/// Passes if the run shows that no lock is renewed for longer.
///
/// # Errors
/// Why it does not.
fn check_decided(run: &ObservedRun, longest_run: u64) -> FactResult<()> {
    let open = run.locks.iter().filter(|lock| {
        // Another request may have taken it, or nothing shows whether it is renewed.
        lock.end == WatchEnd::Unclear || lock.end == WatchEnd::Held && lock.held_ms() > longest_run
    });
    let open = open.count();
    if run.locks.is_empty() || open > 0 {
        return Err(too_short(format!(
            "locks of which the run does not show whether they are renewed: {open} of {}",
            run.locks.len()
        )));
    }
    // In a run that is long enough, a lock without an age that is held for longer is old at its end.
    let is_long = run.lasted_ms >= longest_run.saturating_mul(2);
    let have_ages = run.locks.iter().all(|lock| lock.age_ms.is_some());
    if is_long || have_ages {
        return Ok(());
    }
    Err(too_short("the run is shorter than twice --longest-run"))
}
