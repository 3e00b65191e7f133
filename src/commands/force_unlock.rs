//! `idemctl force-unlock`: removes locks that no worker will release.

use anyhow::Result;
use clap::Args as ClapArgs;
use serde_json::json;

use crate::args::{ChangeArgs, KeysArgs, Output, PlanArgs, SchemaArgs, ThresholdArgs};
use crate::change::named_locks::{self, LockAction, LockDecision, NamedLocks};
use crate::change::removal_plan::PlanWriter;
use crate::change::{DRY_RUN, in_backup, print_way_back, show_record, write_report};
use crate::domain::change::expect::{self, Expectation};
use crate::domain::change::unlock;
use crate::domain::record::{Record, TimeLeft};
use crate::domain::schema::State;
use crate::exit::{CommandError, Exit};
use crate::render::invocation::name_of;
use crate::render::{document, escape, record_json, words};
use crate::session::Session;
use crate::session::key_list::KeyList;
use crate::store::read::lookup::Lookup;
use crate::store::{KeyAction, ReadLimit};

/// Remove a lock that its worker will never release
///
/// Shows the record, which clients are affected, and what happens if the old worker is still
/// running. After you confirm, backs the lock up and removes it. A lock whose bytes or expiry have
/// changed since then was renewed or re-acquired, and stays. A stored result is never removed.
/// Several keys are shown in one table, with one question.
///
/// Exit status 1 if there is no record, 8 if it changed since it was shown, 3 if some of several
/// keys were left alone.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    keys: KeysArgs,

    /// Remove the lock of the one KEY only if it has this owner or TOKEN
    ///
    /// `--dry-run` prints the TOKEN.
    ///
    /// An owner is the weaker check, because it matches every lock of this owner.
    #[arg(long, value_name = "TOKEN|OWNER", value_parser = Expectation::parse, conflicts_with = "plan")]
    expect: Option<Expectation>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    change_args: ChangeArgs,

    #[command(flatten)]
    plan: PlanArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

const UNLOCK: LockAction = LockAction {
    command: "force-unlock",
    action: KeyAction::Remove,
    possible: "removable",
    done: "unlocked",
};

pub async fn run(session: &mut Session, mut args: Args) -> Result<Exit> {
    let plan =
        PlanWriter::open(session, &args.change_args, &args.plan, "force-unlock", false).await?;
    args.change_args.confirm_args.dry_run |= plan.is_some();
    let mut keys = KeyList::of_few(&args.keys, session)?;
    let catalog = session.catalog_to_change(&args.schemas, &mut keys)?;
    let keys = keys.all(named_locks::MOST)?;
    let is_one = keys.len() == 1;
    if args.expect.is_some() && !is_one {
        return Err(
            CommandError::usage("--expect needs exactly one key, but several are given").into()
        );
    }
    let lookup = Lookup {
        first_read: ReadLimit::Whole,
        thresholds: args.thresholds.thresholds(),
        includes_less_specific_results: false,
        keeps_unrecognised: false,
    };
    let locks = NamedLocks::find(session, &catalog, &lookup, keys, UNLOCK, decide).await?;
    if let Some(plan) = plan {
        locks.plan(session, plan).await?;
    }
    if is_one {
        unlock_one(session, &args, locks).await
    } else {
        unlock_several(session, &args, locks).await
    }
}

/// Unlocks the only key that was named, and shows its whole record.
async fn unlock_one(session: &mut Session, args: &Args, mut locks: NamedLocks) -> Result<Exit> {
    let Some(lock) = locks.first_possible() else { return locks.exit() };
    let record = lock.record.clone();
    let key_index = lock.key_index;
    if args.output == Output::Text {
        explain(session, &record, key_index)?;
    }
    // The record is shown first, so that the operator sees which lock exists instead.
    if let Some(expected) = &args.expect
        && !expected.holds(&record)
    {
        return Err(CommandError::new(
            Exit::Changed,
            "the lock does not match --expect; nothing was done",
        )
        .into());
    }
    if args.change_args.confirm_args.dry_run {
        write_record(session, args.output, &record, "dry-run", None)?;
        if args.output == Output::Text {
            // The line needs --confirm with the context that protects the server, even if that
            // context has the server under another address.
            session.learn_protection().await;
            print_for_scripts(session, &record, args.change_args.confirm_args.reason.as_deref());
        }
        session.ui.status(DRY_RUN);
        return Ok(Exit::Done);
    }
    let ended = locks.change(session, &args.change_args, "Remove this lock?").await;
    // A lock that was removed is reported even if an error followed.
    if locks.done() > 0 {
        write_record(session, args.output, &record, "unlocked", locks.backup())?;
        let backup = in_backup(locks.backup());
        session.ui.status(&format!("Unlocked {}{backup}", escape::key(&record.key)));
        read_back(session, &record, key_index).await;
        print_way_back(session);
    }
    ended?;
    locks.exit()
}

