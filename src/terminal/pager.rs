//! Shows text in a pager if it is longer than the terminal.
//!
//! Text is held back until it fills the terminal; then the pager starts and gets all of it. Shorter
//! text is printed without a pager.

use std::io::{self, Write as _};
use std::process::{Child, Command, Stdio};

/// The stream for a piece of text if no pager is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

pub(super) struct Pager {
    command: String,
    less_options: Option<&'static str>,
    /// How many lines fit on the terminal.
    height: usize,
    lines: usize,
    /// The text that is held back, in order.
    waiting: Vec<(Stream, Vec<u8>)>,
    running: Option<Child>,
}

impl Pager {
    /// A pager that starts once the text is longer than `height` lines. `None` if the operator
    /// wants none, that is, if `PAGER` is `cat` or empty.
    pub(super) fn new(
        command: &str,
        less_options: Option<&'static str>,
        height: usize,
    ) -> Option<Self> {
        if ["cat", ""].contains(&command.trim()) {
            return None;
        }
        let command = command.to_owned();
        Some(Self { command, less_options, height, lines: 0, waiting: Vec::new(), running: None })
    }

    /// Adds text.
    ///
    /// # Errors
    /// The pager no longer reads, because its user closed it.
    pub(super) fn take(&mut self, stream: Stream, text: &[u8]) -> io::Result<()> {
        if let Some(pager) = &mut self.running {
            return feed(pager, text);
        }
        self.lines += text.iter().filter(|byte| **byte == b'\n').count();
        self.waiting.push((stream, text.to_vec()));
        if self.lines < self.height {
            return Ok(());
        }
        // If no pager can be started, the text is printed at the end.
        let Ok(mut pager) = self.start() else { return Ok(()) };
        // Ctrl-C must not end idemctl while the pager runs, or the pager would be left without it
        // on the terminal.
        let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
        // The pager is kept even if it no longer reads, because `end` must wait for it.
        let waiting = std::mem::take(&mut self.waiting);
        let fed = waiting.iter().try_for_each(|(_, text)| feed(&mut pager, text));
        self.running = Some(pager);
        fed
    }

    fn start(&self) -> io::Result<Child> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&self.command).stdin(Stdio::piped());
        if let Some(options) = self.less_options {
            shell.env("LESS", options);
        }
        shell.spawn()
    }

    /// Waits until the operator closes the pager. Returns the text that needed no pager.
    pub(super) fn end(&mut self) -> Vec<(Stream, Vec<u8>)> {
        if let Some(mut pager) = self.running.take() {
            drop(pager.stdin.take());
            let _ = pager.wait();
        }
        std::mem::take(&mut self.waiting)
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }
}

fn feed(pager: &mut Child, text: &[u8]) -> io::Result<()> {
    let Some(stdin) = &mut pager.stdin else { return Err(io::ErrorKind::BrokenPipe.into()) };
    stdin.write_all(text)?;
    stdin.flush()
}
