//! `idemctl log`: the changes made from this machine, one line per operation.

mod one_operation;
mod prune;
mod reading;
mod records;

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use self::one_operation::ShowOperation;
use self::reading::{LogFilter, each_change, read, say_count, show};
use crate::args::{Output, PruneArgs};
use crate::domain::history::OperationState;
use crate::exit::Exit;
use crate::session::Session;

/// List the operations that changed data from this machine
///
/// An operation is one run of a command that changed something. The log shows its time, user,
/// server, command, number of changes and reason, and whether its backup still exists. Operations
/// that did not end come first. `log show OP` lists the records of one operation, `undo OP` undoes
/// it. WHO is $USER, which anyone can set; `log show` adds the numeric user ID.
///
/// Reads the folder $XDG_STATE_HOME/idemctl/audit, which contains only the changes of this user on
/// this machine.
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

    /// Show old operations, then delete them and their details
    ///
    /// `undo` cannot undo a deleted operation. Operations stay that did not end, whose outcome is
    /// unknown for a Redis key, or whose backup still exists. The deletion is an operation itself.
    Prune(PruneArgs),
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    match args.show {
        Some(Command::Show(args)) => one_operation::run(session, &args),
        Some(Command::Prune(args)) => prune::run(session, &args).await,
        None if args.records => records::run(session, &args.filter),
        None => operations(session, &args),
    }
}

fn operations(session: &mut Session, args: &Args) -> Result<Exit> {
    let (folder, operations) = read(session)?;
    let filter = &args.filter;
    let now = session.now();
    let mut wanted = Vec::new();
    for operation in operations.into_all() {
        if let Some(command) = &args.command
            && *command != operation.command
        {
            continue;
        }
        if !filter.is_recent(&operation.at, now) {
            continue;
        }
        let mut is_wanted = filter.only.is_none();
        if !is_wanted {
            each_change(session, &folder, &operation, |entry| is_wanted |= filter.is_of(&entry))?;
        }
        if is_wanted {
            wanted.push(operation);
        }
    }
    // An operation without an end may need its operator, so none is behind the limit.
    wanted.sort_by_key(|operation| operation.state == OperationState::Unended);
    let all = wanted.len();
    let mut newest = wanted.split_off(all.saturating_sub(filter.limit()));
    newest.sort_by_key(|operation| operation.state != OperationState::Unended);
    show(session, filter.output, &newest)?;
    say_count(session, "operation", newest.len(), all as u64);
    if filter.output == Output::Text && !newest.is_empty() {
        session.ui.hint("`idemctl log show OP` shows its options and Redis keys");
    }
    Ok(Exit::Done)
}
