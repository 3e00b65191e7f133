//! `idemctl backup`: which backups there are, and away with the old ones.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use crate::args::{Output, parse_duration};
use crate::context::Context;
use crate::domain::record::KeyIdentity;
use crate::exit::{CommandError, Exit};
use crate::render::{backups, escape, words};
use crate::store::audit::log;
use crate::store::backup::folder::{BackupFile, BackupState, Folder};

/// List the backups of changed records, or delete old ones
///
/// Backups are in $XDG_STATE_HOME/idemctl/backups, one file per operation. A backup that --backup
/// wrote elsewhere is neither listed nor deleted.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the backups, oldest first
    ///
    /// Reads each file to its end. A backup is `complete`, `damaged` (with the reason), or
    /// `being-written` while its operation runs. It is `unended` if the closing line is missing
    /// because the run was killed, the disk was full, or the file lost its end. `undo` and
    /// `restore` use the intact lines of an unended backup.
    List {
        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },

    /// Show old backups, then delete them
    ///
    /// `restore` and `undo` can no longer use a deleted backup. Files that are not backups stay,
    /// and so do backups whose operation is still running. Exit status 3 if a backup could not be
    /// deleted.
    Prune {
        /// Delete backups whose last line was written longer ago than this
        #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
        older_than: Duration,

        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,

        /// Do not ask for confirmation
        #[arg(short = 'y', long)]
        yes: bool,

        /// Show what would be done, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
}

impl Args {
    /// True when files may be deleted.
    pub fn deletes(&self) -> bool {
        matches!(self.command, Command::Prune { .. })
    }
}

pub fn run(context: &mut Context, args: Args) -> Result<Exit> {
    match args.command {
        Command::List { output } => list(context, output),
        Command::Prune { older_than, output, yes, dry_run } => {
            prune(context, older_than, output, yes, dry_run)
        }
    }
}

fn list(context: &mut Context, output: Output) -> Result<Exit> {
    let (path, Folder { mut backups, others }) = read(context)?;
    explain_unended(context, &mut backups)?;
    show(context, output, &backups)?;
    for backup in &backups {
        let file = escape::text(backup.path.as_os_str().as_bytes());
        match &backup.state {
            BackupState::Damaged(why) => {
                context.ui.status(&format!("{file} is damaged: {}", escape::text(why.as_bytes())));
            }
            BackupState::Unended(why) => {
                context.ui.status(&format!("{file} is unended: {}", escape::text(why.as_bytes())));
                if let Some(by) = &backup.by {
                    let op = escape::again(&by.op);
                    context.ui.hint(&format!("`idemctl undo {op}` restores its records"));
                }
            }
            BackupState::Complete | BackupState::BeingWritten => {}
        }
    }
    let removed = if others.is_empty() { HashMap::new() } else { removed_into_files(context)? };
    for (file, why) in others {
        let known = removed.get(&file.display().to_string());
        let known = known
            .map(|known| format!(", although the audit log shows that {known}"))
            .unwrap_or_default();
        let file = escape::text(file.as_os_str().as_bytes());
        context
            .ui
            .status(&format!("{file} is not counted: {}{known}", escape::text(why.as_bytes())));
    }
    let sum = total(&backups);
    context.ui.status(&format!("{} in {}", sum, escape::text(path.as_os_str().as_bytes())));
    Ok(Exit::Done)
}

/// Says why backups have no closing line, if the audit log knows it.
fn explain_unended(context: &Context, backups: &mut [BackupFile]) -> Result<()> {
    let is_unended = |backup: &BackupFile| matches!(backup.state, BackupState::Unended(_));
    if !backups.iter().any(is_unended) {
        return Ok(());
    }
    let path = context.settings.audit_log()?;
    let read = log::each(&path, |_, _| {}).map_err(|error| {
        CommandError::usage(format!("cannot read the audit log {}: {error}", path.display()))
    })?;
    let operations = read.map(|(operations, _)| operations.into_all()).unwrap_or_default();
    for backup in backups {
        let (BackupState::Unended(reason), Some(by)) = (&mut backup.state, &backup.by) else {
            continue;
        };
        let operation = operations.iter().find(|operation| operation.op == by.op);
        if let Some(why) = operation.and_then(|operation| operation.why.as_ref()) {
            *reason = format!("its operation stopped early: {why}");
        }
    }
    Ok(())
}

