//! `idemctl audit`: shows what was changed, by whom and why.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{Output, parse_duration};
use crate::context::Context;
use crate::exit::{Exit, Stop};
use crate::render::{audit, escape};
use crate::store::audit::entry::Entry;
use crate::store::audit::log::Log;

/// Show the log of what idemctl changed on this machine, the newest last
///
/// Each Redis key that was unlocked, swept, purged or restored by this user has a line in
/// $XDG_STATE_HOME/idemctl/audit.jsonl: who, when, on which server, what, why, and the backup. Reads that file only.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Only changes to this idempotency key or Redis key
    #[arg(long, value_name = "KEY")]
    only: Option<OsString>,

    /// Only changes of this last while
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    since: Option<Duration>,

    /// How many of the newest changes to show
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// How to show the changes
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

pub fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let path = context.settings.state_dir()?.join("audit.jsonl");
    let found = read(&path, &args, context.now())
        .map_err(|error| Stop::usage(format!("cannot read the audit log {}: {error}", path.display())))?;
    let newest: Vec<_> = found.newest.into();
    let table = |view| match newest.is_empty() {
        true => String::new(),
        false => audit::table(view, newest.iter().map(columns)),
    };
    context.show(args.output, "changes", &newest, table)?;
    if let Some(first) = found.first_damaged {
        let (count, path) = (found.damaged, escape::text(path.as_os_str().as_bytes()));
        context.ui.warning(&format!("damaged lines of {path} that are not shown: {count}, the first is line {first}"));
    }
    if !found.exists {
        context.ui.status("Nothing was changed yet: there is no audit log.");
    } else if newest.is_empty() {
        context.ui.status("No such change is in the audit log.");
    } else if found.matching > newest.len() as u64 {
        let shown = newest.len();
        context.ui.status(&format!("The newest {shown} of {}; --limit shows more.", found.matching));
    }
    Ok(Exit::Done)
}

fn columns<'a>(logged: &'a Entry<'_>) -> [&'a str; 8] {
    let Entry { at, who, server, command, what, schema, key, reason, .. } = logged;
    [at, who, server, command, what, schema, key, reason.as_deref().unwrap_or("-")]
}

#[derive(Default)]
struct Found {
    exists: bool,
    newest: VecDeque<Entry<'static>>,
    matching: u64,
    damaged: u64,
    first_damaged: Option<u64>,
}

fn read(path: &Path, args: &Args, now: SystemTime) -> std::io::Result<Found> {
    let mut found = Found::default();
    let Some(mut log) = Log::open(path)? else { return Ok(found) };
    found.exists = true;
    let key = args.only.as_ref().map(|key| escape::text(key.as_bytes()));
    let since = args.since.and_then(|since| now.checked_sub(since));
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    while let Some(line) = log.next_line()? {
        let Some((logged, at)) =
            line.and_then(|logged| humantime::parse_rfc3339(&logged.at).ok().map(|at| (logged, at)))
        else {
            found.damaged += 1;
            found.first_damaged.get_or_insert(log.line());
            continue;
        };
        let is_key = key.as_ref().is_none_or(|key| [&logged.key, &logged.redis_key].contains(&key));
        if is_key && since.is_none_or(|since| at >= since) {
            found.matching += 1;
            found.newest.push_back(logged);
            if found.newest.len() > limit {
                found.newest.pop_front();
            }
        }
    }
    Ok(found)
}
