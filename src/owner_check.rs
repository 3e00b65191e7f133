//! `--owner-alive`: runs the operator's command to find out whether an owner is alive.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::future::pending;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use crate::exit::CommandError;
use crate::render::escape;

/// How many commands run at the same time. Each is a process of its own, and there may be as many
/// owners as locks.
const AT_A_TIME: usize = 8;

/// The time limit of the command for one owner. The command may ask another machine, but one that
/// hangs must not stop the run.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long idemctl waits for the rest of stderr after the command has ended. A process that the
/// command left running may keep stderr open. What the command itself wrote is in the pipe by then,
/// so reading it takes no longer.
const REST_OF_STDERR: Duration = Duration::from_millis(100);

/// How many bytes of stderr are kept; only the first line is shown.
const MAX_STDERR: usize = 256;

/// How many bytes of an owner are shown. Services choose owners, which may be long; a UUID fits.
const MAX_SHOWN: usize = 64;

/// Exit codes of the command. Any other code is an error of the command and does not describe the
/// owner.
const ALIVE: i32 = 0;
const DEAD: i32 = 1;

/// Exit codes with which the shell reports that it cannot run the command.
const CANNOT_RUN: [i32; 2] = [126, 127];

/// The result for one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnerAnswer {
    Alive,
    Dead,
    /// Unknown for this reason; the owner counts as alive.
    Unknown(String),
}

impl OwnerAnswer {
    /// The result for the owner of a lock whose value was read only in part.
    pub(crate) fn of_part(key: &[u8]) -> Self {
        Self::Unknown(format!("the value of {} is too long to be read completely", shown(key)))
    }
}

pub(crate) struct OwnerCheck {
    command: OsString,
    answers: HashMap<Vec<u8>, OwnerAnswer>,
}

impl OwnerCheck {
    /// A check without results, and the command to run.
    pub(crate) fn new(command: OsString) -> Self {
        Self { command, answers: HashMap::new() }
    }

    /// Checks each of these owners once.
    ///
    /// # Errors
    /// Usage: the command cannot be run at all.
    pub(crate) async fn ask(
        &mut self,
        owners: impl Iterator<Item = &[u8]>,
    ) -> Result<(), CommandError> {
        let mut open: Vec<_> =
            owners.filter(|owner| !self.answers.contains_key(*owner)).map(<[u8]>::to_vec).collect();
        open.sort_unstable();
        open.dedup();
        let command = &self.command;
        let answers =
            stream::iter(open).map(|owner| async move { (ask(command, &owner).await, owner) });
        let mut answers = answers.buffer_unordered(AT_A_TIME);
        while let Some((answer, owner)) = answers.next().await {
            self.answers.insert(owner, answer?);
        }
        Ok(())
    }

    /// The result for an owner.
    pub(crate) fn answer(&self, owner: &[u8]) -> OwnerAnswer {
        let not_asked = || OwnerAnswer::Unknown(format!("owner {} was not checked", shown(owner)));
        self.answers.get(owner).cloned().unwrap_or_else(not_asked)
    }

    /// Discards the results, because an owner may die after it was checked.
    pub(crate) fn forget(&mut self) {
        self.answers.clear();
    }
}

async fn ask(command: &OsStr, owner: &[u8]) -> Result<OwnerAnswer, CommandError> {
    let unknown = |why: &str| Ok(OwnerAnswer::Unknown(format!("{why} for owner {}", shown(owner))));
    let cannot_run = |why: String| {
        CommandError::usage(format!("--owner-alive: cannot run the command ({why})"))
            .hint("nothing more was done; fix the command")
    };
    if owner.contains(&0) {
        return unknown("an argument cannot contain a zero byte, as needed");
    }
    let mut running = match start(command, OsStr::from_bytes(owner)) {
        Ok(child) => Running(child),
        Err(error) if error.kind() == ErrorKind::ArgumentListTooLong => {
            return unknown("too many bytes for an argument");
        }
        Err(error) => return Err(cannot_run(error.to_string())),
    };
    let mut stderr = running.0.stderr.take();
    let mut said = Vec::new();
    let ended = tokio::select! {
        ended = timeout(PATIENCE, running.0.wait()) => ended,
        never = read_on(&mut stderr, &mut said) => match never {},
    };
    let status = match ended {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => return unknown(&format!("cannot wait for the command ({error})")),
        Err(_) => return unknown(&format!("no answer within {} s", PATIENCE.as_secs())),
    };
    if status.code() == Some(ALIVE) {
        return Ok(OwnerAnswer::Alive);
    }
    if status.code() == Some(DEAD) {
        return Ok(OwnerAnswer::Dead);
    }
    let rest = async { match read_on(&mut stderr, &mut said).await {} };
    let _ = timeout(REST_OF_STDERR, rest).await;
    let why = format!("{} for owner {}{}", words(status), shown(owner), first_line(&said));
    match status.code() {
        Some(code) if CANNOT_RUN.contains(&code) => Err(cannot_run(why)),
        _ => Ok(OwnerAnswer::Unknown(why)),
    }
}

fn start(command: &OsStr, owner: &OsStr) -> io::Result<Child> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).arg("idemctl").arg(owner).env("IDEMCTL_OWNER", owner);
    // In a process group of its own, so that everything it starts can be killed with it.
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0).spawn()
}

/// Reads the command's stderr and keeps the beginning. This never returns, because the command's
/// exit decides.
async fn read_on(stderr: &mut Option<ChildStderr>, kept: &mut Vec<u8>) -> Infallible {
    let mut chunk = [0; 1024];
    while let Some(pipe) = stderr {
        match pipe.read(&mut chunk).await {
            Ok(read @ 1..) => {
                let room = MAX_STDERR.saturating_sub(kept.len());
                kept.extend_from_slice(&chunk[..read.min(room)]);
            }
            _ => *stderr = None,
        }
    }
    pending().await
}

/// The command's exit status in words.
fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "no exit status".to_owned(),
    }
}

/// The first line that the command wrote to stderr, after a colon.
fn first_line(said: &[u8]) -> String {
    let line = said.split(|byte| *byte == b'\n').find(|line| !line.is_empty()).unwrap_or_default();
    if line.is_empty() { String::new() } else { format!(": {}", escape::text(line)) }
}

/// A name, truncated if it is long.
fn shown(name: &[u8]) -> String {
    match name.get(..MAX_SHOWN) {
        Some(head) if name.len() > MAX_SHOWN => {
            format!("{}… ({} bytes)", escape::text(head), name.len())
        }
        _ => escape::text(name),
    }
}

/// A shell that is killed together with all its processes when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}
