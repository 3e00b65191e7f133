//! The audit log of one run of a command.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::task::JoinHandle;

use crate::args::{ChangeArgs, ConfirmArgs};
use crate::context::Context;
use crate::domain::change::provenance::Provenance;
use crate::domain::history::{AuditEntry, Begin, EndState, Mark, OperationEnd};
use crate::domain::record::KeyIdentity;
use crate::exit::{CommandError, Exit};
use crate::render::escape;
use crate::store::StoreError;
use crate::store::audit::append::{self, Lines};
use crate::store::audit::log::mentions;
use crate::store::backup::Maker;

/// What to do where the log cannot be written.
const ELSEWHERE: &str = "set XDG_STATE_HOME to another folder for backups and the audit log, or \
    continue without both with --no-backup";

/// Who changes what with which command, and why.
pub struct AuditTrail {
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
    is_part: bool,
    /// True once the log says that the run begins to change something.
    has_begun: bool,
    /// True if the run stops before it has come to everything.
    stops_early: bool,
    /// The error that stops it.
    why: Option<String>,
    /// Where changes are made from here on, where no line says so yet.
    place: Option<Provenance>,
    /// Where the last line that says so says that changes were made.
    told: Option<Provenance>,
    /// The last notes, which are being written to the disk.
    writing: Option<JoinHandle<Result<(), StoreError>>>,
}

/// A Redis key that was changed, as the audit log has it.
pub struct Noted<'a> {
    pub schema: &'a str,
    pub key: &'a [u8],
    pub redis_key: &'a [u8],
    /// What stood there, where the change left something.
    pub before: Option<KeyIdentity>,
    /// What the change left; `None` where nobody knows.
    pub after: Option<KeyIdentity>,
}

impl AuditTrail {
    /// Makes sure, before anything is changed, that the log can be written.
    pub fn open(context: &Context, args: &ConfirmArgs, command: &'static str) -> Result<Self> {
        Ok(Self::with(Some(writable_log(context)?), context, args, command))
    }

    fn with(
        log: Option<PathBuf>,
        context: &Context,
        args: &ConfirmArgs,
        command: &'static str,
    ) -> Self {
        let op = unused(log.as_deref(), || context.new_operation());
        let environment = context.settings.environment();
        Self {
            log,
            op,
            began: humantime::format_rfc3339_millis(context.now()).to_string(),
            who: environment.user(),
            sudo_user: environment.sudo_user(),
            uid: environment.user_id(),
            host: context.host(),
            command,
            filters: context.ui.invocation().filters(),
            reason: args.reason.clone(),
            undoes: None,
            is_part: false,
            has_begun: false,
            stops_early: false,
            why: None,
            place: None,
            told: None,
            writing: None,
        }
    }

    /// The same; where the log cannot be written, whoever wants no backup goes on without a log, too.
    pub fn open_or_do_without(
        context: &mut Context,
        args: &ChangeArgs,
        command: &'static str,
    ) -> Result<Self> {
        match writable_log(context) {
            Err(error) if args.no_backup => {
                context.ui.warning(&format!(
                    "the audit log will not contain this change: {}",
                    error.message
                ));
                Ok(Self::with(None, context, &args.confirm_args, command))
            }
            _ => Self::open(context, &args.confirm_args, command),
        }
    }

    /// The same for a run that takes an operation back, or part of it.
    #[must_use]
    pub fn undoing(self, op: &str, is_part: bool) -> Self {
        Self { undoes: Some(op.to_owned()), is_part, ..self }
    }

