//! The audit log of one run of a command.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::task::JoinHandle;

use crate::args::{ChangeArgs, ConfirmArgs};
use crate::domain::change::provenance::Provenance;
use crate::domain::history::{AuditEntry, Begin, EndState, Mark, OperationEnd};
use crate::domain::record::{KeyIdentity, RecordName};
use crate::exit::{CommandError, Exit};
use crate::render::escape;
use crate::session::Session;
use crate::store::StoreError;
use crate::store::audit::append::{self, Lines};
use crate::store::audit::log::mentions;
use crate::store::backup::Maker;

/// What to do where the log cannot be written.
const ELSEWHERE: &str = "set XDG_STATE_HOME to another folder for backups and the audit log, or \
    continue without both with --no-backup";

/// Who changes what with which command, and why.
#[derive(Default)]
pub struct AuditLog {
    /// `None` where the operator goes on without a log.
    log: Option<PathBuf>,
    op: String,
    /// When the run began, RFC 3339 in UTC.
    began: String,
    who: String,
    sudo_user: Option<String>,
    uid: u32,
    host: String,
    command: &'static str,
    /// The options by which the run chooses records.
    filters: Option<String>,
    reason: Option<String>,
    undoes: Option<String>,
    /// True if only the records that `--only` names are taken back.
    is_partial: bool,
    /// True once the log says that the run begins to change something.
    has_begun: bool,
    /// True if the run stops before it has processed everything.
    stops_early: bool,
    /// The error that stops it.
    why: Option<String>,
    /// The server of the next changes, if the log does not name it yet.
    unwritten_server: Option<Provenance>,
    /// The server that the log named last.
    written_server: Option<Provenance>,
    /// The last lines, which are being written to the disk.
    writing: Option<JoinHandle<Result<(), StoreError>>>,
    /// True if lines of changes could not be written.
    lacks_changes: bool,
}

/// A Redis key that was changed, as the audit log describes it.
pub struct Noted<'a> {
    pub(crate) name: RecordName,
    pub redis_key: &'a [u8],
    /// The value before the change, if the change left one.
    pub before: Option<KeyIdentity>,
    /// The value that the change left; `None` if it is unknown.
    pub after: Option<KeyIdentity>,
}

impl AuditLog {
    /// Makes sure, before anything is changed, that the log can be written.
    pub fn open(session: &Session, args: &ConfirmArgs, command: &'static str) -> Result<Self> {
        Ok(Self::with(Some(writable_log(session)?), session, args, command))
    }

    fn with(
        log: Option<PathBuf>,
        session: &Session,
        args: &ConfirmArgs,
        command: &'static str,
    ) -> Self {
        let op = unused(log.as_deref(), || session.new_operation());
        let environment = session.settings.environment();
        Self {
            log,
            op,
            began: humantime::format_rfc3339_millis(session.now()).to_string(),
            who: environment.user(),
            sudo_user: environment.sudo_user(),
            uid: environment.user_id(),
            host: session.host(),
            command,
            filters: session.ui.invocation().filters(),
            reason: args.reason.clone(),
            ..Self::default()
        }
    }

    /// Like [`Self::open`], but if the log cannot be written and the operator wants no backup, the
    /// run continues without a log.
    pub fn open_or_do_without(
        session: &mut Session,
        args: &ChangeArgs,
        command: &'static str,
    ) -> Result<Self> {
        match writable_log(session) {
            Err(error) if args.no_backup => {
                session.ui.warning(&format!(
                    "the audit log will not contain this change: {}",
                    error.message
                ));
                Ok(Self::with(None, session, &args.confirm_args, command))
            }
            _ => Self::open(session, &args.confirm_args, command),
        }
    }

    /// Notes, before the first change, that the run undoes an operation, or part of it.
    pub fn undoes(&mut self, op: &str, is_partial: bool) {
        self.undoes = Some(op.to_owned());
        self.is_partial = is_partial;
    }

