//! Operations: what one run of a command changed, put together from the lines of the audit log.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::entry::{Entry, LEFT_ALONE};
use super::mark::{Begin, End, EndState, Mark};
use crate::domain::change::provenance::{Likeness, Provenance};

/// The letters of an operation's name.
const NAME: usize = 8;

/// One run of a command, as the audit log tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Operation {
    pub(crate) op: String,
    /// When its first change was made, RFC 3339 in UTC.
    pub(crate) at: String,
    pub(crate) who: String,
    pub(crate) sudo_user: Option<String>,
    /// The user's number on the host; `None` where the idemctl that wrote the lines did not say.
    pub(crate) uid: Option<u32>,
    pub(crate) host: String,
    pub(crate) server: String,
    pub(crate) command: String,
    /// The options by which it chose records, quoted for a shell.
    pub(crate) filters: Option<String>,
    /// How many Redis keys were changed.
    pub(crate) redis_keys: u64,
    /// How many of them nobody knows to be changed.
    pub(crate) unknown: u64,
    pub(crate) reason: Option<String>,
    pub(crate) backup: Option<String>,
    /// The operation that this one takes back.
    pub(crate) undoes: Option<String>,
    /// The last operation that took this one back.
    pub(crate) undone_by: Option<String>,
    /// The last operation that took only part of this one back.
    pub(crate) partly_undone_by: Option<String>,
    /// `None` where the idemctl that wrote the lines did not say.
    pub(crate) state: Option<State>,
    /// False where the idemctl that wrote the lines did not say what the changes left.
    pub(crate) says_what_was_left: bool,
    /// True if a line tells of a change.
    #[serde(skip)]
    pub(crate) is_told: bool,
    /// The backup that it wrote, or was about to write, before its first change.
    #[serde(skip)]
    pub(crate) begun_backup: Option<String>,
    /// True if it takes back only the records that `--only` named.
    #[serde(skip)]
    pub(crate) is_part: bool,
    /// Where it changed something, each place once; empty where the log does not say.
    #[serde(skip)]
    pub(crate) places: Vec<Provenance>,
}

/// Whether an operation came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Ended,
    /// An error or a signal ended it before it had come to everything.
    Interrupted,
    /// Nothing tells of its end: it was killed, or still runs.
    Unended,
}

/// The operations of a log, the oldest first, put together line by line.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    all: Vec<Operation>,
    places: HashMap<String, usize>,
    /// Names that two runs have: those of older releases had 32 bits.
    ambiguous: HashSet<String>,
    /// The last line without a name of its operation, and that operation's place.
    before: Option<(Entry<'static>, usize)>,
}

impl Operations {
    /// Takes the next line of the log; gives the operation that it belongs to.
    pub(crate) fn add(&mut self, entry: &Entry<'static>) -> &Operation {
        let known = match (&entry.op, &self.before) {
            (Some(op), _) => self.places.get(op.as_ref()).copied(),
            (None, Some((before, place))) => before.is_like(entry).then_some(*place),
            (None, None) => None,
        };
        let place = known.unwrap_or_else(|| self.push(Operation::of(entry)));
        let operation = &mut self.all[place];
        if !operation.is_told {
            operation.is_told = true;
            // An undo names the backup of what comes back, too.
            operation.backup = entry.backup.as_ref().map(ToString::to_string);
        }
        operation.note_place(entry.from.as_ref());
        operation.redis_keys += u64::from(entry.what != LEFT_ALONE);
        operation.unknown += u64::from(entry.is_unknown());
        operation.says_what_was_left |= entry.after.is_some();
        if !operation.may_have(entry) {
            self.ambiguous.insert(operation.op.clone());
        }
        if entry.op.is_none() {
            self.before = Some((entry.clone(), place));
        }
        self.note_undone(place);
        &self.all[place]
    }

