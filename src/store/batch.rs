//! Batches of changes: how many go into one call, what is sent for them, and what the reply says of each.

use std::collections::HashSet;
use std::fmt::Write as _;

use redis::Cmd;

use super::backup::{About, Saved};
use super::scripts;
use super::write::{Action, Change, Outcome};
use crate::domain::observation::{Content, Observation, SeenSlot};
use crate::domain::slot;

/// The most Redis keys a call names: larger calls stall other clients and are no faster.
pub(super) const MOST_KEYS: usize = 100;

/// The most Redis keys that go out at a time on a cluster, a call each: no call stalls anybody, and every node gets some.
pub(super) const MOST_APART: usize = 500;

/// The most Redis keys that are backed up at a time: a sync of the disk costs as much as several calls.
pub(super) const MOST_SAVED: usize = 500;

/// The most bytes of values a call deals with, unless a single value is larger.
const MOST_BYTES: u64 = 4 << 20;

/// The bytes of DUMP's checksum, which stands at its end.
const CHECKSUM: usize = 8;

/// Splits changes into what one call each makes: so many Redis keys and bytes, and no Redis key twice.
pub(super) fn batches(changes: &[Change], most_keys: usize) -> impl Iterator<Item = &[Change]> {
    let mut rest = changes;
    std::iter::from_fn(move || {
        let mut load = Load::default();
        let full = rest.iter().position(|change| !load.takes(std::slice::from_ref(change), most_keys));
        let (batch, more) = rest.split_at(full.unwrap_or(rest.len()));
        rest = more;
        (!batch.is_empty()).then_some(batch)
    })
}

/// Puts together the batches that are backed up at a time.
pub(super) fn groups(changes: &[Change], most_keys: usize) -> Vec<Vec<Batch<'_>>> {
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
        self.keys += changes.iter().map(|change| change.seen.slots.len()).sum::<usize>();
        self.bytes += changes.iter().map(|change| size(&change.seen)).sum::<u64>();
        let is_full = self.keys > most_keys || self.bytes > MOST_BYTES;
        (is_first || !is_full) && changes.iter().all(|change| self.changed.insert(change.redis_key()))
    }
}

fn size(seen: &Observation) -> u64 {
    let sizes = seen.slots.iter().map(|slot| match slot.content {
        Content::Text { ref head, length } => length.unwrap_or(head.len() as u64),
        Content::Absent | Content::Other(_) => 0,
    });
    sizes.sum()
}

/// Changes that one call makes.
pub(super) struct Batch<'a> {
    outcomes: Vec<Outcome>,
    asked: Vec<Asked<'a>>,
    /// Redis keys that were backed up, and whose changes were left out since.
    left_out: Vec<&'a [u8]>,
}

/// A change that the server is asked for.
struct Asked<'a> {
    index: usize,
    change: &'a Change,
    saved: Option<Saved>,
}

impl<'a> Batch<'a> {
    /// Takes the changes; one that cannot be compared, for a Redis key of its record holds no string or the one to
    /// change was not there, is not asked for and counts as changed.
    pub(super) fn new(changes: &'a [Change]) -> Self {
        let asked = changes.iter().enumerate().filter(|(_, change)| can_be_compared(change));
        Self {
            outcomes: vec![Outcome::Changed; changes.len()],
            asked: asked.map(|(index, change)| Asked { index, change, saved: None }).collect(),
            left_out: Vec::new(),
        }
    }

