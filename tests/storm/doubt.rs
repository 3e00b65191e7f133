//! What the streams do not tell: what a failover lost, what was said while a stream was broken off, and who it was that was
//! gone at once.

use std::collections::HashSet;

use crate::command::{Command, Who};
use crate::judge::Rule;
use crate::keyspace::Entry;
use crate::oracle::Oracle;
use crate::run::Run;

/// How long a worker takes at most between two calls of one step, in microseconds.
const JUST_BEFORE: u64 = 1_000_000;

impl Oracle {
    /// A replica that follows another master holds what that holds; what the two differ in was lost.
    pub(crate) fn resync(&mut self, master: usize, replica: usize, at: u64) {
        let is_lost = |(key, entry): &(&Vec<u8>, &Entry)| {
            self.spaces[master].get(key, at).is_none_or(|there| !there.is_like(entry))
                && entry.by != Who::Master
        };
        let lost = self.spaces[replica].all(at).filter(is_lost).count();
        self.verdict.count("disappeared", "lost or older after a failover", lost as u64);
        let expired = self.spaces[replica].expired;
        self.spaces[replica] = self.spaces[master].clone();
        self.spaces[replica].expired = expired;
        let unsure: Vec<_> =
            self.unsure.iter().filter(|(node, _)| *node == master).cloned().collect();
        self.unsure.retain(|(node, _)| *node != replica);
        self.unsure.extend(unsure.into_iter().map(|(_, key)| (replica, key)));
    }

    /// Where a part of a stream may be lost, nothing is sure of what the two of a pair differ in, nor of what was written just
    /// before: a failover breaks off the streams of both, and a worker that had taken a lock may then have taken its expiry.
    pub(crate) fn miss(&mut self, node: usize, at: u64) {
        let (one, other) = (&self.spaces[node], &self.spaces[self.peers[node]]);
        let is_unsure = |key: &Vec<u8>| match (one.get(key, at), other.get(key, at)) {
            (Some(one), Some(other)) => !one.is_like(other) || one.written + JUST_BEFORE > at,
            (one, other) => one.is_some() || other.is_some(),
        };
        let keys: HashSet<_> = one.all(at).chain(other.all(at)).map(|(key, _)| key).collect();
        let unsure: Vec<_> = keys.into_iter().filter(|key| is_unsure(key)).cloned().collect();
        self.unsure.extend(unsure.into_iter().map(|key| (node, key)));
    }

    /// Only one operator restores: what comes back comes of that one, whose client may be gone before it can be asked.
    pub(crate) fn whose(&self, command: &Command) -> Who {
        let restores = |(operator, run): (&usize, &Run)| {
            (run.rule == Rule::Restore).then_some(Who::Operator(*operator))
        };
        let restoring = self.runs.iter().find_map(restores);
        restoring.filter(|_| matches!(command, Command::Restore { .. })).unwrap_or(Who::Gone)
    }

    /// Somebody changed something, and nobody knows who of those that are at it.
    pub(crate) fn is_unsure_of_all(&mut self) {
        self.verdict.count("oracle", "changes by clients that were gone before they were asked", 1);
        self.runs.values_mut().for_each(|run| run.is_unsure = true);
    }
}
