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
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::ManyWinners => "two workers acquire the lock of one key: the operation runs twice",
            Self::EarlyReplay => "a response is replayed that nobody had begun to store",
            Self::ForeignReplay => "what is replayed is not what was stored",
            Self::BaselessConflict => "a conflict although nobody can have held the lock",
            Self::WrongReply => "a request fails that should get the lock, a conflict or the response",
        }
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

/// Every lock acquired for certain or maybe, by the moment it was asked for, with what its worker did next.
fn holds(events: &[RaceEvent]) -> Vec<LockHold> {
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by_key(|index| events[*index].start);
    let mut holds: Vec<LockHold> = Vec::new();
    let mut open: HashMap<usize, usize> = HashMap::new();
    for index in order {
        let event = &events[index];
        match (&event.act, &event.answer) {
            (RaceAct::Begin | RaceAct::Retry, answer @ (RaceAnswer::Acquired | RaceAnswer::Lost(_))) => {
                let certain = *answer == RaceAnswer::Acquired;
                open.insert(event.worker, holds.len());
                holds.push(LockHold { event: index, start: event.start, end: event.end, certain, finish: None });
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
fn many_winners(events: &[RaceEvent], holds: &[LockHold], ttls: Ttls, offences: &mut Vec<Offence>) -> (usize, bool) {
    let mut certain: Vec<&LockHold> = holds.iter().filter(|hold| hold.certain).collect();
    certain.sort_by_key(|hold| hold.end);
    let mut most = usize::from(!certain.is_empty());
    let mut winners = most;
    for pair in certain.windows(2) {
        let [first, second] = pair else { continue };
        if free_from(events, first, ttls) < second.end {
            winners = 1;
        } else {
            winners += 1;
            offences.push(Offence { rule: RaceRule::ManyWinners, event: second.event, against: Some(first.event) });
        }
        most = most.max(winners);
    }
    (most, most > 1)
}

/// The earliest moment at which another worker may acquire the lock after this one.
fn free_from(events: &[RaceEvent], hold: &LockHold, ttls: Ttls) -> u64 {
    let expires = hold.start.saturating_add(nanos(ttls.lock));
    match hold.finish.map(|finish| &events[finish]) {
        Some(RaceEvent { answer: RaceAnswer::Refused | RaceAnswer::Wrong(_), .. }) | None => expires,
        Some(finish) if finish.start >= expires => expires,
        Some(RaceEvent { act: RaceAct::Release, start, .. }) => *start,
        Some(finish) => finish.start.saturating_add(nanos(ttls.result)),
    }
}

/// The latest moment at which the lock can have been this worker's.
fn held_until(events: &[RaceEvent], hold: &LockHold) -> u64 {
    match hold.finish.map(|finish| &events[finish]) {
        Some(RaceEvent { answer: RaceAnswer::Stored | RaceAnswer::Released, end, .. }) => *end,
        _ => u64::MAX,
    }
}

fn baseless_conflicts(events: &[RaceEvent], holds: &[LockHold], offences: &mut Vec<Offence>) {
    // With the holds in the order of their starts, the longest of the first n decides for all that started by then.
    let mut longest = 0;
    let until: Vec<u64> = holds
        .iter()
        .map(|hold| {
            longest = longest.max(held_until(events, hold));
            longest
        })
        .collect();
    for (index, event) in events.iter().enumerate().filter(|(_, event)| event.answer == RaceAnswer::Conflict) {
        let begun = holds.partition_point(|hold| hold.start <= event.end);
        if begun == 0 || until[begun - 1] < event.start {
            let against = holds[..begun].last().or(holds.first()).map(|hold| hold.finish.unwrap_or(hold.event));
            offences.push(Offence { rule: RaceRule::BaselessConflict, event: index, against });
        }
    }
}

fn strange_replays(events: &[RaceEvent], offences: &mut Vec<Offence>) {
    let mut by_bytes: HashMap<&[u8], usize> = HashMap::new();
    let mut first: Option<usize> = None;
    for (index, event) in events.iter().enumerate() {
        let RaceAct::Complete(stored) = &event.act else { continue };
        if event.answer == RaceAnswer::Refused {
            continue;
        }
        let earlier = |known: &usize| events[*known].start <= event.start;
        if !by_bytes.get(stored.as_slice()).is_some_and(earlier) {
            by_bytes.insert(stored, index);
        }
        if !first.as_ref().is_some_and(earlier) {
            first = Some(index);
        }
    }
    for (index, event) in events.iter().enumerate() {
        let RaceAnswer::Replay(carried) = &event.answer else { continue };
        let begun = |completion: &usize| events[*completion].start <= event.end;
        let source = carried.as_ref().map_or(first, |bytes| by_bytes.get(bytes.as_slice()).copied());
        if !source.as_ref().is_some_and(begun) {
            let foreign = first.as_ref().is_some_and(begun);
            let rule = if foreign { RaceRule::ForeignReplay } else { RaceRule::EarlyReplay };
            offences.push(Offence { rule, event: index, against: source.or(first) });
        }
    }
}

/// Requests that fail, replies nobody knows, and a lone holder whose step is refused.
fn wrong_replies(events: &[RaceEvent], holds: &[LockHold], crowded: bool, offences: &mut Vec<Offence>) {
    for (index, event) in events.iter().enumerate() {
        let wrong = match event.answer {
            RaceAnswer::Wrong(_) => true,
            // Of several winners all but one may be refused; the offence is that they are several.
            RaceAnswer::Refused => !crowded,
            _ => false,
        };
        if wrong {
            let before = |other: &usize| *other != index && events[*other].start <= event.end;
            let finished = holds.iter().filter_map(|hold| hold.finish).filter(before);
            let latest = finished.max_by_key(|other| events[*other].start);
            let against = latest.or_else(|| holds.iter().map(|hold| hold.event).rfind(before));
            offences.push(Offence { rule: RaceRule::WrongReply, event: index, against });
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
