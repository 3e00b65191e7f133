//! Operations: the changes of one run of a command, collected from the lines of the audit log.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::entry::{AuditEntry, LEFT_ALONE, RECONCILE};
use super::mark::{Begin, EndState, Mark, OperationEnd};
use crate::domain::change::provenance::{Likeness, Provenance};

/// One run of a command, as the audit log records it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Operation {
    pub(crate) op: String,
    /// The time of its beginning or its first change, RFC 3339 in UTC.
    pub(crate) at: String,
    pub(crate) who: String,
    pub(crate) sudo_user: Option<String>,
    /// The numeric user ID; `None` if the line for the operation's beginning is damaged.
    pub(crate) uid: Option<u32>,
    pub(crate) host: String,
    pub(crate) server: String,
    pub(crate) command: String,
    /// The options that selected records, quoted for a shell.
    pub(crate) filters: Option<String>,
    /// The number of changes of Redis keys; `reconcile` may change a key several times.
    pub(crate) redis_keys: u64,
    /// The number of changes with an unknown outcome.
    pub(crate) unknown: u64,
    pub(crate) reason: Option<String>,
    pub(crate) backup: Option<String>,
    /// The operation that this one undoes.
    pub(crate) undoes: Option<String>,
    /// The last operation that undid this one completely.
    pub(crate) undone_by: Option<String>,
    /// The last operation that undid only a part of this one.
    pub(crate) partly_undone_by: Option<String>,
    pub(crate) state: OperationState,
    /// The error that ended it early.
    #[serde(skip)]
    pub(crate) why: Option<String>,
    /// True if at least one line contains the identity of the value after its change.
    pub(crate) says_what_was_left: bool,
    /// True if a line records a change.
    #[serde(skip)]
    pub(crate) is_told: bool,
    /// The number of changes that an undo takes back.
    #[serde(skip)]
    pub(crate) to_undo: u64,
    /// True if a line records more than another expiry, so that an undo may need the backup.
    #[serde(skip)]
    pub(crate) needs_backup: bool,
    /// The backup that the operation announced before its first change.
    #[serde(skip)]
    pub(crate) begun_backup: Option<String>,
    /// True if it undoes only the records that `--only` named.
    #[serde(skip)]
    pub(crate) is_partial: bool,
    /// The places that it changed, each once; empty if the log does not contain them.
    #[serde(skip)]
    pub(crate) places: Vec<Provenance>,
}

/// Whether an operation finished.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OperationState {
    /// The operation finished.
    Ended,
    /// An error or a signal ended the operation early.
    Interrupted,
    /// The log contains no end: the operation was killed, or is still running.
    #[default]
    Unended,
}

/// The operations of a log, the oldest first, collected line by line.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    all: Vec<Operation>,
    places: HashMap<String, usize>,
    /// Names that two runs share.
    ambiguous: HashSet<String>,
}

impl Operations {
    /// Adds the next change of the log, and returns its operation.
    pub(crate) fn add(&mut self, entry: &AuditEntry<'static>) -> &Operation {
        let place = match self.places.get(entry.op.as_ref()) {
            Some(place) => *place,
            // The line for the operation's beginning is damaged or missing.
            None => self.push(Operation::from_change(entry)),
        };
        let operation = &mut self.all[place];
        if !operation.is_told {
            operation.is_told = true;
            // The changes of an undo may name another backup than its beginning: the one that they
            // restore.
            operation.backup = owned_text(entry.backup.as_ref());
        }
        operation.note_place(entry.from.as_ref());
        operation.redis_keys += u64::from(entry.what != LEFT_ALONE);
        operation.unknown += u64::from(entry.is_unknown());
        operation.says_what_was_left |= entry.after.is_some();
        operation.needs_backup |= entry.what != LEFT_ALONE && !entry.changes_only_expiry();
        // An undo leaves the time that `reconcile` gave to locks.
        let is_kept = entry.command == RECONCILE && entry.changes_only_expiry();
        operation.to_undo += u64::from(entry.what != LEFT_ALONE && !is_kept);
        self.note_undone(place);
        &self.all[place]
    }

    /// Adds the next line of the log that marks a beginning or an end.
    pub(crate) fn add_mark(&mut self, mark: &Mark<'_>) {
        match mark {
            // A run writes its beginning once, so a second one belongs to another run.
            Mark::Begin(begin) if self.places.contains_key(begin.op.as_ref()) => {
                self.ambiguous.insert(begin.op.to_string());
            }
            Mark::Begin(begin) => {
                self.push(Operation::from_beginning(begin));
            }
            Mark::End(OperationEnd { op, state, why, .. }) => {
                // The beginning is damaged and there was no change: nothing can be reported about
                // the operation.
                let Some(place) = self.places.get(op.as_ref()).copied() else { return };
                self.all[place].state = match state {
                    EndState::Ended => OperationState::Ended,
                    EndState::Interrupted => OperationState::Interrupted,
                };
                self.all[place].why = owned_text(why.as_ref());
                self.note_undone(place);
            }
        }
    }

