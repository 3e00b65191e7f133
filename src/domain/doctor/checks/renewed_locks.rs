//! Locks that somebody renews for longer than any request runs.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::{DeploymentFacts, ObservedRun};
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence};
use crate::domain::doctor::lock_watch::{MOVE_TOLERANCE_MS, WatchEnd, WatchedLock};
use crate::domain::doctor::refusal::RefusedFact;
use crate::domain::duration;
use crate::domain::record::Evidence;
use crate::domain::record::age::millis;
use crate::domain::schema::TtlOf;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "renewed-locks",
    group: CheckGroup::Ttl,
    title: "locks that are renewed for longer than a request runs",
    reads: "with --observe and --longest-run, the locks of samples of 500 random keys, up to every \
            second: owner, created_at and deadline (PEXPIRETIME, or TIME and PTTL before Redis 7.0)",
    rule: "A warning if the deadline of a lock moved at least twice, each time by more than 1 s, \
           while its owner or created_at stayed the same, and it was held for longer than \
           --longest-run; also if it was held for longer than that by its created_at, and its \
           deadline is later than created_at and the stated lock TTL allow. The 1 s covers clocks \
           that step, and readings that are rounded. A note if the deadline moved once, or \
           if only the owner stayed the same and the schema has no renew step: the same worker may \
           have taken the lock again. Deadlines \
           that `idemctl extend` set on this machine do not count. OK needs a run of at least \
           twice --longest-run, or locks that are younger by created_at at its end. Locks that were \
           first seen less than --longest-run before the end, and not renewed, do not count.",
    source: "https://redis.io/docs/latest/develop/use/patterns/distributed-locks/",
    consequence: "If the handler hangs or is gone, and only its timer renews the lock, every retry is \
                  rejected until the process ends.",
    remedy: "Look at the process that holds the lock. `idemctl list --state in-progress` shows the \
             locks with their owners. Let services stop renewing after the longest run.",
    judge,
};

/// Renewals from which a lock is certainly renewed by a program. If the deadline moved only once,
/// the same worker may have taken the lock again.
const MIN_MOVES: usize = 2;

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let run = match facts.observed() {
        None => return Vec::new(),
        Some(Ok(run)) => run,
        Some(Err(refusal)) => return vec![CheckJudgement::unknown(refusal)],
    };
    let Some(longest_run) = facts.longest_run_ms else { return without_longest_run(run) };
    let limit = duration::short(longest_run);
    let mut judgements = Vec::new();
    let is_long = |lock: &&WatchedLock| lock.held_ms() > longest_run;
    let is_renewed = |lock: &&WatchedLock| lock.moves >= MIN_MOVES || outlasts_ttl(lock);
    let renewed: Vec<_> = run.locks.iter().filter(is_renewed).filter(is_long).collect();
    let once: Vec<_> = run
        .locks
        .iter()
        .filter(|lock| lock.moves == 1 && !outlasts_ttl(lock))
        .filter(is_long)
        .collect();
    let (renewed, by_owner): (Vec<_>, Vec<_>) =
        renewed.into_iter().partition(|lock| lock.is_surely_same());
    if !by_owner.is_empty() {
        let fact = format!("{}, longer than --longest-run {limit}", held(&by_owner, "renewed"));
        let note = CheckJudgement::note(format!("{fact}, or taken again by the same owner"));
        judgements.push(note.for_schemas(schemas_of(&by_owner)));
    }
    if !renewed.is_empty() {
        let fact = format!("{}, longer than --longest-run {limit}", held(&renewed, "renewed"));
        judgements.push(CheckJudgement::warning(fact).for_schemas(schemas_of(&renewed)));
    }
    if !once.is_empty() {
        let fact = format!("{}, longer than --longest-run {limit}", held(&once, "renewed once"));
        let note = CheckJudgement::note(fact).with_remedy(
            "Observe for longer. `idemctl extend` on another machine moves a deadline once, too.",
        );
        judgements.push(note.for_schemas(schemas_of(&once)));
    }
    if let Some(why) = undecided(facts, run, longest_run) {
        judgements.push(unknown(why));
    }
    if judgements.is_empty() {
        let late = run.locks.iter().filter(|lock| is_late(run, lock, longest_run)).count();
        let mut fact = match run.locks.len() - late {
            1 => format!("the only lock seen is not renewed for longer than {limit}"),
            count => format!("none of {count} locks is renewed for longer than {limit}"),
        };
        if late > 0 {
            fact.push_str(&format!("; not counted are {late} first seen shortly before the end"));
        }
        judgements.push(CheckJudgement::ok(fact).with_evidence(FactEvidence::Estimated));
    }
    judgements
}

