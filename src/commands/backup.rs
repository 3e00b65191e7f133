//! `idemctl backup`: lists the backups, and deletes old ones.

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::args::{Output, PruneArgs};
use crate::domain::history::Operations;
use crate::exit::{CommandError, Exit};
use crate::render::{backups, escape, words};
use crate::session::Session;
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
    /// and so do backups whose operation is still running. A backup is as old as its last line. Exit
    /// status 3 if a backup could not be deleted.
    Prune(PruneArgs),
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    match args.command {
        Command::List { output } => list(session, output),
        Command::Prune(args) => prune(session, &args).await,
    }
}

fn list(session: &mut Session, output: Output) -> Result<Exit> {
    let (path, Folder { mut backups, others }) = read(session)?;
    let (_, operations, _) = session.operations()?;
    explain_unended(&operations, &mut backups);
    show(session, output, &backups)?;
    for backup in &backups {
        if let (state, Some(why)) = state(backup) {
            let file = escape::text(backup.path.as_os_str().as_bytes());
            session.ui.status(&format!("{file} is {state}: {}", escape::text(why.as_bytes())));
        }
    }
    for (file, why) in others {
        let file = escape::text(file.as_os_str().as_bytes());
        session.ui.status(&format!("{file} is not counted: {}", escape::text(why.as_bytes())));
    }
    let sum = total(&backups);
    session.ui.status(&format!("{} in {}", sum, escape::text(path.as_os_str().as_bytes())));
    Ok(Exit::Done)
}

/// Says why backups have no closing line, if the audit log knows it.
fn explain_unended(operations: &Operations, backups: &mut [BackupFile]) {
    for backup in backups {
        let BackupState::Unended(reason) = &mut backup.state else { continue };
        let Some(by) = &backup.by else { continue };
        if let Some(operation) = operations.all().find(|operation| operation.op == by.op)
            && let Some(why) = &operation.why
        {
            *reason = format!("its operation stopped early: {why}");
        }
    }
}

async fn prune(session: &mut Session, args: &PruneArgs) -> Result<Exit> {
    let (path, Folder { backups, .. }) = read(session)?;
    let since = args.before(session.now());
    let all = backups.len();
    let mut old = Vec::new();
    let mut being_written = Vec::new();
    for backup in backups {
        if backup.modified >= since {
            continue;
        }
        // Its operation is still running, and only this file can restore the removed records.
        if backup.state == BackupState::BeingWritten {
            being_written.push(backup);
        } else {
            old.push(backup);
        }
    }
    show(session, args.output, &old)?;
    for backup in being_written {
        let file = escape::text(backup.path.as_os_str().as_bytes());
        session.ui.status(&format!("{file} is kept, because its operation has not ended yet"));
    }
    if old.is_empty() {
        let path = escape::text(path.as_os_str().as_bytes());
        session.ui.status(&format!("None of the {all} backups in {path} is that old."));
        return Ok(Exit::Done);
    }
    let what = format!("{} of {all}", total(&old));
    if !args.confirm(session, &what).await? {
        return Ok(Exit::Done);
    }
    delete(session, &old)
}

fn delete(session: &mut Session, old: &[BackupFile]) -> Result<Exit> {
    let mut deleted = Vec::with_capacity(old.len());
    let mut left = 0;
    for backup in old {
        // A file that cannot be deleted does not keep the others, and leads to exit status 3.
        match backup.remove() {
            Ok(()) => deleted.push(backup.clone()),
            Err(why) => {
                left += 1;
                let file = escape::text(backup.path.as_os_str().as_bytes());
                session.ui.warning(&format!("{file} stays: {why}"));
            }
        }
    }
    session.ui.status(&format!("Deleted {}.", total(&deleted)));
    Ok(if left > 0 { Exit::Partial } else { Exit::Done })
}

fn read(session: &Session) -> Result<(PathBuf, Folder)> {
    let path = session.settings.backup_dir()?;
    let folder = Folder::read(&path).map_err(|error| {
        CommandError::usage(format!(
            "cannot read the folder of backups {}: {error}",
            path.display()
        ))
    })?;
    Ok((path, folder))
}

fn show(session: &mut Session, output: Output, found: &[BackupFile]) -> Result<()> {
    let lines: Vec<_> = found.iter().map(line).collect();
    Ok(session.show(output, "backups", &lines, |view| backups::table(view, &lines))?)
}

/// The state of a backup, and why it is not complete.
fn state(found: &BackupFile) -> (&'static str, Option<&str>) {
    match &found.state {
        BackupState::Complete => ("complete", None),
        BackupState::Damaged(why) => ("damaged", Some(why)),
        BackupState::BeingWritten => ("being-written", None),
        BackupState::Unended(why) => ("unended", Some(why)),
    }
}

fn line(found: &BackupFile) -> backups::BackupSummary<'_> {
    let (state, why) = state(found);
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
    let mut bytes = 0;
    for backup in found {
        bytes += backup.bytes;
    }
    format!("{} ({})", words::counted(found.len() as u64, "backup"), words::bytes(bytes))
}
