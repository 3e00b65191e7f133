//! What goes: by a service, by idemctl, or by a stranger.

use std::time::Duration;

use crate::command::Who;
use crate::deployment::Role;
use crate::judge::{self, Facts, Rule, Wrong};
use crate::keyspace::Entry;
use crate::looks::Group;
use crate::oracle::Oracle;
use crate::run::{Ended, Held, Run};

/// What came back at the end of its time, or a moment too late.
pub(crate) const LATE: &str = "at the very end of their time";

/// What stands in a key that is fought for.
const HOT: &[u8] = b".hot.";

impl Rule {
    /// What a removal by it is called.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sweep { by: judge::Reason::Orphaned, .. } => "sweep --orphaned",
            Self::Sweep { by: judge::Reason::Age, .. } => "sweep --older-than",
            Self::Sweep { by: judge::Reason::DeadOwner, .. } => "sweep --owner-alive",
            Self::Expire { .. } => "sweep --action expire",
            Self::OldResults(_) => "purge --older-than",
            Self::HotResults => "purge --match",
            Self::HotLocks => "purge --state in-progress --match",
            Self::LocksForEver => "purge --finding no-expiry",
            Self::Unlock => "force-unlock",
            Self::Restore => "restore",
        }
    }
}

impl Oracle {
    pub(crate) fn remove(&mut self, (node, who, at): (usize, Who, u64), key: &[u8]) {
        let removed = self.spaces[node].remove(key, at);
        if self.unsure.remove(&(node, key.to_vec())) {
            if let Who::Operator(operator) = who
                && let Some(run) = self.runs.get_mut(&operator)
            {
                run.is_unsure = true;
            }
            return;
        }
        let Some(entry) = removed else { return };
        match who {
            Who::Worker(_) => self.verdict.count("disappeared", "removed by a service", 1),
            Who::Master => {}
            Who::Gone => self.is_unsure_of_all(),
            Who::UnclaimedKey => self.verdict.wrong(
                Wrong::UnclaimedKey,
                "a stranger",
                format!("{} was removed", key.escape_ascii()),
            ),
            Who::Operator(operator) => {
                self.removed(operator, key, &entry, (node, at));
                self.graves.insert(key.to_vec(), entry);
            }
        }
    }

    fn removed(&mut self, operator: usize, key: &[u8], entry: &Entry, (node, at): (usize, u64)) {
        let Some(run) = self.runs.get(&operator) else {
            return self.verdict.wrong(
                Wrong::Unattributed,
                "idemctl",
                format!("{} went without a run", key.escape_ascii()),
            );
        };
        let rule = run.rule;
        let Some((facts, group)) = self.facts(run, key, entry, (node, at)) else {
            return self.verdict.wrong(
                Wrong::UnclaimedKey,
                rule.word(),
                format!("{} is no record's", key.escape_ascii()),
            );
        };
        let said = said(key, &facts);
        let wrongs = judge::wrongs(rule, &facts);
        for wrong in &wrongs {
            self.verdict.wrong(*wrong, rule.word(), said.clone());
        }
        self.verdict.count("disappeared", rule.word(), 1);
        let Some(run) = self.runs.get_mut(&operator) else { return };
        let reads = run.reads.get(key).map_or(&[][..], Vec::as_slice);
        if !facts.is_like_any_other() && !wrongs.contains(&Wrong::NotWhatWasSeen) {
            self.looks.add(group, entry, reads, || said);
        }
        run.removed.push(Held {
            key: key.to_vec(),
            value: entry.value.clone(),
            ends_at: entry.ends_at,
        });
    }

