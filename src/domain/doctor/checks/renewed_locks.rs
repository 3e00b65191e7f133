//! Locks that somebody renews for longer than any request runs.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeploymentFacts, ObservedRun};
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence};
use crate::domain::doctor::lock_watch::{WatchEnd, WatchedLock};
use crate::domain::doctor::refusal::RefusedFact;
use crate::domain::duration;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "renewed-locks",
    group: CheckGroup::Ttl,
    needs: SampleNeed::Records,
    title: "locks that are renewed for longer than a request runs",
    consequence: "If the handler hangs or is gone, and only its timer renews the lock, every retry is \
                  rejected until the process ends.",
    remedy: "Look at the process that holds the lock. `idemctl list --state in-progress` shows the \
             locks with their owners. Let services stop renewing after the longest run.",
    judge,
};

/// Renewals from which a program renews a lock. An operator may have extended it once.
const MIN_MOVES: usize = 2;

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let (Some(observed), Some(longest_run)) = (&facts.observed, facts.longest_run_ms) else {
        return Vec::new();
    };
    let run = match observed {
        Ok(run) => run,
        Err(refusal) => return vec![CheckJudgement::unknown(refusal.clone())],
    };
    let limit = duration::short(longest_run);
    let mut renewed = 0;
    let mut longest = 0;
    let mut schemas: Vec<String> = Vec::new();
    for lock in &run.locks {
        if lock.moves >= MIN_MOVES && lock.held_ms() > longest_run {
            renewed += 1;
            longest = longest.max(lock.held_ms());
            if !schemas.contains(&lock.schema.name) {
                schemas.push(lock.schema.name.clone());
            }
        }
    }
    if renewed > 0 {
        let held = duration::short(longest);
        let fact = format!(
            "locks that were renewed and held for longer than --longest-run {limit}: {renewed}, for \
             up to {held}"
        );
        return vec![CheckJudgement::warning(fact).for_schemas(schemas)];
    }
    if let Some(why) = undecided(run, longest_run) {
        return vec![CheckJudgement::unknown(RefusedFact::unknown(
            "--observe",
            why,
            "Observe for at least twice --longest-run, at a time with many requests.",
        ))];
    }
    let fact =
        format!("locks that are renewed for longer than {limit}: none of {}", run.locks.len());
    vec![CheckJudgement::ok(fact).with_evidence(FactEvidence::Estimated)]
}

/// Why the run does not show that no lock is renewed for longer; `None` if it does.
fn undecided(run: &ObservedRun, longest_run: u64) -> Option<String> {
    if run.locks.is_empty() {
        return Some("no lock was seen".to_owned());
    }
    let unclear = run.locks.iter().filter(|lock| lock.end == WatchEnd::Unclear).count();
    if unclear > 0 {
        return Some(format!(
            "locks that another request may have taken meanwhile: {unclear} of {}",
            run.locks.len()
        ));
    }
    let is_old = |lock: &&WatchedLock| lock.end == WatchEnd::Held && lock.held_ms() > longest_run;
    let old = run.locks.iter().filter(is_old).count();
    if old > 0 {
        return Some(format!(
            "locks held for longer than --longest-run: {old} of {}, and the run does not show \
             whether they are renewed",
            run.locks.len()
        ));
    }
    // In a run that is long enough, a lock without an age that is held for longer is old at its end.
    let is_long = run.lasted_ms >= longest_run.saturating_mul(2);
    let have_ages = run.locks.iter().all(|lock| lock.age_ms.is_some());
    if !is_long && !have_ages {
        return Some("the run is shorter than twice --longest-run".to_owned());
    }
    None
}
