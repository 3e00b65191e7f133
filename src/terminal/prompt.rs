//! Prompts on a terminal. The kernel edits the line, so that a question of any length is printed
//! once.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal as _, PipeReader, Write};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr, ttyname,
};

/// The byte of Ctrl-C.
const CTRL_C: u8 = 3;

/// The byte that disables a key of the terminal.
const DISABLED: u8 = if cfg!(target_os = "macos") { 0xff } else { 0 };

/// The longest line in bytes that the kernel edits.
const LONGEST: usize = 4096;

/// The operator's answer to a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptAnswer {
    /// A line that ended with Enter.
    Line(String),
    /// Ctrl-D, or the terminal was closed.
    End,
    /// Ctrl-C, or the prompt was stopped.
    Interrupted,
}

/// The terminal for prompts: stdin and stderr, or the process's own terminal if stdin is not a
/// terminal.
pub(super) struct Prompt {
    /// The terminal of the process, if stdin is not a terminal.
    tty: Option<File>,
}

impl Prompt {
    /// # Errors
    /// The process has no terminal.
    pub(super) fn open() -> io::Result<Self> {
        if io::stdin().is_terminal() {
            return Ok(Self { tty: None });
        }
        let mut path = PathBuf::from("/dev/tty");
        // macOS cannot poll /dev/tty, but it can poll the terminal that /dev/tty refers to.
        if cfg!(target_os = "macos")
            && let Ok(name) = ttyname(rustix::stdio::stderr(), Vec::new())
        {
            path = PathBuf::from(OsString::from_vec(name.into_bytes()));
        }
        let tty = File::options().read(true).write(true).open(path)?;
        Ok(Self { tty: Some(tty) })
    }

    /// Prints the question on `err`, or on the terminal of the process if that is used, and waits
    /// for an answer, or until the other end of `stop` is closed.
    ///
    /// # Errors
    /// The terminal cannot be read or written.
    pub(super) fn ask(
        &mut self,
        err: &mut impl Write,
        question: &str,
        is_secret: bool,
        stop: Option<&PipeReader>,
    ) -> io::Result<PromptAnswer> {
        let stdin = io::stdin();
        let input = match &self.tty {
            Some(tty) => tty.as_fd(),
            None => stdin.as_fd(),
        };
        // Line mode begins before the question, because it discards what was typed earlier.
        let line = Edited::begin(input, is_secret)?;
        say(self.tty.as_ref(), err, question)?;
        let is_stopped = match stop {
            Some(stop) => is_stopped_first(input, stop)?,
            None => false,
        };
        let mut answer = PromptAnswer::Interrupted;
        if !is_stopped {
            let mut bytes = [0; LONGEST];
            let read = rustix::io::retry_on_intr(|| rustix::io::read(input, &mut bytes))?;
            answer = answer_of(&bytes[..read]);
        }
        // The terminal is restored before anything else is printed.
        drop(line);
        // The terminal did not show a line end in these cases.
        if is_secret || !matches!(answer, PromptAnswer::Line(_)) {
            say(self.tty.as_ref(), err, "\n")?;
        }
        Ok(answer)
    }
}

/// Waits for a line of the terminal. True if the other end of `stop` was closed before.
fn is_stopped_first(terminal: BorrowedFd<'_>, stop: &PipeReader) -> io::Result<bool> {
    let mut both = [PollFd::new(&terminal, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut both, None))?;
    Ok(!both[1].revents().is_empty())
}

fn say(tty: Option<&File>, err: &mut impl Write, text: &str) -> io::Result<()> {
    match tty {
        Some(mut tty) => tty.write_all(text.as_bytes()),
        None => err.write_all(text.as_bytes()),
    }
}

fn answer_of(bytes: &[u8]) -> PromptAnswer {
    match bytes {
        [.., CTRL_C] => PromptAnswer::Interrupted,
        [line @ .., b'\n'] => PromptAnswer::Line(String::from_utf8_lossy(line).into_owned()),
        _ => PromptAnswer::End,
    }
}

/// A terminal in line mode that returns Ctrl-C as the last byte of a line. A command that handles
/// Ctrl-C would otherwise keep waiting at its prompt. Dropping this restores the terminal.
struct Edited<'a> {
    terminal: BorrowedFd<'a>,
    before: Termios,
}

impl<'a> Edited<'a> {
    /// Input from before the question is not an answer and is discarded.
    fn begin(terminal: BorrowedFd<'a>, is_secret: bool) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut during = before.clone();
        during.local_modes |= LocalModes::ICANON | LocalModes::ECHO;
        if is_secret {
            during.local_modes -= LocalModes::ECHO;
        }
        during.special_codes[SpecialCodeIndex::VINTR] = DISABLED;
        during.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
        tcsetattr(terminal, OptionalActions::Flush, &during)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Edited<'_> {
    fn drop(&mut self) {
        // An error is ignored: a closed terminal needs no restoring.
        let _ = tcsetattr(self.terminal, OptionalActions::Drain, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: only Enter answers.
    #[test]
    fn a_line_without_its_end_is_no_answer() {
        for (bytes, answer) in [
            (&b"y\n"[..], PromptAnswer::Line("y".to_owned())),
            (b"\n", PromptAnswer::Line(String::new())),
            (b"y", PromptAnswer::End),
            (b"", PromptAnswer::End),
            (b"y\x03", PromptAnswer::Interrupted),
        ] {
            assert_eq!(answer_of(bytes), answer, "{bytes:?}");
        }
    }
}
