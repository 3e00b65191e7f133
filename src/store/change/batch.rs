//! Batches of changes: how many go into one call, what is sent for them, and what the reply says of each.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use redis::Cmd;

use super::change::{Change, KeyAction, Outcome};
use crate::domain::hash_slot;
use crate::domain::record::{Content, Observation, SeenKey};
use crate::store::backup::entry::MOST_SAVED;
use crate::store::backup::{BackupEntry, Saved};
use crate::store::cluster::scripted::ScriptRef;
use crate::store::scripts;

/// The most Redis keys a call names: larger calls stall other clients and are no faster.
pub(in crate::store) const MOST_KEYS: usize = 100;

/// The most Redis keys that go out at a time on a cluster, a call each: no call stalls anybody, and every node gets some.
pub(in crate::store) const MOST_APART: usize = 500;

/// The most bytes of values a call deals with, unless a single value is larger.
const MOST_BYTES: u64 = 4 << 20;

/// Splits changes into what one call each makes: so many Redis keys and bytes, and no Redis key twice.
pub(in crate::store) fn batches(
    changes: &[Change],
    most_keys: usize,
) -> impl Iterator<Item = &[Change]> {
    let mut rest = changes;
    std::iter::from_fn(move || {
        let mut load = Load::default();
        let full =
            rest.iter().position(|change| !load.takes(std::slice::from_ref(change), most_keys));
        let (batch, more) = rest.split_at(full.unwrap_or(rest.len()));
        rest = more;
        (!batch.is_empty()).then_some(batch)
    })
}

/// Puts together the batches that are backed up at a time.
pub(in crate::store) fn groups(changes: &[Change], most_keys: usize) -> Vec<Vec<Batch<'_>>> {
    let mut groups: Vec<Vec<_>> = vec![Vec::new()];
    let mut load = Load::default();
    for batch in batches(changes, most_keys) {
        if !load.takes(batch, MOST_SAVED) {
            groups.push(Vec::new());
            load = Load::default();
            load.takes(batch, MOST_SAVED);
        }
        if let Some(group) = groups.last_mut() {
            group.push(Batch::new(batch));
        }
    }
    groups
}

/// What was put together so far.
#[derive(Default)]
struct Load<'a> {
    keys: usize,
    bytes: u64,
    changed: HashSet<&'a [u8]>,
}

impl<'a> Load<'a> {
    /// Takes more; false when it is too much, or a Redis key would change twice.
    fn takes(&mut self, changes: &'a [Change], most_keys: usize) -> bool {
        let is_first = self.changed.is_empty();
        self.keys += changes.iter().map(|change| change.seen.keys.len()).sum::<usize>();
        self.bytes += changes.iter().map(|change| size(&change.seen)).sum::<u64>();
        let is_full = self.keys > most_keys || self.bytes > MOST_BYTES;
        if is_full && !is_first {
            return false;
        }
        for target in changes.iter().flat_map(Change::targets) {
            if !self.changed.insert(&target.redis_key) {
                return false;
            }
        }
        true
    }
}

fn size(seen: &Observation) -> u64 {
    seen.keys.iter().map(|key| key.content.size().unwrap_or(key.content.read_bytes() as u64)).sum()
}

/// Changes that one call makes.
pub(in crate::store) struct Batch<'a> {
    outcomes: Vec<Outcome>,
    asked: Vec<Asked<'a>>,
    /// The first Redis keys of records that were backed up, and whose changes were left out since.
    left_out: Vec<&'a [u8]>,
}

/// A change that the server is asked for.
struct Asked<'a> {
    index: usize,
    change: &'a Change,
    /// What the backup gets, by the change's `saves`; `None` as long as a DUMP is missing. Empty where there is no backup.
    saved: Vec<Option<Saved>>,
}

impl<'a> Batch<'a> {
    /// Takes the changes. A change that cannot be compared counts as changed, and is never sent: the look was not sharp
    /// enough, or the Redis key to change was not there.
    pub(in crate::store) fn new(changes: &'a [Change]) -> Self {
        let asked = changes.iter().enumerate().filter(|(_, change)| change.can_be_compared());
        Self {
            outcomes: vec![Outcome::Changed; changes.len()],
            asked: asked
                .map(|(index, change)| Asked { index, change, saved: Vec::new() })
                .collect(),
            left_out: Vec::new(),
        }
    }

