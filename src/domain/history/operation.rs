//! Operations: the runs of commands that the audit log records.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;

use super::entry::AuditEntry;
use super::mark::{Begin, EndState, Mark, OperationEnd};
use super::totals::Totals;
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
    pub(crate) reason: Option<String>,
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
    /// What its changes add up to; of an operation without an end, those in its details.
    #[serde(skip)]
    pub(crate) totals: Totals,
    /// The SHA-256 of its details; `None` if it did not end.
    #[serde(skip)]
    pub(crate) sha256: Option<String>,
    /// The backup that the operation announced before its first change.
    #[serde(skip)]
    pub(crate) begun_backup: Option<String>,
    /// True if it undoes only the records that `--only` named.
    #[serde(skip)]
    pub(crate) is_partial: bool,
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
}

impl Operations {
    /// Adds the next line of the log. If it is an end whose beginning is damaged, `first_change`
    /// returns the first line of the details, which also names the operation.
    pub(crate) fn add(
        &mut self,
        mark: &Mark<'_>,
        first_change: impl FnOnce(&str) -> Option<AuditEntry<'static>>,
    ) {
        let OperationEnd { op, state, why, totals, sha256, .. } = match mark {
            Mark::Begin(begin) => return self.push(Operation::from_beginning(begin)),
            Mark::End(end) => end,
        };
        if !self.places.contains_key(op.as_ref())
            && let Some(first) = first_change(op)
        {
            self.push(Operation::from_change(&first));
        }
        let Some(place) = self.places.get(op.as_ref()) else { return };
        let operation = &mut self.all[*place];
        operation.state = match state {
            EndState::Ended => OperationState::Ended,
            EndState::Interrupted => OperationState::Interrupted,
        };
        operation.why = owned_text(why.as_ref());
        operation.totals = totals.clone();
        operation.sha256 = Some(sha256.to_string());
    }

    /// The operations without an end, whose totals are those of their details.
    pub(crate) fn unended(&mut self) -> impl Iterator<Item = &mut Operation> {
        self.all.iter_mut().filter(|operation| operation.state == OperationState::Unended)
    }

    /// Records at each operation whether it was undone, and in full, once all are added.
    pub(crate) fn note_undone(&mut self) {
        for place in 0..self.all.len() {
            let undo = &self.all[place];
            let Some(undoes) = &undo.undoes else { continue };
            let Some(undone) = self.places.get(undoes).copied() else { continue };
            if !undo.totals.is_told {
                continue;
            }
            let by = undo.op.clone();
            let has_ended = undo.state == OperationState::Ended;
            // With `--only`, it may still have named every key.
            let took_all_back = undo.totals.unknown == 0
                && undo.totals.redis_keys >= self.all[undone].totals.to_undo;
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
    }

    fn push(&mut self, operation: Operation) {
        self.places.insert(operation.op.clone(), self.all.len());
        self.all.push(operation);
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
        for Operation { totals, .. } in &mut self.all {
            if totals.is_told
                && !totals.needs_backup
                && totals.backup.as_deref().is_some_and(&is_missing)
            {
                totals.backup = None;
            }
        }
    }

    /// The operations whose names begin with this text.
    pub(crate) fn named(&self, beginning: &str) -> Vec<&Operation> {
        self.all().filter(|operation| operation.op.starts_with(beginning)).collect()
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
            undoes: owned_text(first.undoes.as_ref()),
            ..Self::default()
        }
    }

    /// An operation of which only the beginning is known yet.
    fn from_beginning(begin: &Begin<'_>) -> Self {
        let backup = owned_text(begin.backup.as_ref());
        let places = begin.from.iter().cloned().collect();
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
            undoes: owned_text(begin.undoes.as_ref()),
            totals: Totals { backup: backup.clone(), places, ..Totals::default() },
            begun_backup: backup,
            is_partial: begin.part,
            ..Self::default()
        }
    }

    /// False if it ended without a change. An operation without an end may have changed something
    /// before it was killed.
    fn may_have_changed(&self) -> bool {
        self.totals.is_told || self.state == OperationState::Unended
    }

    /// True if it changed something on the server at this place, or with this name if the log
    /// contains no places.
    pub(crate) fn was_on(&self, here: &Provenance, server: &str) -> bool {
        let places = &self.totals.places;
        if places.is_empty() {
            return self.server == server;
        }
        places.iter().any(|place| place.likeness(here) != Likeness::Elsewhere)
    }

    /// The backup that the operation wrote; `None` for a restore, whose backup is that of another
    /// operation.
    pub(crate) fn written_backup(&self) -> Option<&str> {
        self.begun_backup.as_deref().filter(|_| self.command != "restore")
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

    fn begin(op: &str, undoes: &str) -> Mark<'static> {
        let text = format!(
            r#"{{"mark":"begin","op":"{op}","at":"1","who":"ana","host":"h","server":"s","command":"purge","reason":null,"backup":null,"undoes":{undoes}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn end(op: &'static str) -> Mark<'static> {
        Mark::End(OperationEnd {
            op: op.into(),
            at: "9".into(),
            state: EndState::Ended,
            why: None,
            totals: Totals { is_told: true, ..Totals::default() },
            sha256: "".into(),
        })
    }

    #[test]
    fn an_undone_operation_names_its_undo() {
        let mut all = Operations::default();
        let undo = begin(B, &format!("{A:?}"));
        for mark in [begin(A, "null"), end(A), undo] {
            all.add(&mark, |_| None);
        }
        all.unended().for_each(|undo| undo.totals.is_told = true);
        all.note_undone();
        assert_eq!(
            (&all.named(A)[0].undone_by, all.named(A)[0].partly_undone_by.as_deref()),
            (&None, Some(B))
        );
        all.add(&end(B), |_| None);
        all.note_undone();
        assert_eq!(
            (all.named(A)[0].undone_by.as_deref(), &all.named(A)[0].partly_undone_by),
            (Some(B), &None)
        );
        assert_eq!(all.last().map(|last| last.op.as_str()), Some(B));
    }
}
