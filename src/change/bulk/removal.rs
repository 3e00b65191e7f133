//! Changing a batch of records. All Redis keys of a record change in one call; only if a cluster keeps them in two slots,
//! one call follows the other, and a record can be changed partly.

use anyhow::Result;

use super::rule::Planned;
use crate::change::Journal;
use crate::context::Context;
use crate::domain::change::outcome::Account;
use crate::domain::record::{Content, Observation, Record};
use crate::render::escape;
use crate::store::backup::About;
use crate::store::{Change, KeyAction, Outcome, Writer};

/// A record that is to be changed.
pub(super) struct Removal {
    action: KeyAction,
    /// The roles of the Redis keys that change, in this order.
    roles: Vec<usize>,
    seen: Observation,
    about: About,
}

impl Removal {
    /// The change that makes up `action` on a record.
    pub(super) fn new<G>(record: Record, planned: &Planned<G>, action: KeyAction) -> Self {
        let about = About {
            schema: record.schema.name.clone(),
            key: record.key,
            state: record.state.as_str(),
        };
        let is_there = |role: &usize| record.seen.keys[*role].content != Content::Absent;
        let roles = planned.roles.iter().copied().filter(is_there).collect();
        Self { action, roles, seen: record.seen, about }
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
    batch.sort_by_key(|removal| removal.action.ttl());
    while let Some(first) = batch.first() {
        let action = first.action;
        let same = batch.iter().take_while(|removal| removal.action == action).count();
        let rest = batch.split_off(same);
        let same = std::mem::replace(&mut batch, rest);
        change_alike(context, by.writer, by.journal, by.what, action, same, account).await?;
    }
    Ok(())
}

/// Makes one action on records.
async fn change_alike(
    context: &Context,
    writer: &Writer,
    journal: &mut Journal,
    what: &'static str,
    action: KeyAction,
    records: Vec<Removal>,
    account: &mut Account,
) -> Result<()> {
    let mut changes = Vec::with_capacity(records.len());
    // The roles of each call that follows the first one of a record.
    let mut left = Vec::with_capacity(records.len());
    for Removal { mut roles, seen, about, .. } in records {
        // The backup has one entry with all Redis keys as they were together, before the first of them changes.
        let saves = roles.clone();
        left.push(writer.later_calls(&seen, &mut roles).await?);
        changes.push(Change { roles, saves, seen, about });
    }
    let (outcomes, mut ended) = journal.apply(writer, &changes, action, what, context.now()).await;
    for ((mut calls, mut change), outcome) in left.into_iter().zip(changes).zip(outcomes) {
        let mut outcome = outcome;
        while !calls.is_empty() && outcome.is_done() && ended.is_ok() {
            for role in std::mem::take(&mut change.roles) {
                change.seen.keys[role].content = Content::Absent;
            }
            let roles = calls.remove(0);
            change.roles.clone_from(&roles);
            let next = Change {
                roles,
                saves: Vec::new(),
                seen: change.seen.clone(),
                about: change.about.clone(),
            };
            let (outcomes, next_ended) = journal
                .apply(writer, std::slice::from_ref(&next), action, what, context.now())
                .await;
            ended = next_ended;
            if !outcomes
                .first()
                .is_some_and(|outcome| outcome.is_done() || *outcome == Outcome::Absent)
            {
                outcome = Outcome::Partly;
                // The records that follow are counted even if the log cannot be written.
                if let Err(error) = journal.note_left(writer, &next, context.now()).await {
                    ended = ended.and(Err(error));
                }
            }
        }
        if !calls.is_empty() && outcome.is_done() {
            outcome = Outcome::Partly;
        }
        count(account, &change.about, outcome);
    }
    ended
}

/// Counts what became of a record.
fn count(account: &mut Account, about: &About, outcome: Outcome) {
    match outcome {
        Outcome::Done | Outcome::Expires(_) => account.done += 1,
        Outcome::FoundDone => {
            account.done += 1;
            account.read_back += 1;
        }
        Outcome::Partly => {
            account.partly.push(format!("{}/{}", about.schema, escape::text(&about.key)))
        }
        Outcome::Kept => account.left_to_expire += 1,
        Outcome::Changed => account.changed += 1,
        Outcome::Absent => account.gone += 1,
        Outcome::Unknown => account.unknown += 1,
        Outcome::Refused => {}
    }
}