    /// The changes that the server is asked for.
    pub(in crate::store) fn changes(&self) -> Vec<&'a Change> {
        self.asked.iter().map(|asked| asked.change).collect()
    }

    /// Saves what was read as a whole. Gives the Redis keys whose DUMP is still to be asked for.
    pub(in crate::store) fn save(&mut self) -> Vec<&'a [u8]> {
        let mut open = Vec::new();
        for asked in &mut self.asked {
            asked.saved.resize(asked.change.saves.len(), None);
            for (role, saved) in asked.change.saves.iter().zip(&mut asked.saved) {
                let seen = &asked.change.seen.keys[*role];
                if saved.is_none() {
                    *saved = Saved::of_whole(seen);
                }
                if saved.is_none() {
                    open.push(seen.redis_key.as_slice());
                }
            }
        }
        open
    }

    /// Takes the DUMP of each Redis key that [`Batch::save`] gave from a longer list. A record is not asked for if one of
    /// its Redis keys is gone, or has a DUMP that is not that of the value that was seen.
    pub(in crate::store) fn dumped(&mut self, dumps: &mut impl Iterator<Item = Option<Vec<u8>>>) {
        for asked in &mut self.asked {
            let mut outcome = Outcome::Absent;
            for (role, saved) in asked.change.saves.iter().zip(&mut asked.saved) {
                let seen = &asked.change.seen.keys[*role];
                if saved.is_some() {
                    outcome = Outcome::Changed;
                    continue;
                }
                let Some(dump) = dumps.next().flatten() else { continue };
                outcome = Outcome::Changed;
                if seen.checksum.is_none_or(|sum| dump.ends_with(&sum)) {
                    *saved = Some(Saved::of(seen, dump));
                }
            }
            if asked.saved.iter().any(Option::is_none) {
                self.outcomes[asked.index] = outcome;
            }
        }
        self.asked.retain(|asked| asked.saved.iter().all(Option::is_some));
    }

    /// The entries that the backup gets.
    pub(in crate::store) fn entries(&self) -> impl Iterator<Item = BackupEntry<'_>> {
        self.asked.iter().filter(|asked| asked.is_backed_up()).map(|asked| {
            let saved = asked.change.saves.iter().copied().zip(asked.saved.iter().flatten());
            BackupEntry::new(&asked.change.about, &asked.change.seen, saved)
        })
    }

    /// What is sent: one call for all. None when nothing is left to ask for.
    pub(in crate::store) fn command(&self, action: KeyAction) -> Option<Cmd> {
        let sent = self.asked.iter().flat_map(Asked::sent);
        (!self.asked.is_empty()).then(|| call(action, ScriptRef::Text, sent))
    }

    /// What is sent where a cluster keeps Redis keys apart: a call for each change. It compares what is in the slot of the
    /// Redis key to change, and no more.
    pub(in crate::store) fn commands_apart(
        &self,
        action: KeyAction,
        script: ScriptRef<'_>,
    ) -> Vec<Cmd> {
        let one = |asked: &Asked<'a>| {
            call(action, script, asked.sent().filter(|sent| sent.is_with(asked)))
        };
        self.asked.iter().map(one).collect()
    }

    /// The Redis keys that no call of [`Batch::commands_apart`] compares on a cluster, with what was seen there, by change.
    pub(in crate::store) fn elsewhere(&self) -> Vec<(usize, &'a SeenKey)> {
        let others = self.asked.iter().enumerate().flat_map(|(place, asked)| {
            asked.sent().filter(|sent| !sent.is_with(asked)).map(move |sent| (place, sent.seen))
        });
        others.collect()
    }

    /// Leaves out changes, by their places among those that are asked for: the records of some are no longer as they were, and
    /// of others nobody can say.
    pub(in crate::store) fn leave_out(
        &mut self,
        changed: &HashSet<usize>,
        unread: &HashSet<usize>,
    ) {
        self.leave(|place, _| {
            if changed.contains(&place) {
                Some(Outcome::Changed)
            } else if unread.contains(&place) {
                Some(Outcome::Refused)
            } else {
                None
            }
        });
    }

    /// Leaves out the changes of records one of whose Redis keys is on a master that does not answer.
    pub(in crate::store) fn refuse(&mut self, is_silent: impl Fn(&[u8]) -> bool) {
        let has = |change: &Change| change.seen.keys.iter().any(|key| is_silent(&key.redis_key));
        self.leave(|_, change| has(change).then_some(Outcome::Refused));
    }

    /// Leaves out the changes that have an outcome already.
    fn leave(&mut self, outcome: impl Fn(usize, &Change) -> Option<Outcome>) {
        for (place, asked) in std::mem::take(&mut self.asked).into_iter().enumerate() {
            let Some(outcome) = outcome(place, asked.change) else {
                self.asked.push(asked);
                continue;
            };
            self.outcomes[asked.index] = outcome;
            self.left_out.extend(asked.is_backed_up().then(|| asked.change.redis_key()));
        }
    }

    /// How many changes the server is asked for.
    pub(in crate::store) fn len(&self) -> usize {
        self.asked.len()
    }

    /// Takes what became of each change that was asked for, in order.
    pub(in crate::store) fn came_to(&mut self, told: Vec<Outcome>) {
        for (asked, outcome) in self.asked.iter().zip(told) {
            self.outcomes[asked.index] = outcome;
        }
    }

    /// The first Redis keys of the records that were backed up and not changed after all.
    pub(in crate::store) fn left_alone(&self) -> Vec<&'a [u8]> {
        // The backup keeps what may be gone.
        let may_be_gone = |outcome: Outcome| outcome.is_done() || outcome == Outcome::Unknown;
        let backed_up = self.asked.iter().filter(|asked| asked.is_backed_up());
        let left = backed_up.filter(|asked| !may_be_gone(self.outcomes[asked.index]));
        left.map(|asked| asked.change.redis_key()).chain(self.left_out.iter().copied()).collect()
    }

    /// One outcome a change, in order.
    pub(in crate::store) fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }
}

