//! Changing a batch of records: the Redis keys of a record one after the other, each compared with the record as the change
//! before left it.

use std::collections::VecDeque;

use anyhow::Result;

use super::rule::Chosen;
use crate::change::Journal;
use crate::context::Context;
use crate::domain::change::outcome::Account;
use crate::domain::record::{Content, Record};
use crate::store::backup::About;
use crate::store::{Action, Change, Outcome, Writer};

pub(super) struct Removal {
    action: Action,
    steps: VecDeque<Change>,
    any_done: bool,
}

impl Removal {
    /// The changes that make up `action` on a record.
    pub(super) fn of<G>(record: Record, chosen: &Chosen<G>, action: Action) -> Self {
        let about = About { schema: record.schema.name.clone(), key: record.key, state: record.state.as_str() };
        let is_there = |role: &&usize| record.seen.keys[**role].content != Content::Absent;
        let mut there: VecDeque<_> = chosen.roles.iter().filter(is_there).copied().collect();
        let (mut seen, last) = (record.seen, there.pop_back());
        let mut steps = VecDeque::with_capacity(there.len() + 1);
        for role in there {
            steps.push_back(Change { role, seen: seen.clone(), about: about.clone() });
            seen.keys[role].content = Content::Absent;
        }
        steps.extend(last.map(|role| Change { role, seen, about }));
        Self { action, steps, any_done: false }
    }

    /// Counts what became of a change; gives the record back where another change of it follows.
    fn went(mut self, outcome: Outcome, account: &mut Account) -> Option<Self> {
        self.any_done |= outcome.is_done();
        account.read_back += u64::from(outcome == Outcome::FoundDone);
        match outcome {
            Outcome::Changed => account.changed += 1,
            Outcome::Unknown => account.unknown += 1,
            Outcome::Refused => {}
            Outcome::Done | Outcome::FoundDone | Outcome::Absent if !self.steps.is_empty() => return Some(self),
            _ if self.any_done => account.done += 1,
            _ => account.gone += 1,
        }
        None
    }
}

/// By what the changes of a batch are made, and how they are noted.
pub(super) struct Changes<'a> {
    pub journal: &'a mut Journal,
    pub writer: &'a Writer,
    /// What the audit log calls a change.
    pub what: &'static str,
}

/// Makes the changes of a batch, and counts in the account what became of each record.
///
/// # Errors
/// As every change; what was done before is in the account.
pub(super) async fn change(
    context: &Context,
    by: Changes<'_>,
    mut batch: Vec<Removal>,
    account: &mut Account,
) -> Result<()> {
    batch.sort_by_key(|removal| match removal.action {
        Action::Remove => 0,
        Action::ExpireIn(ttl) | Action::ExpireAt(ttl) => ttl.max(1),
    });
    while let Some(first) = batch.first() {
        let action = first.action;
        let same = batch.iter().take_while(|removal| removal.action == action).count();
        let rest = batch.split_off(same);
        let mut left = std::mem::replace(&mut batch, rest);
        while !left.is_empty() {
            let changes: Vec<_> = left.iter_mut().filter_map(|removal| removal.steps.pop_front()).collect();
            let (outcomes, ended) = by.journal.apply(by.writer, &changes, action, by.what, context.now()).await;
            left = left
                .into_iter()
                .zip(outcomes)
                .filter_map(|(removal, outcome)| removal.went(outcome, account))
                .collect();
            ended?;
        }
    }
    Ok(())
}
