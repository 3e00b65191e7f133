//! What becomes of a lock during a run with `--observe`.

use std::sync::Arc;

use crate::domain::record::deadline::SLACK_MS;
use crate::domain::record::{Deadline, Evidence, KeyState, Observation, Record};
use crate::domain::schema::{Schema, State};

/// A deadline that is later by at most this many milliseconds did not move: clocks step, and before
/// Redis 7.0 the deadline is computed from TIME and PTTL.
pub(crate) const MOVE_TOLERANCE_MS: u64 = 1_000;

/// The time around a look, in milliseconds since the run began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LookTime {
    pub(crate) before_ms: u64,
    pub(crate) after_ms: u64,
}

/// A lock that was seen in progress, and what was seen of it later.
#[derive(Debug, Clone)]
pub(crate) struct WatchedLock {
    pub(crate) schema: Arc<Schema>,
    owner: Option<Vec<u8>>,
    created_ms: Option<u64>,
    /// The deadline at the last look, or the one since which it has not moved by more than the
    /// tolerance.
    deadline: Deadline,
    /// When the run saw it first, in milliseconds since the run began.
    pub(crate) first_ms: u64,
    /// When the run saw it last, in milliseconds since the run began.
    last_ms: u64,
    /// When the last look at it began.
    seen_ms: u64,
    /// How often it was seen as a lock.
    pub(crate) looks: usize,
    /// How long it had been held at the first look, if the value says so.
    age_ms: Option<u64>,
    /// The time left at the last look at which it was held, in milliseconds.
    pub(crate) last_left_ms: Option<u64>,
    /// The least time that it had left when its result was stored, in milliseconds: the time at the
    /// last look at which it was held, less the time until the next one.
    pub(crate) left_at_end_ms: Option<u64>,
    /// True if it lost its TTL during the run.
    pub(crate) has_lost_ttl: bool,
    /// The lock each time its deadline had moved later, while its owner or its time stayed the
    /// same.
    moved: Vec<KeyState>,
    /// How often that was, without the times that operators extended it.
    pub(crate) moves: usize,
    /// The time from its creation to its deadline, if its value says when it was created. Renewals
    /// make it longer than the lock TTL.
    pub(crate) lifetime_ms: Option<u64>,
    /// The time left at the first look, in milliseconds.
    pub(crate) left_ms: Option<u64>,
    pub(crate) end: WatchEnd,
}

/// How the watch of a lock ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchEnd {
    /// It was still held at the last look.
    Held,
    /// A result was stored before its deadline, or perhaps after it if `may_be_late`. `is_own` is
    /// true if the result has the owner or the time of the lock; else another request may have
    /// stored it after the lock ended between two looks. `ttl_ms` is the TTL of the result, at least
    /// and at most; `is_completed` is false for a failure.
    Result { ttl_ms: Option<(u64, u64)>, is_completed: bool, is_own: bool, may_be_late: bool },
    /// It was held until its deadline, or almost, and then gone without a result.
    Expired,
    /// The same, and a result was stored later. `is_same` is true if the result has the owner or
    /// the time of the lock.
    ResultAfterExpiry { is_same: bool },
    /// It no longer existed before its deadline, and no result of its own did. Another request may
    /// have taken the key, or stored a result.
    Gone,
    /// Its deadline moved or its value changed, and nothing shows whether it is the same lock.
    Ambiguous,
}

/// Whose result follows a lock, by the owner and the time in both values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultAuthor {
    /// The request that held the lock.
    Same,
    Other,
    /// The values do not say it.
    Unknown,
}

impl WatchedLock {
    /// A lock that is seen for the first time; `None` if the record is no lock, or never expires.
    pub(crate) fn new(record: &Record, at: LookTime) -> Option<Self> {
        if record.state != State::InProgress {
            return None;
        }
        let lock = record.lock()?;
        // An operator gave an extended lock its time.
        let left_ms = lock.time_left.millis().filter(|_| !record.is_extended);
        let created_ms = created_ms(record);
        let age_ms = match &record.age {
            // A stated TTL may not be the one that the service sets.
            Some(age) if age.evidence == Evidence::Known => Some(age.millis),
            _ => None,
        };
        let lifetime_ms = match (created_ms, lock.deadline.millis()) {
            (Some(created), Some(deadline)) if !record.is_extended => deadline.checked_sub(created),
            _ => None,
        };
        Some(Self {
            schema: Arc::clone(&record.schema),
            owner: record.owner().map(<[u8]>::to_vec),
            created_ms,
            deadline: lock.deadline,
            first_ms: at.after_ms,
            last_ms: at.after_ms,
            seen_ms: at.before_ms,
            looks: 1,
            age_ms,
            moved: Vec::new(),
            moves: 0,
            lifetime_ms,
            last_left_ms: lock.time_left.millis(),
            left_at_end_ms: None,
            has_lost_ttl: false,
            left_ms,
            end: WatchEnd::Held,
        })
    }

