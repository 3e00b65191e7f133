//! `idemctl log`: what was changed from this machine, an operation a line.

mod one_operation;
mod records;

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use self::one_operation::ShowOperation;
use crate::args::{Output, parse_duration};
use crate::context::Context;
use crate::domain::history::{Entry, Operation};
use crate::exit::{Exit, Stop};
use crate::render::{escape, history};
use crate::store::audit::log::{self, Damaged};

/// Show what idemctl changed on this machine, an operation a line, the newest last
///
/// An operation is one run of a command that changed something: when, who, on which server, what, how many Redis keys, why,
/// and whether its backup is still there. `log show OP` lists the records of one, `undo OP` takes one back. Reads
/// $XDG_STATE_HOME/idemctl/audit.jsonl of this user only.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(flatten)]
    choice: Choice,

    /// Only operations of this command
    #[arg(long, value_name = "NAME", conflicts_with = "records")]
    command: Option<String>,

    /// A line for each Redis key that was changed, in place of a line for each operation
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

/// Show each Redis key that was changed: the older name of `log --records`
///
/// Use `idemctl log` for a line an operation, and `idemctl log --records` for what this command shows.
#[derive(Debug, ClapArgs)]
pub struct AuditArgs {
    #[command(flatten)]
    choice: Choice,
}

/// What of the log is shown, and how.
#[derive(Debug, ClapArgs)]
struct Choice {
    /// Only changes to this idempotency key or Redis key
    #[arg(long, value_name = "KEY")]
    only: Option<OsString>,

    /// Only what was done in this last while
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    since: Option<Duration>,

    /// How many of the newest to show
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// How to show them
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

impl Choice {
    fn limit(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }

    fn is_of(&self, entry: &Entry<'_>) -> bool {
        let key = self.only.as_ref().map(|key| escape::text(key.as_bytes()));
        key.is_none_or(|key| [&entry.key, &entry.redis_key].contains(&&key))
    }

    fn is_recent(&self, at: &str, now: SystemTime) -> bool {
        let since = self.since.and_then(|since| now.checked_sub(since));
        since.is_none_or(|since| humantime::parse_rfc3339(at).is_ok_and(|at| at >= since))
    }
}

pub fn run(context: &mut Context, args: Args) -> Result<Exit> {
    match args.show {
        Some(Command::Show(args)) => one_operation::run(context, &args),
        None if args.records => records::run(context, &args.choice),
        None => operations(context, &args),
    }
}

pub fn audit(context: &mut Context, args: &AuditArgs) -> Result<Exit> {
    records::run(context, &args.choice)
}

fn operations(context: &mut Context, args: &Args) -> Result<Exit> {
    let (path, choice) = (path(context)?, &args.choice);
    let mut touched = HashSet::new();
    let read = each(&path, |entry, operation| {
        if choice.is_of(&entry) && !touched.contains(&operation.op) {
            touched.insert(operation.op.clone());
        }
    })?;
    let Some((operations, damaged)) = read else { return nothing_yet(context, choice.output) };
    let now = context.now();
    let is_wanted = |operation: &Operation| {
        let is_command = args.command.as_ref().is_none_or(|name| *name == operation.command);
        is_command && touched.contains(&operation.op) && choice.is_recent(&operation.at, now)
    };
    let wanted: Vec<_> = operations.into_all().into_iter().filter(is_wanted).collect();
    let newest = &wanted[wanted.len().saturating_sub(choice.limit())..];
    let shown: Vec<_> = newest.iter().map(|operation| history::Shown::of(operation, is_there(operation))).collect();
    context.show(choice.output, "operations", &shown, |view| history::table(view, &shown))?;
    say_damaged(context, &path, damaged);
    say_count(context, "operation", shown.len(), wanted.len() as u64);
    Ok(Exit::Done)
}

/// Whether an operation's backup is still there; `None` where the operation has none.
fn is_there(operation: &Operation) -> Option<bool> {
    operation.backup.as_ref().map(|file| Path::new(file).is_file())
}

fn path(context: &Context) -> Result<PathBuf> {
    Ok(context.settings.state_dir()?.join("audit.jsonl"))
}

fn each(
    path: &Path,
    take: impl FnMut(Entry<'static>, &Operation),
) -> Result<Option<(crate::domain::history::Operations, Damaged)>, Stop> {
    log::each(path, take).map_err(|error| Stop::usage(format!("cannot read the audit log {}: {error}", path.display())))
}

fn nothing_yet(context: &mut Context, output: Output) -> Result<Exit> {
    context.show(output, "operations", &[(); 0], |_| String::new())?;
    context.ui.status("Nothing was changed yet: there is no audit log.");
    Ok(Exit::Done)
}

fn say_damaged(context: &mut Context, path: &Path, damaged: Damaged) {
    if let Some(first) = damaged.first {
        let (count, path) = (damaged.lines, escape::text(path.as_os_str().as_bytes()));
        context.ui.warning(&format!("damaged lines of {path} that are not shown: {count}, the first is line {first}"));
    }
}

fn say_count(context: &mut Context, what: &str, shown: usize, all: u64) {
    if shown == 0 {
        context.ui.status(&format!("No such {what} is in the audit log."));
    } else if all > shown as u64 {
        context.ui.status(&format!("The newest {shown} of {all}; --limit shows more."));
    }
}
