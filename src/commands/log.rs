//! `idemctl log`: the changes made from this machine, one line per operation.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};
use serde_json::json;

use crate::args::{ConfirmArgs, Output, PruneArgs, parse_duration};
use crate::change::AuditLog;
use crate::domain::history::{AuditEntry, Operation, OperationState, Operations};
use crate::exit::{CommandError, Exit};
use crate::render::{audit, document, escape, history, words};
use crate::session::Session;
use crate::session::operations::{named, unreadable};
use crate::store::audit::{append, log};

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
        Some(Command::Show(args)) => show_operation(session, &args),
        Some(Command::Prune(args)) => prune_log(session, &args).await,
        None if args.records => show_records(session, &args.filter),
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

/// Show one operation and the records that it changed
///
/// Exit status 1 if the log has no such operation.
#[derive(Debug, ClapArgs)]
struct ShowOperation {
    /// Operation ID from `idemctl log`, or its first letters [default: the last operation]
    #[arg(value_name = "OP")]
    op: Option<String>,

    /// Show at most this many of its records
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    limit: u32,

    /// Output format
    ///
    /// `json` prints one document, `jsonl` one record per line.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

fn show_operation(session: &mut Session, args: &ShowOperation) -> Result<Exit> {
    let (folder, operations) = read(session)?;
    let operation = match &args.op {
        Some(op) => named(&operations, op)?,
        None => operations
            .all()
            .last()
            .ok_or_else(|| CommandError::new(Exit::No, "the audit log has no operation"))?,
    };
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut records = Vec::new();
    each_change(session, &folder, operation, |entry| {
        if records.len() < limit {
            records.push(entry);
        }
    })?;
    let all = operation.totals.redis_keys;
    let operation = history::ShownOperation::of(operation, is_there(operation));
    match args.output {
        Output::Text => session.ui.data(history::page(session.ui.view(), &operation, &records))?,
        Output::Json => {
            let document = json!({ "format": 1, "operation": operation, "changes": records });
            session.ui.data(document::pretty(&document))?;
        }
        Output::Jsonl => {
            for record in &records {
                session.ui.data(document::line(record))?;
            }
        }
    }
    session.ui.flush()?;
    say_count(session, "change", records.len(), all);
    Ok(Exit::Done)
}

fn show_records(session: &mut Session, filter: &LogFilter) -> Result<Exit> {
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

async fn prune_log(session: &mut Session, args: &PruneArgs) -> Result<Exit> {
    let (folder, operations) = read(session)?;
    let before = args.before(session.now());
    let mut old = operations.into_all();
    old.retain(|operation| {
        let is_old = humantime::parse_rfc3339(&operation.at).is_ok_and(|at| at < before);
        is_old && !is_needed(operation)
    });
    show(session, args.output, &old)?;
    let what = words::counted(old.len() as u64, "operation");
    if old.is_empty() {
        say_count(session, "operation", 0, 0);
    } else if args.confirm(session, &what).await? {
        let mut audit_log = AuditLog::open(session, &ConfirmArgs::default(), "log prune")?;
        audit_log.begin("", None, session.now()).await?;
        let ops = old.into_iter().map(|operation| operation.op).collect();
        audit_log.is_told();
        append::delete(&folder, &ops)?;
        audit_log.end(session.now()).await?;
        session.ui.status(&format!("Deleted {what}."));
    }
    Ok(Exit::Done)
}

/// True if somebody may still need the operation, to find out what happened or to undo it.
fn is_needed(operation: &Operation) -> bool {
    let Operation { state, totals, begun_backup, .. } = operation;
    let mut backups = totals.backup.iter().chain(begun_backup);
    *state == OperationState::Unended
        || totals.unknown > 0
        || backups.any(|file| Path::new(file).exists())
}

/// The part of the log to show, and its format.
#[derive(Debug, ClapArgs)]
struct LogFilter {
    /// Only changes to this idempotency key or Redis key
    #[arg(long, value_name = "KEY")]
    only: Option<OsString>,

    /// Only changes made within this time, e.g. 1d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    since: Option<Duration>,

    /// Show at most this many, the newest ones
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    limit: u32,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

impl LogFilter {
    fn limit(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }

    fn is_of(&self, entry: &AuditEntry<'_>) -> bool {
        let Some(key) = &self.only else { return true };
        // The log has keys in the escaped form that idemctl shows.
        let key = escape::text(key.as_bytes());
        entry.key == key || entry.redis_key == key
    }

    fn is_recent(&self, at: &str, now: SystemTime) -> bool {
        // A time before the clock's beginning includes every entry.
        let Some(since) = self.since.and_then(|since| now.checked_sub(since)) else { return true };
        humantime::parse_rfc3339(at).is_ok_and(|at| at >= since)
    }
}

/// Shows these operations.
fn show(session: &mut Session, output: Output, operations: &[Operation]) -> io::Result<()> {
    let contexts = session.settings.context_places();
    let mut shown = Vec::with_capacity(operations.len());
    for operation in operations {
        shown.push(
            history::ShownOperation::of(operation, is_there(operation)).in_context(&contexts),
        );
    }
    session.show(output, "operations", &shown, |view| history::table(view, &shown))
}

/// Whether an operation's backup still exists; `None` if the operation has none.
fn is_there(operation: &Operation) -> Option<bool> {
    let file = operation.totals.backup.as_ref()?;
    Some(Path::new(file).is_file())
}

/// The audit folder and its operations. Warns about what is not shown.
fn read(session: &mut Session) -> Result<(PathBuf, Operations), CommandError> {
    let (folder, operations, unread) = session.operations()?;
    for warning in unread {
        session.ui.warning(&warning);
    }
    Ok((folder, operations))
}

/// Passes each change of an operation to `take`. Warns if some may be missing.
fn each_change(
    session: &mut Session,
    folder: &Path,
    operation: &Operation,
    take: impl FnMut(AuditEntry<'static>),
) -> Result<(), CommandError> {
    let is_whole = log::each_change(folder, operation, take);
    if !is_whole.map_err(|error| unreadable(folder, &error))? {
        session.ui.warning(&history::damaged_details(operation));
    }
    Ok(())
}

fn say_count(session: &mut Session, what: &str, shown: usize, all: u64) {
    if shown == 0 {
        session.ui.status(&format!("No {what} was found in the audit log."));
    } else if all > shown as u64 {
        session.ui.status(&format!("{shown} of {all} shown; --limit shows more."));
    }
}
