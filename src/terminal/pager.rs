//! A pager for what is longer than the terminal.
//!
//! Text waits until it fills the terminal. Then the pager starts and gets it all; text that ends before goes to the terminal
//! as it is.

use std::io::{self, Write as _};
use std::process::{Child, Command, Stdio};

/// Where a piece of text goes if no pager is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

pub(super) struct Pager {
    command: String,
    less_options: Option<&'static str>,
    /// Lines that fit on the terminal.
    height: usize,
    lines: usize,
    /// What waits, in order.
    waiting: Vec<(Stream, Vec<u8>)>,
    running: Option<Child>,
}

impl Pager {
    /// A pager that starts once the text is longer than `height` lines. `None` where the operator wants none: `PAGER` is
    /// `cat`.
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

    /// Takes text.
    ///
    /// # Errors
    /// The pager does not take it any more: its user left it.
    pub(super) fn take(&mut self, stream: Stream, text: &[u8]) -> io::Result<()> {
        if let Some(pager) = &mut self.running {
            return feed(pager, text);
        }
        self.lines += text.iter().filter(|byte| **byte == b'\n').count();
        self.waiting.push((stream, text.to_vec()));
        if self.lines < self.height {
            return Ok(());
        }
        // Where no pager can be started the text waits for its end.
        let Ok(mut pager) = self.start() else { return Ok(()) };
        // What would end idemctl ends the pager, or nothing: without idemctl the pager would be left on the terminal alone.
        let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
        let fed = self.waiting.drain(..).try_for_each(|(_, text)| feed(&mut pager, &text));
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

    /// Waits until the user has left the pager; gives what no pager was needed for.
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
