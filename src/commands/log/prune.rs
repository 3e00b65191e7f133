//! `idemctl log prune`: deletes old operations and their details.

use std::path::Path;

use anyhow::Result;

use super::reading::{read, say_count, show};
use crate::args::{ConfirmArgs, PruneArgs};
use crate::change::AuditLog;
use crate::domain::history::{Operation, OperationState};
use crate::exit::Exit;
use crate::render::words;
use crate::session::Session;
use crate::store::audit::append;

pub(super) async fn run(session: &mut Session, args: &PruneArgs) -> Result<Exit> {
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
