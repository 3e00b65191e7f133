//! All exit codes, each named once, and the exit code of an error.

use std::process::ExitCode;

use crate::domain::covered::Covered;
use crate::store::{ErrorClass, StoreError};

/// How idemctl ends. The numbers are a contract with scripts; [`Exit::ALL`] documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done,
    No,
    Usage,
    Partial,
    Permission,
    Unreachable,
    RefusedForNow,
    OutcomeUnknown,
    Changed,
    Bug,
    Interrupted,
    /// The exit code of a command that idemctl ran, or the status of a monitoring plugin.
    Command(u8),
}

impl Exit {
    /// Every exit code of idemctl with its meaning, for the manual.
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::Done, "done, or the answer is yes"),
        (
            Self::No,
            "the answer is no (for example, the key is absent, a step was rejected, a race was \
            lost, or a check found something)",
        ),
        (Self::Usage, "usage error, or refused for safety"),
        (
            Self::Partial,
            "some nodes or keys were not processed, every round of a race was void, limits \
            stopped an exploration, or stdout could not be written",
        ),
        (Self::Permission, "authentication failed or permission denied"),
        (Self::Unreachable, "server unreachable or timed out, nothing was sent"),
        (
            Self::RefusedForNow,
            "Redis temporarily refuses commands (READONLY, OOM, BUSY, LOADING, CLUSTERDOWN)",
        ),
        (Self::OutcomeUnknown, "a change was sent and its outcome is unknown"),
        (Self::Changed, "the record changed since it was shown, nothing was done"),
        (Self::Bug, "a bug in idemctl"),
        (
            Self::Interrupted,
            "interrupted by Ctrl-C, or by SIGTERM, SIGHUP or SIGQUIT at a prompt or while records \
            change",
        ),
    ];

    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Usage => 2,
            Self::Partial => 3,
            Self::Permission => 4,
            Self::Unreachable => 5,
            Self::RefusedForNow => 6,
            Self::OutcomeUnknown => 7,
            Self::Changed => 8,
            Self::Bug => 70,
            Self::Interrupted => 130,
            Self::Command(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error that ends a command: what was attempted, why it failed, and what to do next.
#[derive(Debug, thiserror::Error)]
#[error("{message}{}", if *.changed_nothing { "; nothing was changed" } else { "" })]
pub struct CommandError {
    pub exit: Exit,
    /// What was attempted, and why it failed.
    pub message: String,
    /// True if the error also says that nothing was changed. A command that made other changes
    /// prints only `message`.
    pub changed_nothing: bool,
    pub hint: Option<String>,
}

impl CommandError {
    /// The message and the hint, in one line.
    pub fn with_hint(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }

    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), changed_nothing: false, hint: None }
    }

    /// A usage error, or a refusal for safety.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The error of a schema that does not exist.
    pub fn no_schema(name: &str, known: &[&str]) -> Self {
        Self::usage(format!("there is no schema `{name}`"))
            .hint(format!("schemas: {}", known.join(", ")))
    }

    /// Adds that nothing was changed.
    #[must_use]
    pub fn changed_nothing(mut self) -> Self {
        self.changed_nothing = true;
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn interrupted(message: impl Into<String>) -> Self {
        Self::new(Exit::Interrupted, message)
    }
}

/// stdout cannot be written: the disk is full, or the pipe's reader closed it. Wrapped in an
/// [`std::io::Error`] of the same kind.
#[derive(Debug, thiserror::Error)]
#[error("stdout cannot be written: {0}")]
pub struct Unwritten(pub std::io::Error);

fn unwritten<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a Unwritten> {
    cause.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref()
}

/// The exit code of a judgement: a finding counts more than what was not read, and that more than
/// that nothing was found.
pub fn judged(is_found: bool, covered: &Covered) -> Exit {
    if is_found {
        Exit::No
    } else if covered.is_whole() {
        Exit::Done
    } else {
        Exit::Partial
    }
}

pub fn of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if let Some(stop) = cause.downcast_ref::<CommandError>() {
            return stop.exit;
        }
        if let Some(store) = cause.downcast_ref::<StoreError>() {
            return of_class(store.class());
        }
        if unwritten(cause).is_some() {
            return Exit::Partial;
        }
        if let Some(error) = cause.downcast_ref::<std::io::Error>() {
            return if error.kind() == std::io::ErrorKind::Interrupted {
                Exit::Interrupted
            } else {
                Exit::Usage
            };
        }
    }
    Exit::Bug
}

/// The hint after an error between two changes.
pub const GOES_ON: &str = "run the same command again to continue with the rest";

/// An error between two changes. Its message states how many changes were made; its exit code is
/// partial if there were any.
pub fn between(error: &anyhow::Error, any_done: bool, so_far: &str) -> CommandError {
    let exit = match of(error) {
        exit @ (Exit::OutcomeUnknown | Exit::Bug) => exit,
        _ if any_done => Exit::Partial,
        exit => exit,
    };
    let after = error.downcast_ref().is_some_and(StoreError::came_after);
    let waits = error.downcast_ref().is_some_and(StoreError::is_redirect);
    let hint = match hint_of(error) {
        Some(when) if any_done && waits => Some(format!("{when}: {GOES_ON}")),
        _ if any_done && !after => Some(GOES_ON.to_owned()),
        hint => hint,
    };
    let (why, changed_nothing) = match error.downcast_ref::<CommandError>() {
        Some(stop) => (stop.message.clone(), stop.changed_nothing && !any_done),
        None => (format!("{error:#}"), false),
    };
    CommandError { changed_nothing, hint, ..CommandError::new(exit, format!("{why}; {so_far}")) }
}

/// The hint for an error, if there is one.
pub fn hint_of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        let stop = cause.downcast_ref::<CommandError>().and_then(|stop| stop.hint.clone());
        stop.or_else(|| {
            cause.downcast_ref::<StoreError>().and_then(StoreError::hint).map(str::to_owned)
        })
    })
}

/// True if the reader of stdout closed it.
pub fn is_unread(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(unwritten)
        .any(|Unwritten(error)| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn of_class(class: ErrorClass) -> Exit {
    match class {
        ErrorClass::Permission => Exit::Permission,
        ErrorClass::Unreachable => Exit::Unreachable,
        ErrorClass::RefusedForNow => Exit::RefusedForNow,
        ErrorClass::Partial => Exit::Partial,
        ErrorClass::OutcomeUnknown => Exit::OutcomeUnknown,
        ErrorClass::File | ErrorClass::Unfit => Exit::Usage,
    }
}
