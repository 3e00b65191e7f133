//! Whether what was seen in a round can have been atomic.
//!
//! The rule is direct, and linear but for sorting: at most one worker acquires the lock in an epoch (from an acquired
//! lock to its release or expiry); every conflict overlaps or follows an acquired lock and does not follow its end;
//! every replay follows the start of a completion and carries what that one stored; a failed request or an unknown
//! reply is wrong in itself. A lost reply counts as "maybe": it excuses others and accuses nobody.

use std::collections::HashMap;
use std::time::Duration;

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::race::event::{RaceAct, RaceAnswer, RaceEvent};

/// How long the raced schema's keys live.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ttls {
    pub(crate) lock: Duration,
    pub(crate) result: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ruling {
    /// The most workers that acquired the lock in one epoch.
    pub(crate) winners: usize,
    /// What cannot have been atomic, the most telling first.
    pub(crate) offences: Vec<Offence>,
}

/// Two events that do not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offence {
    pub(crate) rule: RaceRule,
    /// The index of the event that breaks it.
    pub(crate) event: usize,
    /// The index of the event it cannot go together with, where there is one.
    pub(crate) against: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum RaceRule {
    ManyWinners,
    /// A replay of a result that nobody had begun to store.
    EarlyReplay,
    /// A replay of something else than was stored.
    ForeignReplay,
    /// A conflict although nobody can have held the lock.
    BaselessConflict,
    /// A request that failed, or a reply that the schema does not know.
    WrongReply,
}

as_str!(RaceRule);

impl RaceRule {
    /// What happened in a round in which `winners` workers acquired the lock before it ended.
    pub(crate) fn sentence(self, winners: usize) -> String {
        let sentence = match self {
            Self::ManyWinners if winners > 2 => {
                return format!(
                    "{winners} workers acquired the lock of one key, so the operation ran {winners} times."
                );
            }
            Self::ManyWinners => {
                "Two workers acquired the lock of one key, so the operation ran twice."
            }
            Self::EarlyReplay => "A response was replayed before anybody had begun to store one.",
            Self::ForeignReplay => "The response that was replayed is not the one that was stored.",
            Self::BaselessConflict => {
                "A request got a conflict although nobody can have held the lock."
            }
            Self::WrongReply => {
                "A request failed that should get the lock, a conflict or the response."
            }
        };
        sentence.to_owned()
    }
}

/// A lock that a worker acquired, or maybe acquired, and what it did with it.
struct LockHold {
    event: usize,
    start: u64,
    end: u64,
    /// False when the reply was lost.
    certain: bool,
    /// The event that ended the lock.
    finish: Option<usize>,
}

pub(crate) fn judge(events: &[RaceEvent], ttls: Ttls) -> Ruling {
    let holds = holds(events);
    let mut offences = Vec::new();
    let (winners, crowded) = many_winners(events, &holds, ttls, &mut offences);
    baseless_conflicts(events, &holds, &mut offences);
    strange_replays(events, &mut offences);
    wrong_replies(events, &holds, crowded, &mut offences);
    offences.sort_by_key(|offence| (offence.rule, events[offence.event].end));
    Ruling { winners, offences }
}

/// Every lock acquired for certain or maybe, by the time it was asked for, with the next step of its worker.
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

/// The most winners in an epoch, and whether there was an epoch with several.
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
            // The lock may have been free before the second one was acquired: a new epoch.
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

/// The earliest time at which another worker may acquire the lock after this one.
fn free_from(events: &[RaceEvent], hold: &LockHold, ttls: Ttls) -> u64 {
    let expires = hold.start.saturating_add(nanos(ttls.lock));
    match hold.finish.map(|finish| &events[finish]) {
        Some(RaceEvent { answer: RaceAnswer::Refused | RaceAnswer::Wrong(_), .. }) | None => {
            expires
        }
        Some(finish) if finish.start >= expires => expires,
        Some(RaceEvent { act: RaceAct::Release, start, .. }) => *start,
        Some(finish) => finish.start.saturating_add(nanos(ttls.result)),
    }
}

