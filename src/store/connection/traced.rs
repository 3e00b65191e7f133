//! A socket wrapper that reports each command, with the time until its reply.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::redacted;
use super::resp::{self, Arriving, Token};
use super::trace::Trace;
use super::transport::Socket;
use crate::domain::exchange::Exchange;

pub(super) struct Traced {
    socket: Box<dyn Socket>,
    trace: Trace,
    server: String,
    /// The incomplete command at the end of the bytes that were sent, and the incomplete reply.
    asked: Vec<u8>,
    answered: Vec<u8>,
    waiting: VecDeque<(Vec<Vec<u8>>, Instant)>,
}

impl Traced {
    pub(super) fn around(socket: Box<dyn Socket>, trace: &Trace, server: String) -> Self {
        Self {
            socket,
            trace: trace.clone(),
            server,
            asked: Vec::new(),
            answered: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    fn sent(&mut self, bytes: &[u8]) {
        self.asked.extend_from_slice(bytes);
        while let Ok(Some(end)) = Arriving::new(usize::MAX).end(&self.asked) {
            self.waiting.push_back((words(&self.asked), Instant::now()));
            self.asked.drain(..end);
        }
    }

    fn received(&mut self, bytes: &[u8]) {
        self.answered.extend_from_slice(bytes);
        // Without a limit, because the connection checks the size of each reply.
        while let Ok(Some(end)) = Arriving::new(usize::MAX).end(&self.answered) {
            // A server that rejects a client sends its reason without a command.
            if let Some((words, since)) = self.waiting.pop_front() {
                let error = match resp::token(&self.answered, 0, usize::MAX) {
                    Ok(Some((Token::Error(text), _))) => {
                        Some(redacted::redacted_error(&self.answered[text], &words))
                    }
                    _ => None,
                };
                let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
                self.trace.tell(&Exchange {
                    server: self.server.clone(),
                    words: redacted::redacted_words(&words),
                    micros,
                    bytes: end,
                    error,
                });
            }
            self.answered.drain(..end);
        }
    }
}

/// The words of the command at the start of the buffer.
fn words(buffer: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let Ok(Some((Token::Array(count), mut at))) = resp::token(buffer, 0, usize::MAX) else {
        return words;
    };
    for _ in 0..count {
        let Ok(Some((Token::Text(text), next))) = resp::token(buffer, at, usize::MAX) else {
            break;
        };
        words.push(buffer[text].to_vec());
        at = next;
    }
    words
}

impl Socket for Traced {
    fn plain(&self) -> Option<BorrowedFd<'_>> {
        self.socket.plain()
    }
}

impl AsyncRead for Traced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut *self.socket).poll_read(context, into);
        if read.is_ready() {
            self.received(&into.filled()[before..]);
        }
        read
    }
}

impl AsyncWrite for Traced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.socket).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = &written {
            self.sent(&bytes[..*count]);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.socket).poll_shutdown(context)
    }
}
