//! The audit log of one run of a command.

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;

use crate::args::{ChangeArgs, ConfirmArgs};
use crate::domain::change::provenance::Provenance;
use crate::domain::hex::hex;
use crate::domain::history::{
    AuditEntry, Begin, EndState, Mark, OperationEnd, Totals, gives_expiry,
};
use crate::domain::record::{KeyIdentity, RecordName};
use crate::exit::{CommandError, Exit};
use crate::render::escape;
use crate::session::Session;
use crate::store::StoreError;
use crate::store::audit::append::{self, Lines};
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
        let environment = session.settings.environment();
        Self {
            folder,
            op: session.new_operation(),
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
        match writable_folder(session) {
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
        let Some(folder) = self.folder.clone().filter(|_| !self.has_begun) else { return Ok(()) };
        let at = humantime::format_rfc3339_millis(now).to_string();
        let mark = Mark::Begin(Box::new(Begin {
            op: self.op.clone().into(),
            at: at.into(),
            who: self.who.clone().into(),
            sudo_user: self.sudo_user.clone().map(Into::into),
            uid: Some(self.uid),
            host: self.host.clone().into(),
            server: server.to_owned().into(),
            command: self.command.into(),
            filters: self.filters.clone().map(Into::into),
            reason: self.reason.clone().map(Into::into),
            backup: backup.map(|file| file.to_owned().into()),
            undoes: self.undoes.clone().map(Into::into),
            part: self.is_partial,
            from: self.unwritten_server.clone(),
        }));
        let op = self.op.clone();
        let writing = tokio::task::spawn_blocking(move || append::begin(&folder, &op, &mark));
        let why = match writing.await {
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
        let Some(folder) = self.folder.clone().filter(|_| self.has_begun) else { return Ok(()) };
        // A run without an end counts as one that was killed, so that `undo` reads its backup, which
        // contains the changes that the log lacks.
        if self.lacks_changes {
            return Ok(());
        }
        let at = humantime::format_rfc3339_millis(now).to_string();
        let state = if self.stops_early { EndState::Interrupted } else { EndState::Ended };
        let mark = Mark::End(OperationEnd {
            op: self.op.clone().into(),
            at: at.into(),
            state,
            why: self.why.take().map(Into::into),
            totals: self.totals.clone(),
            sha256: hex(&self.digest.clone().finalize()).into(),
        });
        let gave_expiries = self.gave_expiries;
        let ending = tokio::task::spawn_blocking(move || {
            if gave_expiries {
                // Lines that stay longer do no harm.
                let _ = expiries::drop_expired(&folder, now);
            }
            append::add_mark(&folder, &mark)
        });
        // The details contain every change already. Without this line, the run counts as one that
        // was killed, which does no harm.
        let _ = ending.await;
        Ok(())
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
        let mut lines = Lines::default();
        for noted in expected {
            lines.push(&self.entry(noted, what, server, None, &at));
        }
        Ok(tokio::task::spawn_blocking(move || expiries::add(&folder, lines)).await??)
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
        let mut totals = std::mem::take(&mut self.totals);
        for noted in changed {
            if unwritten_server.is_some() {
                self.written_server.clone_from(&unwritten_server);
            }
            let entry = AuditEntry {
                from: unwritten_server.take(),
                ..self.entry(noted, what, server, backup, &at)
            };
            totals.add(&entry);
            lines.push(&entry);
        }
        self.totals = totals;
        self.unwritten_server = unwritten_server;
        let Some(folder) = self.folder.clone().filter(|_| !lines.is_empty()) else { return Ok(()) };
        self.digest.update(lines.bytes());
        // These lines are written even if the lines before them could not be.
        let earlier = self.settle().await;
        let op = self.op.clone();
        let gives_expiry = gives_expiry(what);
        self.gave_expiries |= gives_expiry;
        self.writing = Some(tokio::task::spawn_blocking(move || {
            append::add_changes(&folder, &op, lines, gives_expiry)
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

/// The audit folder, after a check that it can be written.
///
/// # Errors
/// Usage, with the variable that names another folder.
fn writable_folder(session: &Session) -> Result<PathBuf, CommandError> {
    let folder = session.settings.audit_dir().map_err(|stop| stop.hint(ELSEWHERE))?;
    append::prepare(&folder).map_err(|error| {
        CommandError::usage(error.to_string()).changed_nothing().hint(ELSEWHERE)
    })?;
    Ok(folder)
}
