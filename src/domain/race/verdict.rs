//! Decides whether the events of a round can have been atomic.
//!
//! The rules are direct, and linear except for sorting. An epoch lasts from the acquisition of a
//! lock to its release or expiry, and at most one worker acquires the lock in it. Every conflict
//! overlaps or follows an acquired lock, and does not follow its end. If begin takes the lock
//! before it looks for the result, a request that gets a replay may hold the lock, too. Every
//! replay follows the start of a completion, and carries its response. A failed request or an
//! unlisted reply is always wrong. A lost reply counts as "maybe": it can excuse other events, but
//! is never an offence.

use std::collections::HashMap;
use std::time::Duration;

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::race::event::{RaceAct, RaceAnswer, RaceEvent};

/// The TTLs of the raced schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ttls {
    pub(crate) lock: Duration,
    pub(crate) result: Duration,
}

/// The verdict on one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ruling {
    /// The largest number of workers that acquired the lock in one epoch.
    pub(crate) winners: usize,
    /// The events that contradict an atomic service, the clearest first.
    pub(crate) offences: Vec<Offence>,
}

/// An event that cannot belong to an atomic service, and the event that contradicts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offence {
    pub(crate) rule: RaceRule,
    /// The index of the event that breaks the rule.
    pub(crate) event: usize,
    /// The index of the event that contradicts it, if there is one.
    pub(crate) against: Option<usize>,
}

/// The rule that an offence breaks, the clearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum RaceRule {
    /// Several workers acquired the lock in one epoch.
    ManyWinners,
    /// A replay before any worker had begun to store a result.
    EarlyReplay,
    /// A replay of a response that was not stored.
    ForeignReplay,
    /// A conflict although no worker can have held the lock.
    BaselessConflict,
    /// A failed request, or a reply that the schema does not list.
    WrongReply,
}

as_str!(RaceRule);

impl RaceRule {
    /// Describes a round in which `winners` workers acquired the lock before it ended.
    pub(crate) fn sentence(self, winners: usize) -> String {
        match self {
            Self::ManyWinners => {
                return format!(
                    "{winners} workers acquired the lock of one key, so the operation ran \
                    {winners} times."
                );
            }
            Self::EarlyReplay => {
                "A response was replayed before any worker had begun to store one."
            }
            Self::ForeignReplay => "The replayed response is not the stored one.",
            Self::BaselessConflict => {
                "A request got a conflict although no worker can have held the lock."
            }
            Self::WrongReply => {
                "A request failed although it should have got the lock, a conflict or the response."
            }
        }
        .to_owned()
    }
}

/// A lock that a worker acquired, or may have acquired, and how that worker ended it.
struct LockHold {
    event: usize,
    start: u64,
    end: u64,
    /// False if the reply was lost.
    certain: bool,
    /// The index of the event that ended the lock.
    finish: Option<usize>,
}

/// Judges the events of a round. `locks_first` is true if begin takes the lock before it looks for
/// the result.
pub(crate) fn judge(events: &[RaceEvent], ttls: Ttls, locks_first: bool) -> Ruling {
    let holds = holds(events);
    let mut offences = Vec::new();
    let (winners, crowded) = many_winners(events, &holds, ttls, &mut offences);
    baseless_conflicts(events, &holds, locks_first, &mut offences);
    strange_replays(events, &mut offences);
    wrong_replies(events, &holds, crowded, &mut offences);
    // The clearest rule first, and within a rule the earliest reply.
    offences.sort_by_key(|offence| (offence.rule, events[offence.event].end));
    Ruling { winners, offences }
}