    /// The Redis keys to change.
    pub(super) fn redis_keys(&self) -> Vec<&'a [u8]> {
        self.asked.iter().map(|asked| asked.change.redis_key()).collect()
    }

    /// Takes what is to be backed up of each of [`Batch::redis_keys`] from a longer list; one that is gone is not asked for.
    pub(super) fn saved_as(&mut self, saved: &mut impl Iterator<Item = Option<Saved>>) {
        for asked in &mut self.asked {
            asked.saved = saved.next().flatten();
            self.outcomes[asked.index] = Outcome::Absent;
        }
        self.asked.retain(|asked| asked.saved.is_some());
    }

    /// What is to be backed up, whose record it is, and what was seen of that.
    pub(super) fn saved(&self) -> impl Iterator<Item = (&Saved, &'a About, &'a Observation)> {
        self.asked.iter().filter_map(|asked| Some((asked.saved.as_ref()?, &asked.change.about, &asked.change.seen)))
    }

    /// What is sent: one call for all. None when nothing is left to ask for.
    pub(super) fn command(&self, action: Action) -> Option<Cmd> {
        let slots = self.asked.iter().flat_map(Asked::slots);
        (!self.asked.is_empty()).then(|| call(action, Script::Text, slots))
    }

    /// What is sent where a cluster keeps Redis keys apart: a call for each change. It compares what is in the slot of the
    /// Redis key to change, and no more.
    pub(super) fn commands_apart(&self, action: Action, script: Script<'_>) -> Vec<Cmd> {
        let one = |asked: &Asked<'a>| call(action, script, asked.slots().filter(|sent| sent.is_with(asked)));
        self.asked.iter().map(one).collect()
    }

    /// The Redis keys that no call of [`Batch::commands_apart`] compares on a cluster, with what was seen there, by change.
    pub(super) fn elsewhere(&self) -> Vec<(usize, &'a SeenSlot)> {
        let others = self.asked.iter().enumerate().flat_map(|(place, asked)| {
            asked.slots().filter(|sent| !sent.is_with(asked)).map(move |sent| (place, sent.seen))
        });
        others.collect()
    }

    /// Leaves out changes, by their places among those that are asked for: their records are no longer as they were.
    pub(super) fn leave_out(&mut self, changed: &HashSet<usize>) {
        self.leave(|place, _| changed.contains(&place), Outcome::Changed);
    }

    /// Leaves out the changes of records one of whose Redis keys is on a master that does not answer.
    pub(super) fn refuse(&mut self, is_silent: impl Fn(&[u8]) -> bool) {
        let has = |change: &Change| change.seen.slots.iter().any(|slot| is_silent(&slot.redis_key));
        self.leave(|_, change| has(change), Outcome::Refused);
    }

    fn leave(&mut self, which: impl Fn(usize, &Change) -> bool, outcome: Outcome) {
        for (place, asked) in std::mem::take(&mut self.asked).into_iter().enumerate() {
            if which(place, asked.change) {
                self.outcomes[asked.index] = outcome;
                self.left_out.extend(asked.saved.is_some().then(|| asked.change.redis_key()));
            } else {
                self.asked.push(asked);
            }
        }
    }

    /// Takes what became of each change that was asked for, in order. False when it was not told of each: what was not
    /// is unknown.
    pub(super) fn came_to(&mut self, told: impl Iterator<Item = Option<Outcome>>) -> bool {
        let told: Vec<_> = told.collect();
        let is_told = told.len() == self.asked.len() && told.iter().all(Option::is_some);
        let told = told.into_iter().chain(std::iter::repeat(None));
        for (asked, outcome) in self.asked.iter().zip(told) {
            self.outcomes[asked.index] = outcome.unwrap_or(Outcome::Unknown);
        }
        is_told
    }

    /// The Redis keys that were backed up and not changed after all.
    pub(super) fn left_alone(&self) -> Vec<&'a [u8]> {
        // The backup keeps what may be gone.
        let may_be_gone = |outcome: Outcome| outcome.is_done() || outcome == Outcome::Unknown;
        let left = self.asked.iter().filter(|asked| !may_be_gone(self.outcomes[asked.index]));
        left.map(|asked| asked.change.redis_key()).chain(self.left_out.iter().copied()).collect()
    }

    /// One outcome a change, in order.
    pub(super) fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }
}

/// What a letter of the script's reply says; `None` when it is none of the script's.
pub(super) fn outcome(letter: u8) -> Option<Outcome> {
    match letter {
        b'D' => Some(Outcome::Done),
        b'C' => Some(Outcome::Changed),
        b'A' => Some(Outcome::Absent),
        _ => None,
    }
}

