//! The audit log of one run of a command.

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;

use super::audit_command::AuditCommand;
use crate::args::{ChangeArgs, ConfirmArgs};
use crate::domain::change::provenance::Provenance;
use crate::domain::hex::hex;
use crate::domain::history::{
    AuditEntry, Begin, Mark, OperationEnd, OperationState, Totals, gives_expiry,
};
use crate::domain::record::{KeyIdentity, RecordName};
use crate::exit::{CommandError, Exit};
use crate::render::escape;
use crate::session::Session;
use crate::store::StoreError;
use crate::store::audit::append::{self, push_line};
use crate::store::audit::expiries;
use crate::store::backup::Maker;

/// What to do where the log cannot be written.
const ELSEWHERE: &str = "set XDG_STATE_HOME to another folder for backups and the audit log, or \
    continue without both with --no-backup";

/// Who changes what with which command, and why.
#[derive(Default)]
pub struct AuditLog {
    /// The audit folder; `None` where the operator goes on without a log.
    folder: Option<PathBuf>,
    /// The program that gets the first and the last line, too.
    command: Option<AuditCommand>,
    /// The beginning of the run, as the log will have it.
    begin: Begin,
    /// True once the log says that the run begins to change something.
    has_begun: bool,
    /// True if the run stops before it has processed everything.
    stops_early: bool,
    /// The error that stops it.
    why: Option<String>,
    /// The server of the next changes.
    server: Option<Provenance>,
    /// What the lines of changes add up to.
    totals: Totals,
    /// The digest of these lines.
    digest: Sha256,
    /// The last lines, which are being written to the disk.
    writing: Option<JoinHandle<Result<(), StoreError>>>,
    /// True if lines of changes could not be written.
    lacks_changes: bool,
    /// True if it gave locks an expiry.
    gave_expiries: bool,
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
        Ok(Self::with(Some(writable_folder(session)?), session, args, command))
    }

    fn with(
        folder: Option<PathBuf>,
        session: &Session,
        args: &ConfirmArgs,
        command: &'static str,
    ) -> Self {
        let command_line = AuditCommand::of(session);
        let begin = begin_of(session, args, command);
        Self { folder, command: command_line, begin, ..Self::default() }
    }

    /// Like [`Self::open`], but if the log cannot be written and the operator wants no backup, the
    /// run continues without a log.
    pub fn open_or_do_without(
        session: &mut Session,
        args: &ChangeArgs,
        command: &'static str,
    ) -> Result<Self> {
        let folder = match writable_folder(session) {
            Err(error) if args.no_backup => {
                session.ui.warning(&format!(
                    "the audit log will not contain this change: {}",
                    error.message
                ));
                None
            }
            folder => Some(folder?),
        };
        Ok(Self::with(folder, session, &args.confirm_args, command))
    }

    /// Notes, before the first change, that the run undoes an operation, or part of it.
    pub fn undoes(&mut self, op: &str, is_partial: bool) {
        self.begin.undoes = Some(op.to_owned());
        self.begin.part = is_partial;
    }

    /// Writes, before the first change, that the run begins to change something. If it is killed
    /// before it writes what it changed, the log shows that there was an operation. Every call but
    /// the first does nothing.
    ///
    /// # Errors
    /// Usage: the log cannot be written, or the audit command failed, so nothing may be changed.
    pub async fn begin(
        &mut self,
        server: &str,
        backup: Option<&str>,
        now: SystemTime,
    ) -> Result<(), CommandError> {
        if self.has_begun {
            return Ok(());
        }
        self.begin.at = humantime::format_rfc3339_millis(now).to_string();
        server.clone_into(&mut self.begin.server);
        self.begin.backup = backup.map(str::to_owned);
        self.begin.from.clone_from(&self.server);
        let mut line = Vec::new();
        push_line(&mut line, &Mark::Begin(Box::new(self.begin.clone())));
        if let Some(command) = &self.command {
            command.begin(&line).await?;
        }
        self.digest.update(&line);
        let op = self.begin.op.clone();
        if let Some(folder) = self.folder.clone()
            && let Err(error) = on_disk(move || append::begin(&folder, &op, line)).await
        {
            let error = CommandError::usage(error.to_string());
            return Err(error.changed_nothing().hint(ELSEWHERE));
        }
        self.has_begun = true;
        Ok(())
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

    /// Notes that the run changes something other than Redis keys.
    pub fn is_told(&mut self) {
        self.totals.is_told = true;
    }

    /// Waits until all lines are on the disk, and writes that the run has ended.
    ///
    /// # Errors
    /// Partial: the changes were made, and the log may lack some of them, or the audit command
    /// failed.
    pub async fn end(&mut self, now: SystemTime) -> Result<(), CommandError> {
        self.settle().await?;
        // A run without an end counts as one that was killed, so that `undo` reads its backup, which
        // contains the changes that the log lacks.
        if !self.has_begun || self.lacks_changes {
            return Ok(());
        }
        let state = match self.stops_early {
            true => OperationState::Interrupted,
            false => OperationState::Ended,
        };
        let mut line = Vec::new();
        push_line(
            &mut line,
            &Mark::End(OperationEnd {
                op: self.begin.op.clone(),
                at: humantime::format_rfc3339_millis(now).to_string(),
                state,
                why: self.why.take(),
                totals: self.totals.clone(),
                sha256: hex(&self.digest.clone().finalize()),
            }),
        );
        if let Some(folder) = self.folder.clone() {
            let (gave_expiries, line) = (self.gave_expiries, line.clone());
            // The details contain every change already. Without this line, the run counts as one
            // that was killed, which does no harm.
            let _ = on_disk(move || {
                if gave_expiries {
                    // Lines that stay longer do no harm.
                    let _ = expiries::drop_expired(&folder, now);
                }
                append::end(&folder, line)
            })
            .await;
        }
        match &self.command {
            Some(command) => command.end(&line).await,
            None => Ok(()),
        }
    }

    /// Writes, before Redis keys get another expiry, their identities and about when they will
    /// expire. If the run is killed before the exact lines, the former expiries are not lost.
    ///
    /// # Errors
    /// The lines cannot be written; then the changes must not be made.
    pub async fn expect_expiries<'a>(
        &mut self,
        expected: impl Iterator<Item = Noted<'a>>,
        what: &'static str,
        server: &str,
        now: SystemTime,
    ) -> Result<()> {
        let Some(folder) = self.folder.clone() else { return Ok(()) };
        let at = humantime::format_rfc3339_millis(now).to_string();
        let mut lines = Vec::new();
        for noted in expected {
            push_line(&mut lines, &self.entry(noted, what, server, None, &at));
        }
        on_disk(move || expiries::add(&folder, lines)).await
    }

    /// Sets the server of the changes that are noted from now on.
    pub fn set_server(&mut self, server: Provenance) {
        self.server = Some(server);
    }

    /// Which run a backup belongs to.
    pub fn maker(&self) -> Maker {
        let Begin { op, command, at, .. } = self.begin.clone();
        Maker { op, command, at }
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
        let mut lines = Vec::new();
        let mut totals = std::mem::take(&mut self.totals);
        for noted in changed {
            let entry = AuditEntry {
                from: self.server.as_ref().filter(|at| !totals.places.contains(at)).cloned(),
                ..self.entry(noted, what, server, backup, &at)
            };
            totals.add(&entry);
            push_line(&mut lines, &entry);
        }
        self.totals = totals;
        let Some(folder) = self.folder.clone().filter(|_| !lines.is_empty()) else { return Ok(()) };
        self.digest.update(&lines);
        // These lines are written even if the lines before them could not be.
        let earlier = self.settle().await;
        let op = self.begin.op.clone();
        let gives_expiry = gives_expiry(what);
        self.gave_expiries |= gives_expiry;
        self.writing = Some(tokio::task::spawn_blocking(move || {
            if gives_expiry {
                expiries::add(&folder, lines.clone())?;
            }
            append::add_changes(&folder, &op, lines)
        }));
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
        let mut entry = AuditEntry {
            at: at.into(),
            who: self.begin.who.as_str().into(),
            host: self.begin.host.as_str().into(),
            server: server.into(),
            command: self.begin.command.as_str().into(),
            schema: schema.into(),
            prefix: prefix.map(Into::into),
            key_base64: bytes(&key, &key_bytes),
            redis_key_base64: bytes(&redis_key, noted.redis_key),
            key,
            redis_key,
            what: what.into(),
            reason: self.begin.reason.as_deref().map(Into::into),
            backup: backup.map(Into::into),
            op: self.begin.op.as_str().into(),
            sudo_user: self.begin.sudo_user.as_deref().map(Into::into),
            undoes: self.begin.undoes.as_deref().map(Into::into),
            before: noted.before,
            after: noted.after,
            from: None,
        };
        // A change of an expiry is not backed up.
        if entry.changes_only_expiry() {
            entry.backup = None;
        }
        entry
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

/// Who begins which command now, and why.
pub fn begin_of(session: &Session, args: &ConfirmArgs, command: &str) -> Begin {
    let environment = session.settings.environment();
    Begin {
        op: session.new_operation(),
        at: humantime::format_rfc3339_millis(session.now()).to_string(),
        who: environment.user(),
        sudo_user: environment.sudo_user(),
        uid: Some(environment.user_id()),
        host: session.host(),
        command: command.to_owned(),
        filters: session.ui.invocation().filters(),
        reason: args.reason.clone(),
        planner: args.planner.clone(),
        ..Begin::default()
    }
}

/// The audit folder, after a check that it can be written.
///
/// # Errors
/// Usage, with the variable that names another folder.
fn writable_folder(session: &Session) -> Result<PathBuf, CommandError> {
    let folder = session.settings.audit_dir().map_err(|stop| stop.hint(ELSEWHERE))?;
    let is_ready = append::prepare(&folder).and_then(|()| expiries::prepare(&folder));
    is_ready.map_err(|error| {
        CommandError::usage(error.to_string()).changed_nothing().hint(ELSEWHERE)
    })?;
    Ok(folder)
}

/// Writes on a thread of its own, because a disk may be slow.
async fn on_disk(write: impl FnOnce() -> Result<(), StoreError> + Send + 'static) -> Result<()> {
    Ok(tokio::task::spawn_blocking(write).await??)
}