/// What the audit log says of each file into which something was removed: which operation, and how many Redis keys.
fn removed_into_files(context: &Context) -> Result<HashMap<String, String>> {
    let path = context.settings.audit_log()?;
    let mut counts = HashMap::new();
    let read = log::each(&path, |entry, operation| {
        let is_removed = entry.after.as_ref().is_some_and(KeyIdentity::is_absent);
        if let Some(file) = entry.backup.filter(|_| is_removed) {
            let count = counts.entry((file.to_string(), operation.name())).or_insert(0_u64);
            *count += 1;
        }
    });
    read.map_err(|error| {
        CommandError::usage(format!("cannot read the audit log {}: {error}", path.display()))
    })?;
    let mut told = HashMap::new();
    for ((file, name), count) in counts {
        let keys = if count == 1 { "Redis key" } else { "Redis keys" };
        told.insert(file, format!("{} saved {count} removed {keys} in it", escape::again(&name)));
    }
    Ok(told)
}

fn prune(
    context: &mut Context,
    older_than: Duration,
    output: Output,
    yes: bool,
    dry_run: bool,
) -> Result<Exit> {
    let (path, Folder { backups, .. }) = read(context)?;
    let since = context.now().checked_sub(older_than).unwrap_or(SystemTime::UNIX_EPOCH);
    let all = backups.len();
    let old: Vec<_> = backups.into_iter().filter(|backup| backup.modified < since).collect();
    let (busy, old): (Vec<_>, Vec<_>) =
        old.into_iter().partition(|backup| backup.state == BackupState::BeingWritten);
    show(context, output, &old)?;
    for backup in busy {
        let file = escape::text(backup.path.as_os_str().as_bytes());
        context.ui.status(&format!("{file} is kept, because its operation has not ended yet"));
    }
    if old.is_empty() {
        let path = escape::text(path.as_os_str().as_bytes());
        context.ui.status(&format!("None of the {all} backups in {path} is that old."));
        return Ok(Exit::Done);
    }
    if dry_run {
        context
            .ui
            .status(&format!("dry run: nothing was deleted; {} would be deleted", total(&old)));
        return Ok(Exit::Done);
    }
    let question = format!(
        "Delete {} of {all}? The records in them cannot be restored afterwards.",
        total(&old)
    );
    if !yes && !context.ui.confirm(&question)? {
        return Err(CommandError::usage("not confirmed; nothing was deleted").into());
    }
    delete(context, &old)
}

fn delete(context: &mut Context, old: &[BackupFile]) -> Result<Exit> {
    let mut deleted = Vec::with_capacity(old.len());
    let mut left = 0;
    for backup in old {
        match backup.remove() {
            Ok(()) => deleted.push(backup.clone()),
            Err(why) => {
                left += 1;
                let file = escape::text(backup.path.as_os_str().as_bytes());
                context.ui.warning(&format!("{file} stays: {why}"));
            }
        }
    }
    context.ui.status(&format!("Deleted {}.", total(&deleted)));
    Ok(if left > 0 { Exit::Partial } else { Exit::Done })
}

fn read(context: &Context) -> Result<(PathBuf, Folder)> {
    let path = context.settings.backup_dir()?;
    let folder = Folder::read(&path).map_err(|error| {
        CommandError::usage(format!(
            "cannot read the folder of backups {}: {error}",
            path.display()
        ))
    })?;
    Ok((path, folder))
}

fn show(context: &mut Context, output: Output, found: &[BackupFile]) -> Result<()> {
    let lines: Vec<_> = found.iter().map(line).collect();
    Ok(context.show(output, "backups", &lines, |view| backups::table(view, &lines))?)
}

fn line(found: &BackupFile) -> backups::BackupSummary<'_> {
    let (state, why) = match &found.state {
        BackupState::Complete => ("complete", None),
        BackupState::Damaged(why) => ("damaged", Some(why.as_str())),
        BackupState::BeingWritten => ("being-written", None),
        BackupState::Unended(why) => ("unended", Some(why.as_str())),
    };
    backups::BackupSummary {
        file: escape::text(found.path.as_os_str().as_bytes()),
        written_at: humantime::format_rfc3339_millis(found.modified).to_string(),
        op: found.by.as_ref().map(|by| by.op.as_str()),
        command: found.by.as_ref().map(|by| by.command.as_str()),
        redis_keys: found.redis_keys,
        bytes: found.bytes,
        from: found.from.as_ref(),
        state,
        why,
    }
}

/// How many, and how large together.
fn total(found: &[BackupFile]) -> String {
    let bytes = words::bytes(found.iter().map(|backup| backup.bytes).sum());
    let backups = if found.len() == 1 { "backup" } else { "backups" };
    format!("{} {backups} ({bytes})", found.len())
}