    /// Notes, before the first change, that the run begins to change something: if it is killed before it notes what it
    /// changed, the log tells that there was an operation. Every call but the first does nothing.
    ///
    /// # Errors
    /// Usage: the log cannot be written; then nothing must be changed.
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
            part: self.is_part,
            from: self.place.clone(),
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
        Err(CommandError::usage(format!("{why}; nothing was changed")).hint(ELSEWHERE))
    }

    /// Says that the run stops before it has come to everything.
    pub fn stops_early(&mut self) {
        self.stops_early = true;
    }

    /// The same for a run that an error stops.
    pub fn stops_for(&mut self, error: &anyhow::Error) {
        self.stops_early = true;
        self.why = Some(format!("{error:#}"));
    }

    /// Waits until all notes are on the disk, and notes that the run is over.
    ///
    /// # Errors
    /// Partial: the changes were made and could not be noted.
    pub async fn end(&mut self, now: SystemTime) -> Result<(), CommandError> {
        self.settle().await?;
        let Some(log) = self.log.clone().filter(|_| self.has_begun) else { return Ok(()) };
        let at = humantime::format_rfc3339_millis(now).to_string();
        let state = if self.stops_early { EndState::Interrupted } else { EndState::Ended };
        let lines = Lines::of_mark(&Mark::End(OperationEnd {
            op: self.op.as_str().into(),
            at: at.into(),
            state,
            why: self.why.as_deref().map(Into::into),
        }));
        // The log tells of every change. Without this line it counts as one that was killed, which harms nobody.
        let _ = tokio::task::spawn_blocking(move || append::append(&log, lines)).await;
        Ok(())
    }

    /// Says where the changes are made that are noted from here on.
    pub fn set_server(&mut self, place: Provenance) {
        self.place = Some(place).filter(|place| self.told.as_ref() != Some(place));
    }

    /// Whose a backup of this run is.
    pub fn maker(&self) -> Maker {
        Maker { op: self.op.clone(), command: self.command.to_owned(), at: self.began.clone() }
    }

    /// Notes that `what` was done at `now` on this server. All notes go out in one write, which goes on after this returns;
    /// [`AuditTrail::end`] waits for the last write.
    ///
    /// # Errors
    /// Partial: earlier changes could not be noted.
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
        let mut place = self.place.take();
        for noted in changed {
            if place.is_some() {
                self.told.clone_from(&place);
            }
            lines.push(&AuditEntry {
                from: place.take(),
                ..self.entry(noted, what, server, backup, &at)
            });
        }
        self.place = place;
        let Some(log) = self.log.clone().filter(|_| !lines.is_empty()) else { return Ok(()) };
        self.settle().await?;
        self.writing = Some(tokio::task::spawn_blocking(move || append::append(&log, lines)));
        Ok(())
    }

    fn entry<'a>(
        &'a self,
        noted: Noted<'a>,
        what: &'a str,
        server: &'a str,
        backup: Option<&'a str>,
        at: &'a str,
    ) -> AuditEntry<'a> {
        let key = escape::text(noted.key);
        let redis_key = escape::text(noted.redis_key);
        let bytes =
            |text: &str, bytes: &[u8]| (text.as_bytes() != bytes).then(|| STANDARD.encode(bytes));
        AuditEntry {
            at: at.into(),
            who: self.who.as_str().into(),
            host: self.host.as_str().into(),
            server: server.into(),
            command: self.command.into(),
            schema: noted.schema.into(),
            key_base64: bytes(&key, noted.key),
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

    /// Waits until all notes are on the disk.
    ///
    /// # Errors
    /// Partial: the changes were made and could not be noted.
    pub async fn settle(&mut self) -> Result<(), CommandError> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        let why = match writing.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
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

/// The log, which can be written.
///
/// # Errors
/// Usage, with the variable that names another folder.
fn writable_log(context: &Context) -> Result<PathBuf, CommandError> {
    let log = context.settings.audit_log().map_err(|stop| stop.hint(ELSEWHERE))?;
    append::prepare(&log).map_err(|error| {
        CommandError::usage(format!("{error}; nothing was changed")).hint(ELSEWHERE)
    })?;
    Ok(log)
}

/// Draws a name that no operation of the log has. A log that cannot be read cannot be compared with; that it can be written
/// is known already.
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

    /// Rule: no operation gets a name that another one of the log has, for the two would be undone together.
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
