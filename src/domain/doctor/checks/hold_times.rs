//! How long locks are held, against their TTL.

use std::sync::Arc;

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::{DeploymentFacts, ObservedRun};
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence, ModelledFault};
use crate::domain::doctor::lock_watch::{WatchEnd, WatchedLock};
use crate::domain::doctor::refusal::RefusedFact;
use crate::domain::duration;
use crate::domain::record::Evidence;
use crate::domain::record::age::millis;
use crate::domain::schema::{Schema, TtlOf};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "hold-times",
    group: CheckGroup::Ttl,
    title: "the longest time for which a lock was seen held, against the lock TTL",
    reads: "with --observe, the locks of samples of 500 random keys, up to every second; created_at and \
            completed_at of sampled results that have both",
    rule: "A warning if a lock was held for 80 % of the stated lock TTL or more, if it ended in a \
           result with 20 % of its time left or less, or if it had expired when its own result was \
           stored (by owner or created_at), or if 20 locks or more and 20 % of them expired without \
           such a result, or 10 or more and all of them. A note if fewer did, if the schema renews its locks, or if only the \
           schema's default TTL is that short. A result counts if it has the owner or created_at of \
           the lock, or if it was read before the deadline of the lock and has neither. OK needs 20 \
           locks with such a result, none of them too close to its deadline to tell, and a \
           stated TTL. The 80 %, 20 % and 20 are idemctl's own \
           thresholds.",
    source: "https://redis.io/docs/latest/develop/use/patterns/distributed-locks/",
    consequence: "A handler that runs a little longer loses its lock. A retry then starts the same \
                  operation a second time, while the first one is running.",
    remedy: "Use a lock TTL that is well above the slowest run of the handler, or let the service \
             renew its locks.",
    judge,
};

/// The part of the TTL, in percent, from which a hold is too long.
const LONG: u64 = 80;

/// The least number of holds for OK.
const MIN_HOLDS: usize = 20;

/// The share of locks that expired without a result, in percent, that dead workers do not explain.
const MANY_EXPIRED: usize = 20;

/// The least number of locks without a result, if no lock ended in one.
const MIN_OF_ALL: usize = 10;

/// How long the locks of a schema were held.
struct HoldTimes<'a> {
    schema: Arc<Schema>,
    /// The locks that ended in their own result and were not renewed.
    own: usize,
    /// The locks with a result before their deadline that may be another request's: the values
    /// have neither an owner nor a time. Such a lock ended before its deadline all the same.
    followed: usize,
    /// The longest hold of all these that was seen, in milliseconds.
    longest_ms: u64,
    /// The longest time that a lock had left, in milliseconds: its TTL is not shorter.
    longest_left_ms: u64,
    watched: Vec<&'a WatchedLock>,
}

/// How the watched locks of a schema ended.
#[derive(Default)]
struct WatchedEnds {
    /// Were followed by a result shortly before their deadline, or by their own one after it; with
    /// the longest time left.
    late: usize,
    late_left_ms: u64,
    /// Had expired when their own result was stored.
    outlived: usize,
    /// Were held almost until their deadline and gone without a result of their own.
    expired: usize,
    /// May have ended before or after their deadline.
    unclear: usize,
}

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let sample = match &facts.sample {
        Ok(sample) => sample,
        // Without --observe, only some results contain both times.
        Err(refusal) if facts.observed.is_some() => {
            return vec![CheckJudgement::unknown(refusal.clone())];
        }
        Err(_) => return Vec::new(),
    };
    let mut times: Vec<HoldTimes<'_>> = Vec::new();
    for of in &sample.schemas {
        let of_schema = times_of(&mut times, &of.schema);
        of_schema.longest_left_ms = of.lock_ttls.percentile(100).unwrap_or(0);
        for hold in &of.holds_ms {
            of_schema.add_own(*hold);
        }
    }
    let mut judgements = Vec::new();
    let is_observed = match facts.observed() {
        None => false,
        Some(Ok(run)) => {
            add_run(&mut times, run);
            true
        }
        Some(Err(refusal)) => {
            judgements.push(CheckJudgement::unknown(refusal));
            false
        }
    };
    let mut is_seen = false;
    for of_schema in &times {
        let ends = of_schema.ends();
        let has_ended = ends.outlived + ends.expired + ends.unclear > 0;
        if of_schema.count() > 0 || has_ended {
            is_seen = true;
            judgements.extend(judge_schema(of_schema, &ends, is_observed));
        }
    }
    if is_observed && !is_seen && facts.schemas.iter().any(|schema| schema.has_locks()) {
        let why = "no lock in the samples certainly ended in a result".to_owned();
        judgements.push(unknown(why.clone(), why, true));
    }
    judgements
}

