//! Asking the operator's command whether an owner is alive.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::exit::Stop;
use crate::render::escape;

const AT_A_TIME: usize = 8;

/// How long the command may take. An owner of whom the command says nothing in that time counts as alive.
const PATIENCE: Duration = Duration::from_secs(10);

/// Exit statuses with which the shell says that it cannot run the command.
const CANNOT_RUN: [i32; 2] = [126, 127];

pub struct Owners {
    command: OsString,
    alive: HashMap<Vec<u8>, bool>,
}

impl Owners {
    /// Owners of whom nothing is known yet, and the command to ask.
    pub fn new(command: OsString) -> Self {
        Self { command, alive: HashMap::new() }
    }

    /// Asks about these owners, each once. An owner of whom the command leaves it open counts as alive.
    ///
    /// # Errors
    /// Usage: a command that cannot be run at all would make every owner look dead.
    pub(super) async fn ask(&mut self, owners: impl Iterator<Item = &[u8]>) -> Result<(), Stop> {
        let mut unknown: Vec<_> = owners.filter(|owner| !self.alive.contains_key(*owner)).map(<[u8]>::to_vec).collect();
        unknown.sort_unstable();
        unknown.dedup();
        let command = &self.command;
        let answers = stream::iter(unknown).map(|owner| async move { (ask(command, &owner).await, owner) });
        let mut answers = answers.buffer_unordered(AT_A_TIME);
        while let Some((alive, owner)) = answers.next().await {
            self.alive.insert(owner, alive?);
        }
        Ok(())
    }

    /// True unless the command said that the owner is not alive.
    pub(super) fn is_alive(&self, owner: &[u8]) -> bool {
        self.alive.get(owner).copied().unwrap_or(true)
    }

    /// Forgets the answers, for an owner may die after an answer.
    pub(super) fn forget(&mut self) {
        self.alive.clear();
    }
}

async fn ask(command: &OsStr, owner: &[u8]) -> Result<bool, Stop> {
    let cannot_run = |why: String| {
        Stop::usage(format!("--owner-alive: the command cannot be run ({why})"))
            .hint("nothing more was swept: fix the command")
    };
    if owner.contains(&0) {
        return Ok(true);
    }
    let owner = OsStr::from_bytes(owner);
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).arg("idemctl").arg(owner).env("IDEMCTL_OWNER", owner);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    let mut running = Running(shell.spawn().map_err(|error| cannot_run(error.to_string()))?);
    let Ok(Ok(status)) = timeout(PATIENCE, running.0.wait()).await else { return Ok(true) };
    match status.code() {
        Some(code) if CANNOT_RUN.contains(&code) => {
            Err(cannot_run(format!("exit status {code} for owner {}", escape::text(owner.as_bytes()))))
        }
        Some(code) => Ok(code == 0),
        None => Ok(true),
    }
}

/// A shell that is killed with all the processes it started as soon as nobody waits for it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}
