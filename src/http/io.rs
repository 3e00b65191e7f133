//! A connection as hyper uses it, with a gate beneath hyper.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

use super::gate::{GatePlace, HeaderEnd};

/// A TCP connection, or TLS over one.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// When the last byte of a header section was written; `None` before that.
pub(super) type SentTime = watch::Sender<Option<Instant>>;

/// A connection that holds back the last byte of its header section until the gate opens.
pub(super) struct GatedStream {
    pub(super) stream: Box<dyn ByteStream>,
    /// `None` after the gate opened.
    pub(super) place: Option<GatePlace>,
    pub(super) header_end: HeaderEnd,
    pub(super) sent: Arc<SentTime>,
}

impl Write for GatedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let Some(place) = &mut this.place else {
            return Pin::new(&mut this.stream).poll_write(context, bytes);
        };
        let before = this.header_end.before_last(bytes);
        if before > 0 {
            let written = ready!(Pin::new(&mut this.stream).poll_write(context, &bytes[..before]))?;
            this.header_end.advance(&bytes[..written]);
            return Poll::Ready(Ok(written));
        }
        // TLS may still hold what was written.
        ready!(Pin::new(&mut this.stream).poll_flush(context))?;
        ready!(place.as_mut().poll(context));
        let written = ready!(Pin::new(&mut this.stream).poll_write(context, bytes))?;
        if written > 0 {
            this.sent.send_replace(Some(Instant::now()));
            this.place = None;
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Read for GatedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0; 8 * 1024];
        let most = cursor.remaining().min(bytes.len());
        let mut buffer = ReadBuf::new(&mut bytes[..most]);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        cursor.put_slice(buffer.filled());
        Poll::Ready(Ok(()))
    }
}