/// Why the run does not show that no lock is renewed for longer; `None` if it does.
fn undecided(facts: &DeploymentFacts, run: &ObservedRun, longest_run: u64) -> Option<String> {
    if let Ok(sample) = &facts.sample
        && let Some(unread) = sample.unread_because()
    {
        return Some(unread.why);
    }
    if run.locks.is_empty() {
        return Some("no lock was seen".to_owned());
    }
    let unclear = run.locks.iter().filter(|lock| lock.end == WatchEnd::Ambiguous).count();
    if unclear > 0 {
        return Some(format!(
            "{unclear} of {} locks may have been taken by a new request, because their values have \
             no owner and no time that would show it",
            run.locks.len()
        ));
    }
    let lost = run.locks.iter().filter(|lock| lock.has_lost_ttl).count();
    if lost > 0 {
        return Some(format!(
            "{lost} of {} locks lost their TTL, and never expire",
            run.locks.len()
        ));
    }
    let is_held = |lock: &&WatchedLock| lock.end == WatchEnd::Held;
    let old = run.locks.iter().filter(is_held).filter(|lock| {
        lock.moves == 0
            && lock.held_ms() > longest_run
            && !cannot_be_renewed(lock)
            && !outlasts_ttl(lock)
    });
    let old = old.count();
    if old > 0 {
        return Some(format!(
            "{old} of {} locks are held for longer than --longest-run, and the run does not show \
             whether they are renewed",
            run.locks.len()
        ));
    }
    let young = run.locks.iter().filter(is_held).filter(|lock| lock.held_ms() <= longest_run);
    let young = young.filter(|lock| !lock.has_age() && !is_late(run, lock, longest_run)).count();
    if young > 0 {
        return Some(format!(
            "{young} of {} locks still held at the end were not watched for longer than \
             --longest-run ({}), and do not say when they were created",
            run.locks.len(),
            duration::short(longest_run)
        ));
    }
    let mut counted = run.locks.iter().filter(|lock| !is_late(run, lock, longest_run)).peekable();
    if counted.peek().is_none() {
        return Some("all locks were first seen shortly before the end of the run".to_owned());
    }
    // In a run that is long enough, a lock that is held for longer is seen twice.
    let single =
        run.lasted_ms < longest_run.saturating_mul(2) && counted.all(|lock| lock.looks < 2);
    single.then(|| "no lock was seen twice".to_owned())
}

/// True if a lock was first seen too late to show anything, in a run that is long enough for locks
/// that were there when it began. A run under traffic always ends with such locks.
fn is_late(run: &ObservedRun, lock: &WatchedLock, longest_run: u64) -> bool {
    let is_long_run = run.lasted_ms >= longest_run.saturating_mul(2);
    let is_seen_late = lock.first_ms.saturating_add(longest_run) > run.lasted_ms;
    let is_held = lock.end == WatchEnd::Held;
    is_long_run && is_seen_late && is_held && lock.moves == 0 && !lock.has_age()
}

/// True if the deadline is later than the creation and the stated TTL allow: somebody moved it.
fn outlasts_ttl(lock: &WatchedLock) -> bool {
    match (lock.lifetime_ms, stated_ttl(lock)) {
        (Some(lifetime), Some(ttl)) => lifetime > ttl.saturating_add(MOVE_TOLERANCE_MS),
        _ => false,
    }
}

/// True if the lock was created with the stated TTL and its deadline was never moved.
fn cannot_be_renewed(lock: &WatchedLock) -> bool {
    match (lock.lifetime_ms, stated_ttl(lock)) {
        (Some(lifetime), Some(ttl)) => lifetime <= ttl.saturating_add(MOVE_TOLERANCE_MS),
        _ => false,
    }
}

fn stated_ttl(lock: &WatchedLock) -> Option<u64> {
    let is_stated = lock.schema.ttl_evidence(TtlOf::Lock) == Evidence::Stated;
    lock.schema.ttl(TtlOf::Lock).filter(|_| is_stated).map(millis)
}

fn without_longest_run(run: &ObservedRun) -> Vec<CheckJudgement> {
    let renewed: Vec<_> = run.locks.iter().filter(|lock| lock.moves > 0).collect();
    if renewed.is_empty() {
        return Vec::new();
    }
    let fact = format!("{}; that can be right", held(&renewed, "renewed"));
    let note = CheckJudgement::note(fact).with_remedy(
        "Pass --longest-run with the time that a request runs at most, to find locks that are \
         renewed for longer.",
    );
    vec![note.for_schemas(schemas_of(&renewed))]
}

/// `2 locks were renewed, and held for at least 1m 30s`.
fn held(locks: &[&WatchedLock], renewed: &str) -> String {
    let longest = locks.iter().map(|lock| lock.held_ms()).max().unwrap_or(0);
    let subject = match locks.len() {
        1 => "1 lock was".to_owned(),
        count => format!("{count} locks were"),
    };
    format!("{subject} {renewed}, and seen held for up to {}", duration::short(longest))
}

fn schemas_of(locks: &[&WatchedLock]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for lock in locks {
        if !names.contains(&lock.schema.name) {
            names.push(lock.schema.name.clone());
        }
    }
    names
}

fn unknown(why: String) -> CheckJudgement {
    let fact = why.clone();
    let refusal = RefusedFact {
        command: "--observe".to_owned(),
        rule: None,
        why,
        instead: Some(
            "Observe for at least twice --longest-run, at a time with many requests.".to_owned(),
        ),
    };
    CheckJudgement { fact, ..CheckJudgement::unknown(refusal) }
}