    /// Writes, before the first change, that the run begins to change something. If it is killed
    /// before it writes what it changed, the log shows that there was an operation. Every call but
    /// the first does nothing.
    ///
    /// # Errors
    /// Usage: the log cannot be written, so nothing may be changed.
    pub async fn begin(
        &mut self,
        server: &str,
        backup: Option<&str>,
        now: SystemTime,
    ) -> Result<(), CommandError> {
        let Some(log) = self.log.clone().filter(|_| !self.has_begun) else { return Ok(()) };
        let at = humantime::format_rfc3339_millis(now).to_string();
        let mark = Mark::Begin(Box::new(Begin {
            op: self.op.as_str().into(),
            at: at.into(),
            who: self.who.as_str().into(),
            sudo_user: self.sudo_user.as_deref().map(Into::into),
            uid: Some(self.uid),
            host: self.host.as_str().into(),
            server: server.into(),
            command: self.command.into(),
            filters: self.filters.as_deref().map(Into::into),
            reason: self.reason.as_deref().map(Into::into),
            backup: backup.map(Into::into),
            undoes: self.undoes.as_deref().map(Into::into),
            part: self.is_partial,
            from: self.unwritten_server.clone(),
        }));
        let lines = Lines::of_mark(&mark);
        let why = match tokio::task::spawn_blocking(move || append::append(&log, lines)).await {
            Ok(Ok(())) => {
                self.has_begun = true;
                return Ok(());
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Err(CommandError::usage(why).changed_nothing().hint(ELSEWHERE))
    }

    /// Notes that the run stops before it has processed everything.
    pub fn stops_early(&mut self) {
        self.stops_early = true;
    }

    /// Notes the error that stops the run.
    pub fn stops_for(&mut self, error: &anyhow::Error) {
        self.stops_early = true;
        self.why = Some(format!("{error:#}"));
    }

    /// Waits until all lines are on the disk, and writes that the run has ended.
    ///
    /// # Errors
    /// Partial: the changes were made, and the log may lack some of them.
    pub async fn end(&mut self, now: SystemTime) -> Result<(), CommandError> {
        self.settle().await?;
        let Some(log) = self.log.clone().filter(|_| self.has_begun) else { return Ok(()) };
        // A run without an end counts as one that was killed, so that `undo` reads its backup, which
        // contains the changes that the log lacks.
        if self.lacks_changes {
            return Ok(());
        }
        let at = humantime::format_rfc3339_millis(now).to_string();
        let state = if self.stops_early { EndState::Interrupted } else { EndState::Ended };
        let lines = Lines::of_mark(&Mark::End(OperationEnd {
            op: self.op.as_str().into(),
            at: at.into(),
            state,
            why: self.why.as_deref().map(Into::into),
        }));
        // The log contains every change already. Without this line, the run counts as one that was
        // killed, which does no harm.
        let _ = tokio::task::spawn_blocking(move || append::append(&log, lines)).await;
        Ok(())
    }

    /// Sets the server of the changes that are noted from now on.
    pub fn set_server(&mut self, server: Provenance) {
        let is_written = self.written_server.as_ref() == Some(&server);
        self.unwritten_server = if is_written { None } else { Some(server) };
    }

    /// Which run a backup belongs to.
    pub fn maker(&self) -> Maker {
        Maker { op: self.op.clone(), command: self.command.to_owned(), at: self.began.clone() }
    }

    /// Notes that `what` was done at `now` on this server. All lines are one write, which continues
    /// after this returns; [`AuditLog::end`] waits for the last write.
    ///
    /// # Errors
    /// Partial: the log may lack earlier changes.
    pub async fn note<'a>(
        &mut self,
        changed: impl Iterator<Item = Noted<'a>>,
        what: &'static str,
        server: &str,
        backup: Option<&str>,
        now: SystemTime,
    ) -> Result<(), CommandError> {
        let at = humantime::format_rfc3339_millis(now).to_string();
        let mut lines = Lines::default();
        let mut unwritten_server = self.unwritten_server.take();
        for noted in changed {
            if unwritten_server.is_some() {
                self.written_server.clone_from(&unwritten_server);
            }
            lines.push(&AuditEntry {
                from: unwritten_server.take(),
                ..self.entry(noted, what, server, backup, &at)
            });
        }
        self.unwritten_server = unwritten_server;
        let Some(log) = self.log.clone().filter(|_| !lines.is_empty()) else { return Ok(()) };
        // These lines are written even if the lines before them could not be.
        let earlier = self.settle().await;
        self.writing = Some(tokio::task::spawn_blocking(move || append::append(&log, lines)));
        earlier
    }

    fn entry<'a>(
        &'a self,
        noted: Noted<'a>,
        what: &'a str,
        server: &'a str,
        backup: Option<&'a str>,
        at: &'a str,
    ) -> AuditEntry<'a> {
        let RecordName { schema, prefix, key: key_bytes, .. } = noted.name;
        let key = escape::text(&key_bytes);
        let redis_key = escape::text(noted.redis_key);
        let bytes =
            |text: &str, bytes: &[u8]| (text.as_bytes() != bytes).then(|| STANDARD.encode(bytes));
        AuditEntry {
            at: at.into(),
            who: self.who.as_str().into(),
            host: self.host.as_str().into(),
            server: server.into(),
            command: self.command.into(),
            schema: schema.into(),
            prefix: prefix.map(Into::into),
            key_base64: bytes(&key, &key_bytes),
            redis_key_base64: bytes(&redis_key, noted.redis_key),
            key,
            redis_key,
            what: what.into(),
            reason: self.reason.as_deref().map(Into::into),
            backup: backup.map(Into::into),
            op: self.op.as_str().into(),
            sudo_user: self.sudo_user.as_deref().map(Into::into),
            undoes: self.undoes.as_deref().map(Into::into),
            before: noted.before,
            after: noted.after,
            from: None,
        }
    }

    /// Waits until all lines are on the disk.
    ///
    /// # Errors
    /// Partial: the changes were made, and the log may lack some of them.
    pub async fn settle(&mut self) -> Result<(), CommandError> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        let why = match writing.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.lacks_changes = true;
        Err(CommandError::new(
            Exit::Partial,
            format!("changes were made that the audit log does not contain: {why}"),
        )
        .hint(
            "check the folder's permissions and free space, then run the same command again to \
            continue",
        ))
    }
}

