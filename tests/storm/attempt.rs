//! Writes of workers whose effect the stream does not show: a SET NX may find something there. A worker that got a lock
//! says so right after.

use std::sync::Arc;

use crate::command::{Expiry, Who};
use crate::judge::Wrong;
use crate::keyspace::Entry;
use crate::oracle::Oracle;

/// A worker's last write on a node.
pub(crate) struct Attempt {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Arc<[u8]>,
    pub(crate) expiry: Expiry,
    pub(crate) at: u64,
    /// What stood there before, ended or not.
    pub(crate) before: Option<Entry>,
    /// What the oracle takes to have happened.
    pub(crate) applied: bool,
    pub(crate) if_absent: bool,
}

impl Oracle {
    /// A worker said something: that it got the lock, or anything else, when it did not.
    pub(crate) fn settle(&mut self, of: (usize, Who), got: bool) {
        let Some(attempt) = self.attempts.remove(&of) else { return };
        let (node, by) = of;
        if self.unsure.remove(&(node, attempt.key.clone())) {
            return self.settle_unsure(node, by, attempt, got);
        }
        // While a master is replaced a worker may say the one thing here and the other there.
        if self.failing {
            if got && !attempt.applied {
                self.spaces[node].set(
                    &attempt.key,
                    attempt.value,
                    attempt.expiry,
                    (attempt.at, by),
                );
            }
            return;
        }
        // A lock that stands there is never taken over; its end may have come a moment before the oracle's clock says.
        let stood = attempt.before.as_ref().filter(|before| !before.has_ended(attempt.at));
        let key = attempt.key.escape_ascii();
        if got && let Some(before) = stood.filter(|before| self.is_lock(&attempt.key, before)) {
            if before.is_about_to_end(attempt.at) {
                self.verdict.count("oracle", "ends seen a moment late", 1);
            } else {
                let left = before.left(attempt.at);
                let said = format!(
                    "{key} was taken by {by:?} while {:?}'s stood with {left:?} ms left",
                    before.by
                );
                self.verdict.wrong(Wrong::Unattributed, "nobody", said);
            }
        }
        if got && !attempt.applied {
            self.spaces[node].set(&attempt.key, attempt.value, attempt.expiry, (attempt.at, by));
        } else if !got && attempt.applied && attempt.if_absent {
            if !attempt.before.as_ref().is_some_and(|before| before.is_about_to_end(attempt.at)) {
                let said = format!("{key} was not to be had by {by:?}, though nothing stood there");
                self.verdict.wrong(Wrong::Unattributed, "nobody", said);
            }
            self.verdict.count("oracle", "ends seen a moment early", 1);
            self.spaces[node].put(&attempt.key, attempt.before);
        }
    }

    /// Whoever wrote it knows what is there now; who was not the one to get it leaves it as unsure as it was.
    fn settle_unsure(&mut self, node: usize, by: Who, attempt: Attempt, got: bool) {
        if !attempt.if_absent {
            return;
        }
        self.spaces[node].put(&attempt.key, None);
        if got {
            self.spaces[node].set(&attempt.key, attempt.value, attempt.expiry, (attempt.at, by));
        } else {
            self.spaces[node].put(&attempt.key, attempt.before);
            self.unsure.insert((node, attempt.key));
        }
    }

    pub(crate) fn is_lock(&self, key: &[u8], entry: &Entry) -> bool {
        self.deployments
            .find(key)
            .is_some_and(|(deployment, role)| deployment.is_lock(role, &entry.value))
    }
}