    /// Takes the next line of the log that tells of no change.
    pub(crate) fn add_mark(&mut self, mark: &Mark<'_>) {
        match mark {
            Mark::Begin(begin) if self.places.contains_key(begin.op.as_ref()) => {
                self.ambiguous.insert(begin.op.to_string());
            }
            Mark::Begin(begin) => {
                self.push(Operation::begun(begin));
            }
            Mark::End(End { op, state, .. }) => {
                let Some(place) = self.places.get(op.as_ref()).copied() else { return };
                self.all[place].state = Some(match state {
                    EndState::Ended => State::Ended,
                    EndState::Interrupted => State::Interrupted,
                });
                self.note_undone(place);
            }
        }
    }

    /// Notes of the operation that this one takes back, if it is an undo that changed something, how far it is taken back.
    fn note_undone(&mut self, place: usize) {
        let Operation { op, undoes, state, is_part, is_told, .. } = &self.all[place];
        let undone = undoes.as_ref().and_then(|undoes| self.places.get(undoes).copied());
        let (Some(undone), true) = (undone, *is_told) else { return };
        let (by, is_whole) = (op.clone(), !is_part && matches!(state, None | Some(State::Ended)));
        let undone = &mut self.all[undone];
        (undone.undone_by, undone.partly_undone_by) = if is_whole { (Some(by), None) } else { (None, Some(by)) };
    }

    fn push(&mut self, operation: Operation) -> usize {
        let place = self.all.len();
        self.places.insert(operation.op.clone(), place);
        self.all.push(operation);
        place
    }

    pub(crate) fn last(&self) -> Option<&Operation> {
        self.all().last()
    }

    /// Those that changed something, or may have, the oldest first.
    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = &Operation> {
        self.all.iter().filter(|operation| operation.may_have_changed())
    }

    /// The operations whose names begin so.
    pub(crate) fn named(&self, beginning: &str) -> Vec<&Operation> {
        self.all().filter(|operation| operation.op.starts_with(beginning)).collect()
    }

    /// True if two runs have this name.
    pub(crate) fn is_ambiguous(&self, op: &str) -> bool {
        self.ambiguous.contains(op)
    }

    pub(crate) fn into_all(mut self) -> Vec<Operation> {
        self.all.retain(Operation::may_have_changed);
        self.all
    }
}

impl Operation {
    fn of(first: &Entry<'_>) -> Self {
        let text = |text: &Option<std::borrow::Cow<'_, str>>| text.as_ref().map(ToString::to_string);
        Self {
            op: first.op.as_ref().map_or_else(|| named_by_its_first_line(first), ToString::to_string),
            at: first.at.to_string(),
            who: first.who.to_string(),
            sudo_user: text(&first.sudo_user),
            uid: None,
            host: first.host.to_string(),
            server: first.server.to_string(),
            command: first.command.to_string(),
            filters: None,
            redis_keys: 0,
            unknown: 0,
            reason: text(&first.reason),
            backup: text(&first.backup),
            undoes: text(&first.undoes),
            undone_by: None,
            partly_undone_by: None,
            state: None,
            says_what_was_left: false,
            is_told: false,
            begun_backup: None,
            is_part: false,
            places: Vec::new(),
        }
    }

    /// An operation of which nothing but its beginning is known yet.
    fn begun(begin: &Begin<'_>) -> Self {
        let text = |text: &Option<std::borrow::Cow<'_, str>>| text.as_ref().map(ToString::to_string);
        Self {
            op: begin.op.to_string(),
            at: begin.at.to_string(),
            who: begin.who.to_string(),
            sudo_user: text(&begin.sudo_user),
            uid: begin.uid,
            host: begin.host.to_string(),
            server: begin.server.to_string(),
            command: begin.command.to_string(),
            filters: text(&begin.filters),
            redis_keys: 0,
            unknown: 0,
            reason: text(&begin.reason),
            backup: text(&begin.backup),
            undoes: text(&begin.undoes),
            undone_by: None,
            partly_undone_by: None,
            state: Some(State::Unended),
            says_what_was_left: false,
            is_told: false,
            begun_backup: text(&begin.backup),
            is_part: begin.part,
            places: begin.from.iter().cloned().collect(),
        }
    }

    fn note_place(&mut self, from: Option<&Provenance>) {
        if let Some(from) = from.filter(|from| !self.places.contains(from)) {
            self.places.push(from.clone());
        }
    }