/// Unlocks several keys, which are shown in one table.
async fn unlock_several(session: &mut Session, args: &Args, mut locks: NamedLocks) -> Result<Exit> {
    if args.output == Output::Text {
        locks.show(session)?;
    }
    let possible = locks.possible();
    if possible > 0 {
        if locks.describe_begin() {
            session.ui.status(words::NEXT_EXECUTES);
        }
        session.ui.warning(words::RUNS_TWICE);
    }
    let question = format!("Remove {}?", words::counted(possible as u64, "lock"));
    locks.change_and_report(session, args.output, &args.change_args, &question).await
}

fn decide(record: &Record) -> LockDecision {
    let key_index = unlock::removable(record).map_err(|why| (Exit::Usage, why))?;
    Ok((key_index, shown_in_table(record, key_index)))
}

/// The state of the record, how long the lock has been held, when it expires, and who holds it.
fn shown_in_table(record: &Record, key_index: usize) -> String {
    let held = match record.age {
        Some(age) if record.state == State::InProgress => {
            format!(", held {}", words::short_age(age))
        }
        _ => String::new(),
    };
    let left = match record.end_of(key_index) {
        None => "unknown expiry".to_owned(),
        Some(TimeLeft::NoExpiry) => "no expiry".to_owned(),
        Some(expiry) => format!("{} left", words::time_left(expiry)),
    };
    let owner = match record.owner() {
        Some(owner) => format!(", owner {}", escape::text(owner)),
        None => String::new(),
    };
    format!("{}{held}, {left}{owner}", record.state.as_str())
}

fn explain(session: &mut Session, record: &Record, key_index: usize) -> Result<()> {
    show_record(session, Output::Text, record)?;
    let redis_key = escape::text(&record.seen.keys[key_index].redis_key);
    session.ui.status(&format!("This removes the Redis key {redis_key}."));
    if record.schema.answers_by_record() {
        session.ui.status(words::NEXT_EXECUTES);
    }
    if !record.state.is_result() {
        session.ui.warning(words::RUNS_TWICE);
        session.ui.status(words::late_worker(&record.schema, false));
    }
    Ok(())
}

/// Prints the command line that removes this lock without a question, and no other one.
fn print_for_scripts(session: &mut Session, record: &Record, reason: Option<&str>) {
    if let Some(token) = expect::token(record)
        && session.settings.may_change()
    {
        let name = name_of(record);
        let token = token.to_string();
        let mut words = vec!["force-unlock", &name, "--expect", &token];
        // A protected context does not accept --yes alone.
        match session.settings.context_name() {
            Some(name) if session.settings.is_protected() => words.extend(["--confirm", name]),
            _ => words.push("--yes"),
        }
        if let Some(reason) = reason {
            words.extend(["--reason", reason]);
        }
        let line = session.ui.invocation().command_line(words);
        session.ui.status(&format!("For scripts: `{line}`"));
    }
}

/// Prints the current state, because a request may have acquired the lock again at once. If reading
/// fails, prints nothing, because the lock was removed in any case.
async fn read_back(session: &mut Session, record: &Record, key_index: usize) {
    let Ok(mut reader) = session.connect_reader().await else { return };
    let wanted = vec![record.schema.redis_keys(&record.key)];
    // The beginning of the value is enough, because only the existence of the record is printed.
    let Ok(mut seen) = reader.read_or_fail(&wanted, ReadLimit::Bytes(1024)).await else { return };
    match seen.pop() {
        // Otherwise other Redis keys may still reject the next request.
        Some(Ok(now)) if now.keys[key_index].content.is_absent() => {
            session.ui.status("Read back: the lock is gone.")
        }
        Some(Ok(_)) => {
            session.ui.status("Read back: the next request has acquired the key already.")
        }
        _ => {}
    }
}

fn write_record(
    session: &mut Session,
    output: Output,
    record: &Record,
    outcome: &str,
    backup: Option<&str>,
) -> Result<()> {
    let record = record_json::value(record);
    let first = match output {
        Output::Json => json!({ "format": 1, "records": [record] }),
        Output::Text | Output::Jsonl => record,
    };
    let more = document::fields(json!({ "outcome": outcome, "backup": backup }));
    write_report(session, output, &document::with(first, more))
}
