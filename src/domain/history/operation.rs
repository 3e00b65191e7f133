//! Operations: the runs of commands that the audit log records.

use std::collections::HashMap;

use serde::Serialize;

use super::mark::{Begin, OperationEnd, OperationState};
use super::totals::Totals;
use crate::domain::change::provenance::{Likeness, Provenance};

/// One run of a command, as the audit log records it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Operation {
    pub(crate) op: String,
    /// The time of its beginning, RFC 3339 in UTC.
    pub(crate) at: String,
    pub(crate) who: String,
    pub(crate) sudo_user: Option<String>,
    /// The numeric user ID.
    pub(crate) uid: Option<u32>,
    pub(crate) host: String,
    pub(crate) server: String,
    pub(crate) command: String,
    /// The options that selected records, quoted for a shell.
    pub(crate) filters: Option<String>,
    pub(crate) reason: Option<String>,
    /// Who planned the changes, as `USER@HOST`, if a plan was applied.
    pub(crate) planner: Option<String>,
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
    /// The backup that the operation writes, as announced before its first change.
    #[serde(skip)]
    pub(crate) begun_backup: Option<String>,
    /// True if it undoes only the records that `--only` named.
    #[serde(skip)]
    pub(crate) is_partial: bool,
}

/// The operations of a log, the oldest first, collected line by line.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    all: Vec<Operation>,
    places: HashMap<String, usize>,
}

impl Operations {
    /// Adds the beginning of an operation.
    pub(crate) fn begin(&mut self, begin: Begin) {
        self.places.insert(begin.op.clone(), self.all.len());
        self.all.push(Operation::from_beginning(begin));
    }

    /// True if the operation has begun.
    pub(crate) fn has_begun(&self, op: &str) -> bool {
        self.places.contains_key(op)
    }

    /// Adds the end of an operation.
    pub(crate) fn end(&mut self, end: OperationEnd) {
        let Some(place) = self.places.get(&end.op) else { return };
        let operation = &mut self.all[*place];
        operation.state = end.state;
        operation.why = end.why;
        operation.totals = end.totals;
        operation.sha256 = Some(end.sha256);
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

    /// The operations that changed something, or may have, the oldest first.
    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = &Operation> {
        self.all.iter().filter(|operation| operation.may_have_changed())
    }

    /// The same operations as [`Operations::all`], by value.
    pub(crate) fn into_all(mut self) -> Vec<Operation> {
        // Without changes there is nothing to show and nothing to undo.
        self.all.retain(Operation::may_have_changed);
        self.all
    }
}

impl Operation {
    /// An operation of which only the beginning is known yet.
    fn from_beginning(begin: Begin) -> Self {
        let places = begin.from.into_iter().collect();
        Self {
            op: begin.op,
            at: begin.at,
            who: begin.who,
            sudo_user: begin.sudo_user,
            uid: begin.uid,
            host: begin.host,
            server: begin.server,
            command: begin.command,
            filters: begin.filters,
            reason: begin.reason,
            planner: begin.planner,
            undoes: begin.undoes,
            totals: Totals { backup: begin.backup.clone(), places, ..Totals::default() },
            begun_backup: begin.backup,
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

    /// The operation as a phrase for people: `purge 1f2e…`.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.command, self.op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "000000000000000a";
    const B: &str = "000000000000000b";

    fn begin(op: &str, undoes: Option<&str>) -> Begin {
        Begin { op: op.to_owned(), undoes: undoes.map(str::to_owned), ..Begin::default() }
    }

    fn end(op: &str) -> OperationEnd {
        OperationEnd {
            op: op.to_owned(),
            at: "9".to_owned(),
            state: OperationState::Ended,
            why: None,
            totals: Totals { is_told: true, ..Totals::default() },
            sha256: String::new(),
        }
    }

    #[test]
    fn an_undone_operation_names_its_undo() {
        let mut all = Operations::default();
        all.begin(begin(A, None));
        all.end(end(A));
        all.begin(begin(B, Some(A)));
        all.unended().for_each(|undo| undo.totals.is_told = true);
        all.note_undone();
        assert_eq!(
            (&all.all[0].undone_by, all.all[0].partly_undone_by.as_deref()),
            (&None, Some(B))
        );
        all.end(end(B));
        all.note_undone();
        assert_eq!(
            (all.all[0].undone_by.as_deref(), &all.all[0].partly_undone_by),
            (Some(B), &None)
        );
        assert_eq!(all.all().last().map(|last| last.op.as_str()), Some(B));
    }
}
