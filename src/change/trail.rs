//! The audit log of one run of a command.

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::Result;

use crate::args::ConfirmArgs;
use crate::context::Context;
use crate::exit::{Exit, Stop};
use crate::render::escape;
use crate::store::audit::{self, Entry};

/// Who changes what with which command, and why.
pub struct Trail {
    log: PathBuf,
    who: String,
    host: String,
    command: &'static str,
    reason: Option<String>,
}

/// A Redis key that was changed, and whose record it is.
pub struct Noted<'a> {
    /// The schema's name.
    pub schema: &'a str,
    /// The idempotency key.
    pub key: &'a [u8],
    /// The Redis key.
    pub redis_key: &'a [u8],
}

impl Trail {
    /// Makes sure, before anything is changed, that it can be noted after.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn open(context: &Context, args: &ConfirmArgs, command: &'static str) -> Result<Self> {
        let log = context.settings.state_dir()?.join("audit.jsonl");
        audit::prepare(&log)?;
        Ok(Self {
            log,
            who: context.settings.environment().user(),
            host: context.host(),
            command,
            reason: args.reason.clone(),
        })
    }

    /// Notes that `what` was done at `now` on this server, in one write.
    ///
    /// # Errors
    /// Partial: the changes were made and could not be noted.
    pub fn note<'a>(
        &self,
        changed: impl Iterator<Item = Noted<'a>>,
        what: &'static str,
        server: &str,
        backup: Option<&str>,
        now: SystemTime,
    ) -> Result<(), Stop> {
        let at = humantime::format_rfc3339_millis(now).to_string();
        let entries = changed.map(|noted| Entry {
            at: at.clone(),
            who: self.who.clone(),
            host: self.host.clone(),
            server: server.to_owned(),
            command: self.command,
            schema: noted.schema.to_owned(),
            key: escape::text(noted.key),
            redis_key: escape::text(noted.redis_key),
            what,
            reason: self.reason.clone(),
            backup: backup.map(str::to_owned),
        });
        audit::append_many(&self.log, &entries.collect::<Vec<_>>()).map_err(|error| {
            Stop::new(Exit::Partial, format!("changes were made that the audit log does not show: {error}"))
                .hint("check the folder's rights and free space, then run the same command again to go on")
        })
    }
}
