//! `idemctl log`: the changes made from this machine, one line per operation.

mod one_operation;
mod reading;
mod records;

use std::collections::HashSet;

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use self::one_operation::ShowOperation;
use self::reading::{LogFilter, each, is_there, path, say_count, warn_of_skipped};
use crate::args::Output;
use crate::exit::Exit;
use crate::render::history;
use crate::session::Session;

/// List the operations that changed data from this machine, newest last
///
/// An operation is one run of a command that changed something. The log shows its time, user,
/// server, command, number of changes and reason, and whether its backup still exists. `log show
/// OP` lists the records of one operation, `undo OP` undoes it. WHO is $USER, which anyone can set;
/// `log show` adds the numeric user ID.
///
/// Reads $XDG_STATE_HOME/idemctl/audit.jsonl, which contains only the changes of this user on this
/// machine.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(flatten)]
    filter: LogFilter,

    /// Only operations of this command
    #[arg(long, value_name = "NAME", conflicts_with = "records")]
    command: Option<String>,

    /// Show one line per changed Redis key instead of one per operation
    #[arg(long)]
    records: bool,

    #[command(subcommand)]
    show: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show one operation and the records that it changed
    Show(ShowOperation),
}

pub fn run(session: &mut Session, args: Args) -> Result<Exit> {
    match args.show {
        Some(Command::Show(args)) => one_operation::run(session, &args),
        None if args.records => records::run(session, &args.filter),
        None => operations(session, &args),
    }
}

fn operations(session: &mut Session, args: &Args) -> Result<Exit> {
    let path = path(session)?;
    let filter = &args.filter;
    // The names are collected while the log is read, because its entries are not kept.
    let mut touched = HashSet::new();
    let read = each(&path, |entry, operation| {
        if filter.is_of(&entry) && !touched.contains(&operation.op) {
            touched.insert(operation.op.clone());
        }
    })?;
    let Some((operations, skipped)) = read else { return nothing_yet(session, filter.output) };
    let now = session.now();
    let mut wanted = Vec::new();
    for operation in operations.into_all() {
        if let Some(command) = &args.command
            && *command != operation.command
        {
            continue;
        }
        // If an operation was killed before its first line, it is unknown which records it touched.
        let may_have_touched = !operation.is_told && filter.only.is_none();
        if (touched.contains(&operation.op) || may_have_touched)
            && filter.is_recent(&operation.at, now)
        {
            wanted.push(operation);
        }
    }
    let newest = &wanted[wanted.len().saturating_sub(filter.limit())..];
    let contexts = session.settings.context_places();
    let mut shown = Vec::with_capacity(newest.len());
    for operation in newest {
        shown.push(
            history::ShownOperation::of(operation, is_there(operation)).in_context(&contexts),
        );
    }
    session.show(filter.output, "operations", &shown, |view| history::table(view, &shown))?;
    warn_of_skipped(session, &path, skipped);
    say_count(session, "operation", shown.len(), wanted.len() as u64);
    if filter.output == Output::Text && !shown.is_empty() {
        session.ui.hint("`idemctl log show OP` shows its options and Redis keys");
    }
    Ok(Exit::Done)
}

fn nothing_yet(session: &mut Session, output: Output) -> Result<Exit> {
    session.show(output, "operations", &[(); 0], |_| String::new())?;
    session
        .ui
        .status("This user has changed nothing on this machine yet, so there is no audit log.");
    Ok(Exit::Done)
}