/// Every lock that was, or may have been, acquired, ordered by the start of its request. Each has
/// the next step of its worker.
fn holds(events: &[RaceEvent]) -> Vec<LockHold> {
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by_key(|index| events[*index].start);
    let mut holds: Vec<LockHold> = Vec::new();
    let mut open: HashMap<usize, usize> = HashMap::new();
    for index in order {
        let event = &events[index];
        match (&event.act, &event.answer) {
            (
                RaceAct::Begin | RaceAct::Retry,
                answer @ (RaceAnswer::Acquired | RaceAnswer::Lost(_)),
            ) => {
                // A request whose reply was lost may have acquired the lock.
                let certain = *answer == RaceAnswer::Acquired;
                open.insert(event.worker, holds.len());
                holds.push(LockHold {
                    event: index,
                    start: event.start,
                    end: event.end,
                    certain,
                    finish: None,
                });
            }
            (RaceAct::Complete(_) | RaceAct::Release, _) => {
                if let Some(hold) = open.remove(&event.worker) {
                    holds[hold].finish = Some(index);
                }
            }
            _ => {}
        }
    }
    holds
}

/// The largest number of winners in an epoch, and whether any epoch had several.
fn many_winners(
    events: &[RaceEvent],
    holds: &[LockHold],
    ttls: Ttls,
    offences: &mut Vec<Offence>,
) -> (usize, bool) {
    let mut certain: Vec<&LockHold> = holds.iter().filter(|hold| hold.certain).collect();
    certain.sort_by_key(|hold| hold.end);
    let mut most = usize::from(!certain.is_empty());
    let mut winners = most;
    for pair in certain.windows(2) {
        let [first, second] = pair else { continue };
        if free_from(events, first, ttls) < second.end {
            // The lock may have been free before the second worker acquired it: a new epoch begins.
            winners = 1;
        } else {
            winners += 1;
            offences.push(Offence {
                rule: RaceRule::ManyWinners,
                event: second.event,
                against: Some(first.event),
            });
        }
        most = most.max(winners);
    }
    (most, most > 1)
}

/// The earliest time at which another worker may acquire the lock after this one, in nanoseconds.
fn free_from(events: &[RaceEvent], hold: &LockHold, ttls: Ttls) -> u64 {
    let expires = hold.start.saturating_add(nanos(ttls.lock));
    let Some(finish) = hold.finish else { return expires };
    let finish = &events[finish];
    // A step that was refused, or that failed, did not end the lock.
    if matches!(finish.answer, RaceAnswer::Refused | RaceAnswer::Wrong(_)) {
        return expires;
    }
    if finish.start >= expires {
        return expires;
    }
    if finish.act == RaceAct::Release {
        return finish.start;
    }
    // A stored result rejects further requests until its own TTL expires.
    finish.start.saturating_add(nanos(ttls.result))
}

/// The latest time at which this worker can have held the lock, in nanoseconds.
fn held_until(events: &[RaceEvent], hold: &LockHold) -> u64 {
    if let Some(finish) = hold.finish {
        let finish = &events[finish];
        if matches!(finish.answer, RaceAnswer::Stored | RaceAnswer::Released) {
            return finish.end;
        }
    }
    // No step ended the lock for certain. The worker may hold it until the round ends.
    u64::MAX
}

fn baseless_conflicts(
    events: &[RaceEvent],
    holds: &[LockHold],
    locks_first: bool,
    offences: &mut Vec<Offence>,
) {
    let first_replay = first_locking_replay(events, locks_first);
    // The holds are ordered by their starts. The latest end among the first n therefore decides for
    // every conflict that they precede.
    let mut longest = 0;
    let mut longest_by_start = Vec::with_capacity(holds.len());
    for hold in holds {
        longest = longest.max(held_until(events, hold));
        longest_by_start.push(longest);
    }
    for (index, event) in events.iter().enumerate() {
        if event.answer != RaceAnswer::Conflict {
            continue;
        }
        // Whether and when the replayed request gave the lock back does not show in its reply.
        if first_replay <= event.end {
            continue;
        }
        let begun = holds.partition_point(|hold| hold.start <= event.end);
        if begun == 0 || longest_by_start[begun - 1] < event.start {
            let nearest = holds[..begun].last().or(holds.first());
            let against = nearest.map(|hold| hold.finish.unwrap_or(hold.event));
            offences.push(Offence { rule: RaceRule::BaselessConflict, event: index, against });
        }
    }
}

