//! Holding locks: while the provider is asked, no retry must execute, so locks that would end are
//! extended. What is not changed gets its former deadline back.

use std::time::Duration;

use anyhow::Result;
use futures_util::stream::{self, StreamExt as _};
use tokio::time::Instant;

use super::lock::{Fate, Hold, LockChange, ReconciledLock};
use super::reconciliation::{Changes, Reconciliation};
use crate::change::{JournalStep, Noted};
use crate::domain::history::{EXTENDED, LEFT_ALONE};
use crate::domain::reconcile::reconcilable;
use crate::domain::record::age::millis;
use crate::domain::record::{
    Comparison, Identity, KeyIdentity, Observation, RecordName, TimeLeft, locate,
};
use crate::store::{ErrorClass, GuardedOutcome, PriorValue, ReadLimit, StoreError};

/// Locks that are extended, or read, at a time. One write of the log notes all of them, and the
/// next batch begins only when they are extended.
const BATCH: usize = 100;

/// Locks that are extended at the same time. Each extension takes a connection of its own.
const AT_A_TIME: usize = 16;

/// How often an extension is tried that had no effect because of an error of the server. A lock
/// that is not extended may end while the provider is asked.
const MAX_TRIES: usize = 4;

/// How long the server gets to come back before the next try.
const PAUSE: Duration = Duration::from_millis(200);

/// A former deadline that is this near is not given back, because the lock would end meanwhile.
const MIN_BACK_MS: u64 = 1_000;

/// The time by which a lock is extended that has enough, only so that replicas confirm it. The log
/// tells two deadlines apart that differ by as much.
const NEW_CHANGE_MS: u64 = 10;

/// Why a lock is left that was to be extended.
const CHANGED_BEFORE: &str = "it was changed or ended before it was extended";

/// Why it is unknown which replicas have an extension.
const NOT_WAITED: &str = "made without waiting for the replicas, which did not have an earlier one in \
    time";

/// Why a lock is left whose value contains an expiry.
const OWN_EXPIRY: &str = "the expiry in its value does not outlast --hold";

/// The word of the log for a lock that has its former deadline again.
const PUT_BACK: &str = "put-back";