/// What the reply of the script says of each record; `None` if it is none of the script's.
pub(in crate::store) fn outcomes(reply: &[u8], action: KeyAction) -> Option<Vec<Outcome>> {
    let (letters, moment) = match reply.iter().position(|byte| *byte == b'@') {
        Some(at) => (&reply[..at], Some(&reply[at + 1..])),
        None => (reply, None),
    };
    let done = match moment {
        None => Outcome::Done,
        Some(moment) if action.ttl().is_some() => {
            Outcome::Expires(std::str::from_utf8(moment).ok()?.parse().ok()?)
        }
        Some(_) => return None,
    };
    let mut outcomes = Vec::with_capacity(letters.len());
    for letter in letters {
        outcomes.push(match letter {
            b'D' => done,
            b'C' => Outcome::Changed,
            b'A' => Outcome::Absent,
            b'K' if action.ttl().is_some() => Outcome::Kept,
            _ => return None,
        });
    }
    Some(outcomes)
}

/// A call that changes some records.
fn call<'a>(action: KeyAction, script: ScriptRef<'_>, sent: impl Iterator<Item = Sent<'a>>) -> Cmd {
    let sent: Vec<_> = sent.collect();
    let mut command = match script {
        ScriptRef::Text => redis::cmd("EVAL").arg(scripts::CHANGE_MANY_IF_SAME).to_owned(),
        ScriptRef::Digest(digest) => redis::cmd("EVALSHA").arg(digest).to_owned(),
    };
    command.arg(sent.len());
    for key in &sent {
        command.arg(&key.seen.redis_key);
    }
    for key in &sent {
        command.arg(key.head());
    }
    for key in &sent {
        command.arg(key.rule());
    }
    match action {
        KeyAction::Remove => command.arg("UNLINK"),
        KeyAction::Prolong(ttl) => command.arg(format!("+{ttl}")),
        KeyAction::Shorten(ttl) => command.arg(format!("-{ttl}")),
    };
    command
}

impl<'a> Asked<'a> {
    fn is_backed_up(&self) -> bool {
        !self.saved.is_empty() && self.saved.iter().all(Option::is_some)
    }

    /// The record's Redis keys as the script wants them: those that change first.
    fn sent(&self) -> impl Iterator<Item = Sent<'a>> {
        let change = self.change;
        let targets = change.roles.iter().enumerate().map(|(index, role)| Sent {
            seen: &change.seen.keys[*role],
            part: if index == 0 { Part::First } else { Part::Changes },
        });
        let others = (0..change.seen.keys.len()).filter(|role| !change.roles.contains(role));
        targets
            .chain(others.map(|role| Sent { seen: &change.seen.keys[role], part: Part::Compared }))
    }
}

/// What is sent of one Redis key.
struct Sent<'a> {
    seen: &'a SeenKey,
    part: Part,
}

/// What a Redis key is to the change of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The first that changes.
    First,
    /// Another that changes.
    Changes,
    /// One that is compared and does not change.
    Compared,
}

impl Sent<'_> {
    /// True when it is in the slot of the Redis key that changes.
    fn is_with(&self, asked: &Asked<'_>) -> bool {
        hash_slot::of(&self.seen.redis_key) == hash_slot::of(asked.change.redis_key())
    }

    /// The bytes that were read, and behind those of a value that was read in part its checksum.
    fn head(&self) -> Vec<u8> {
        match &self.seen.content {
            Content::Text { head, .. } => {
                [&head[..], self.checksum().as_ref().map_or(&[][..], |sum| &sum[..])].concat()
            }
            Content::Hash(_) | Content::Other(_) => {
                self.seen.checksum.map_or_else(Vec::new, |sum| sum.to_vec())
            }
            Content::Absent => Vec::new(),
        }
    }

    fn checksum(&self) -> Option<[u8; 8]> {
        self.seen.checksum.filter(|_| !self.seen.content.is_whole())
    }

    /// The rule that the header of the script describes.
    fn rule(&self) -> String {
        let at = self.seen.deadline.millis().map_or_else(|| "-1".to_owned(), |at| at.to_string());
        let is_exact = self.seen.deadline.is_exact();
        if self.part == Part::First
            && is_exact
            && self.seen.content.is_whole()
            && self.seen.content.other_type().is_none()
        {
            return at;
        }
        let role = match self.part {
            Part::First => '=',
            Part::Changes => '*',
            Part::Compared => '+',
        };
        let (length, mark) = match &self.seen.content {
            Content::Absent => return "-,".to_owned(),
            Content::Hash(_) | Content::Other(_) => (0, "D"),
            Content::Text { head, length } => (
                length.unwrap_or(head.len() as u64),
                if self.checksum().is_some() { "d" } else { "" },
            ),
        };
        let blur = if is_exact { "" } else { "~" };
        format!("{role}{length}{mark},{blur}{at}")
    }
}
