//! `idemctl restore`: restores the records in a backup.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{ConfirmArgs, Output, ReturnArgs, SchemaFolderArgs};
use crate::change::AuditLog;
use crate::change::restore::{
    CheckedBackup, KeysToRestore, Mode, RestoredRows, bring_back, check_only, finish, only_of,
};
use crate::domain::detect::SchemaSet as _;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::session::Session;

/// Restore records from a backup; existing keys stay
///
/// Checks the whole file first, then restores each Redis key byte for byte with its original expiry
/// time. Existing keys stay as they are. A key that has expired since, by the server's clock, is
/// not restored. A result is not restored next to a lock, because a running retry will overwrite
/// it. A lock is not restored if its record now has a result, because its old worker would
/// overwrite the result.
///
/// The server must be the one that the backup was taken from; a restart or a failover does not
/// change that. Another server, of the same or a newer version, needs --elsewhere.
///
/// Damage at the end of the file is skipped and reported. You can safely run the same restore
/// again. Exit status 3 if some Redis keys already existed, were not restored, or are lost with the
/// end of the file, 1 if the backup has none of the --only keys.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Backup to restore from: a file, or a file name from `idemctl backup list`
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    returns: ReturnArgs,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    confirm_args: ConfirmArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let args = Args { file: found(session, args.file), ..args };
    let only = only_of(&args.file, &args.returns)?;
    let why = format!("{} holds no such key", args.file.display());
    let is_partial = check_only(session, &only, &why)?;
    let of = KeysToRestore { args: &args.returns, only: &only, but: HashSet::new() };
    let mut source = CheckedBackup::open(session, &args.file, &of, None)?;
    let mut rows = RestoredRows::new(args.output, args.confirm_args.dry_run);
    // A backup is restored even if the schemas cannot be read.
    if let Ok(schemas) = session.all_schemas(&SchemaFolderArgs::default()) {
        rows = rows.knowing(schemas.all());
    }
    // A dry run also refuses another server, so that it predicts what a restore would do.
    let ended = if args.confirm_args.dry_run {
        let client = session.connect().await?;
        source.may_go_to(session, &client.provenance().await?, args.returns.elsewhere)?;
        let interrupt = Interrupt::listen()?;
        bring_back(session, &of, &mut source, &mut Mode::Looks(&client), &mut rows, &interrupt)
            .await
    } else {
        restore(session, &args, &of, &mut source, &mut rows).await?
    };
    let holds_all = source.missing + source.left_out == 0;
    let is_complete = matches!(ended, Ok(true)) && holds_all;
    // How the restore ended matters more than a stdout that cannot be written.
    let shown = rows.close(session, is_complete, source.left_out);
    finish(session, args.confirm_args.dry_run, &rows, ended, source.wanted + source.missing)?;
    shown?;
    let is_whole = !is_partial && holds_all && rows.kept_away() == 0;
    Ok(if is_whole { Exit::Done } else { Exit::Partial })
}

/// A backup that is named without a folder, and is not in the current one, is in the folder of the
/// backups.
fn found(session: &Session, file: PathBuf) -> PathBuf {
    let is_name = file.components().count() == 1;
    if !is_name || file.exists() {
        return file;
    }
    let Ok(folder) = session.settings.backup_dir() else { return file };
    let kept = folder.join(&file);
    if kept.is_file() { kept } else { file }
}

/// Asks, and restores the records. The inner result is how the restore ended.
async fn restore(
    session: &mut Session,
    args: &Args,
    of: &KeysToRestore<'_>,
    source: &mut CheckedBackup,
    rows: &mut RestoredRows,
) -> Result<Result<bool>> {
    let writer = session.connect_writer(&args.confirm_args).await?;
    writer.require(&["RESTORE", "idemctl", "0", ""]).await?;
    let mut audit_log = AuditLog::open(session, &args.confirm_args, "restore")?;
    let here = writer.provenance().await?;
    source.may_go_to(session, &here, args.returns.elsewhere)?;
    audit_log.set_server(here);
    let question = format!("Restore {} Redis keys from {}?", source.wanted, args.file.display());
    let interrupt = Interrupt::listen()?;
    args.confirm_args.confirm(session, &question, &writer.name(), &interrupt).await?;
    // From here on, a signal ends the restore after the current batch, which is then in the log.
    interrupt.handle_terminate()?;
    session.ui.begin_changes();
    // Without this line, `undo` after a crash would revert the operation before.
    audit_log.begin(&writer.name(), None, session.now()).await?;
    let mut mode = Mode::Restores(&writer, &mut audit_log);
    let ended = bring_back(session, of, source, &mut mode, rows, &interrupt).await;
    if !matches!(ended, Ok(true)) || rows.may_go_on() {
        audit_log.stops_early();
    }
    // The log gets its closing line in any case, but the error of the restore comes first.
    let noted = audit_log.end(session.now()).await;
    Ok(match (ended, noted) {
        (Err(error), _) => Err(error),
        (Ok(_), Err(error)) => Err(error.into()),
        (Ok(whole), Ok(())) => Ok(whole),
    })
}