fn add_run<'a>(times: &mut Vec<HoldTimes<'a>>, run: &'a ObservedRun) {
    for (name, hold) in &run.holds_ms {
        if let Some(of_schema) = times.iter_mut().find(|of| of.schema.name == *name) {
            of_schema.add_own(*hold);
        }
    }
    for lock in &run.locks {
        let of_schema = times_of(times, &lock.schema);
        of_schema.longest_left_ms = of_schema.longest_left_ms.max(lock.left_ms.unwrap_or(0));
        // A renewed lock may be held for longer than its TTL.
        if lock.moves > 0 {
            continue;
        }
        if lock.schema.renew.is_none() {
            let lifetime = lock.lifetime_ms.unwrap_or(0);
            of_schema.longest_left_ms = of_schema.longest_left_ms.max(lifetime);
        }
        of_schema.watched.push(lock);
        match lock.end {
            WatchEnd::Result { is_own: true, .. } => of_schema.add_own(lock.held_ms()),
            WatchEnd::Result { may_be_late: false, .. } => {
                of_schema.followed += 1;
                of_schema.longest_ms = of_schema.longest_ms.max(lock.held_ms());
            }
            // After the deadline, a retry may have stored it.
            _ => {}
        }
    }
}

fn times_of<'a, 'b>(
    times: &'b mut Vec<HoldTimes<'a>>,
    schema: &Arc<Schema>,
) -> &'b mut HoldTimes<'a> {
    let index = match times.iter().position(|of| of.schema.name == schema.name) {
        Some(index) => index,
        None => {
            times.push(HoldTimes {
                schema: Arc::clone(schema),
                own: 0,
                followed: 0,
                longest_ms: 0,
                longest_left_ms: 0,
                watched: Vec::new(),
            });
            times.len() - 1
        }
    };
    &mut times[index]
}

impl HoldTimes<'_> {
    fn add_own(&mut self, hold_ms: u64) {
        self.own += 1;
        self.longest_ms = self.longest_ms.max(hold_ms);
    }

    /// The locks that certainly ended before their deadline, or in their own result.
    fn count(&self) -> usize {
        self.own + self.followed
    }

    /// `of 3 locks that ended in their own result`; `None` without such locks.
    fn counted(&self) -> Option<String> {
        let result = "with a result before their deadline";
        match (self.own, self.followed) {
            (0, 0) => None,
            (own, 0) => Some(format!("{} that ended in their own result", locks(own))),
            (0, followed) => Some(format!("{} {result}", locks(followed))),
            (own, followed) => Some(format!(
                "{} that ended in their own result, and {} {result}",
                locks(own),
                locks(followed)
            )),
        }
    }

    /// The lock TTL that the deployment states, in milliseconds.
    fn stated(&self) -> Option<u64> {
        let is_stated = self.schema.ttl_evidence(TtlOf::Lock) == Evidence::Stated;
        self.schema.ttl(TtlOf::Lock).filter(|_| is_stated).map(millis)
    }

    fn ends(&self) -> WatchedEnds {
        // The stated TTL may be longer than the one that the service sets.
        let ttl = self.stated().unwrap_or(u64::MAX).min(self.longest_left_ms);
        let mut ends = WatchedEnds::default();
        for lock in &self.watched {
            let left = lock.last_left_ms.unwrap_or(u64::MAX);
            let is_near = u128::from(left) * 100 <= u128::from(ttl) * u128::from(100 - LONG);
            match lock.end {
                WatchEnd::ResultAfterExpiry { is_same: true } => ends.outlived += 1,
                // A lock that expired is often followed by the result of a retry.
                WatchEnd::Result { is_own: false, may_be_late: true, .. } => ends.unclear += 1,
                WatchEnd::Result { .. } if is_near => {
                    ends.late += 1;
                    ends.late_left_ms = ends.late_left_ms.max(left);
                }
                WatchEnd::Expired | WatchEnd::ResultAfterExpiry { .. } if is_near => {
                    ends.expired += 1;
                }
                WatchEnd::Expired
                | WatchEnd::ResultAfterExpiry { .. }
                | WatchEnd::Result { may_be_late: true, .. }
                | WatchEnd::Ambiguous => ends.unclear += 1,
                WatchEnd::Result { .. } | WatchEnd::Held | WatchEnd::Gone => {}
            }
        }
        ends
    }
}