/// The latest time at which this worker can have held the lock.
fn held_until(events: &[RaceEvent], hold: &LockHold) -> u64 {
    match hold.finish.map(|finish| &events[finish]) {
        Some(RaceEvent { answer: RaceAnswer::Stored | RaceAnswer::Released, end, .. }) => *end,
        _ => u64::MAX,
    }
}

fn baseless_conflicts(events: &[RaceEvent], holds: &[LockHold], offences: &mut Vec<Offence>) {
    // The holds are in the order of their starts, so that the longest of the first n decides for all that started by then.
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
        let begun = holds.partition_point(|hold| hold.start <= event.end);
        if begun == 0 || longest_by_start[begun - 1] < event.start {
            let nearest = holds[..begun].last().or(holds.first());
            let against = nearest.map(|hold| hold.finish.unwrap_or(hold.event));
            offences.push(Offence { rule: RaceRule::BaselessConflict, event: index, against });
        }
    }
}

fn strange_replays(events: &[RaceEvent], offences: &mut Vec<Offence>) {
    let completions = Completions::new(events);
    for (index, event) in events.iter().enumerate() {
        let RaceAnswer::Replay(carried) = &event.answer else { continue };
        let source = match carried {
            Some(bytes) => completions.by_bytes.get(bytes.as_slice()).copied(),
            // A reply without a response can be that of any completion.
            None => completions.first,
        };
        if has_begun_before(events, source, event) {
            continue;
        }
        let rule = match has_begun_before(events, completions.first, event) {
            true => RaceRule::ForeignReplay,
            false => RaceRule::EarlyReplay,
        };
        offences.push(Offence { rule, event: index, against: source.or(completions.first) });
    }
}

/// The completions that may have stored a response, by the index of their events.
struct Completions<'e> {
    /// The earliest one that stored these bytes.
    by_bytes: HashMap<&'e [u8], usize>,
    /// The earliest of all.
    first: Option<usize>,
}

impl<'e> Completions<'e> {
    fn new(events: &'e [RaceEvent]) -> Self {
        let mut completions = Self { by_bytes: HashMap::new(), first: None };
        for (index, event) in events.iter().enumerate() {
            let RaceAct::Complete(stored) = &event.act else { continue };
            if event.answer == RaceAnswer::Refused {
                continue;
            }
            let is_earlier =
                |known: Option<usize>| known.is_none_or(|known| events[known].start > event.start);
            if is_earlier(completions.by_bytes.get(stored.as_slice()).copied()) {
                completions.by_bytes.insert(stored, index);
            }
            if is_earlier(completions.first) {
                completions.first = Some(index);
            }
        }
        completions
    }
}

/// True if the completion had begun when the event ended.
fn has_begun_before(events: &[RaceEvent], completion: Option<usize>, event: &RaceEvent) -> bool {
    completion.is_some_and(|completion| events[completion].start <= event.end)
}

/// Requests that fail, replies that the schema does not list, and a lone holder whose step is refused.
fn wrong_replies(
    events: &[RaceEvent],
    holds: &[LockHold],
    crowded: bool,
    offences: &mut Vec<Offence>,
) {
    for (index, event) in events.iter().enumerate() {
        let is_wrong = match event.answer {
            RaceAnswer::Wrong(_) => true,
            // Of several winners all but one may be refused; the offence is that they are several.
            RaceAnswer::Refused => !crowded,
            _ => false,
        };
        if is_wrong {
            let against = cause_of(events, holds, index);
            offences.push(Offence { rule: RaceRule::WrongReply, event: index, against });
        }
    }
}

/// The event that a wrong reply is set against: the latest end of a lock before it, or the latest lock.
fn cause_of(events: &[RaceEvent], holds: &[LockHold], wrong: usize) -> Option<usize> {
    let is_before = |other: usize| other != wrong && events[other].start <= events[wrong].end;
    let mut latest: Option<usize> = None;
    for finish in holds.iter().filter_map(|hold| hold.finish) {
        if is_before(finish)
            && latest.is_none_or(|latest| events[finish].start >= events[latest].start)
        {
            latest = Some(finish);
        }
    }
    if latest.is_some() {
        return latest;
    }
    holds.iter().map(|hold| hold.event).rfind(|event| is_before(*event))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
