//! Sends and receives on one socket at the same time.

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::store::connection::target::{Address, Target};
use crate::store::connection::tls::Tls;
use crate::store::error::{StoreError, from_tls};

/// How many bytes are read at once.
const CHUNK: usize = 64 * 1024;

/// A socket with the bytes still to be sent and the bytes received.
pub(super) struct Transport {
    socket: Box<dyn Socket>,
    pub(super) out: Vec<u8>,
    sent: usize,
    /// True if the socket accepted all bytes but has not flushed them.
    held_back: bool,
    pub(super) inbox: Vec<u8>,
    /// How many bytes of the inbox have been processed.
    pub(super) taken: usize,
}

impl Transport {
    pub(super) fn new(socket: Box<dyn Socket>) -> Self {
        Self { socket, out: Vec::new(), sent: 0, held_back: false, inbox: Vec::new(), taken: 0 }
    }

    /// Sends as much as the socket accepts now.
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
        // TLS may keep some bytes until the socket accepts them.
        self.held_back = true;
        if let Poll::Ready(flushed) = Pin::new(&mut *self.socket).poll_flush(context) {
            self.held_back = false;
            flushed?;
        }
        Ok(())
    }

    /// True if bytes have arrived that were not received yet. Does not wait.
    ///
    /// # Errors
    /// The peer closed the stream, or it broke.
    pub(super) async fn has_more(&mut self) -> io::Result<bool> {
        if let Some(socket) = self.socket.plain() {
            // Asked directly, because the runtime would take more system calls. It never waits,
            // because the runtime made the socket non-blocking.
            return match recv(socket, &mut [0; 1], RecvFlags::PEEK) {
                Ok((_, 0)) => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => Ok(true),
                Err(Errno::AGAIN | Errno::INTR) => Ok(false),
                Err(error) => Err(error.into()),
            };
        }
        // The runtime checks its sockets for new bytes only between tasks.
        tokio::task::yield_now().await;
        poll_fn(|context| match self.poll_send_and_receive(context) {
            Poll::Ready(received) => Poll::Ready(received.map(|_| true)),
            Poll::Pending => Poll::Ready(Ok(false)),
        })
        .await
    }

    /// Writes the bytes of `out` as far as the socket accepts them, waits for bytes from the
    /// server, and returns their number. Both happen in turn, so that the two sides cannot block
    /// each other. Discards the processed part of the inbox.
    pub(super) fn poll_send_and_receive(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        // Read even if sending fails: a server that rejects a client sends its reason before it
        // closes.
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

/// A byte stream of any transport.
pub(in crate::store) trait Socket:
    AsyncRead + AsyncWrite + Send + Sync + Unpin
{
    /// The socket, if its bytes are those of the stream. TLS has messages of its own in between.
    fn plain(&self) -> Option<BorrowedFd<'_>>;
}

impl Socket for TcpStream {
    fn plain(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl Socket for UnixStream {
    fn plain(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl Socket for TlsStream<TcpStream> {
    fn plain(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Why the connection could not be opened.
pub(in crate::store) enum NotOpen {
    /// The TLS handshake failed without a certificate error or an alert. The peer may not speak
    /// TLS.
    Handshake(StoreError),
    Other(StoreError),
}

impl From<StoreError> for NotOpen {
    fn from(error: StoreError) -> Self {
        Self::Other(error)
    }
}

/// Connects, with TLS if requested. This does not log in.
///
/// # Errors
/// The server is unreachable, times out, does not speak TLS, or has an untrusted certificate.
pub(in crate::store) async fn open(target: &Target) -> Result<Box<dyn Socket>, NotOpen> {
    let limit = target.connect_timeout;
    match &target.address {
        Address::Unix(path) => match in_time(limit, UnixStream::connect(path)).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let why = "there is no such socket".to_owned();
                Err(StoreError::Unreachable { target: target.to_string(), why }.into())
            }
            Err(error) => Err(not_connected(target, error).into()),
        },
        // A client resolves the service before it connects.
        Address::Service(_) => {
            let error = io::Error::other("Sentinels name a server, and are none");
            Err(not_connected(target, error).into())
        }
        Address::Tcp(host, port) => {
            let connecting = dial(target, host, *port);
            let stream =
                in_time(limit, connecting).await.map_err(|error| not_connected(target, error))?;
            // Otherwise a small request could wait until the server acknowledges the previous one.
            stream.set_nodelay(true).map_err(|error| not_connected(target, error))?;
            match &target.tls {
                None => Ok(Box::new(stream)),
                Some(tls) => Ok(Box::new(shake_hands(target, tls, host, stream).await?)),
            }
        }
    }
}

/// Opens a socket to a server, or to the place at which `address_map` says that it is reached.
pub(super) async fn dial(target: &Target, host: &str, port: u16) -> io::Result<TcpStream> {
    match reached_at(target) {
        Some(Address::Tcp(host, port)) => TcpStream::connect((host.as_str(), *port)).await,
        _ => TcpStream::connect((host, port)).await,
    }
}

fn reached_at(target: &Target) -> Option<&Address> {
    let mapped = target.address_map.iter().find(|(address, _)| *address == target.address);
    mapped.map(|(_, reached_at)| reached_at)
}

fn not_connected(target: &Target, error: io::Error) -> StoreError {
    let mut error =
        StoreError::from_redis(&error.into(), &target.to_string(), target.connect_timeout);
    if let StoreError::Unreachable { why, .. } = &mut error
        && let Some(reached_at) = reached_at(target)
    {
        why.push_str(&format!(" (address_map: {reached_at})"));
    }
    error
}

async fn shake_hands(
    target: &Target,
    tls: &Tls,
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, NotOpen> {
    let name = tls.server_name(host)?;
    let connector = TlsConnector::from(tls.config()?);
    match in_time(target.connect_timeout, connector.connect(name, stream)).await {
        Ok(stream) => Ok(stream),
        Err(error) => Err(match from_tls::trouble(&target.to_string(), &error) {
            Some(trouble) => NotOpen::Other(trouble),
            None => NotOpen::Handshake(StoreError::from_handshake(&error, target)),
        }),
    }
}

/// Stops the work when the limit is exceeded.
pub(in crate::store) async fn in_time<T>(
    limit: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