    /// False if it ended without a change.
    fn may_have_changed(&self) -> bool {
        self.is_told || self.state == Some(State::Unended)
    }

    /// True if it changed something on the server of this place and name.
    pub(crate) fn was_on(&self, here: &Provenance, server: &str) -> bool {
        let is_here = |place: &Provenance| place.likeness(here) != Likeness::Elsewhere;
        if self.places.is_empty() { self.server == server } else { self.places.iter().any(is_here) }
    }

    /// Its name for people.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.command, self.op)
    }

    /// True if a line of this name may be one of this run. An undo names the backups of both what it reads and what it removes.
    fn may_have(&self, entry: &Entry<'_>) -> bool {
        let same_backup = self.command == "undo" || self.backup.as_deref() == entry.backup.as_deref();
        let same_run = self.who == entry.who && self.host == entry.host && self.command == entry.command;
        let same_words = self.reason.as_deref() == entry.reason.as_deref();
        same_run && same_words && same_backup && self.undoes.as_deref() == entry.undoes.as_deref()
    }
}

/// A name for an operation that has none in the log: the same at each reading.
fn named_by_its_first_line(first: &Entry<'_>) -> String {
    let mut hash = Sha256::new();
    for part in [&first.at, &first.host, &first.server, &first.command] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update(&first.redis_key);
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>()[..NAME].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(op: Option<&'static str>, at: &'static str, command: &'static str) -> Entry<'static> {
        let text = format!(
            r#"{{"at":"{at}","who":"ana","host":"h","server":"s","command":"{command}","schema":"x","key":"k","redis_key":"r","what":"purged","reason":null,"backup":null}}"#
        );
        let entry: Entry<'static> = serde_json::from_str(&text).unwrap();
        Entry { op: op.map(Into::into), ..entry }
    }

    #[test]
    fn lines_of_two_runs_that_came_in_turn_are_two_operations() {
        let mut all = Operations::default();
        for op in ["a", "b", "a", "a", "b"] {
            all.add(&entry(Some(op), "2026-01-01T00:00:00Z", "purge"));
        }
        let found: Vec<_> = all.into_all().into_iter().map(|of| (of.op, of.redis_keys)).collect();
        assert_eq!(found, [("a".to_owned(), 3), ("b".to_owned(), 2)]);
    }

    #[test]
    fn lines_of_the_first_releases_are_put_together_by_what_they_say() {
        let mut all = Operations::default();
        for (at, command) in [("1", "purge"), ("1", "purge"), ("2", "purge"), ("2", "sweep")] {
            all.add(&entry(None, at, command));
        }
        let backed_up = |at| Entry { backup: Some("b".into()), ..entry(None, at, "purge") };
        all.add(&backed_up("3"));
        all.add(&backed_up("4"));
        let names: Vec<_> = all.all.iter().map(|of| of.op.clone()).collect();
        let counts: Vec<_> = all.all.iter().map(|of| of.redis_keys).collect();
        assert_eq!(counts, [2, 1, 1, 2]);
        assert!(names.iter().all(|name| name.len() == NAME && all.named(name).len() == 1), "{names:?}");
    }

    #[test]
    fn two_runs_with_one_name_are_ambiguous() {
        let mut all = Operations::default();
        let backed_up = |file| Entry { backup: Some(file), ..entry(Some("a"), "1", "purge") };
        all.add(&backed_up("one".into()));
        all.add(&backed_up("one".into()));
        assert!(!all.is_ambiguous("a"));
        all.add(&backed_up("two".into()));
        assert!(all.is_ambiguous("a"));
    }

    #[test]
    fn an_operation_that_was_taken_back_says_by_which() {
        let mut all = Operations::default();
        all.add(&entry(Some("a"), "1", "purge"));
        all.add(&Entry { undoes: Some("a".into()), ..entry(Some("b"), "2", "undo") });
        assert_eq!(all.named("a")[0].undone_by.as_deref(), Some("b"));
        assert_eq!(all.last().map(|last| last.op.as_str()), Some("b"));
    }
}