impl Reconciliation<'_> {
    /// Extends the pending locks, and those of operations that are done, that have less than
    /// `least` left to the length of the hold. A lock for which that fails is left alone.
    ///
    /// # Errors
    /// The log cannot be written; nothing more must be changed.
    pub(super) async fn hold(&mut self, least: Duration) -> Result<()> {
        self.held_at = Instant::now();
        if self.changes.is_none() {
            return Ok(());
        }
        // The expiry in a value has to outlast the whole hold at first, and not less than the next
        // renewal later.
        let hold = self.args.hold;
        let is_renewal = least < hold;
        let own_least = if is_renewal { hold / 4 } else { hold };
        let confirms = !is_renewal && self.confirm_args.wait_replicas.is_some();
        let mut wanted = Vec::new();
        for (index, lock) in self.locks.iter_mut().enumerate() {
            if !lock.fate.is_pending() {
                // A lock of an operation that is done is held on, whatever happens to it.
                let is_short = lock.left().is_some_and(|left| left < least);
                if lock.is_held_on() && is_short {
                    wanted.push(index);
                }
                continue;
            }
            if lock.own_expiry_within(own_least) {
                lock.fate = Fate::Left(OWN_EXPIRY.to_owned());
                continue;
            }
            match lock.left() {
                // An earlier run extended it, and it is unknown which replicas have it.
                Some(_) if confirms && matches!(lock.hold, Hold::Extended { .. }) => {
                    wanted.push(index);
                }
                Some(Duration::ZERO) => lock.has_changed(LockChange::Other("the lock has ended")),
                Some(left) if left < least && lock.record.lock_contains_expiry() => {
                    lock.fate = Fate::Left(OWN_EXPIRY.to_owned());
                }
                Some(left) if left < least => wanted.push(index),
                _ => {}
            }
        }
        self.waits_for_replicas = true;
        // The locks of one batch are extended together, and together they wait for replicas.
        let size = if self.confirm_args.wait_replicas.is_some() { AT_A_TIME } else { BATCH };
        for batch in wanted.chunks(size) {
            // Ctrl-C does not stop a renewal, because locks of operations that are done would
            // expire.
            if !is_renewal && self.interrupt.is_raised() {
                break;
            }
            if let Err(error) = self.extend(batch).await {
                for index in batch {
                    self.locks[*index].cannot_be_extended(&format!("{error:#}"));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Extends locks. The log has the exact deadlines before they are given, so that the next run
    /// knows these locks even if this one is killed in the middle.
    ///
    /// # Errors
    /// The log cannot be written, and nothing was extended.
    async fn extend(&mut self, batch: &[usize]) -> Result<()> {
        let hold = self.args.hold;
        let now = self.session.now();
        let local_ms = self.session.now_ms();
        self.settle_unknown(batch).await;
        let confirms = self.confirm_args.wait_replicas.is_some();
        let mut targets = Vec::with_capacity(batch.len());
        for index in batch {
            let at = self.locks[*index].now_of_server_ms(local_ms) + millis(hold);
            let is_extended = matches!(self.locks[*index].hold, Hold::Extended { .. });
            // Never shorten.
            match self.locks[*index].deadline_ms() {
                // WAIT counts only the replicas that have a new change.
                Some(deadline) if deadline >= at && confirms && is_extended => {
                    targets.push((*index, deadline + NEW_CHANGE_MS));
                }
                Some(deadline) if deadline >= at => {}
                Some(_) => targets.push((*index, at)),
                None => self.locks[*index]
                    .cannot_be_extended("the server does not tell when it expires"),
            }
        }
        for attempt in 1..=MAX_TRIES {
            let Some(Changes { writer, journal }) = &mut self.changes else { return Ok(()) };
            let lines = targets.iter().map(|(index, at)| noted(&self.locks[*index], Some(*at)));
            match journal.note_first(writer, lines.collect(), EXTENDED, now).await {
                Ok(()) => break,
                // The server names itself in the log, and its connection may be lost.
                Err(error) if is_of_the_server(&error) && attempt < MAX_TRIES => {
                    tokio::time::sleep(PAUSE).await;
                    self.reconnect().await;
                }
                Err(error) => return Err(error),
            }
        }

        let mut open = targets;
        let mut failed: Vec<(usize, u64, StoreError)> = Vec::new();
        for attempt in 0..MAX_TRIES {
            let Some(Changes { writer, .. }) = &self.changes else { return Ok(()) };
            let without_waiting =
                if self.waits_for_replicas { None } else { Some(writer.without_waiting()) };
            let writer = without_waiting.as_ref().unwrap_or(writer);
            let locks = &self.locks;
            let outcomes: Vec<_> = stream::iter(open.drain(..))
                .map(|(index, at)| async move {
                    let lock = &locks[index];
                    let mut prior = vec![PriorValue::Same; lock.record.seen.keys.len()];
                    prior[lock.key_index] = PriorValue::Expiring(at);
                    (index, at, writer.revert(&lock.record.seen, &prior).await)
                })
                .buffered(AT_A_TIME)
                .collect()
                .await;
            failed.clear();
            for (index, at, outcome) in outcomes {
                if let Some(error) = self.take_extension(index, at, outcome) {
                    failed.push((index, at, error));
                }
            }
            if failed.is_empty() || attempt + 1 == MAX_TRIES {
                break;
            }
            // Nothing was done to these. The connections may be old ones that were lost meanwhile.
            tokio::time::sleep(PAUSE).await;
            self.reconnect().await;
            let again: Vec<_> = failed.iter().map(|(index, ..)| *index).collect();
            self.settle_unknown(&again).await;
            for (index, at, _) in failed.drain(..) {
                let lock = &self.locks[index];
                let is_changed = matches!(lock.fate, Fate::Changed(_));
                if !is_changed && lock.deadline_ms() != Some(at) {
                    open.push((index, at));
                }
            }
        }
        self.check_replicas();
        self.schedule_check(Duration::ZERO);
        let mut left = Vec::new();
        for (index, _, error) in failed {
            self.locks[index].cannot_be_extended(&error.to_string());
            left.push(index);
        }
        for index in batch {
            if matches!(self.locks[*index].fate, Fate::Changed(_)) {
                left.push(*index);
            }
        }
        let now = self.session.now();
        let Some(Changes { writer, journal }) = &mut self.changes else { return Ok(()) };
        let lines = left.iter().map(|index| noted(&self.locks[*index], None));
        journal.note_first(writer, lines.collect(), LEFT_ALONE, now).await
    }

    /// Reads locks again of which it is unknown whether they were extended.
    async fn settle_unknown(&mut self, indexes: &[usize]) {
        let mut unknown = Vec::new();
        for index in indexes {
            if matches!(self.locks[*index].hold, Hold::Unknown { .. }) {
                unknown.push(*index);
            }
        }
        if unknown.is_empty() {
            return;
        }
        let read = self.read(&unknown).await;
        let unknown_on_replicas = self.unknown_on_replicas();
        for (index, now) in unknown.into_iter().zip(read) {
            let lock = &mut self.locks[index];
            let Hold::Unknown { former_ms, until_ms: Some(at) } = lock.hold else { continue };
            // It stays unknown until the server answers.
            let Ok(now) = now else { continue };
            let former_ms = former_ms.or(lock.deadline_ms()).unwrap_or(at);
            let is_same = Identity::of(&lock.record.seen).compare(&now) == Comparison::Same;
            let is_given = now.keys[lock.key_index].deadline.is_at(at)
                && now
                    .keys
                    .iter()
                    .zip(&lock.record.seen.keys)
                    .all(|(now, seen)| now.content == seen.content);
            if is_given {
                let record = locate::undiagnosed_record(&lock.record.schema, &lock.record.key, now);
                lock.record = record;
                lock.read_at = Instant::now();
                lock.hold = Hold::Extended { former_ms, until_ms: at };
                if let Some(why) = &unknown_on_replicas {
                    lock.is_behind_on_replicas(why);
                }
            } else if is_same {
                // The extension was not made, so the lock is as it was before it.
                lock.hold = match lock.deadline_ms() {
                    Some(until_ms) if until_ms != former_ms => {
                        Hold::Extended { former_ms, until_ms }
                    }
                    _ => Hold::None,
                };
            } else {
                lock.has_changed(LockChange::Other(CHANGED_BEFORE));
            }
        }
    }

    /// Notes what an extension did. Returns the error if nothing was done.
    fn take_extension(
        &mut self,
        index: usize,
        at: u64,
        outcome: Result<GuardedOutcome, StoreError>,
    ) -> Option<StoreError> {
        let unknown_on_replicas = self.unknown_on_replicas();
        let not_waited = if self.waits_for_replicas { None } else { Some(NOT_WAITED.to_owned()) };
        let lock = &mut self.locks[index];
        let former_ms = match lock.hold {
            Hold::Extended { former_ms, .. } | Hold::Unknown { former_ms: Some(former_ms), .. } => {
                former_ms
            }
            _ => lock.deadline_ms().unwrap_or(at),
        };
        let (after, not_replicated) = match outcome {
            Ok(GuardedOutcome::Made { reply: Ok(_), after, not_replicated, .. }) => {
                (after, not_replicated.map(|error| error.to_string()).or(not_waited))
            }
            Ok(GuardedOutcome::Lost { now: Some(after), .. })
                if after.keys[lock.key_index].deadline.is_at(at) =>
            {
                (after, unknown_on_replicas)
            }
            Ok(GuardedOutcome::Made { reply: Err(error), .. }) | Err(error) => return Some(error),
            Ok(GuardedOutcome::ChangedMeanwhile) => {
                lock.has_changed(LockChange::Other(CHANGED_BEFORE));
                return None;
            }
            // The lock is read again before the next try.
            Ok(GuardedOutcome::Lost { why, .. }) => {
                lock.hold = Hold::Unknown { former_ms: Some(former_ms), until_ms: Some(at) };
                return Some(why);
            }
        };
        let mut after = after;
        // The transaction does not read the time, but the time that is left tells it.
        if let TimeLeft::Millis(left) = after.keys[lock.key_index].time_left {
            after.server_ms = Some(at.saturating_sub(left));
        }
        let record = locate::undiagnosed_record(&lock.record.schema, &lock.record.key, after);
        if let Hold::Extended { until_ms, .. } = lock.hold {
            lock.earlier_ms.push(until_ms);
        }
        lock.hold = Hold::Extended { former_ms, until_ms: at };
        let is_given = record.seen.keys[lock.key_index].deadline.is_at(at);
        if !is_given || reconcilable(&record).is_err() {
            lock.has_changed(LockChange::Other(CHANGED_BEFORE));
            return None;
        }
        lock.record = record;
        lock.read_at = Instant::now();
        if let Some(why) = not_replicated {
            lock.is_behind_on_replicas(&why);
            self.waits_for_replicas = false;
        }
        None
    }

    /// Why it is unknown whether the replicas have an extension whose reply was lost; `None` if the
    /// operator requires no replicas.
    fn unknown_on_replicas(&self) -> Option<String> {
        self.confirm_args.wait_replicas?;
        Some("made, but its reply was lost, so it is unknown which replicas have it".to_owned())
    }

    /// When [`Reconciliation::keep_held`] has something to do.
    pub(super) fn next_tick(&self) -> Instant {
        self.next_check.min(self.held_at + self.args.hold / 8)
    }

    /// Notices locks that changed, and renews the hold of locks of which less than three quarters
    /// of it is left, if it is time to.
    pub(super) async fn keep_held(&mut self) {
        let is_due = Instant::now() >= self.next_tick();
        if !is_due {
            return;
        }
        let before = self.plans();
        self.notice_changes().await;
        if self.held_at.elapsed() >= self.args.hold / 8 {
            self.renew().await;
        }
        self.tell_void_plans(&before);
    }

    async fn renew(&mut self) {
        if let Err(error) = self.hold(self.args.hold / 4 * 3).await {
            self.trouble.get_or_insert(error);
        }
    }

    /// Gives the locks that are held on the whole hold once more, at the end of the run.
    pub(super) async fn hold_on(&mut self) {
        if self.trouble.is_none() && self.locks.iter().any(ReconciledLock::is_held_on) {
            self.renew().await;
        }
    }

    /// Reads the records of locks, one result for each.
    pub(super) async fn read(&mut self, indexes: &[usize]) -> Vec<Result<Observation, StoreError>> {
        let mut all = Vec::with_capacity(indexes.len());
        for some in indexes.chunks(BATCH) {
            let mut wanted = Vec::with_capacity(some.len());
            for index in some {
                let keys = &self.locks[*index].record.seen.keys;
                wanted.push(keys.iter().map(|key| key.redis_key.clone()).collect::<Vec<_>>());
            }
            let mut read = self.reader.read_or_fail(&wanted, ReadLimit::Whole).await;
            if read.is_err() {
                self.reconnect().await;
                read = self.reader.read_or_fail(&wanted, ReadLimit::Whole).await;
            }
            match read {
                Ok(read) => all.extend(read),
                Err(error) => all.extend(some.iter().map(|_| Err(error.clone()))),
            }
        }
        all
    }

    /// Gives the locks that `is_wanted` names their former deadlines back, unless these have
    /// passed.
    pub(super) async fn put_back(&mut self, is_wanted: impl Fn(&ReconciledLock) -> bool) {
        if self.must_stop || self.trouble.is_some() {
            return;
        }
        let mut indexes = Vec::new();
        for (index, lock) in self.locks.iter().enumerate() {
            let is_held = matches!(lock.hold, Hold::Extended { .. });
            let is_here = !matches!(
                lock.fate,
                Fate::Completed(_) | Fate::Released(_) | Fate::Changed(_) | Fate::OutcomeUnknown(_)
            );
            if is_held && is_here && is_wanted(lock) {
                indexes.push(index);
            }
        }
        for batch in indexes.chunks(AT_A_TIME) {
            self.put_batch_back(batch).await;
            if self.trouble.is_some() {
                return;
            }
            // Meanwhile the locks that are still held must not end.
            self.keep_held().await;
        }
    }

    /// Gives a few locks their former deadlines back, all at the same time.
    async fn put_batch_back(&mut self, batch: &[usize]) {
        let started = Instant::now();
        let read = self.read(batch).await;
        let mut open = Vec::with_capacity(batch.len());
        for (index, now) in batch.iter().zip(read) {
            let lock = &mut self.locks[*index];
            let Hold::Extended { former_ms, .. } = lock.hold else { continue };
            let now = match now {
                Ok(now) => now,
                Err(error) => {
                    lock.not_back = Some(error.to_string());
                    continue;
                }
            };
            if Identity::of(&lock.record.seen).compare(&now) != Comparison::Same {
                lock.hold = Hold::Ended;
                continue;
            }
            let Some(read_ms) = now.server_ms else {
                lock.not_back = Some("the server does not tell the time".to_owned());
                continue;
            };
            // A deadline that has passed would delete the lock.
            let now_ms = read_ms.saturating_add(millis(started.elapsed()));
            if former_ms <= now_ms.saturating_add(MIN_BACK_MS) {
                lock.not_back = Some("its former deadline has passed".to_owned());
                continue;
            }
            let mut prior = vec![PriorValue::Same; now.keys.len()];
            prior[lock.key_index] = PriorValue::Expiring(former_ms);
            open.push((*index, now, prior));
        }
        let Some(Changes { writer, .. }) = &self.changes else { return };
        // A deadline that replicas do not have yet does no harm, so nothing waits for them.
        let writer = writer.without_waiting();
        let outcomes: Vec<_> = stream::iter(open)
            .map(|(index, now, prior)| {
                let writer = &writer;
                async move {
                    let outcome = writer.revert(&now, &prior).await;
                    (index, now, outcome)
                }
            })
            .buffered(AT_A_TIME)
            .collect()
            .await;
        let mut is_lost = false;
        for (index, now, outcome) in outcomes {
            is_lost |= outcome.is_err();
            if let Err(error) = self.take_put_back(index, &now, outcome).await {
                self.trouble.get_or_insert(error);
                return;
            }
        }
        if is_lost {
            self.reconnect().await;
        }
    }

    /// Notes whether a lock has its former deadline again.
    ///
    /// # Errors
    /// The log cannot be written.
    async fn take_put_back(
        &mut self,
        index: usize,
        now: &Observation,
        outcome: Result<GuardedOutcome, StoreError>,
    ) -> Result<()> {
        let lock = &mut self.locks[index];
        let Hold::Extended { former_ms, until_ms } = lock.hold else { return Ok(()) };
        let key_index = lock.key_index;
        let after = match outcome {
            Ok(GuardedOutcome::Made { reply: Ok(_), after, .. }) => after,
            Ok(GuardedOutcome::ChangedMeanwhile) => {
                lock.hold = Hold::Ended;
                return Ok(());
            }
            Ok(GuardedOutcome::Lost { now: Some(after), .. })
                if after.keys[key_index].deadline.is_at(former_ms) =>
            {
                after
            }
            Ok(GuardedOutcome::Lost { why, .. }) => {
                lock.hold = Hold::Unknown { former_ms: Some(former_ms), until_ms: Some(until_ms) };
                lock.not_back = Some(why.to_string());
                return Ok(());
            }
            Ok(GuardedOutcome::Made { reply: Err(error), .. }) | Err(error) => {
                lock.not_back = Some(error.to_string());
                return Ok(());
            }
        };
        if after.is_absent() {
            lock.hold = Hold::Ended;
            return Ok(());
        }
        lock.hold = Hold::PutBack;
        lock.not_back = None;
        let label = lock.label();
        let at = self.session.now();
        let Some(Changes { writer, journal }) = &mut self.changes else { return Ok(()) };
        let step = JournalStep { label: &label, before: now, after: Some(&after), key_index };
        journal.note_step(writer, step, PUT_BACK, at).await
    }
}

/// A line of the log about a lock that is to expire at this time, or was left alone.
fn noted(lock: &ReconciledLock, at: Option<u64>) -> Noted<'_> {
    let key = &lock.record.seen.keys[lock.key_index];
    let before = || KeyIdentity::of(key).written();
    Noted {
        name: RecordName::of(&lock.record),
        redis_key: &key.redis_key,
        before: at.and_then(|_| before()),
        after: at.and_then(|at| Some(before()?.expiring_at(at))),
    }
}

/// True for an error of the server, after which another connection may help. After one of the
/// backup or the log, nothing more must be changed.
pub(super) fn is_of_the_server(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<StoreError>() {
        Some(error) => error.class() != ErrorClass::File,
        None => false,
    }
}
