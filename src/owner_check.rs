//! `--owner-alive`: runs the operator's command to find out whether an owner is alive.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};

use crate::ask_program::{AskProgram, AskedLock};
use crate::domain::change::orphan;
use crate::domain::record::{Evidence, Record, TimeLeft};
use crate::exit::CommandError;
use crate::render::escape;

/// How many commands run at the same time. Each is a process of its own, and there may be as many
/// owners as locks.
const AT_A_TIME: usize = 8;

/// The time limit of the command for one owner. The command may ask another machine, but one that
/// hangs must not stop the run.
const PATIENCE: Duration = Duration::from_secs(10);

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
    program: AskProgram,
    /// By the Redis key of the lock. The same name may be a living process for one lock, and for an
    /// older one a process that ended before its name was used again.
    answers: HashMap<Vec<u8>, OwnerAnswer>,
}

impl OwnerCheck {
    /// A check without results, and the command to run.
    pub(crate) fn new(command: OsString) -> Self {
        let program = AskProgram { option: "--owner-alive", command, patience: PATIENCE };
        Self { program, answers: HashMap::new() }
    }

    /// Checks the owner of each of these locks that stores one.
    ///
    /// # Errors
    /// Usage: the command cannot be run at all.
    pub(crate) async fn ask<'r>(
        &mut self,
        locks: impl Iterator<Item = &'r Record>,
    ) -> Result<(), CommandError> {
        let mut open = Vec::new();
        for lock in locks {
            if let Some(owner) = lock.owner()
                && !self.answers.contains_key(redis_key(lock))
            {
                open.push((lock, owner));
            }
        }
        let program = &self.program;
        let answers = stream::iter(open)
            .map(|(lock, owner)| async move { (ask(program, lock, owner).await, lock) });
        let mut answers = answers.buffer_unordered(AT_A_TIME);
        while let Some((answer, lock)) = answers.next().await {
            self.answers.insert(redis_key(lock).to_vec(), answer?);
        }
        Ok(())
    }

    /// The result for the owner of a lock.
    pub(crate) fn answer(&self, lock: &Record, owner: &[u8]) -> OwnerAnswer {
        let not_asked = || OwnerAnswer::Unknown(format!("owner {} was not checked", shown(owner)));
        self.answers.get(redis_key(lock)).cloned().unwrap_or_else(not_asked)
    }

    /// Discards the results, because an owner may die after it was checked.
    pub(crate) fn forget(&mut self) {
        self.answers.clear();
    }
}

fn redis_key(lock: &Record) -> &[u8] {
    &lock.seen.keys[lock.schema.lock_key_index()].redis_key
}

/// What the command gets about a lock. Times are in milliseconds since the epoch.
fn asked(lock: &Record, owner: &[u8]) -> AskedLock {
    let owner = OsString::from_vec(owner.to_vec());
    let now = lock.seen.server_ms;
    let mut started = None;
    let mut started_after = None;
    if let (Some(age), Some(now)) = (orphan::age(lock), now) {
        let at = Some(OsString::from(now.saturating_sub(age.millis).to_string()));
        match age.evidence {
            Evidence::Known => started = at,
            // The lock may have been acquired with a shorter TTL, and then later.
            Evidence::Stated => started_after = at,
            Evidence::Estimated => {}
        }
    }
    let mut deadline = None;
    if let (Some(TimeLeft::Millis(left)), Some(now)) =
        (lock.end_of(lock.schema.lock_key_index()), now)
    {
        deadline = Some(OsString::from(now.saturating_add(left).to_string()));
    }
    let variables = [
        ("IDEMCTL_OWNER", Some(owner.clone())),
        ("IDEMCTL_KEY", Some(OsString::from_vec(lock.key.clone()))),
        ("IDEMCTL_SCHEMA", Some(OsString::from(&lock.schema.name))),
        ("IDEMCTL_LOCK_STARTED", started),
        ("IDEMCTL_LOCK_STARTED_AFTER", started_after),
        ("IDEMCTL_DEADLINE", deadline),
    ];
    AskedLock { owner, variables }
}

async fn ask(
    program: &AskProgram,
    lock: &Record,
    owner: &[u8],
) -> Result<OwnerAnswer, CommandError> {
    let of = format!(" for owner {}", shown(owner));
    let unknown = |why: &str| Ok(OwnerAnswer::Unknown(format!("{why}{of}")));
    let cannot_run =
        |why: String| CommandError::usage(format!("--owner-alive: cannot run the command ({why})"));
    if owner.contains(&0) || lock.key.contains(&0) {
        return unknown("arguments and variables cannot contain a zero byte, as needed");
    }
    let ended = match program.run(Some(&asked(lock, owner)), b"").await {
        Ok(ended) => ended,
        Err(error) if error.kind() == ErrorKind::TimedOut => return unknown(&error.to_string()),
        Err(error) if error.kind() == ErrorKind::ArgumentListTooLong => {
            return unknown("too many bytes for an argument or a variable");
        }
        Err(error) => return Err(cannot_run(error.to_string())),
    };
    match ended.status.code() {
        Some(ALIVE) => Ok(OwnerAnswer::Alive),
        Some(DEAD) => Ok(OwnerAnswer::Dead),
        Some(code) if CANNOT_RUN.contains(&code) => Err(cannot_run(ended.words(&of))),
        _ => Ok(OwnerAnswer::Unknown(ended.words(&of))),
    }
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