/// How the script is named to the server.
#[derive(Debug, Clone, Copy)]
pub(super) enum Script<'a> {
    /// By its text.
    Text,
    /// By its digest, for a server that has it.
    Digest(&'a str),
}

/// A call that changes one Redis key of each of some records.
fn call<'a>(action: Action, script: Script<'_>, slots: impl Iterator<Item = Sent<'a>>) -> Cmd {
    let slots: Vec<_> = slots.collect();
    let mut rules = String::with_capacity(slots.len() * 12);
    let mut command = match script {
        Script::Text => redis::cmd("EVAL").arg(scripts::CHANGE_MANY_IF_SAME).to_owned(),
        Script::Digest(digest) => redis::cmd("EVALSHA").arg(digest).to_owned(),
    };
    command.arg(slots.len());
    for slot in &slots {
        command.arg(&slot.seen.redis_key);
    }
    for slot in &slots {
        command.arg(slot.head());
        slot.rule(&mut rules);
    }
    command.arg(rules);
    match action {
        Action::Remove => command.arg("UNLINK"),
        Action::ExpireIn(ttl) => command.arg(ttl),
    };
    command
}

fn can_be_compared(change: &Change) -> bool {
    let is_text = |slot: &SeenSlot| matches!(slot.content, Content::Text { .. });
    is_text(&change.seen.slots[change.slot])
        && change.seen.slots.iter().all(|slot| is_text(slot) || slot.content == Content::Absent)
}

impl<'a> Asked<'a> {
    /// The record's Redis keys as the scripts want them: the one to change first.
    fn slots(&self) -> impl Iterator<Item = Sent<'a>> {
        let (slots, slot) = (&self.change.seen.slots, self.change.slot);
        let checksum = self.saved.as_ref().and_then(|saved| saved.dump.last_chunk::<CHECKSUM>().copied());
        let checksum = checksum.filter(|_| !slots[slot].content.is_whole());
        let target = Sent { seen: &slots[slot], changes: true, checksum };
        let others = (0..slots.len()).filter(move |other| *other != slot);
        std::iter::once(target).chain(others.map(|slot| Sent { seen: &slots[slot], changes: false, checksum: None }))
    }
}

/// What is sent of one Redis key.
struct Sent<'a> {
    seen: &'a SeenSlot,
    changes: bool,
    /// Of a value of which only the beginning was seen: that what was backed up is what is removed.
    checksum: Option<[u8; CHECKSUM]>,
}

impl Sent<'_> {
    /// True when it is in the slot of the Redis key that changes.
    fn is_with(&self, asked: &Asked<'_>) -> bool {
        slot::of(&self.seen.redis_key) == slot::of(asked.change.redis_key())
    }

    fn head(&self) -> Vec<u8> {
        match &self.seen.content {
            Content::Text { head, .. } => [&head[..], self.checksum.as_ref().map_or(&[][..], |sum| &sum[..])].concat(),
            Content::Absent | Content::Other(_) => Vec::new(),
        }
    }

    fn rule(&self, rules: &mut String) {
        let mark = if self.checksum.is_some() { "d" } else { "" };
        // Writing to a string cannot fail.
        let _ = match (&self.seen.content, self.changes) {
            // A length that was never asked for counts as the head's: a longer value is then not as seen, and stays.
            (Content::Text { head, length }, true) => {
                let length = length.unwrap_or(head.len() as u64);
                rules.push_str(&format!("={length}{mark},"));
                match self.seen.expiry.millis() {
                    Some(left) => write!(rules, "{left};"),
                    None => write!(rules, "-1;"),
                }
            }
            (Content::Text { head, length }, false) => {
                write!(rules, "+{},;", length.unwrap_or(head.len() as u64))
            }
            (Content::Absent | Content::Other(_), _) => write!(rules, "-,;"),
        };
    }
}
