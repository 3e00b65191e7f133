//! `idemctl force-unlock KEY…`: one table, one question, one backup.

use anyhow::Result;

use super::Args;
use crate::args::Output;
use crate::change::named_locks::{Deed, NamedLocks, Verdict};
use crate::change::write_report;
use crate::context::Context;
use crate::domain::change::unlock;
use crate::domain::record::{Expiry, Given, Record};
use crate::domain::schema::{Catalog, State};
use crate::exit::{Exit, Stop};
use crate::render::{escape, words};
use crate::store::Action;
use crate::store::read::records::Lookup;

/// What is done to the locks.
const DEED: Deed =
    Deed { command: "force-unlock", action: Action::Remove, possible: "removable", done: "unlocked", removes: true };

pub(super) async fn unlock(
    context: &mut Context,
    args: &Args,
    catalog: &Catalog,
    lookup: &Lookup,
    keys: Vec<Given>,
) -> Result<Exit> {
    if args.expect.is_some() {
        return Err(Stop::usage("--expect is of one lock, and several keys are named").into());
    }
    let mut locks = NamedLocks::find(context, catalog, lookup, keys, DEED, judge).await?;
    if args.output == Output::Table {
        locks.show(context)?;
    }
    let possible = locks.possible();
    if possible > 0 {
        context.ui.status(
            "The next request with each key whose lock goes executes the operation, unless a result is stored.",
        );
        context.ui.status("Where a worker still runs, it executes twice.");
    }
    let mut ended = Ok(());
    if args.change.confirmed.dry_run {
        context.ui.status("dry run: nothing was changed");
    } else if possible > 0 {
        let them = if possible == 1 { "this lock".to_owned() } else { format!("these {possible} locks") };
        ended = locks.change(context, &args.change, &format!("Remove {them}?")).await;
    }
    // What was changed is told even where an error followed; without leave nothing was tried.
    if ended.is_ok() || locks.was_tried() {
        write_report(context, args.output, &locks.report())?;
    }
    ended?;
    locks.exit()
}

fn judge(record: &Record) -> Verdict {
    match unlock::removable(record) {
        Ok(role) => Verdict::Possible(role, shown(record, role)),
        Err(why) => Verdict::Refused(why),
    }
}

/// How long the lock is held and lives, and whose it is.
fn shown(record: &Record, role: usize) -> String {
    let left = match record.seen.keys[role].expiry {
        Expiry::Never => "no expiry".to_owned(),
        expiry => format!("{} left", words::expiry(expiry)),
    };
    let what = match record.state {
        State::Completed => "beside a result, ".to_owned(),
        State::Unreadable => "unreadable, ".to_owned(),
        _ => record.age.map(|age| format!("held {}, ", words::short_age(age))).unwrap_or_default(),
    };
    let owner = record.owner().map(|owner| format!(", owner {}", escape::text(owner))).unwrap_or_default();
    format!("{what}{left}{owner}")
}
