//! The audit log of one run of a command.

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::Result;
use tokio::task::JoinHandle;

use crate::args::{ChangeArgs, ConfirmArgs};
use crate::context::Context;
use crate::exit::{Exit, Stop};
use crate::render::escape;
use crate::store::StoreError;
use crate::store::audit::entry::{self, Entry, Lines};

/// Who changes what with which command, and why.
pub struct AuditTrail {
    /// `None` where the operator goes on without a log.
    log: Option<PathBuf>,
    who: String,
    host: String,
    command: &'static str,
    reason: Option<String>,
    /// The last notes, which are being written to the disk.
    writing: Option<JoinHandle<Result<(), StoreError>>>,
}

pub struct Noted<'a> {
    pub schema: &'a str,
    pub key: &'a [u8],
    pub redis_key: &'a [u8],
}

impl AuditTrail {
    /// Makes sure, before anything is changed, that the log can be written.
    pub fn open(context: &Context, args: &ConfirmArgs, command: &'static str) -> Result<Self> {
        let log = Some(writable_log(context)?);
        Ok(Self {
            log,
            who: context.settings.environment().user(),
            host: context.host(),
            command,
            reason: args.reason.clone(),
            writing: None,
        })
    }

    /// The same; where the log cannot be written, whoever wants no backup goes on without a log, too.
    pub fn open_or_do_without(context: &mut Context, args: &ChangeArgs, command: &'static str) -> Result<Self> {
        match writable_log(context) {
            Err(error) if args.no_backup => {
                context.ui.warning(&format!("the audit log will not show this change: {}", error.message));
                let (who, host) = (context.settings.environment().user(), context.host());
                Ok(Self { log: None, who, host, command, reason: args.confirmed.reason.clone(), writing: None })
            }
            _ => Self::open(context, &args.confirmed, command),
        }
    }

    /// Notes that `what` was done at `now` on this server. All notes go out in one write, which goes on after this returns;
    /// [`AuditTrail::settle`] waits for the last write.
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
    ) -> Result<(), Stop> {
        let at = humantime::format_rfc3339_millis(now).to_string();
        let mut lines = Lines::default();
        for noted in changed {
            lines.push(&Entry {
                at: at.as_str().into(),
                who: self.who.as_str().into(),
                host: self.host.as_str().into(),
                server: server.into(),
                command: self.command.into(),
                schema: noted.schema.into(),
                key: escape::text(noted.key),
                redis_key: escape::text(noted.redis_key),
                what: what.into(),
                reason: self.reason.as_deref().map(Into::into),
                backup: backup.map(Into::into),
            });
        }
        let Some(log) = self.log.clone().filter(|_| !lines.is_empty()) else { return Ok(()) };
        self.settle().await?;
        self.writing = Some(tokio::task::spawn_blocking(move || entry::append(&log, lines)));
        Ok(())
    }

    /// Waits until all notes are on the disk.
    ///
    /// # Errors
    /// Partial: the changes were made and could not be noted.
    pub async fn settle(&mut self) -> Result<(), Stop> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        let why = match writing.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Err(Stop::new(Exit::Partial, format!("changes were made that the audit log does not show: {why}"))
            .hint("check the folder's rights and free space, then run the same command again to go on"))
    }
}

/// The log, which can be written.
///
/// # Errors
/// Usage, with the variable that names another folder.
fn writable_log(context: &Context) -> Result<PathBuf, Stop> {
    let elsewhere =
        "XDG_STATE_HOME names another folder for backups and the audit log; --no-backup goes on without either";
    let log = context.settings.state_dir().map_err(|stop| stop.hint(elsewhere))?.join("audit.jsonl");
    entry::prepare(&log).map_err(|error| Stop::usage(format!("{error}: nothing was changed")).hint(elsewhere))?;
    Ok(log)
}
