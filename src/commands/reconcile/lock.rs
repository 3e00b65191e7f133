//! A lock that is reconciled: what is known of it, what is planned, and what became of it.

use std::time::Duration;

use strum::IntoStaticStr;
use tokio::time::Instant;

use crate::domain::as_str::as_str;
use crate::domain::reconcile::{DoneResponse, ProviderAnswer};
use crate::domain::record::age::millis;
use crate::domain::record::{Comparison, Identity, Observation, Record, TimeLeft};
use crate::render::{columns, escape};
use crate::store::Change;
use crate::store::backup::RecordLabel;

/// A lock of this run.
pub(super) struct ReconciledLock {
    /// The record as idemctl saw it last. A change compares with it.
    pub(super) record: Record,
    /// The index of the lock's Redis key in the record.
    pub(super) key_index: usize,
    /// When the record was read.
    pub(super) read_at: Instant,
    /// Why it is reconciled.
    pub(super) because: String,
    /// The record as the program gets it, as JSON.
    pub(super) question: serde_json::Value,
    pub(super) hold: Hold,
    /// When the lock ends that lost its extension, in milliseconds since the epoch.
    pub(super) lost_until_ms: Option<u64>,
    /// The deadlines that this run gave the lock before its present one. A failover may bring each
    /// of them back.
    pub(super) earlier_ms: Vec<u64>,
    /// Why the former deadline was not given back, if that was tried.
    pub(super) not_back: Option<String>,
    /// What the provider said last.
    pub(super) answer: Option<ProviderAnswer>,
    /// Why it was not tested on a temporary local Redis that the service replays the response.
    pub(super) untested: Option<String>,
    pub(super) fate: Fate,
}

/// The time that the lock got from this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hold {
    /// None was needed or given.
    None,
    /// It had the first deadline, and now has the second, in milliseconds since the epoch.
    Extended { former_ms: u64, until_ms: u64 },
    /// It has its former deadline again.
    PutBack,
    /// It ended by itself, or another client changed the lock.
    Ended,
    /// The outcome of the last change to the deadline is unknown. If the lock is still there, it
    /// ends at this time at the latest.
    Unknown { former_ms: Option<u64>, until_ms: Option<u64> },
}

/// How a lock changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockChange {
    /// It has a deadline again that it had before its last extension, in milliseconds since the
    /// epoch.
    FormerDeadline(u64),
    /// In another way.
    Other(&'static str),
}

/// The server rounds a deadline; the former one differs by at most this from the one it had.
const SLACK_MS: u64 = 2;

/// What becomes of the lock.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Fate {
    /// Nothing is decided yet.
    Open,
    /// The response is to be stored.
    ToComplete(DoneResponse),
    /// The lock is to be released, if a second answer confirms it.
    ToRelease,
    Completed(String),
    Released(String),
    /// It was left alone, for this reason.
    Left(String),
    /// The provider says that the operation took effect, but its response cannot be stored.
    Refused(String),
    /// It changed meanwhile, so its worker may be alive.
    Changed(String),
    /// A change was sent, and nobody knows whether it was made.
    OutcomeUnknown(String),
    /// A change could not be made, or only in part.
    Failed(String),
}

as_str!(Fate);

impl Fate {
    pub(super) fn words(&self) -> String {
        match self {
            Self::Open => "nothing was decided".to_owned(),
            Self::ToComplete(DoneResponse { body_file: Some(file), .. }) => {
                format!("complete with the body in {}", escape::text(file.as_bytes()))
            }
            Self::ToComplete(_) => "complete".to_owned(),
            Self::ToRelease => "release, if a second answer confirms it".to_owned(),
            Self::Completed(how) | Self::Released(how) | Self::OutcomeUnknown(how) => how.clone(),
            Self::Left(why) => format!("left: {why}"),
            Self::Refused(why) => format!("left, although it took effect: {why}"),
            Self::Changed(why) => format!("changed meanwhile: {why}"),
            Self::Failed(why) => format!("failed: {why}"),
        }
    }

    /// True while idemctl may still change the lock, so that it must not end.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self, Self::Open | Self::ToComplete(_) | Self::ToRelease)
    }
}

impl ReconciledLock {
    /// True if the service never stores a response with the status that the provider gives.
    pub(super) fn is_never_stored(&self) -> bool {
        let Some(ProviderAnswer::Done(response)) = &self.answer else { return false };
        let Some(stores) = &self.record.schema.service.stores else { return false };
        response.status.is_some_and(|status| !stores.contains(status))
    }

    /// How long the lock lives on, if it expires.
    pub(super) fn left(&self) -> Option<Duration> {
        match self.record.seen.keys[self.key_index].time_left {
            TimeLeft::NoExpiry => None,
            TimeLeft::Millis(left) => {
                Some(Duration::from_millis(left).saturating_sub(self.read_at.elapsed()))
            }
        }
    }

