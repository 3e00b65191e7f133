//! What becomes of a lock during a run with `--observe`.

use std::sync::Arc;

use crate::domain::record::deadline::SLACK_MS;
use crate::domain::record::{Deadline, Evidence, Observation, Record};
use crate::domain::schema::{Schema, State};

/// A deadline that is later by at most this many milliseconds did not move: clocks step, and before
/// Redis 7.0 the deadline is computed from TIME and PTTL.
const MOVE_TOLERANCE_MS: u64 = 1_000;

/// A lock that was seen in progress, and what was seen of it later. All times are in milliseconds.
#[derive(Debug, Clone)]
pub(crate) struct WatchedLock {
    pub(crate) schema: Arc<Schema>,
    owner: Option<Vec<u8>>,
    created_ms: Option<u64>,
    /// The deadline since which it has not moved by more than the tolerance.
    deadline: Deadline,
    /// When the run saw it first, since the run began.
    pub(crate) first_ms: u64,
    /// When the run saw it last, since the run began.
    last_ms: u64,
    /// How long it had been held at the first look, if the value says so.
    pub(crate) age_ms: Option<u64>,
    /// The time left at the first look.
    pub(crate) left_ms: Option<u64>,
    /// How often its deadline moved later, while its owner or its time stayed the same.
    pub(crate) moves: usize,
    pub(crate) end: WatchEnd,
}

/// How the watch of a lock ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchEnd {
    /// It was still held at the last look.
    Held,
    /// A result was stored, so many milliseconds or more before its deadline.
    Result { left_ms: u64 },
    /// It was held until its deadline, and then gone without a result of its own.
    Expired,
    /// The same, and its own result was stored later: the worker was still running.
    Outlived,
    /// It no longer existed before its deadline, and no result of its own did.
    Gone,
    /// A result was stored before the deadline or after it, or nothing shows whether it is the same
    /// lock.
    Unclear,
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
    /// A lock that is seen for the first time; `None` if the record is not a lock.
    pub(crate) fn new(record: &Record, at_ms: u64) -> Option<Self> {
        if record.state != State::InProgress {
            return None;
        }
        let lock = record.lock()?;
        let age_ms = match &record.age {
            // A stated TTL may not be the one that the service sets.
            Some(age) if age.evidence == Evidence::Known => Some(age.millis),
            _ => None,
        };
        Some(Self {
            schema: Arc::clone(&record.schema),
            owner: record.owner().map(<[u8]>::to_vec),
            created_ms: created_ms(record),
            deadline: lock.deadline,
            first_ms: at_ms,
            last_ms: at_ms,
            age_ms,
            left_ms: lock.time_left.millis(),
            moves: 0,
            end: WatchEnd::Held,
        })
    }

    /// True as long as later looks can show something.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.end, WatchEnd::Held | WatchEnd::Expired)
    }

    /// How long it was certainly held, in milliseconds.
    pub(crate) fn held_ms(&self) -> u64 {
        self.last_ms.saturating_sub(self.first_ms).saturating_add(self.age_ms.unwrap_or(0))
    }

    /// Takes what a later look shows. `record` is the record of this schema, if its Redis keys hold
    /// one.
    pub(crate) fn look(&mut self, record: Option<&Record>, seen: &Observation, at_ms: u64) {
        if !self.is_open() {
            return;
        }
        let has_expired = self.end == WatchEnd::Expired;
        self.end = match record {
            Some(record) if record.state.is_result() => self.result(record, seen),
            // Another request took it. Its result may still be that of the first one.
            _ if has_expired => WatchEnd::Expired,
            Some(record) if record.state == State::InProgress => {
                self.still_locked(record, seen, at_ms)
            }
            Some(record) if !matches!(record.state, State::Released | State::Absent) => {
                WatchEnd::Unclear
            }
            // A value of another program is not the end of the lock.
            None if !seen.is_absent() => WatchEnd::Unclear,
            _ => self.gone(seen),
        };
    }

    /// The time left when this was read, 0 after the deadline; `None` if it is unknown.
    fn left_at(&self, seen: &Observation) -> Option<u64> {
        if self.deadline == Deadline::Never {
            return Some(u64::MAX);
        }
        Some(self.deadline.millis()?.saturating_sub(seen.server_ms?))
    }

    /// The end of a lock that is gone.
    fn gone(&self, seen: &Observation) -> WatchEnd {
        match self.left_at(seen) {
            Some(0) => WatchEnd::Expired,
            Some(_) => WatchEnd::Gone,
            None => WatchEnd::Unclear,
        }
    }

    fn result(&self, record: &Record, seen: &Observation) -> WatchEnd {
        let author = self.author(record);
        if self.end == WatchEnd::Expired {
            let is_own = author == ResultAuthor::Same;
            return if is_own { WatchEnd::Outlived } else { WatchEnd::Expired };
        }
        if author == ResultAuthor::Other {
            return self.gone(seen);
        }
        match self.left_at(seen) {
            // Between two looks, a lock may end in a result, or expire and be followed by one.
            None | Some(0) => WatchEnd::Unclear,
            Some(left_ms) => WatchEnd::Result { left_ms },
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

    fn still_locked(&mut self, record: &Record, seen: &Observation, at_ms: u64) -> WatchEnd {
        let Some(lock) = record.lock() else { return WatchEnd::Unclear };
        if record.owner() != self.owner.as_deref() || created_ms(record) != self.created_ms {
            // Another request took it.
            return self.gone(seen);
        }
        // Without a step that renews, the same worker may have taken the lock again.
        let is_same =
            self.created_ms.is_some() || self.owner.is_some() && self.schema.renew.is_some();
        let is_touched = lock.deadline.is_later_by(self.deadline, SLACK_MS)
            || lock.deadline == Deadline::Unknown;
        if is_touched && !is_same {
            return WatchEnd::Unclear;
        }
        if lock.deadline.is_later_by(self.deadline, MOVE_TOLERANCE_MS) {
            self.moves += 1;
            self.deadline = lock.deadline;
        }
        self.last_ms = self.last_ms.max(at_ms);
        WatchEnd::Held
    }
}

fn created_ms(record: &Record) -> Option<u64> {
    record.readings[record.schema.lock_key_index()].decoded()?.created_ms
}