/// The path of the log, after a check that it can be written.
///
/// # Errors
/// Usage, with the variable that names another folder.
fn writable_log(session: &Session) -> Result<PathBuf, CommandError> {
    let log = session.settings.audit_log().map_err(|stop| stop.hint(ELSEWHERE))?;
    append::prepare(&log).map_err(|error| {
        CommandError::usage(error.to_string()).changed_nothing().hint(ELSEWHERE)
    })?;
    Ok(log)
}

/// Draws a name that no operation in the log has. A log that cannot be read is not searched; that
/// it can be written was already checked.
fn unused(log: Option<&Path>, draw: impl Fn() -> String) -> String {
    let mut op = draw();
    while log.is_some_and(|log| mentions(log, &op).unwrap_or(false)) {
        op = draw();
    }
    op
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use serde_json::json;

    use super::unused;

    /// Rule: no operation gets the name of another one in the log, because the two would be undone
    /// together.
    #[test]
    fn a_name_that_the_log_has_is_drawn_again() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.jsonl");
        let line = |op: &str| {
            let entry = json!({
                "at": "2026-01-01T00:00:00Z", "who": "ana", "host": "h", "server": "s", "command": "purge", "schema": "express",
                "key": "k", "redis_key": "idem:k", "what": "removed", "reason": null, "backup": null, "op": op,
            });
            format!("{entry}\n")
        };
        fs::write(&log, line("0000000000000001") + &line("0000000000000002")).unwrap();
        let drawn = Cell::new(0);
        let draw = || {
            drawn.set(drawn.get() + 1);
            format!("{:016x}", drawn.get())
        };
        assert_eq!(unused(Some(&log), draw), "0000000000000003");
        drawn.set(0);
        assert_eq!(unused(None, draw), "0000000000000001");
        drawn.set(0);
        assert_eq!(unused(Some(&folder.path().join("none")), draw), "0000000000000001");
    }
}