    /// If this operation is an undo that changed something, records at the undone operation whether
    /// it was undone in full.
    fn note_undone(&mut self, place: usize) {
        let undo = &self.all[place];
        let Some(undoes) = &undo.undoes else { return };
        let Some(undone) = self.places.get(undoes).copied() else { return };
        if !undo.is_told {
            return;
        }
        let by = undo.op.clone();
        let has_ended = undo.state == OperationState::Ended;
        // With `--only`, it may still have named every key.
        let took_all_back = undo.unknown == 0 && undo.redis_keys >= self.all[undone].to_undo;
        let is_whole = has_ended && (!undo.is_partial || took_all_back);
        let undone = &mut self.all[undone];
        // Only the last undo counts, so one of the two is cleared.
        if is_whole {
            undone.undone_by = Some(by);
            undone.partly_undone_by = None;
        } else {
            undone.undone_by = None;
            undone.partly_undone_by = Some(by);
        }
    }

    fn push(&mut self, operation: Operation) -> usize {
        let place = self.all.len();
        self.places.insert(operation.op.clone(), place);
        self.all.push(operation);
        place
    }

    /// The newest operation that changed something, or may have.
    pub(crate) fn last(&self) -> Option<&Operation> {
        self.all().last()
    }

    /// The operations that changed something, or may have, the oldest first.
    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = &Operation> {
        self.all.iter().filter(|operation| operation.may_have_changed())
    }

    /// Removes the backup of each operation that needs none and whose file is missing.
    pub(crate) fn forget_backups(&mut self, is_missing: impl Fn(&str) -> bool) {
        for operation in &mut self.all {
            if operation.is_told
                && !operation.needs_backup
                && operation.backup.as_deref().is_some_and(&is_missing)
            {
                operation.backup = None;
            }
        }
    }

    /// The operations whose names begin with this text.
    pub(crate) fn named(&self, beginning: &str) -> Vec<&Operation> {
        self.all().filter(|operation| operation.op.starts_with(beginning)).collect()
    }

    /// True if two runs share this name.
    pub(crate) fn is_ambiguous(&self, op: &str) -> bool {
        self.ambiguous.contains(op)
    }

    /// The same operations as [`Operations::all`], by value.
    pub(crate) fn into_all(mut self) -> Vec<Operation> {
        // Without changes there is nothing to show and nothing to undo.
        self.all.retain(Operation::may_have_changed);
        self.all
    }
}

impl Operation {
    /// An operation without a recorded beginning, from its first change.
    fn from_change(first: &AuditEntry<'_>) -> Self {
        Self {
            op: first.op.to_string(),
            at: first.at.to_string(),
            who: first.who.to_string(),
            sudo_user: owned_text(first.sudo_user.as_ref()),
            host: first.host.to_string(),
            server: first.server.to_string(),
            command: first.command.to_string(),
            reason: owned_text(first.reason.as_ref()),
            backup: owned_text(first.backup.as_ref()),
            undoes: owned_text(first.undoes.as_ref()),
            ..Self::default()
        }
    }

    /// An operation of which only the beginning is known yet.
    fn from_beginning(begin: &Begin<'_>) -> Self {
        let backup = owned_text(begin.backup.as_ref());
        Self {
            op: begin.op.to_string(),
            at: begin.at.to_string(),
            who: begin.who.to_string(),
            sudo_user: owned_text(begin.sudo_user.as_ref()),
            uid: begin.uid,
            host: begin.host.to_string(),
            server: begin.server.to_string(),
            command: begin.command.to_string(),
            filters: owned_text(begin.filters.as_ref()),
            reason: owned_text(begin.reason.as_ref()),
            backup: backup.clone(),
            undoes: owned_text(begin.undoes.as_ref()),
            begun_backup: backup,
            is_partial: begin.part,
            places: begin.from.iter().cloned().collect(),
            ..Self::default()
        }
    }

    fn note_place(&mut self, from: Option<&Provenance>) {
        if let Some(from) = from
            && !self.places.contains(from)
        {
            self.places.push(from.clone());
        }
    }

    /// False if it ended without a change. An operation without an end may have changed something
    /// before it was killed.
    fn may_have_changed(&self) -> bool {
        self.is_told || self.state == OperationState::Unended
    }

    /// True if it changed something on the server at this place, or with this name if the log
    /// contains no places.
    pub(crate) fn was_on(&self, here: &Provenance, server: &str) -> bool {
        if self.places.is_empty() {
            return self.server == server;
        }
        self.places.iter().any(|place| place.likeness(here) != Likeness::Elsewhere)
    }

    /// The operation as a phrase for people: `purge 1f2e…`.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.command, self.op)
    }
}

/// A copy of a text that a line of the log may contain.
fn owned_text(text: Option<&Cow<'_, str>>) -> Option<String> {
    text.map(ToString::to_string)
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
    fn interleaved_lines_of_two_runs_are_two_operations() {
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
    fn an_undone_operation_names_its_undo() {
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
}