/// The start of the first request that got a replay and may have taken the lock before; the end of
/// time if there is none.
fn first_locking_replay(events: &[RaceEvent], locks_first: bool) -> u64 {
    let mut first = u64::MAX;
    if !locks_first {
        return first;
    }
    for event in events {
        if matches!(event.answer, RaceAnswer::Replay(_)) {
            first = first.min(event.start);
        }
    }
    first
}

fn strange_replays(events: &[RaceEvent], offences: &mut Vec<Offence>) {
    let completions = Completions::new(events);
    for (index, event) in events.iter().enumerate() {
        let RaceAnswer::Replay(carried) = &event.answer else { continue };
        let source = match carried {
            Some(bytes) => completions.by_bytes.get(bytes.as_slice()).copied(),
            // A reply without a response can come from any completion.
            None => completions.first,
        };
        if has_begun_before(events, source, event) {
            continue;
        }
        let rule = if has_begun_before(events, completions.first, event) {
            RaceRule::ForeignReplay
        } else {
            RaceRule::EarlyReplay
        };
        offences.push(Offence { rule, event: index, against: source.or(completions.first) });
    }
}

/// The completions that may have stored a response, given by the indexes of their events.
struct Completions<'e> {
    /// For each response, the earliest completion that stored it.
    by_bytes: HashMap<&'e [u8], usize>,
    /// The earliest completion of all.
    first: Option<usize>,
}

impl<'e> Completions<'e> {
    fn new(events: &'e [RaceEvent]) -> Self {
        let mut completions = Self { by_bytes: HashMap::new(), first: None };
        for (index, event) in events.iter().enumerate() {
            let RaceAct::Complete(stored) = &event.act else { continue };
            // A refused completion stored nothing.
            if event.answer == RaceAnswer::Refused {
                continue;
            }
            // A later completion excuses no replay that the earliest one does not excuse.
            let known = completions.by_bytes.get(stored.as_slice()).copied();
            if starts_before(events, event, known) {
                completions.by_bytes.insert(stored, index);
            }
            if starts_before(events, event, completions.first) {
                completions.first = Some(index);
            }
        }
        completions
    }
}

/// True if the event started before the known one, or if none is known.
fn starts_before(events: &[RaceEvent], event: &RaceEvent, known: Option<usize>) -> bool {
    match known {
        Some(known) => event.start < events[known].start,
        None => true,
    }
}

/// True if the completion had started when the event ended.
fn has_begun_before(events: &[RaceEvent], completion: Option<usize>, event: &RaceEvent) -> bool {
    match completion {
        Some(completion) => events[completion].start <= event.end,
        None => false,
    }
}

/// Finds failed requests, unlisted replies, and refused steps of a lone holder.
fn wrong_replies(
    events: &[RaceEvent],
    holds: &[LockHold],
    crowded: bool,
    offences: &mut Vec<Offence>,
) {
    for (index, event) in events.iter().enumerate() {
        let is_wrong = match event.answer {
            RaceAnswer::Wrong(_) => true,
            // If there are several winners, all but one may be refused. The offence is then that
            // there are several.
            RaceAnswer::Refused => !crowded,
            _ => false,
        };
        if is_wrong {
            let against = cause_of(events, holds, index);
            offences.push(Offence { rule: RaceRule::WrongReply, event: index, against });
        }
    }
}

/// The event that explains a wrong reply: the latest end of a lock before it, or else the latest
/// lock.
fn cause_of(events: &[RaceEvent], holds: &[LockHold], wrong: usize) -> Option<usize> {
    let mut latest_end: Option<usize> = None;
    let mut latest_lock = None;
    for hold in holds {
        if let Some(finish) = hold.finish
            && precedes(events, finish, wrong)
            && latest_end.is_none_or(|latest| events[finish].start >= events[latest].start)
        {
            latest_end = Some(finish);
        }
        // The holds are ordered by their starts, so the last one is the latest.
        if precedes(events, hold.event, wrong) {
            latest_lock = Some(hold.event);
        }
    }
    latest_end.or(latest_lock)
}

/// True if the event `other` had started when the event `wrong` ended.
fn precedes(events: &[RaceEvent], other: usize, wrong: usize) -> bool {
    other != wrong && events[other].start <= events[wrong].end
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
