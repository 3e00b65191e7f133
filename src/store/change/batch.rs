//! Batches of changes: their size, the calls that are sent for each, and the meaning of a reply.
//! `change/bulk/` has batches of up to 500 records, which are split into these.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use redis::Cmd;

use super::change::{Change, KeyAction, Outcome};
use crate::domain::hash_slot;
use crate::domain::record::{Content, KeyState, Observation};
use crate::store::backup::entry::MAX_SAVED;
use crate::store::backup::{BackupEntry, Saved};
use crate::store::cluster::scripted::ScriptRef;
use crate::store::scripts;

/// The most Redis keys in one call: larger calls stall other clients and are no faster.
pub(in crate::store) const MAX_KEYS: usize = 100;

/// The most Redis keys that are sent to a cluster at a time, with one call per record. So no call
/// stalls other clients, and every node gets some of them.
pub(in crate::store) const MAX_APART: usize = 500;

/// The most bytes of values that one call compares, unless a single value is larger. A server
/// serves no other client during a call.
const MAX_BYTES: u64 = 4 << 20;

/// Splits changes into batches, which are sent together: as one call, or on a cluster as one call
/// per change. Both the Redis keys and the bytes of a batch are limited, and no Redis key occurs
/// twice.
pub(in crate::store) fn batches(changes: &[Change], max_keys: usize) -> Vec<&[Change]> {
    let mut batches = Vec::new();
    let mut load = Load::default();
    let mut first = 0;
    for (index, change) in changes.iter().enumerate() {
        let only = std::slice::from_ref(change);
        if !load.try_add(only, max_keys) && index > first {
            batches.push(&changes[first..index]);
            first = index;
            load = Load::default();
            load.try_add(only, max_keys);
        }
    }
    if first < changes.len() {
        batches.push(&changes[first..]);
    }
    batches
}

/// Groups the batches that are backed up together, because a sync of the disk costs as much as
/// several calls.
pub(in crate::store) fn groups(changes: &[Change], max_keys: usize) -> Vec<Vec<Batch<'_>>> {
    let mut groups = Vec::new();
    let mut group = Vec::new();
    let mut load = Load::default();
    for batch in batches(changes, max_keys) {
        if !load.try_add(batch, MAX_SAVED) {
            groups.push(std::mem::take(&mut group));
            load = Load::default();
            load.try_add(batch, MAX_SAVED);
        }
        group.push(Batch::new(batch));
    }
    groups.push(group);
    groups
}

/// The size and the Redis keys of the current batch or group.
#[derive(Default)]
struct Load<'a> {
    keys: usize,
    bytes: u64,
    changed: HashSet<&'a [u8]>,
}

impl<'a> Load<'a> {
    /// Adds changes. Adds none and returns false if there would be too many, or if a Redis key
    /// would change twice.
    fn try_add(&mut self, changes: &'a [Change], max_keys: usize) -> bool {
        let mut keys = self.keys;
        let mut bytes = self.bytes;
        for change in changes {
            keys += change.seen.keys.len();
            bytes += size(&change.seen);
            // The script compares all records of a call before it changes any, so it would not
            // notice that an earlier change in the call affects the same key.
            if change.changed_keys().any(|key| self.changed.contains(&key.redis_key[..])) {
                return false;
            }
        }
        // At least one change is added, because a single record may exceed the limits.
        let is_first = self.changed.is_empty();
        let is_full = keys > max_keys || bytes > MAX_BYTES;
        if is_full && !is_first {
            return false;
        }
        self.keys = keys;
        self.bytes = bytes;
        for change in changes {
            self.changed.extend(change.changed_keys().map(|key| &key.redis_key[..]));
        }
        true
    }
}

fn size(seen: &Observation) -> u64 {
    let mut bytes = 0;
    for key in &seen.keys {
        bytes += key.content.size().unwrap_or(key.content.read_bytes() as u64);
    }
    bytes
}

/// Changes that are sent together: as one call, or on a cluster as one call per change.
pub(in crate::store) struct Batch<'a> {
    outcomes: Vec<Outcome>,
    asked: Vec<RequestedChange<'a>>,
    /// The first Redis keys of records that were backed up, but whose changes were then left out.
    left_out: Vec<&'a [u8]>,
}

