//! Operations: what one run of a command changed, put together from the lines of the audit log.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::entry::{AuditEntry, LEFT_ALONE};
use super::mark::{Begin, EndState, Mark, OperationEnd};
use crate::domain::change::provenance::{Likeness, Provenance};

/// One run of a command, as the audit log tells of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Operation {
    pub(crate) op: String,
    /// When its first change was made, RFC 3339 in UTC.
    pub(crate) at: String,
    pub(crate) who: String,
    pub(crate) sudo_user: Option<String>,
    /// The user's number on the host; `None` if the line that says how the operation began is damaged.
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
    /// `None` if idemctl 0.2 wrote the lines, which do not say it.
    pub(crate) state: Option<OperationState>,
    /// The error that ended it early.
    #[serde(skip)]
    pub(crate) why: Option<String>,
    /// False if nobody knows what the changes left.
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
pub(crate) enum OperationState {
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
    /// Names that two runs have: those of idemctl 0.2 had 32 bits.
    ambiguous: HashSet<String>,
}

impl Operations {
    /// Takes the next line of the log; gives the operation that it belongs to.
    pub(crate) fn add(&mut self, entry: &AuditEntry<'static>) -> &Operation {
        let place = match self.places.get(entry.op.as_ref()) {
            Some(place) => *place,
            // The line that says how the operation began is damaged.
            None => self.push(Operation::from_change(entry)),
        };
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
        if entry.is_of_older_version() && !operation.may_have(entry) {
            self.ambiguous.insert(operation.op.clone());
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
                self.push(Operation::from_beginning(begin));
            }
            Mark::End(OperationEnd { op, state, why, .. }) => {
                let Some(place) = self.places.get(op.as_ref()).copied() else { return };
                self.all[place].state = Some(match state {
                    EndState::Ended => OperationState::Ended,
                    EndState::Interrupted => OperationState::Interrupted,
                });
                self.all[place].why = why.as_ref().map(ToString::to_string);
                self.note_undone(place);
            }
        }
    }

    /// Notes of the operation that this one takes back, if it is an undo that changed something, how far it is taken back.
    fn note_undone(&mut self, place: usize) {
        let undo = &self.all[place];
        let Some(undone) = undo.undoes.as_ref().and_then(|undoes| self.places.get(undoes).copied())
        else {
            return;
        };
        if !undo.is_told {
            return;
        }
        let by = undo.op.clone();
        let is_whole = !undo.is_part && matches!(undo.state, Some(OperationState::Ended) | None);
        let undone = &mut self.all[undone];
        undone.undone_by = is_whole.then(|| by.clone());
        undone.partly_undone_by = (!is_whole).then_some(by);
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
    /// An operation whose beginning the log does not tell, by its first change.
    fn from_change(first: &AuditEntry<'_>) -> Self {
        Self {
            op: first.op.to_string(),
            at: first.at.to_string(),
            who: first.who.to_string(),
            sudo_user: first.sudo_user.as_ref().map(ToString::to_string),
            host: first.host.to_string(),
            server: first.server.to_string(),
            command: first.command.to_string(),
            reason: first.reason.as_ref().map(ToString::to_string),
            backup: first.backup.as_ref().map(ToString::to_string),
            undoes: first.undoes.as_ref().map(ToString::to_string),
            state: (!first.is_of_older_version()).then_some(OperationState::Unended),
            ..Self::default()
        }
    }

    /// An operation of which nothing but its beginning is known yet.
    fn from_beginning(begin: &Begin<'_>) -> Self {
        let backup = begin.backup.as_ref().map(ToString::to_string);
        Self {
            op: begin.op.to_string(),
            at: begin.at.to_string(),
            who: begin.who.to_string(),
            sudo_user: begin.sudo_user.as_ref().map(ToString::to_string),
            uid: begin.uid,
            host: begin.host.to_string(),
            server: begin.server.to_string(),
            command: begin.command.to_string(),
            filters: begin.filters.as_ref().map(ToString::to_string),
            reason: begin.reason.as_ref().map(ToString::to_string),
            backup: backup.clone(),
            undoes: begin.undoes.as_ref().map(ToString::to_string),
            begun_backup: backup,
            state: Some(OperationState::Unended),
            is_part: begin.part,
            places: begin.from.iter().cloned().collect(),
            ..Self::default()
        }
    }

    fn note_place(&mut self, from: Option<&Provenance>) {
        if let Some(from) = from.filter(|from| !self.places.contains(from)) {
            self.places.push(from.clone());
        }
    }

    /// False if it ended without a change.
    fn may_have_changed(&self) -> bool {
        self.is_told || self.state == Some(OperationState::Unended)
    }

    /// True if a line of this name may be one of this run. An undo names the backups of both what it reads and what it
    /// removes.
    fn may_have(&self, entry: &AuditEntry<'_>) -> bool {
        let has_same_backup =
            self.command == "undo" || self.backup.as_deref() == entry.backup.as_deref();
        let is_same_run =
            self.who == entry.who && self.host == entry.host && self.command == entry.command;
        let has_same_words = self.reason.as_deref() == entry.reason.as_deref();
        let undoes_same = self.undoes.as_deref() == entry.undoes.as_deref();
        is_same_run && has_same_words && has_same_backup && undoes_same
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "000000000000000a";
    const B: &str = "000000000000000b";

    fn entry(op: &'static str, at: &'static str, command: &'static str) -> AuditEntry<'static> {
        let text = format!(
            r#"{{"at":"{at}","who":"ana","host":"h","server":"s","command":"{command}","schema":"x","key":"k","redis_key":"r","what":"purged","reason":null,"backup":null,"op":"{op}"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn begin(op: &str) -> Mark<'static> {
        let text = format!(
            r#"{{"mark":"begin","op":"{op}","at":"1","who":"ana","host":"h","server":"s","command":"purge","reason":null,"backup":null}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn end(op: &'static str) -> Mark<'static> {
        Mark::End(OperationEnd { op: op.into(), at: "9".into(), state: EndState::Ended, why: None })
    }

    #[test]
    fn lines_of_two_runs_that_came_in_turn_are_two_operations() {
        let mut all = Operations::default();
        for op in [A, B, A, A, B] {
            all.add(&entry(op, "2026-01-01T00:00:00Z", "purge"));
        }
        let found: Vec<_> = all.into_all().into_iter().map(|of| (of.op, of.redis_keys)).collect();
        assert_eq!(found, [(A.to_owned(), 3), (B.to_owned(), 2)]);
    }

    #[test]
    fn two_runs_with_one_name_are_ambiguous() {
        let mut all = Operations::default();
        all.add_mark(&begin(A));
        all.add(&entry(A, "1", "purge"));
        assert!(!all.is_ambiguous(A));
        all.add_mark(&begin(A));
        assert!(all.is_ambiguous(A));
    }

    #[test]
    fn an_operation_that_was_taken_back_says_by_which() {
        let mut all = Operations::default();
        all.add(&entry(A, "1", "purge"));
        all.add(&AuditEntry { undoes: Some(A.into()), ..entry(B, "2", "undo") });
        assert_eq!(
            (&all.named(A)[0].undone_by, all.named(A)[0].partly_undone_by.as_deref()),
            (&None, Some(B))
        );
        all.add_mark(&end(B));
        assert_eq!(
            (all.named(A)[0].undone_by.as_deref(), &all.named(A)[0].partly_undone_by),
            (Some(B), &None)
        );
        assert_eq!(all.last().map(|last| last.op.as_str()), Some(B));
    }

    /// The rule: a name of idemctl 0.2 has 32 bits, so that two runs may have it, and no line says that one begins.
    #[test]
    fn two_runs_of_an_older_version_with_one_name_are_ambiguous() {
        let mut all = Operations::default();
        let backed_up = |file| AuditEntry { backup: Some(file), ..entry("0000000a", "1", "purge") };
        all.add(&backed_up("one".into()));
        all.add(&backed_up("one".into()));
        assert!(!all.is_ambiguous("0000000a"));
        assert_eq!(all.named("0000000a")[0].state, None);
        all.add(&backed_up("two".into()));
        assert!(all.is_ambiguous("0000000a"));
    }
}
