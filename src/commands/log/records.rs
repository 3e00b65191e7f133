//! `idemctl log --records`: one line for each Redis key that was changed.

use std::collections::VecDeque;

use anyhow::Result;

use super::reading::{LogFilter, each_change, read, say_count};
use crate::exit::Exit;
use crate::render::audit;
use crate::session::Session;

pub(super) fn run(session: &mut Session, filter: &LogFilter) -> Result<Exit> {
    let (folder, operations) = read(session)?;
    let now = session.now();
    // There may be many, so only the newest entries are kept.
    let mut newest = VecDeque::new();
    let mut matching = 0;
    for operation in operations.all() {
        each_change(session, &folder, operation, |entry| {
            if filter.is_of(&entry) && filter.is_recent(&entry.at, now) {
                matching += 1;
                newest.push_back(entry);
                if newest.len() > filter.limit() {
                    newest.pop_front();
                }
            }
        })?;
    }
    let newest: Vec<_> = newest.into();
    session.show(filter.output, "changes", &newest, |view| audit::table(view, &newest))?;
    say_count(session, "change", newest.len(), matching);
    Ok(Exit::Done)
}