    /// The deadline of the lock by its server's clock, in milliseconds since the epoch.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        self.record.seen.keys[self.key_index].deadline.millis()
    }

    /// The time of the server's clock now, in milliseconds since the epoch. `local_ms` is that of
    /// this machine, for a server that does not tell its own.
    pub(super) fn now_of_server_ms(&self, local_ms: u64) -> u64 {
        match self.record.seen.server_ms {
            Some(server_ms) => server_ms.saturating_add(millis(self.read_at.elapsed())),
            None => local_ms,
        }
    }

    /// True if the lock has ended, as far as idemctl knows its deadline.
    pub(super) fn has_ended(&self, local_ms: u64) -> bool {
        match self.hold {
            Hold::Ended => true,
            Hold::Extended { until_ms, .. } | Hold::Unknown { until_ms: Some(until_ms), .. } => {
                until_ms <= self.now_of_server_ms(local_ms)
            }
            Hold::None => self.left() == Some(Duration::ZERO),
            Hold::PutBack | Hold::Unknown { until_ms: None, .. } => false,
        }
    }

    /// How long it is until the deadline that the lock had before it was extended, if that has not
    /// passed.
    pub(super) fn former_left(&self, local_ms: u64) -> Option<Duration> {
        let Hold::Extended { former_ms, .. } = self.hold else { return None };
        let left = former_ms.checked_sub(self.now_of_server_ms(local_ms))?;
        Some(Duration::from_millis(left))
    }

    /// True if a lock that lost its extension still has the former deadline. `None` if it cannot be
    /// read, and only the time tells.
    pub(super) fn is_still_lost(&self, now: Option<&Observation>, local_ms: u64) -> bool {
        let Some(at) = self.lost_until_ms else { return false };
        let Some(now) = now else { return at > self.now_of_server_ms(local_ms) };
        let is_former = now.keys[self.key_index]
            .deadline
            .millis()
            .is_some_and(|deadline| deadline.abs_diff(at) <= SLACK_MS);
        is_former && Identity::of(&self.record.seen).compare(now) != Comparison::Changed
    }

    /// How the record differs from the one that idemctl saw or left last; `None` if it does not.
    pub(super) fn change_in(&self, now: &Observation) -> Option<LockChange> {
        let why = match Identity::of(&self.record.seen).compare(now) {
            Comparison::Same => return None,
            Comparison::Changed if now.is_absent() => "the lock has ended",
            Comparison::Changed => "another client changed it",
            Comparison::Renewed => {
                let at = now.keys[self.key_index].deadline.millis();
                if let (Hold::Extended { former_ms, .. }, Some(at)) = (&self.hold, at) {
                    let is_earlier = |earlier: &u64| at.abs_diff(*earlier) <= SLACK_MS;
                    if is_earlier(former_ms) || self.earlier_ms.iter().any(is_earlier) {
                        return Some(LockChange::FormerDeadline(at));
                    }
                }
                "its deadline was moved by another client"
            }
        };
        Some(LockChange::Other(why))
    }

    /// What is planned for the lock, or became of it.
    pub(super) fn words(&self) -> String {
        let words = self.fate.words();
        match (&self.fate, &self.untested) {
            (Fate::ToComplete(_), Some(_)) => format!("{words} (not tested)"),
            _ => words,
        }
    }

    /// True if the expiry in the lock's value has passed, or passes within this time. idemctl does
    /// not change it.
    pub(super) fn own_expiry_within(&self, time: Duration) -> bool {
        if !self.record.lock_contains_expiry() {
            return false;
        }
        let own_ms = self.record.contained_expiry().and_then(|(value, _)| value.expires_ms);
        match (own_ms, self.record.seen.server_ms) {
            (Some(own), Some(now)) => {
                let left = Duration::from_millis(own.saturating_sub(now));
                left.saturating_sub(self.read_at.elapsed()) < time
            }
            _ => true,
        }
    }

    pub(super) fn label(&self) -> RecordLabel {
        RecordLabel::of(&self.record)
    }

    /// A change of the lock's Redis key.
    pub(super) fn change(&self) -> Change {
        Change::new(vec![self.key_index], self.record.seen.clone(), self.label())
    }

    /// True if the provider says that the operation took effect, and no response is stored. If this
    /// lock ends, a retry executes the operation again.
    pub(super) fn is_done_without_result(&self) -> bool {
        let is_done = matches!(self.answer, Some(ProviderAnswer::Done(_)));
        is_done && !matches!(self.fate, Fate::Completed(_))
    }

    /// True if the lock is held although nothing more is done to it, because a retry would execute
    /// an operation that is done.
    pub(super) fn is_held_on(&self) -> bool {
        let is_there = matches!(self.fate, Fate::Refused(_) | Fate::Failed(_) | Fate::Left(_));
        is_there && self.is_done_without_result() && self.hold != Hold::Ended
    }

    /// Notes that an extension had no effect.
    pub(super) fn cannot_be_extended(&mut self, why: &str) {
        if self.fate.is_pending() {
            self.fate = Fate::Left(format!("it could not be extended: {why}"));
        } else {
            self.not_back = Some(format!("not extended again: {why}"));
        }
    }

    /// Notes that too few replicas have the extension, so that a failover may end the lock. That is
    /// as good as no extension.
    pub(super) fn is_behind_on_replicas(&mut self, why: &str) {
        if self.fate.is_pending() {
            self.fate = Fate::Left(format!("its extension was {why}"));
        } else {
            self.not_back = Some(why.to_owned());
        }
    }

    /// Notes that the lock is no longer as it was.
    pub(super) fn has_changed(&mut self, change: LockChange) {
        let is_done = matches!(self.answer, Some(ProviderAnswer::Done(_)));
        let why = match change {
            LockChange::FormerDeadline(at) => {
                self.lost_until_ms = Some(at);
                let ends = columns::rfc3339(at).unwrap_or_else(|| format!("{at} ms"));
                format!("a failover or another client gave it an earlier deadline, {ends}")
            }
            LockChange::Other(why) => why.to_owned(),
        };
        let why = if is_done { format!("{why}; a retry may have executed it again") } else { why };
        self.fate = Fate::Changed(why);
        if self.hold != Hold::None {
            self.hold = Hold::Ended;
        }
    }
}