    /// A run of idemctl gave what was this entry another expiry.
    pub(crate) fn gave_expiry(
        &mut self,
        operator: usize,
        key: &[u8],
        before: &Entry,
        (node, at): (usize, u64),
    ) {
        if self.unsure.remove(&(node, key.to_vec())) {
            // A broken stream may have hidden that the lock lost its expiry.
            self.verdict.count("oracle", "expiries of keys that a stream broke off on", 1);
            if let Some(run) = self.runs.get_mut(&operator) {
                run.is_unsure = true;
            }
            return;
        }
        let Some(run) = self.runs.get(&operator) else { return };
        let rule = run.rule;
        let Some((facts, _)) = self.facts(run, key, before, (node, at)) else { return };
        for wrong in judge::wrongs_of_expiry(rule, &facts) {
            self.verdict.wrong(wrong, rule.word(), said(key, &facts));
        }
        self.verdict.count("given an expiry", rule.word(), 1);
        if let Some(run) = self.runs.get_mut(&operator) {
            run.expired += 1;
        }
    }

    /// What truly stood there; nothing where it is no record's.
    fn facts<'a>(
        &self,
        run: &Run,
        key: &[u8],
        entry: &'a Entry,
        (node, at): (usize, u64),
    ) -> Option<(Facts<'a>, Group)> {
        let (deployment, role) = self.deployments.find(key)?;
        let millis = |ttl: Duration| u64::try_from(ttl.as_millis()).unwrap();
        let facts = Facts {
            at,
            entry,
            is_lock: deployment.is_lock(role, &entry.value),
            is_alive: self.is_alive(key, entry),
            has_result: self.has_result(node, key, at),
            names_owner: deployment.names_owner(),
            is_hot: key.windows(HOT.len()).any(|part| part == HOT),
            lock_ttl_ms: millis(deployment.schema.lock_ttl),
            result_ttl_ms: millis(deployment.schema.result_ttl),
            asked: run.asked,
        };
        Some((facts, (run.rule.word(), deployment.schema.name.clone(), role)))
    }

    /// True when its worker may still complete it.
    fn is_alive(&self, key: &[u8], entry: &Entry) -> bool {
        let Who::Worker(worker) = entry.by else { return false };
        let its = (worker, key.to_vec());
        !entry.spoilt
            && !self.dead.contains(&its)
            && self.done.get(&its).is_none_or(|done| *done < entry.set)
    }

    /// True when a result stands beside the lock of this Redis key.
    fn has_result(&self, node: usize, key: &[u8], at: u64) -> bool {
        let Some((deployment, Role::Lock)) = self.deployments.find(key) else { return false };
        deployment
            .result_beside(key)
            .is_some_and(|result| self.spaces[node].get(&result, at).is_some())
    }

    pub(crate) fn end(&mut self, operator: usize, ended: &Ended) {
        let Some(run) = self.runs.remove(&operator) else { return };
        let word = run.rule.word();
        for said in run.told_wrong(ended, &self.deployments) {
            self.verdict.wrong(Wrong::Told, word, said);
        }
        self.verdict.count("runs", word, 1);
        self.verdict.count("outcomes", "unknown", u64::from(ended.is_unknown()));
        self.verdict.count("outcomes", "during a failover", u64::from(run.is_unsure));
        if run.rule == Rule::Restore {
            self.verdict.count("restored", word, run.restored);
            self.verdict.count("restored", LATE, run.restored_late);
        }
        let left = [
            "changed",
            "renewed",
            "skipped_alive",
            "owner_unknown",
            "left_to_expire",
            "gone",
            "present",
            "expired",
        ];
        for field in left {
            self.verdict.count("left alone", field, ended.number(field));
        }
        if run.rule == Rule::Unlock && matches!(ended.code, 1 | 2 | 8) {
            self.verdict.count(
                "left alone",
                format!("force-unlock, exit status {}", ended.code),
                1,
            );
        }
    }
}

fn said(key: &[u8], facts: &Facts<'_>) -> String {
    let alive = if facts.is_alive { "alive" } else { "dead" };
    let left = facts
        .entry
        .left(facts.at)
        .map_or_else(|| "no expiry".to_owned(), |left| format!("{left} ms left"));
    format!(
        "{}: {left}, of {:?} ({alive}), written {} ms before: {}",
        key.escape_ascii(),
        facts.entry.by,
        facts.untouched_ms(),
        facts.entry.value.escape_ascii()
    )
}
