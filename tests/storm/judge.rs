//! Which removals are right: what each command of idemctl may take, by what truly stood there.

use std::time::Duration;

use crate::keyspace::Entry;

/// A whole second that a TTL may have been counted up, and a little for the stream.
const SLACK_MS: u64 = 1_200;

/// What a run of idemctl was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// `sweep`: two looks so far apart.
    Sweep { grace: Duration, by: Reason },
    /// `sweep --action expire`, which removes nothing: two looks so far apart.
    Expire { grace: Duration },
    /// `purge` of results that are so old.
    OldResults(Duration),
    /// `purge` of results of any age, by their keys.
    HotResults,
    /// `purge` of locks, by their keys.
    HotLocks,
    /// `purge` of locks without expiry.
    LocksForEver,
    /// `force-unlock` at a prompt.
    Unlock,
    /// `restore`, which removes nothing.
    Restore,
}

/// What makes a lock one to sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// `--orphaned`.
    Orphaned,
    /// `--older-than`.
    Age,
    /// `--older-than` and `--owner-alive`.
    DeadOwner,
}

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wrong {
    /// A sweep removed a lock whose worker lives.
    LiveLock,
    /// A sweep by age removed a lock that ends by itself, though nobody said that its owner is
    /// dead.
    EndsByItself,
    /// What was removed is not what had been looked at.
    NotWhatWasSeen,
    /// A result went that was not selected, or with a command that leaves results alone.
    Result,
    /// A lock went that was not selected.
    Lock,
    /// Bytes or an expiry were changed unasked.
    Touched,
    /// A report, an exit code, a backup or the audit log says something else than what happened.
    Told,
    /// Something is gone, or there, that nobody removed or wrote.
    Unattributed,
    /// Somebody who has no business here changed a record.
    UnclaimedKey,
}

impl Wrong {
    /// All of them, with their words.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::LiveLock, "live locks swept"),
        (Self::EndsByItself, "locks swept by age that end by themselves"),
        (Self::NotWhatWasSeen, "removals of what had not been looked at"),
        (Self::Result, "results removed that were not selected"),
        (Self::Lock, "locks removed that were not selected"),
        (Self::Touched, "bytes or expiries changed unasked"),
        (Self::Told, "outcomes told wrong"),
        (Self::Unattributed, "changes that nobody made"),
        (Self::UnclaimedKey, "changes by strangers"),
    ];
}

/// What truly stood there, when it was removed.
pub struct Facts<'a> {
    pub at: u64,
    pub entry: &'a Entry,
    pub is_lock: bool,
    /// Its worker may still complete it.
    pub is_alive: bool,
    /// A result stands beside the lock.
    pub has_result: bool,
    pub names_owner: bool,
    /// Its key is one of those that are fought for.
    pub is_hot: bool,
    pub lock_ttl_ms: u64,
    pub result_ttl_ms: u64,
    /// When the question was on the terminal.
    pub asked: Option<u64>,
}

impl Facts<'_> {
    /// How long the entry had not been written when it went.
    pub fn untouched_ms(&self) -> u64 {
        self.at.saturating_sub(self.entry.written) / 1_000
    }

    /// A lock that has neither an expiry nor an owner: it cannot be told from the one that stood
    /// there before.
    pub fn is_like_any_other(&self) -> bool {
        self.is_lock && self.entry.ends_at.is_none() && !self.names_owner
    }

    /// How old a result is by what is stated of its TTL, in milliseconds; of one that never ends
    /// only its value may tell.
    fn stated_age_ms(&self) -> u64 {
        self.entry.left(self.at).map_or(u64::MAX, |left| self.result_ttl_ms.saturating_sub(left))
    }

    fn contains_expiry(&self) -> bool {
        self.entry.left(self.at).is_some_and(|left| left <= self.lock_ttl_ms + SLACK_MS)
    }
}