fn judge_schema(
    times: &HoldTimes<'_>,
    ends: &WatchedEnds,
    is_observed: bool,
) -> Option<CheckJudgement> {
    let name = &times.schema.name;
    let hold = times.longest_ms;
    let seen = match hold {
        0 if times.count() == 0 => "no lock certainly ended in a result".to_owned(),
        0 => "no hold was long enough to be seen twice".to_owned(),
        _ => format!("the longest hold seen is {}", duration::short(hold)),
    };
    let mut fact = format!("{name}: {seen}");
    if let Some(counted) = times.counted() {
        fact.push_str(&format!(", of {counted}"));
    }
    // The deadline did not move, so this is a bound, whatever the TTL is.
    let min_left = times.watched.iter().filter_map(|lock| lock.left_at_end_ms).min();
    if let Some(left) = min_left.filter(|left| *left > 0) {
        let left = duration::short(left);
        fact.push_str(&format!("; the watched ones ended with {left} left or more"));
    }
    let stated = times.stated();
    let default = times.schema.ttl(TtlOf::Lock).map(millis);
    fact.push_str(&match (stated, default) {
        (Some(ttl), _) => format!("; the stated lock TTL is {}", duration::short(ttl)),
        (None, Some(ttl)) => {
            format!("; the lock TTL is not stated, the default is {}", duration::short(ttl))
        }
        (None, None) => "; the schema has no lock TTL".to_owned(),
    });
    let is_long = |ttl: u64| u128::from(hold) * 100 >= u128::from(ttl) * u128::from(LONG);
    let judgement = if ends.outlived > 0 {
        let were = locks(ends.outlived);
        CheckJudgement::warning(format!("{fact}; {were} had expired when their result was stored"))
            .with_fault(ModelledFault::Expiry)
    } else if ends.late > 0 {
        let left = duration::short(ends.late_left_ms);
        let late = ends.late;
        CheckJudgement::warning(format!("{fact}; {late} ended with at most {left} left"))
            .with_fault(ModelledFault::Expiry)
    } else if stated.is_some_and(is_long) {
        let found = if times.schema.renew.is_some() {
            CheckJudgement::note(fact)
        } else {
            CheckJudgement::warning(fact)
        };
        found.with_evidence(FactEvidence::Configured).with_fault(ModelledFault::Expiry)
    } else if ends.expired > 0 {
        let verb = if ends.expired == 1 { "was" } else { "were" };
        let fact = format!(
            "{fact}; {} {verb} held until the deadline, and expired before a result was stored",
            locks(ends.expired)
        );
        let are_all = times.count() == 0 && ends.expired >= MIN_OF_ALL;
        let are_many = ends.expired >= MIN_HOLDS
            && ends.expired * 100 >= (times.count() + ends.expired) * MANY_EXPIRED;
        let found = if are_many || are_all {
            CheckJudgement::warning(fact)
        } else {
            CheckJudgement::note(fact)
        };
        found
            .with_evidence(FactEvidence::Estimated)
            .with_consequence(
                "Either the worker died, or its handler runs for longer than the lock TTL, and a \
                 retry starts the same operation a second time.",
            )
            .with_fault(ModelledFault::Expiry)
    } else if stated.is_none() && hold > 0 && default.is_some_and(is_long) {
        CheckJudgement::note(fact)
            .with_evidence(FactEvidence::Estimated)
            .with_fault(ModelledFault::Expiry)
    } else if ends.unclear > 0 {
        let why = format!(
            "{} ended between two looks, perhaps after the deadline, or may have been taken again",
            locks(ends.unclear)
        );
        unknown(format!("{fact}; {why}"), why, stated.is_some())
    } else if times.count() < MIN_HOLDS {
        if !is_observed {
            return None;
        }
        unknown(fact, too_few(times.count()), stated.is_some())
    } else if stated.is_none() {
        if !is_observed {
            return None;
        }
        unknown(fact, "the lock TTL is not stated".to_owned(), false)
    } else {
        // Longer holds may have come before or after.
        CheckJudgement::ok(fact).with_evidence(FactEvidence::Estimated)
    };
    Some(judgement.for_schemas(vec![name.clone()]))
}

/// `1 lock`, `3 locks`.
fn locks(count: usize) -> String {
    if count == 1 { "1 lock".to_owned() } else { format!("{count} locks") }
}

fn too_few(count: usize) -> String {
    if count == 1 { "1 lock is too few".to_owned() } else { format!("{count} locks are too few") }
}

fn unknown(fact: String, why: String, is_stated: bool) -> CheckJudgement {
    let instead = match is_stated {
        true => "Observe for longer, at a time with many requests.",
        false => {
            "Observe for longer, at a time with many requests, and state the lock TTL: `idemctl \
             context set NAME --lock-ttl SCHEMA=DURATION`."
        }
    };
    let refusal = RefusedFact {
        command: "--observe".to_owned(),
        rule: None,
        why,
        instead: Some(instead.to_owned()),
    };
    CheckJudgement { fact, ..CheckJudgement::unknown(refusal) }
}