/// A change that is requested from the server.
struct RequestedChange<'a> {
    index: usize,
    change: &'a Change,
    /// The contents for the backup, in the order of the change's `backed_up`; `None` until the DUMP
    /// is read. Empty without a backup, and after they were written.
    saved: Vec<Option<Saved>>,
    /// True once the backup has an entry of the record.
    is_backed_up: bool,
}

impl<'a> Batch<'a> {
    /// Creates a batch. A change that cannot be compared gets the outcome `ChangedMeanwhile` and is
    /// never sent. Its record was not read exactly enough, or the Redis key to change was absent.
    pub(in crate::store) fn new(changes: &'a [Change]) -> Self {
        let mut asked = Vec::with_capacity(changes.len());
        for (index, change) in changes.iter().enumerate() {
            if change.can_be_compared() {
                asked.push(RequestedChange {
                    index,
                    change,
                    saved: Vec::new(),
                    is_backed_up: false,
                });
            }
        }
        Self {
            outcomes: vec![Outcome::ChangedMeanwhile; changes.len()],
            asked,
            left_out: Vec::new(),
        }
    }

    /// The changes that are requested from the server.
    pub(in crate::store) fn changes(&self) -> Vec<&'a Change> {
        self.asked.iter().map(|asked| asked.change).collect()
    }

    /// Saves the values that were read as a whole. Returns the Redis keys that still need a DUMP.
    pub(in crate::store) fn save(&mut self) -> Vec<&'a [u8]> {
        let mut to_dump = Vec::new();
        for asked in &mut self.asked {
            asked.saved.resize(asked.change.backed_up.len(), None);
            for (key_index, saved) in asked.change.backed_up.iter().zip(&mut asked.saved) {
                let seen = &asked.change.seen.keys[*key_index];
                if saved.is_none() {
                    *saved = Saved::of_whole(seen);
                }
                if saved.is_none() {
                    to_dump.push(seen.redis_key.as_slice());
                }
            }
        }
        to_dump
    }

    /// Takes the DUMP of each Redis key that [`Batch::save`] returned, from a list for several
    /// batches. A change is not requested if one of the record's Redis keys is gone, or if a DUMP
    /// does not match the value that was read.
    pub(in crate::store) fn dumped(&mut self, dumps: &mut impl Iterator<Item = Option<Vec<u8>>>) {
        for asked in &mut self.asked {
            // A record is gone only if all of its Redis keys are.
            let mut outcome = Outcome::Gone;
            for (key_index, saved) in asked.change.backed_up.iter().zip(&mut asked.saved) {
                let seen = &asked.change.seen.keys[*key_index];
                if saved.is_some() {
                    outcome = Outcome::ChangedMeanwhile;
                    continue;
                }
                let Some(dump) = dumps.next().flatten() else { continue };
                outcome = Outcome::ChangedMeanwhile;
                // The backup must hold the value that was shown, and the checksum of a DUMP ends
                // it.
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

    /// The entries for the backup.
    pub(in crate::store) fn entries(&self) -> impl Iterator<Item = BackupEntry<'_>> {
        self.asked.iter().filter(|asked| asked.is_saved()).map(|asked| {
            let saved = asked.change.backed_up.iter().copied().zip(asked.saved.iter().flatten());
            BackupEntry::new(&asked.change.label, &asked.change.seen, saved)
        })
    }

    /// Notes that the backup has these entries, and frees their memory.
    pub(in crate::store) fn set_backed_up(&mut self) {
        for asked in &mut self.asked {
            asked.is_backed_up = asked.is_saved();
            asked.saved = Vec::new();
        }
    }

    /// The command: one call for all changes; `None` if no change is left.
    pub(in crate::store) fn command(&self, action: KeyAction) -> Option<Cmd> {
        if self.asked.is_empty() {
            return None;
        }
        let mut sent = Vec::new();
        for asked in &self.asked {
            asked.add_sent(&mut sent);
        }
        Some(call(action, ScriptRef::Text, &sent))
    }

    /// The commands for a cluster: one call per change. A call compares only the Redis keys in the
    /// slot of the one to change, because no script reaches two slots.
    pub(in crate::store) fn commands_apart(
        &self,
        action: KeyAction,
        script: ScriptRef<'_>,
    ) -> Vec<Cmd> {
        let mut commands = Vec::with_capacity(self.asked.len());
        let mut sent = Vec::new();
        for asked in &self.asked {
            sent.clear();
            asked.add_sent(&mut sent);
            sent.retain(|sent| sent.is_with(asked));
            commands.push(call(action, script, &sent));
        }
        commands
    }

    /// The Redis keys that no call of [`Batch::commands_apart`] compares, as they were seen, each
    /// with the index of its change among the requested ones.
    pub(in crate::store) fn elsewhere(&self) -> Vec<(usize, &'a KeyState)> {
        let mut elsewhere = Vec::new();
        let mut all = Vec::new();
        for (index, asked) in self.asked.iter().enumerate() {
            all.clear();
            asked.add_sent(&mut all);
            for sent in &all {
                if !sent.is_with(asked) {
                    elsewhere.push((index, sent.seen));
                }
            }
        }
        elsewhere
    }

    /// Leaves out changes, by their indexes among the requested ones. Their records changed, or
    /// could not be read.
    pub(in crate::store) fn leave_out(
        &mut self,
        changed: &HashSet<usize>,
        unread: &HashSet<usize>,
    ) {
        self.leave(|index, _| {
            if changed.contains(&index) {
                Some(Outcome::ChangedMeanwhile)
            } else if unread.contains(&index) {
                Some(Outcome::NotMade)
            } else {
                None
            }
        });
    }

    /// Leaves out the changes of records with a Redis key on a master that does not answer.
    pub(in crate::store) fn leave_out_on(&mut self, is_unreachable: impl Fn(&[u8]) -> bool) {
        self.leave(|_, change| {
            let mut keys = change.seen.keys.iter();
            if keys.any(|key| is_unreachable(&key.redis_key)) {
                Some(Outcome::NotMade)
            } else {
                None
            }
        });
    }

    /// Leaves out the changes for which `outcome` returns an outcome.
    fn leave(&mut self, outcome: impl Fn(usize, &Change) -> Option<Outcome>) {
        for (index, asked) in std::mem::take(&mut self.asked).into_iter().enumerate() {
            let Some(outcome) = outcome(index, asked.change) else {
                self.asked.push(asked);
                continue;
            };
            self.outcomes[asked.index] = outcome;
            if asked.is_backed_up {
                self.left_out.push(asked.change.redis_key());
            }
        }
    }

    /// How many changes are requested from the server.
    pub(in crate::store) fn len(&self) -> usize {
        self.asked.len()
    }

    /// Sets the outcome of each requested change, in order.
    pub(in crate::store) fn set_outcomes(&mut self, outcomes: Vec<Outcome>) {
        for (asked, outcome) in self.asked.iter().zip(outcomes) {
            self.outcomes[asked.index] = outcome;
        }
    }

    /// The first Redis keys of the records that were backed up but not changed.
    pub(in crate::store) fn left_alone(&self) -> Vec<&'a [u8]> {
        let mut left_alone = self.left_out.clone();
        for asked in &self.asked {
            let outcome = self.outcomes[asked.index];
            // The backup keeps records that this run removed, or may have removed.
            let may_be_done = outcome.is_done() || outcome == Outcome::Unknown;
            if asked.is_backed_up && !may_be_done {
                left_alone.push(asked.change.redis_key());
            }
        }
        left_alone
    }

    /// One outcome per change, in order.
    pub(in crate::store) fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }
}