/// What is wrong about giving a lock a TTL.
pub fn wrongs_of_expiry(rule: Rule, facts: &Facts<'_>) -> Vec<Wrong> {
    let Rule::Expire { grace } = rule else { return vec![Wrong::Touched] };
    let mut wrongs = wrongs(Rule::Sweep { grace, by: Reason::Orphaned }, facts);
    // What ends by itself would end later.
    wrongs.extend(facts.entry.ends_at.is_some().then_some(Wrong::Touched));
    wrongs
}

/// What is wrong about a removal.
pub fn wrongs(rule: Rule, facts: &Facts<'_>) -> Vec<Wrong> {
    let mut wrongs = Vec::new();
    let mut rule_out = |wrong, is: bool| wrongs.extend(is.then_some(wrong));
    match rule {
        Rule::Sweep { grace, by } => {
            rule_out(Wrong::Result, !facts.is_lock);
            rule_out(Wrong::LiveLock, facts.is_lock && facts.is_alive);
            // Both looks came after the last change, and the grace lies between them.
            let is_fresh =
                u128::from(facts.at.saturating_sub(facts.entry.written)) < grace.as_micros();
            rule_out(Wrong::NotWhatWasSeen, is_fresh && !facts.is_like_any_other());
            let owner_is_dead = by == Reason::DeadOwner && facts.names_owner && !facts.is_alive;
            rule_out(
                Wrong::EndsByItself,
                by != Reason::Orphaned && facts.contains_expiry() && !owner_is_dead,
            );
        }
        Rule::OldResults(least) => {
            let least = least.as_millis();
            let is_young = u128::from(facts.stated_age_ms().saturating_add(SLACK_MS)) < least;
            rule_out(Wrong::Result, !facts.is_lock && is_young);
            // A completed record goes whole: the lock beside the result with it.
            rule_out(Wrong::Lock, facts.is_lock && !facts.has_result);
        }
        Rule::HotResults => {
            rule_out(Wrong::Result, !facts.is_lock && !facts.is_hot);
            rule_out(Wrong::Lock, facts.is_lock && !(facts.has_result && facts.is_hot));
        }
        Rule::HotLocks => {
            rule_out(Wrong::Result, !facts.is_lock);
            rule_out(Wrong::Lock, !facts.is_hot);
        }
        Rule::LocksForEver => {
            rule_out(Wrong::Result, !facts.is_lock);
            rule_out(Wrong::Lock, facts.is_lock && facts.entry.ends_at.is_some());
        }
        Rule::Unlock => {
            rule_out(Wrong::Result, !facts.is_lock);
            let is_seen = facts.asked.is_some_and(|asked| facts.entry.stood_like_this(asked));
            rule_out(Wrong::NotWhatWasSeen, !is_seen && !facts.is_like_any_other());
        }
        Rule::Restore | Rule::Expire { .. } => {
            rule_out(if facts.is_lock { Wrong::Lock } else { Wrong::Result }, true)
        }
    }
    wrongs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Who;

    const NOW: u64 = 100_000_000;

    fn entry(ends_at: Option<u64>, written_ms_ago: u64) -> Entry {
        let written = NOW - written_ms_ago * 1_000;
        Entry {
            value: b"1"[..].into(),
            ends_at,
            written,
            set: written,
            by: Who::Worker(0),
            spoilt: false,
            former: Vec::new(),
        }
    }

    /// A dead worker's lock without expiry, with whatever differs.
    fn judged(rule: Rule, entry: &Entry, differs: impl FnOnce(&mut Facts<'_>)) -> Vec<Wrong> {
        let mut facts = Facts {
            at: NOW,
            entry,
            is_lock: true,
            is_alive: false,
            has_result: false,
            names_owner: true,
            is_hot: true,
            lock_ttl_ms: 60_000,
            result_ttl_ms: 60_000,
            asked: None,
        };
        differs(&mut facts);
        wrongs(rule, &facts)
    }

    fn sweep(by: Reason) -> Rule {
        Rule::Sweep { grace: Duration::from_secs(1), by }
    }

    #[test]
    fn a_sweep_takes_dead_locks_that_stood_both_looks() {
        let (old, fresh) = (entry(None, 2_000), entry(None, 900));
        let rule = sweep(Reason::Orphaned);
        assert_eq!(judged(rule, &old, |_| {}), []);
        assert_eq!(judged(rule, &fresh, |_| {}), [Wrong::NotWhatWasSeen]);
        assert_eq!(
            judged(rule, &fresh, |facts| facts.names_owner = false),
            [],
            "it is like the one before"
        );
        assert_eq!(judged(rule, &old, |facts| facts.is_alive = true), [Wrong::LiveLock]);
        assert_eq!(judged(rule, &old, |facts| facts.is_lock = false), [Wrong::Result]);
    }

    #[test]
    fn a_sweep_by_age_leaves_what_ends_by_itself_unless_its_owner_is_dead() {
        let ends = entry(Some(NOW / 1_000 + 50_000), 2_000);
        assert_eq!(judged(sweep(Reason::Age), &ends, |_| {}), [Wrong::EndsByItself]);
        assert_eq!(judged(sweep(Reason::DeadOwner), &ends, |_| {}), []);
        assert_eq!(
            judged(sweep(Reason::DeadOwner), &ends, |facts| facts.names_owner = false),
            [Wrong::EndsByItself]
        );
        let never = entry(None, 2_000);
        assert_eq!(judged(sweep(Reason::Age), &never, |_| {}), []);
        let too_late = entry(Some(NOW / 1_000 + 90_000), 2_000);
        assert_eq!(judged(sweep(Reason::Age), &too_late, |_| {}), []);
    }

    #[test]
    fn a_purge_takes_what_it_chose() {
        let (old, fresh) =
            (entry(Some(NOW / 1_000 + 40_000), 9_000), entry(Some(NOW / 1_000 + 59_000), 1_000));
        let rule = Rule::OldResults(Duration::from_secs(10));
        assert_eq!(judged(rule, &old, |facts| facts.is_lock = false), []);
        assert_eq!(judged(rule, &fresh, |facts| facts.is_lock = false), [Wrong::Result]);
        assert_eq!(judged(rule, &old, |_| {}), [Wrong::Lock]);
        assert_eq!(judged(rule, &old, |facts| facts.has_result = true), []);
        assert_eq!(judged(Rule::LocksForEver, &old, |_| {}), [Wrong::Lock]);
        assert_eq!(judged(Rule::HotLocks, &old, |facts| facts.is_hot = false), [Wrong::Lock]);
    }

    #[test]
    fn an_unlock_takes_what_stood_there_when_it_asked() {
        let lock = entry(None, 1_000);
        assert_eq!(judged(Rule::Unlock, &lock, |facts| facts.asked = Some(NOW - 500_000)), []);
        assert_eq!(
            judged(Rule::Unlock, &lock, |facts| facts.asked = Some(NOW - 1_500_000)),
            [Wrong::NotWhatWasSeen]
        );
        assert_eq!(judged(Rule::Unlock, &lock, |_| {}), [Wrong::NotWhatWasSeen]);
        let like_any_other = |facts: &mut Facts<'_>| {
            (facts.names_owner, facts.asked) = (false, Some(NOW - 1_500_000))
        };
        assert_eq!(judged(Rule::Unlock, &lock, like_any_other), [], "it is like the one before");
    }

    /// A heartbeat gives a lock of 1 s half of its TTL after half a second: its end is the one that
    /// was seen.
    #[test]
    fn an_unlock_takes_a_lock_that_ends_when_the_one_it_saw_ended() {
        let mut lock = entry(Some(NOW / 1_000 + 292), 207);
        let asked = |facts: &mut Facts<'_>| facts.asked = Some(NOW - 300_000);
        lock.former = vec![(NOW - 707_000, Some(NOW / 1_000 + 293))];
        assert_eq!(judged(Rule::Unlock, &lock, asked), []);
        lock.former.push((NOW - 450_000, Some(NOW / 1_000 + 800)));
        assert_eq!(judged(Rule::Unlock, &lock, asked), [Wrong::NotWhatWasSeen]);
        lock.former = vec![(NOW - 250_000, lock.ends_at)];
        assert_eq!(judged(Rule::Unlock, &lock, asked), [Wrong::NotWhatWasSeen]);
    }
}
