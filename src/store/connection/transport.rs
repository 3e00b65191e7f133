//! Bytes out and bytes in on one socket, both under way at a time.

use std::future::Future as _;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use tokio::io::AsyncReadExt as _;

use super::socket::Socket;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// A socket with what is still to be sent there, and what came from there.
pub(super) struct Transport {
    socket: Box<dyn Socket>,
    pub(super) out: Vec<u8>,
    sent: usize,
    /// All went out, but the socket has not let go of it.
    held_back: bool,
    pub(super) inbox: Vec<u8>,
    /// How much of the inbox was read.
    pub(super) taken: usize,
}

impl Transport {
    pub(super) fn new(socket: Box<dyn Socket>) -> Self {
        Self { socket, out: Vec::new(), sent: 0, held_back: false, inbox: Vec::new(), taken: 0 }
    }

    /// Sends as much as the socket takes at once.
    pub(super) fn poll_send(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.out.is_empty() && !self.held_back {
            return Ok(());
        }
        while self.sent < self.out.len() {
            match Pin::new(&mut *self.socket).poll_write(context, &self.out[self.sent..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(sent) => self.sent += sent?,
                Poll::Pending => return Ok(()),
            }
        }
        self.out.clear();
        self.sent = 0;
        // TLS may hold a part of it back until the socket takes it.
        self.held_back = true;
        if let Poll::Ready(flushed) = Pin::new(&mut *self.socket).poll_flush(context) {
            self.held_back = false;
            flushed?;
        }
        Ok(())
    }

    /// Waits for bytes, and tells how many came; what was read of the inbox goes. Sends meanwhile: neither side ever waits for the other to take its
    /// bytes first.
    pub(super) fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // Read even when nothing can be sent: a server that turns a client away says why before it closes.
        let sent = self.poll_send(context);
        self.inbox.drain(..std::mem::take(&mut self.taken));
        self.inbox.reserve(CHUNK);
        match ready!(pin!(self.socket.read_buf(&mut self.inbox)).poll(context))? {
            0 => {
                Poll::Ready(Err(sent.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into())))
            }
            count => Poll::Ready(Ok(count)),
        }
    }
}