/// The outcome of each record in the script's reply; `None` if it is not a reply of the script.
pub(in crate::store) fn parse_letters(reply: &[u8], action: KeyAction) -> Option<Vec<Outcome>> {
    let (letters, moment) = match reply.iter().position(|byte| *byte == b'@') {
        Some(at) => (&reply[..at], Some(&reply[at + 1..])),
        None => (reply, None),
    };
    let done = match moment {
        None => Outcome::Done,
        Some(moment) if action.ttl().is_some() => {
            Outcome::Expires(std::str::from_utf8(moment).ok()?.parse().ok()?)
        }
        // A removal never replies with a time.
        Some(_) => return None,
    };
    let mut outcomes = Vec::with_capacity(letters.len());
    for letter in letters {
        outcomes.push(match letter {
            b'D' => done,
            b'C' => Outcome::ChangedMeanwhile,
            b'A' => Outcome::Gone,
            b'K' if action.ttl().is_some() => Outcome::Kept,
            _ => return None,
        });
    }
    Some(outcomes)
}

/// A call that changes some records.
fn call(action: KeyAction, script: ScriptRef<'_>, sent: &[Sent<'_>]) -> Cmd {
    let mut command = script.command("EVAL", scripts::CHANGE_MANY_IF_SAME);
    command.arg(sent.len());
    for key in sent {
        command.arg(&key.seen.redis_key);
    }
    for key in sent {
        command.arg(key.head());
    }
    for key in sent {
        command.arg(key.precondition());
    }
    match action {
        KeyAction::Remove => command.arg("UNLINK"),
        KeyAction::Prolong(ttl) => command.arg(format!("+{ttl}")),
        KeyAction::Shorten(ttl) => command.arg(format!("-{ttl}")),
    };
    command
}