    /// True as long as later looks can show something.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.end, WatchEnd::Held | WatchEnd::Expired)
    }

    /// Takes what a later look shows. `record` is the record of this schema, if its Redis keys hold
    /// one.
    pub(crate) fn look(&mut self, record: Option<&Record>, seen: &Observation, at: LookTime) {
        if !self.is_open() {
            return;
        }
        let Some(record) = record else {
            // A value of another program is not the end of the lock.
            self.end = if seen.is_absent() { self.gone(seen) } else { WatchEnd::Ambiguous };
            return;
        };
        match record.state {
            // Another request took it. Its result may still be that of the first one.
            State::InProgress if self.end == WatchEnd::Expired => {}
            State::InProgress => self.still_locked(record, at),
            state if state.is_result() => {
                self.end = self.result(record, seen, state == State::Completed, at);
                if matches!(self.end, WatchEnd::Result { .. }) {
                    self.left_at_end_ms = self.min_left(at);
                }
            }
            State::Released | State::Absent => self.end = self.gone(seen),
            _ => self.end = WatchEnd::Ambiguous,
        }
    }

    /// The end of a lock that is gone.
    fn gone(&self, seen: &Observation) -> WatchEnd {
        let is_expired = self.end == WatchEnd::Expired || self.is_past_deadline(seen);
        if is_expired { WatchEnd::Expired } else { WatchEnd::Gone }
    }

    /// True if the deadline had passed when this was read.
    fn is_past_deadline(&self, seen: &Observation) -> bool {
        match (seen.server_ms, self.deadline.millis()) {
            (Some(now), Some(deadline)) => now >= deadline,
            _ => false,
        }
    }

    /// The least time that it had left at this look, in milliseconds, by the clock of this run;
    /// `None` if the time left was not known.
    fn min_left(&self, at: LookTime) -> Option<u64> {
        let since = at.after_ms.saturating_sub(self.seen_ms);
        Some(self.last_left_ms?.saturating_sub(since))
    }

    /// True if its deadline had certainly not passed when this was read.
    fn is_before_deadline(&self, seen: &Observation, at: LookTime) -> bool {
        if self.deadline == Deadline::Never || self.min_left(at).is_some_and(|left| left > 0) {
            return true;
        }
        match (seen.server_ms, self.deadline.millis()) {
            (Some(now), Some(deadline)) => now < deadline,
            _ => false,
        }
    }

    fn author(&self, result: &Record) -> ResultAuthor {
        let Some(value) = result.readings[result.schema.result_key_index()].decoded() else {
            return ResultAuthor::Unknown;
        };
        let has_owners = self.owner.is_some() && value.owner.is_some();
        if has_owners && self.owner != value.owner {
            return ResultAuthor::Other;
        }
        let has_times = self.created_ms.is_some() && value.created_ms.is_some();
        if has_times && self.created_ms == value.created_ms {
            return ResultAuthor::Same;
        }
        // With another time, it may be the next request of the same worker. Or this service gives
        // the result a time of its own.
        if has_owners && !has_times {
            return ResultAuthor::Same;
        }
        ResultAuthor::Unknown
    }

    fn result(
        &self,
        record: &Record,
        seen: &Observation,
        is_completed: bool,
        at: LookTime,
    ) -> WatchEnd {
        let author = self.author(record);
        let is_expired = self.end == WatchEnd::Expired
            || author == ResultAuthor::Other && self.is_past_deadline(seen);
        if is_expired {
            return WatchEnd::ResultAfterExpiry { is_same: author == ResultAuthor::Same };
        }
        if author == ResultAuthor::Other {
            return WatchEnd::Gone;
        }
        let left = record.result().and_then(|key| key.time_left.millis());
        let since = at.after_ms.saturating_sub(self.seen_ms);
        let ttl_ms = left.map(|left| (left, left.saturating_add(since)));
        let is_own = author == ResultAuthor::Same;
        let may_be_late = !self.is_before_deadline(seen, at);
        WatchEnd::Result { ttl_ms, is_completed, is_own, may_be_late }
    }

    fn still_locked(&mut self, record: &Record, at: LookTime) {
        let Some(lock) = record.lock() else {
            self.end = WatchEnd::Ambiguous;
            return;
        };
        let owner = record.owner().map(<[u8]>::to_vec);
        let created_ms = created_ms(record);
        if owner != self.owner || created_ms != self.created_ms {
            // Another request took it.
            self.end = self.gone(&record.seen);
            return;
        }
        let is_proven = owner.is_some() || created_ms.is_some();
        let is_touched = lock.deadline.is_later_by(self.deadline, SLACK_MS)
            || lock.deadline == Deadline::Unknown;
        if is_touched && !is_proven {
            // Another request may have taken the lock.
            self.end = WatchEnd::Ambiguous;
            return;
        }
        if lock.deadline.is_later_by(self.deadline, MOVE_TOLERANCE_MS) {
            self.moved.push(lock.clone());
            self.moves = self.moved.len();
            self.deadline = lock.deadline;
        }
        self.has_lost_ttl |= lock.deadline == Deadline::Never && self.deadline != Deadline::Never;
        self.last_left_ms = lock.time_left.millis();
        self.last_ms = self.last_ms.max(at.before_ms);
        self.seen_ms = at.before_ms;
        self.looks += 1;
    }

    /// Leaves out the deadlines that operators gave it, as `is_extended` tells at the end of the
    /// run: the audit log gets its line after the deadline has moved.
    pub(crate) fn settle(&mut self, is_extended: &dyn Fn(&KeyState) -> bool) {
        self.moved.retain(|lock| !is_extended(lock));
        self.moves = self.moved.len();
    }

    /// True if a moved deadline is a renewal, and not a new lock of the same worker.
    pub(crate) fn is_surely_same(&self) -> bool {
        self.created_ms.is_some() || self.schema.renew.is_some()
    }

    /// True if its value says when it was created.
    pub(crate) fn has_age(&self) -> bool {
        self.age_ms.is_some()
    }

    /// How long it was certainly held, in milliseconds.
    pub(crate) fn held_ms(&self) -> u64 {
        self.last_ms.saturating_sub(self.first_ms).saturating_add(self.age_ms.unwrap_or(0))
    }
}

fn created_ms(record: &Record) -> Option<u64> {
    record.readings[record.schema.lock_key_index()].decoded()?.created_ms
}
