//! Notices early that a held lock is no longer as idemctl left it: a failover may lose an
//! extension, and then the lock ends at its former deadline while the operator thinks.
//!
//! Such a lock is not extended again. The server does not tell whether a failover or another client
//! moved its deadline, and whoever did may be its worker.

use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use tokio::time::Instant;

use super::lock::{Fate, Hold, LockChange};
use super::lock_report::Counts;
use super::reconciliation::Reconciliation;
use crate::render::escape;
use crate::render::invocation::name_of;

/// The longest time between two checks. A lost extension is not noticed between them.
const LONGEST: Duration = Duration::from_secs(5);

/// The shortest one, however soon the former deadline of a lock is. Otherwise the checks of a lock
/// that ends soon would follow each other without a pause.
const SHORTEST: Duration = Duration::from_millis(500);

/// A check takes at most this share of the time, one part in so many, so that the checks do not
/// load a slow server.
const SHARE: u32 = 10;

/// How many locks are named.
const MAX_NAMED: usize = 20;

impl Reconciliation<'_> {
    /// Reads the locks that were extended, if it is time to, and notes those that changed.
    pub(super) async fn notice_changes(&mut self) {
        if Instant::now() < self.next_check {
            return;
        }
        let started = Instant::now();
        let mut watched = Vec::new();
        for (index, lock) in self.locks.iter().enumerate() {
            let matters = lock.fate.is_pending() || lock.is_held_on();
            if matters && matches!(lock.hold, Hold::Extended { .. }) {
                watched.push(index);
            }
        }
        if !watched.is_empty() {
            // A master that was replaced may still answer on the old connection.
            self.find_master().await;
        }
        let read = self.read(&watched).await;
        for (index, now) in watched.into_iter().zip(read) {
            let lock = &mut self.locks[index];
            // A lock that cannot be read now is read at the next check.
            let Ok(now) = now else { continue };
            if let Some(change) = lock.change_in(&now) {
                lock.has_changed(change);
            }
        }
        self.schedule_check(started.elapsed() * SHARE);
    }

    /// Reads the locks that are still held before the last report, which says until when they hold.
    pub(super) async fn look_at_held(&mut self) {
        self.next_check = Instant::now();
        self.notice_changes().await;
    }

    /// Reads the locks that lost their extension once more before the last report, because they may
    /// have ended since.
    pub(super) async fn look_at_lost(&mut self) {
        let mut lost = Vec::new();
        for (index, lock) in self.locks.iter().enumerate() {
            if lock.lost_until_ms.is_some() {
                lost.push(index);
            }
        }
        if lost.is_empty() {
            return;
        }
        self.find_master().await;
        let read = self.read(&lost).await;
        let local_ms = self.session.now_ms();
        for (index, now) in lost.into_iter().zip(read) {
            let lock = &mut self.locks[index];
            if !lock.is_still_lost(now.as_ref().ok(), local_ms) {
                lock.has_changed(LockChange::Other(
                    "its extension was lost, and the lock has ended or changed since",
                ));
            }
        }
    }

    /// What was planned for each lock, to find out later which plans are void.
    pub(super) fn plans(&self) -> Vec<Discriminant<Fate>> {
        self.locks.iter().map(|lock| discriminant(&lock.fate)).collect()
    }

    /// Reports the locks for which something else was planned `before`.
    pub(super) fn tell_void_plans(&mut self, before: &[Discriminant<Fate>]) {
        let mut void = Vec::new();
        for (index, before) in before.iter().enumerate() {
            if discriminant(&self.locks[index].fate) != *before {
                void.push(index);
            }
        }
        if !void.is_empty() {
            self.tell(&void);
        }
    }

    /// Sets the time of the next check: soon enough that the operator can act before a lock ends
    /// whose extension was lost, and at least `least` from now.
    pub(super) fn schedule_check(&mut self, least: Duration) {
        let mut period = LONGEST.min(self.args.hold / 8);
        let local_ms = self.session.now_ms();
        for lock in &self.locks {
            if let Some(left) = lock.former_left(local_ms) {
                period = period.min((left / 4).max(SHORTEST));
            }
        }
        self.next_check = Instant::now() + period.max(least);
    }

    /// Reports locks that changed or are no longer held, also while the question waits for its
    /// answer.
    fn tell(&mut self, void: &[usize]) {
        if self.is_asking {
            // The cursor is behind the question.
            self.session.ui.status("");
        }
        for index in void.iter().take(MAX_NAMED) {
            let lock = &self.locks[*index];
            let name = escape::text(name_of(&lock.record).as_bytes());
            let words = lock.words();
            self.session.ui.warning(&format!("{name}: {words}"));
        }
        if void.len() > MAX_NAMED {
            let more = void.len() - MAX_NAMED;
            self.session.ui.warning(&format!("{more} more locks changed or are no longer held"));
        }
        if self.is_asking {
            let counts = Counts::of(&self.locks);
            let planned = counts.planned(self.left_out);
            self.session.ui.status(&format!("Planned now: {planned}"));
            self.session.ui.status("The question above still waits for your answer.");
        }
    }
}