impl<'a> RequestedChange<'a> {
    /// True if all contents for the backup are known.
    fn is_saved(&self) -> bool {
        !self.saved.is_empty() && self.saved.iter().all(Option::is_some)
    }

    /// Adds the record's Redis keys in the order of the script, those that change first.
    fn add_sent(&self, sent: &mut Vec<Sent<'a>>) {
        let change = self.change;
        for (index, key_index) in change.changed_indexes.iter().enumerate() {
            let role = if index == 0 { ChangeRole::First } else { ChangeRole::Changes };
            sent.push(Sent { seen: &change.seen.keys[*key_index], role });
        }
        for (key_index, seen) in change.seen.keys.iter().enumerate() {
            if !change.changed_indexes.contains(&key_index) {
                sent.push(Sent { seen, role: ChangeRole::Compared });
            }
        }
    }
}

/// The data that is sent for one Redis key.
struct Sent<'a> {
    seen: &'a KeyState,
    role: ChangeRole,
}

/// The role of a Redis key in the change of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangeRole {
    /// The first key that changes.
    First,
    /// Another key that changes.
    Changes,
    /// A key that is compared but does not change.
    Compared,
}

impl Sent<'_> {
    /// True if it is in the slot of the Redis key that changes.
    fn is_with(&self, asked: &RequestedChange<'_>) -> bool {
        hash_slot::of(&self.seen.redis_key) == hash_slot::of(asked.change.redis_key())
    }

    /// The bytes that were read, followed by the checksum if the value was read in part.
    fn head(&self) -> Vec<u8> {
        match &self.seen.content {
            Content::Text { head, .. } => {
                let mut bytes = head.clone();
                if let Some(checksum) = self.checksum() {
                    bytes.extend_from_slice(&checksum);
                }
                bytes
            }
            Content::Hash(_) | Content::Other(_) => match self.seen.checksum {
                Some(checksum) => checksum.to_vec(),
                None => Vec::new(),
            },
            Content::Absent => Vec::new(),
        }
    }

    /// The checksum of a value that was read in part. A value that was read whole is compared by
    /// its bytes.
    fn checksum(&self) -> Option<[u8; 8]> {
        if self.seen.content.is_whole() { None } else { self.seen.checksum }
    }

    /// The precondition for the script, in the format that the script's header describes.
    fn precondition(&self) -> String {
        let deadline = self.seen.deadline;
        let at = match deadline.millis() {
            Some(at) => at.to_string(),
            None => "-1".to_owned(),
        };
        let is_whole_string =
            self.seen.content.is_whole() && self.seen.content.other_type().is_none();
        // Most records have this short precondition, because a purge sends a million of them.
        if self.role == ChangeRole::First && deadline.is_exact() && is_whole_string {
            return at;
        }
        let role = match self.role {
            ChangeRole::First => '=',
            ChangeRole::Changes => '*',
            ChangeRole::Compared => '+',
        };
        let (length, mark) = match &self.seen.content {
            Content::Absent => return "-,".to_owned(),
            Content::Hash(_) | Content::Other(_) => (0, "D"),
            Content::Text { head, length } => {
                let mark = if self.checksum().is_some() { "d" } else { "" };
                (length.unwrap_or(head.len() as u64), mark)
            }
        };
        let approximate = if deadline.is_exact() { "" } else { "~" };
        format!("{role}{length}{mark},{approximate}{at}")
    }
}
